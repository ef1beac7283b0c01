"""`make release`: checks, and builds what is handed out. See `__main__`."""
