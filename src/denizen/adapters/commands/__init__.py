"""The programs of configured commands, as tools that the gate can let run (inventory T37).

`toolset.py` offers them, `process.py` runs one. Made by the composition root for each generation.
"""

from denizen.adapters.commands.toolset import CommandToolset

__all__ = ["CommandToolset"]
