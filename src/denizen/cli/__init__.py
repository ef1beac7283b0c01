"""The command line: one file per command. `main.py` finds them, `exit_codes.py` maps errors to exit codes."""
