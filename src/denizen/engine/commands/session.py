"""Talking with the agent, and its session: `/ask`, `/new`, `/reset`, `/compact` and `/context`.

`/ask` asks the agent like a mention does. `/new` starts a fresh session; `/reset` also keeps everything that was said
here so far from the agent for good. `/compact` replaces the session by one summary. `/context` shows how the tokens of
the next prompt divide, against what a prompt may have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from denizen.domain.agent import Agent, ContextStrategy
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import TurnId, fresh
from denizen.domain.prompt import estimate_tokens
from denizen.domain.words import truncate
from denizen.engine.budget.budgets import Payer
from denizen.engine.commands.command import CommandContext, CommandDefinition
from denizen.engine.commands.text import code_block, count_noun, format_percent, format_rows, private_reply
from denizen.engine.configuration.choices import find_model_choice, put_reset
from denizen.engine.inspection.queries import ContextShare, Queries
from denizen.engine.intake.rate_limiter import RateLimiter, rate_error, turn_rate_key
from denizen.engine.summaries.compaction import compact_session
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec
from denizen.ports.store import UnitOfWork


async def _ask(context: CommandContext) -> CommandReply:
    await context.deps.open_turn(context.command, context.option("text"))
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


async def _new(context: CommandContext) -> CommandReply:
    async with context.store.work() as work:
        await _renew_session(work, context, context.agent)
    return private_reply(
        f"{context.agent.name} starts a new session here.",
        "What was said before stays readable, but is not read by the agent any more.",
    )


async def _reset(context: CommandContext) -> CommandReply:
    agents: Sequence[Agent] = [context.agent]
    if context.option("all") == "yes":
        agents = list(context.generation.agents.values())
    now = context.now()
    async with context.store.work() as work:
        for agent in agents:
            await _renew_session(work, context, agent)
            await put_reset(work, agent.name, context.conversation_id, now=now)
    who = agents[0].name if len(agents) == 1 else f"All {count_noun(len(agents), 'agent')}"
    return private_reply(f"{who} will never look again at what was said here until now. This cannot be undone.")


async def _renew_session(work: UnitOfWork, context: CommandContext, agent: Agent) -> None:
    """Starts a new session, where the agent has one at all."""
    now = context.now()
    home = await work.conversations.put(context.caller.find_session_place(agent), now=now)
    if await work.sessions.list_sessions(home.id, agent.name):
        await work.sessions.renew(home.id, agent.name, now=now)


NEW = CommandDefinition(CommandSpec("new", "Start a new session: the agent begins afresh."), _new)
RESET = CommandDefinition(
    CommandSpec(
        "reset",
        "Make the agent forget for good what was said here.",
        (CommandOption("all", "Every agent that runs here, not only this one.", choices=("yes",)),),
    ),
    _reset,
)


async def _compact(context: CommandContext) -> CommandReply:
    # A transcript is read from the archive for each prompt, so there is no session to replace.
    if context.agent.history.context is ContextStrategy.TRANSCRIPT:
        raise InvalidInput(
            f"{context.agent.name} reads the conversation itself, which cannot be summarized.",
            code="compaction_transcript",
            fix="Use /new to start afresh.",
        )
    home = context.session_place.conversation_id
    # A turn that ran meanwhile would add messages that the summary does not know and that it would hide.
    async with context.deps.runtime.lease() as generation, context.deps.lock_session(context.agent.name, home):
        key, room, asker = TurnId(fresh("compact")), context.command.room, context.caller.principal
        payer = Payer.at_place(key, context.agent.name, asker, room.place, room.guild, generation)
        excess = await RateLimiter(context.services.store, context.services.clock).take(
            turn_rate_key(asker), generation.policy.rate_limits.of(asker)
        )
        if excess is not None:  # it asks the model, as a question does
            raise rate_error(excess)
        done = await compact_session(context.services, payer, context.agent, home)
    before, after = f"{done.tokens_before:,} tokens", f"{done.tokens_after:,} tokens"
    told = f"{count_noun(done.messages_before, 'message')} before ({before}), 1 after ({after})"
    lines = [f"Compacted: {told}. The messages stay readable."]
    if done.left_out:
        lines.append(
            f"The oldest {count_noun(done.left_out, 'message')} were too much for the model and are not in it."
        )
    limit = context.message_limit - sum(map(len, lines)) - 10  # for the line breaks
    return private_reply(*lines, truncate("> " + done.summary.text.replace("\n", "\n> "), limit))


COMPACT = CommandDefinition(CommandSpec("compact", "Summarize this session, and go on from the summary."), _compact)


_TALK = frozenset({"summaries", "messages", "closed blocks", "tail"})
"""The parts of a prompt that share the budget for the conversation."""


async def _context(context: CommandContext) -> CommandReply:
    services, agent = context.services, context.agent
    async with services.store.work(write=False) as work:
        chosen = await find_model_choice(work, context.caller.principal.key, context.generation.models)
    model = context.generation.models.get(chosen or agent.model)
    found = await Queries(context.deps.runtime, services).load_context(context.session_place, agent.name, chosen or "")
    rows = list(_context_rows(agent, found.shares))
    used = sum(tokens for _, tokens in rows)
    talk = sum(tokens for name, tokens in rows if name in _TALK)
    most = used - talk + found.history_tokens
    free = max(most - used, 0)
    body = [
        ["part", "tokens", "share"],
        *([name, f"{tokens:,}", format_percent(tokens, most)] for name, tokens in rows),
        ["in use", f"{used:,}", format_percent(used, most)],
        ["free", f"{free:,}", format_percent(free, most)],
    ]
    window = model.capabilities.context_tokens
    head = (
        f"{agent.name} on {model.name}, which reads {window:,} tokens. The prompt may have {most:,} of them. "
        "Estimated for the next question:"
    )
    notes = list(_context_notes(agent, talk, found.history_tokens))
    room = context.message_limit - len(head) - sum(map(len, notes)) - 10
    return private_reply(head, code_block(format_rows(body), limit=room), *notes)


def _context_rows(agent: Agent, shares: Iterable[ContextShare]) -> Iterator[tuple[str, int]]:
    """Lists the parts of the prompt, the persona file by file."""
    for each in shares:
        persona = agent.instructions.persona
        if each.name == "persona" and persona:
            yield from ((f"file {name}", estimate_tokens(text.strip())) for name, text in persona if text.strip())
        else:
            yield each.name, each.tokens


def _context_notes(agent: Agent, talk: int, most: int) -> Iterator[str]:
    if agent.history.context is not ContextStrategy.SESSION:
        return
    if talk > most:
        yield f"Of the messages only the newest {most:,} tokens are sent. /compact summarizes them."
    elif talk > most * 3 // 4:
        yield "It is getting full: /compact summarizes the messages, /new starts afresh."


CONTEXT = CommandDefinition(CommandSpec("context", "See what fills the agent's context here."), _context)
