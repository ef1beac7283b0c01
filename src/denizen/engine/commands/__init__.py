"""The commands that people give to agents: slash commands of a platform, and the same typed as text.

`dispatch.py` is the entry point: it knows all commands, checks who may give them, and runs them. `command.py` holds
what a command is given, `text.py` reads typed commands and formats replies. Each other module holds the commands of
one topic. Nothing here knows a platform.
"""
