"""The commands that are built in, in the order in which they are offered. A new one is added here and in
`permissions.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from denizen.engine.commands.agent import AGENT
from denizen.engine.commands.allow import ALLOW
from denizen.engine.commands.ask import ASK
from denizen.engine.commands.compact import COMPACT
from denizen.engine.commands.context import CONTEXT
from denizen.engine.commands.help import HELP
from denizen.engine.commands.memory import MEMORY
from denizen.engine.commands.model import MODE_COMMAND, MODEL_COMMAND
from denizen.engine.commands.observer import OBSERVER
from denizen.engine.commands.reminders import REMINDERS
from denizen.engine.commands.scene import Command
from denizen.engine.commands.session import NEW, RESET
from denizen.engine.commands.usage import USAGE
from denizen.engine.commands.why import WHY

COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        command.spec.name: command
        for command in (
            ASK,
            NEW,
            RESET,
            AGENT,
            MODEL_COMMAND,
            MODE_COMMAND,
            CONTEXT,
            COMPACT,
            WHY,
            USAGE,
            MEMORY,
            REMINDERS,
            ALLOW,
            OBSERVER,
            HELP,
        )
    }
)
