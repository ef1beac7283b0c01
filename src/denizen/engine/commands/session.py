"""`/new`: a fresh session. `/reset`: nothing that was said here so far is ever shown to the agent again (C19)."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.agent import Agent
from denizen.engine.choices import put_reset
from denizen.engine.commands.scene import Command, Given
from denizen.engine.commands.words import counted, say
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec
from denizen.ports.store import Work


async def _new(given: Given) -> CommandReply:
    async with given.on.services.store.work() as work:
        await _renew_session(work, given, given.agent)
    return say(
        f"{given.agent.name} begins a new session here.",
        "What was said before stays readable, but is not read by the agent any more.",
    )


async def _reset(given: Given) -> CommandReply:
    agents: Sequence[Agent] = [given.agent]
    if given.option("all") == "yes":
        agents = list(given.generation.agents.values())
    now = given.on.services.clock.now()
    async with given.on.services.store.work() as work:
        for agent in agents:
            await _renew_session(work, given, agent)
            await put_reset(work, agent.name, given.here, now=now)
    who = agents[0].name if len(agents) == 1 else f"All {counted(len(agents), 'agent')}"
    return say(f"{who} will not look at anything again that was said here until now. This cannot be undone.")


async def _renew_session(work: Work, given: Given, agent: Agent) -> None:
    """A session that was never begun needs no end."""
    now = given.on.services.clock.now()
    home = await work.conversations.put(given.at.session_of(agent), now=now)
    if await work.sessions.list_sessions(home.id, agent.name):
        await work.sessions.renew(home.id, agent.name, now=now)


NEW = Command(CommandSpec("new", "Begin a new session: the agent starts afresh."), _new)
RESET = Command(
    CommandSpec(
        "reset",
        "Make the agent forget for good what was said here.",
        (CommandOption("all", "Every agent that runs here, not only this one.", choices=("yes",)),),
    ),
    _reset,
)
