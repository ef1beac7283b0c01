"""Tools for those who work on Denizen. Each is a module to run: `python -m scripts.docs`, `python -m scripts.shape`."""
