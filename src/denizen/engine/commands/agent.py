"""`/agent`: which agents there are, and who answers in this conversation.

Admins may choose any agent; others those that the account's configuration offers to everybody (`switchable`). The
account's own agent may be called back by whoever could have chosen the one that answers now.
"""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.errors import NotAllowed
from denizen.domain.ids import AgentName
from denizen.engine.choices import put_agent
from denizen.engine.commands.scene import Command, Given
from denizen.engine.commands.words import listed, matching, say
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec

DEFAULT = "default"


async def _agent(given: Given) -> CommandReply:
    name = given.option("name")
    if not name:
        return _list_agents(given)
    target = given.at.account if name.casefold() == DEFAULT else given.generation.agent(name).name
    if target == given.agent.name:
        return say(f"{target} answers here already.")
    if target not in _agent_choices(given):
        offered = [each for each in _agent_choices(given) if each != given.agent.name]
        raise NotAllowed(
            f"You may not let {target} answer here.",
            code="agent_not_switchable",
            why="Only admins may choose any agent; this one is not offered to everybody.",
            fix=f"Choose one of: {listed(offered)}." if offered else "Ask an admin.",
        )
    async with given.on.services.store.work() as work:
        await put_agent(work, given.at.account, given.here, target, now=given.on.services.clock.now())
    back = "" if target == given.at.account else " Give /agent default to go back."
    return say(f"From now on {target} answers here, with a history of its own.{back}")


def _list_agents(given: Given) -> CommandReply:
    may = set(_agent_choices(given))
    lines = [f"{given.agent.name} answers here. Agents:"]
    for agent in given.generation.agents.values():
        about = f": {agent.description}" if agent.description else ""
        note = "" if agent.name in may else " (admins only)"
        lines.append(f"- `{agent.name}`{about}{note}")
    return say(*lines)


def _agent_choices(given: Given) -> list[AgentName]:
    """Whom this person may let answer here."""
    agents, own = given.generation.agents, given.at.account
    if given.at.is_admin:
        return list(agents)
    open_to_all = given.at.manners.switchable
    back = {own} if given.agent.name in open_to_all | {own} else set[AgentName]()
    return [name for name in agents if name in open_to_all | back]


async def _suggest_agent(given: Given, typed: str) -> Sequence[str]:
    return matching(typed, [*_agent_choices(given), DEFAULT])


AGENT = Command(
    CommandSpec(
        "agent",
        "See which agents there are, or choose who answers here.",
        (CommandOption("name", "The agent that answers from now on; `default` goes back.", suggests=True),),
    ),
    _agent,
    {"name": _suggest_agent},
)
