"""`/compact`: one summary in the place of everything that was said in the session (inventory T38)."""

from __future__ import annotations

from denizen.engine.commands.scene import Command, Given
from denizen.engine.commands.words import counted, cut, say
from denizen.engine.compaction import compact_session
from denizen.ports.channel import CommandReply, CommandSpec


async def _compact(given: Given) -> CommandReply:
    home = given.session_place.conversation_id
    async with given.on.runtime.lease() as generation, given.on.hold(given.agent.name, home):
        done = await compact_session(given.on.services, generation.models, given.agent, home)
    before = f"{counted(done.messages_before, 'message')} before ({done.tokens_before:,} tokens)"
    lines = [f"Compacted: {before}, 1 after ({done.tokens_after:,} tokens). The earlier session stays readable."]
    if done.left_out:
        lines.append(f"The oldest {counted(done.left_out, 'message')} were too much for the model and are not in it.")
    room = given.at.manners.message_limit - sum(map(len, lines)) - 10
    return say(*lines, cut("> " + done.summary.replace("\n", "\n> "), room))


COMPACT = Command(CommandSpec("compact", "Sum this session up, and go on from the summary."), _compact)
