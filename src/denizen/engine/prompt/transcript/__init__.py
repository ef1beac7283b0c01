"""The transcript strategy: a participant reads the room's talk as lines (inventory C3 to C10, C28).

`load.py` is where it begins: `room.py` reads what is archived, `blocks.py` keeps its closed blocks, `session.py` is for
talk that nobody archives, `messages.py` makes the prompt of it.
"""
