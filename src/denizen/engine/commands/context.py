"""`/context`: how the next prompt's tokens divide, against what the model can read (inventory T35)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from denizen.domain.agent import Agent, ContextStrategy
from denizen.domain.prompt import estimate_tokens
from denizen.engine.choices import model_of
from denizen.engine.commands.scene import Command, Given
from denizen.engine.commands.words import code_block, say, share, table
from denizen.engine.queries import ContextShare, Queries
from denizen.ports.channel import CommandReply, CommandSpec

_ContextRow = tuple[str, int]


async def _context(given: Given) -> CommandReply:
    services, agent = given.on.services, given.agent
    async with services.store.work(write=False) as work:
        chosen = await model_of(work, given.at.principal.key, given.generation.models)
    model = given.generation.models.get(chosen or agent.model)
    window = model.capabilities.context_tokens
    shares = await Queries(given.on.runtime, services).list_context(given.session_place, agent.name)
    rows = list(_context_rows(agent, shares))
    used = sum(tokens for _, tokens in rows)
    body = [
        ["part", "tokens", "share"],
        *([name, f"{tokens:,}", share(tokens, window)] for name, tokens in rows),
        ["in use", f"{used:,}", share(used, window)],
        ["free", f"{max(window - used, 0):,}", share(max(window - used, 0), window)],
    ]
    head = f"{agent.name} on {model.name}, which reads {window:,} tokens. Estimated for the next question:"
    notes = list(_context_notes(agent, dict(rows).get("messages", 0), used, window))
    room = given.at.manners.message_limit - len(head) - sum(map(len, notes)) - 10
    return say(head, code_block(table(body), limit=room), *notes)


def _context_rows(agent: Agent, shares: Iterable[ContextShare]) -> Iterator[_ContextRow]:
    """The persona file by file."""
    for each in shares:
        if each.name == "persona" and agent.persona:
            yield from ((f"file {name}", estimate_tokens(text.strip())) for name, text in agent.persona if text.strip())
        else:
            yield each.name, each.tokens


def _context_notes(agent: Agent, messages: int, used: int, window: int) -> Iterator[str]:
    if messages > agent.limits.max_history_tokens:
        most = agent.limits.max_history_tokens
        yield f"Of the messages only the newest {most:,} tokens are sent. /compact sums them up."
    elif used > window * 3 // 4 and agent.context is ContextStrategy.SESSION:
        yield "It is getting full: /compact sums the messages up, /new begins afresh."


CONTEXT = Command(CommandSpec("context", "See what fills the agent's context here."), _context)
