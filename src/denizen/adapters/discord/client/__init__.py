"""What every part of the Discord adapter shares: settings, errors, the HTTP client, the application and its
permissions.
"""
