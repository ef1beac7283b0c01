"""`/ask`: a question to the agent, as a mention would be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from denizen.domain.agent import Agent, ContextStrategy
from denizen.domain.budget import SERVER, Scope, ScopeKind
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import TurnId, fresh
from denizen.domain.prompt import estimate_tokens
from denizen.engine.budgets import Payer, place_scopes
from denizen.engine.choices import model_of, put_reset
from denizen.engine.commands.command import CommandContext, CommandDefinition
from denizen.engine.commands.text import code_block, count_noun, format_percent, format_rows, private_reply, truncate
from denizen.engine.compaction import compact_session
from denizen.engine.queries import ContextShare, Queries
from denizen.engine.runtime import Generation
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec
from denizen.ports.store import Work


async def _ask(given: CommandContext) -> CommandReply:
    await given.on.open_turn(given.command, given.option("text"))
    return CommandReply(private=False, is_pending=True)


ASK = CommandDefinition(
    CommandSpec(
        "ask",
        "Ask the agent something.",
        (CommandOption("text", "What you want to know.", required=True),),
        public=True,
    ),
    _ask,
)


async def _new(given: CommandContext) -> CommandReply:
    async with given.on.services.store.work() as work:
        await _renew_session(work, given, given.agent)
    return private_reply(
        f"{given.agent.name} begins a new session here.",
        "What was said before stays readable, but is not read by the agent any more.",
    )


async def _reset(given: CommandContext) -> CommandReply:
    agents: Sequence[Agent] = [given.agent]
    if given.option("all") == "yes":
        agents = list(given.generation.agents.values())
    now = given.on.services.clock.now()
    async with given.on.services.store.work() as work:
        for agent in agents:
            await _renew_session(work, given, agent)
            await put_reset(work, agent.name, given.here, now=now)
    who = agents[0].name if len(agents) == 1 else f"All {count_noun(len(agents), 'agent')}"
    return private_reply(f"{who} will not look at anything again that was said here until now. This cannot be undone.")


async def _renew_session(work: Work, given: CommandContext, agent: Agent) -> None:
    """A session that was never begun needs no end."""
    now = given.on.services.clock.now()
    home = await work.conversations.put(given.at.session_of(agent), now=now)
    if await work.sessions.list_sessions(home.id, agent.name):
        await work.sessions.renew(home.id, agent.name, now=now)


NEW = CommandDefinition(CommandSpec("new", "Begin a new session: the agent starts afresh."), _new)
RESET = CommandDefinition(
    CommandSpec(
        "reset",
        "Make the agent forget for good what was said here.",
        (CommandOption("all", "Every agent that runs here, not only this one.", choices=("yes",)),),
    ),
    _reset,
)


async def _compact(given: CommandContext) -> CommandReply:
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
    told = f"{count_noun(done.messages_before, 'message')} before ({before}), 1 after ({after})"
    lines = [f"Compacted: {told}. The messages stay readable."]
    if done.left_out:
        lines.append(
            f"The oldest {count_noun(done.left_out, 'message')} were too much for the model and are not in it."
        )
    room = given.at.account_policy.message_limit - sum(map(len, lines)) - 10
    return private_reply(*lines, truncate("> " + done.summary.text.replace("\n", "\n> "), room))


def _compact_payer(given: CommandContext, generation: Generation) -> Payer:
    """Who gives the command pays, with the room in which it is given."""
    agent, asker, room = given.agent.name, given.at.principal, given.command.room
    mine = (SERVER, Scope(ScopeKind.AGENT, agent), Scope(ScopeKind.USER, asker.key))
    scopes = (*mine, *place_scopes(room.place, room.guild))
    source = room.place.platform
    return Payer(TurnId(fresh("compact")), agent, asker, source, scopes, generation.budgets, generation.models)


COMPACT = CommandDefinition(CommandSpec("compact", "Sum this session up, and go on from the summary."), _compact)


_ContextRow = tuple[str, int]


async def _context(given: CommandContext) -> CommandReply:
    services, agent = given.on.services, given.agent
    async with services.store.work(write=False) as work:
        chosen = await model_of(work, given.at.principal.key, given.generation.models)
    model = given.generation.models.get(chosen or agent.model)
    window = model.capabilities.context_tokens
    shares = await Queries(given.on.runtime, services).list_context(given.session_place, agent.name)
    rows = list(_context_rows(agent, shares))
    used = sum(tokens for _, tokens in rows)
    body = [
        ["part", "tokens", "format_percent"],
        *([name, f"{tokens:,}", format_percent(tokens, window)] for name, tokens in rows),
        ["in use", f"{used:,}", format_percent(used, window)],
        ["free", f"{max(window - used, 0):,}", format_percent(max(window - used, 0), window)],
    ]
    head = f"{agent.name} on {model.name}, which reads {window:,} tokens. Estimated for the next question:"
    notes = list(_context_notes(agent, dict(rows).get("messages", 0), used, window))
    room = given.at.account_policy.message_limit - len(head) - sum(map(len, notes)) - 10
    return private_reply(head, code_block(format_rows(body), limit=room), *notes)


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


CONTEXT = CommandDefinition(CommandSpec("context", "See what fills the agent's context here."), _context)
