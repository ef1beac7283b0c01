"""What the model sees: `assemble.py` the system segments, `window.py` the history that fits, `notes.py` what only one
turn shows and where it stands, `rhythm.py` for how long a provider is to keep it.
"""
