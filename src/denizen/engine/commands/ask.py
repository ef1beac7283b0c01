"""`/ask`: a question to the agent, as a mention would be."""

from __future__ import annotations

from denizen.engine.commands.scene import Command, Given
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec


async def _ask(given: Given) -> CommandReply:
    await given.on.open_turn(given.command, given.option("text"))
    return CommandReply(private=False, is_pending=True)


ASK = Command(
    CommandSpec(
        "ask",
        "Ask the agent something.",
        (CommandOption("text", "What you want to know.", required=True),),
        public=True,
    ),
    _ask,
)
