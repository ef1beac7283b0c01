"""The skills of the owner: folders below `skills/` in the home folder.

`folder.py` reads one into memory and pins its content, `reading.py` finds its manifest, `pinned.py` imports its code
from that memory, `shelf.py` says what there is and loads what is enabled, `markdown.py` offers Markdown skills to
agents, `workshop.py` writes and deletes them, `check.py` and `child.py` look whether one works, `example.py` holds the
ones to begin with.

The rules (inventory VW6). Nothing runs because it lies in the folder: the configuration names a skill with the sha256
of its whole content, and only exactly this content is loaded. Enabled Python skills run inside Denizen, as built-in
ones do, with all that Denizen may do; their permissions keep honest code honest and are no sandbox. So a change of one
byte switches a skill off until its owner has looked at it and enabled it again, and what a model writes is never
enabled by it.
"""
