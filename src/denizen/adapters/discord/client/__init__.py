"""The settings, errors, HTTP client, application and permissions that all parts of the Discord adapter share."""
