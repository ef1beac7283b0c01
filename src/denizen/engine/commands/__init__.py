"""The commands that people give to agents: slash commands of a platform, and the same as text (inventory T35, T36).

`commands.py` is the way in. `scene.py` says what a command is given with, `table.py` which there are, `permissions.py`
who may give them, `text.py` how they are read from a message. Each other module is one command or a small family.
Nothing here knows a platform.
"""
