"""`/compact`: one summary in the place of everything that was said in the session (inventory T38)."""

from __future__ import annotations

from denizen.domain.agent import ContextStrategy
from denizen.domain.budget import SERVER, Scope, ScopeKind
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import TurnId, fresh
from denizen.engine.budgets import Payer, place_scopes
from denizen.engine.commands.scene import Command, Given
from denizen.engine.commands.words import counted, cut, say
from denizen.engine.compaction import compact_session
from denizen.engine.runtime import Generation
from denizen.ports.channel import CommandReply, CommandSpec


async def _compact(given: Given) -> CommandReply:
    if given.agent.context is ContextStrategy.TRANSCRIPT:
        raise InvalidInput(
            f"{given.agent.name} reads the talk itself, which cannot be summed up.",
            code="compaction_transcript",
            fix="Give /new to begin afresh.",
        )
    home = given.session_place.conversation_id
    async with given.on.runtime.lease() as generation, given.on.hold(given.agent.name, home):
        payer = _compact_payer(given, generation)
        done = await compact_session(given.on.services, payer, given.agent, home)
    before, after = f"{done.tokens_before:,} tokens", f"{done.tokens_after:,} tokens"
    told = f"{counted(done.messages_before, 'message')} before ({before}), 1 after ({after})"
    lines = [f"Compacted: {told}. The messages stay readable."]
    if done.left_out:
        lines.append(f"The oldest {counted(done.left_out, 'message')} were too much for the model and are not in it.")
    room = given.at.manners.message_limit - sum(map(len, lines)) - 10
    return say(*lines, cut("> " + done.summary.text.replace("\n", "\n> "), room))


def _compact_payer(given: Given, generation: Generation) -> Payer:
    """Who gives the command pays, with the room in which it is given."""
    agent, asker, room = given.agent.name, given.at.principal, given.command.room
    mine = (SERVER, Scope(ScopeKind.AGENT, agent), Scope(ScopeKind.USER, asker.key))
    scopes = (*mine, *place_scopes(room.place, room.guild))
    source = room.place.platform
    return Payer(TurnId(fresh("compact")), agent, asker, source, scopes, generation.budgets, generation.models)


COMPACT = Command(CommandSpec("compact", "Sum this session up, and go on from the summary."), _compact)
