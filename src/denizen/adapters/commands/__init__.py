"""Programs: those of configured commands and of custom tools, as tools that the gate can let run (inventory T37), and
those that skills run.

`toolset.py` offers the first, `custom.py` the others, `process.py` runs one. Made by the composition root for each
generation.
"""

from denizen.adapters.commands.custom import CustomToolset, ProgramRunner
from denizen.adapters.commands.process import run_program
from denizen.adapters.commands.toolset import CommandToolset

__all__ = ["CommandToolset", "CustomToolset", "ProgramRunner", "run_program"]
