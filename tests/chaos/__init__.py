"""Faults of everything that Denizen stands on, by hand: `make chaos`, or `python -m tests.chaos [NAME ...]`."""
