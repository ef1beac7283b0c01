"""What the model sees: `assemble.py` the system segments, `session.py` the history that fits."""
