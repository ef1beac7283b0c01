"""How a reply came about and what it cost: `/why` and `/usage`.

`/why` tells about one reply of this room: model, prompt, steps, tools with their verdicts, tokens, cost and time. The
arguments of tools are shown to the asker of that turn and to admins only. `/usage` tells what was spent today and this
month. Everybody sees their own spending; admins see the rest as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal

from denizen.domain.budget import SERVER, BudgetLimits, BudgetScope, BudgetScopeKind, BudgetStatus
from denizen.domain.errors import NotFound
from denizen.domain.ids import TurnId
from denizen.domain.routing import describe_route
from denizen.domain.trace import PromptUse
from denizen.domain.turn import CallRecord, Turn
from denizen.domain.verdict import Decision
from denizen.domain.words import truncate
from denizen.engine.budget.budgets import place_scopes
from denizen.engine.commands.command import CommandContext, CommandDefinition
from denizen.engine.commands.text import code_block, count_noun, format_percent, format_rows, private_reply
from denizen.engine.inspection.queries import Queries, TurnTrace
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec
from denizen.ports.store import UnitOfWork

_RECENT_TURNS = 20
"""How many turns back the last reply is looked for."""

_ARGS_CHARS = 120
_DECISIONS = {Decision.APPROVE: "approved", Decision.DENY: "denied", Decision.ASK: "asked a human"}


async def _why(context: CommandContext) -> CommandReply:
    # A link to a message ends in its id.
    named = context.command.target or context.option("message").rstrip("/").rpartition("/")[2]
    async with context.store.work(write=False) as work:
        turn = await _find_named(work, context, named) if named else await _find_last(work, context)
    detail = await Queries(context.deps.runtime, context.services).get_turn(turn.id)
    is_mine = turn.principal.key == context.caller.principal.key
    in_full = context.caller.is_admin or is_mine
    return private_reply(
        truncate("\n".join(_trace_lines(detail, in_full=in_full, is_mine=is_mine)), context.message_limit)
    )


async def _find_named(work: UnitOfWork, context: CommandContext, message: str) -> Turn:
    """Finds the turn of a reply, or of the message that it answers. Raises NotFound, also for messages elsewhere."""
    platform = context.command.room.platform
    delivery = await work.outbox.find_by_platform_id(platform, message)
    key: TurnId | None = delivery.turn_id if delivery else None
    if key is None:
        claims = await work.inbox.find_claims(context.caller.account, platform, [message])
        key = claims[message].turn_id if message in claims else None
    turn = await work.turns.find(key) if key else None
    # A reply in another room may be one that the caller may not read.
    if turn is None or turn.conversation_id != context.conversation_id:
        raise NotFound(
            "That message is no reply of mine in this channel.",
            code="why_message",
            fix="Name one of my replies by its id or link, or use /why alone for the last one.",
        )
    return turn


async def _find_last(work: UnitOfWork, context: CommandContext) -> Turn:
    # Until now another agent may have answered here in the account's name.
    mine = {context.agent.name, context.caller.account}
    turns = await work.turns.list_turns(conversation_id=context.conversation_id, limit=_RECENT_TURNS)
    found = next((turn for turn in turns if turn.agent in mine and turn.status.is_final), None)
    if found is None:
        raise NotFound("I have not replied here lately.", code="why_nothing", fix="Name the reply by its id or link.")
    return found


def _trace_lines(detail: TurnTrace, *, in_full: bool, is_mine: bool) -> Iterator[str]:
    turn = detail.turn
    took = f" in {(turn.closed_at - turn.opened_at).total_seconds():.1f} s" if turn.closed_at else ""
    model = turn.result.model or "none was reached"
    yield f"{turn.principal.name} asked {turn.agent}; {turn.status}{took}. Model: {model}."
    if turn.result.failure and turn.result.failure.code:
        yield f"It failed: {turn.result.failure.code}."
    if detail.is_replaced:
        yield "Its answer was replaced: the model did not know, or nothing that it had read said so."
    purposes = ", ".join(step.purpose for step in detail.taken)
    yield f"{count_noun(len(detail.taken), 'step')}{f' ({purposes})' if purposes else ''}. {_token_line(turn)}"
    if turn.route:
        yield f"Its {describe_route(turn.route, with_reason=in_full)}."
    yield from _prompt_lines(detail.prompts[-1:])
    yield from _memory_lines(detail, is_mine=is_mine)
    yield from _document_lines(detail)
    if not detail.calls:
        yield "No tools were used."
    for record in detail.calls:
        when = "before the model was asked: " if record in detail.unasked else ""
        yield f"- {when}{_call_line(record, in_full=in_full)}"
    if detail.calls and not in_full:
        yield "Only the asker and admins see the arguments of the tools."
    yield f"-# Reference: {turn.id}"


def _prompt_lines(prompts: Sequence[PromptUse]) -> Iterator[str]:
    """Describes the last prompt, which is that of the answer. Sizes only: others may ask about this reply too."""
    for prompt in prompts:
        system = ", ".join(f"{segment.name} {segment.tokens:,}" for segment in prompt.segments)
        tools = f"; {count_noun(len(prompt.tools), 'tool')} {prompt.tool_tokens:,}" if prompt.tools else ""
        said = ", ".join(f"{each.kind} {each.tokens:,} ({each.count})" for each in prompt.messages)
        yield f"Prompt, in estimated tokens: {system or 'no system prompt'}{tools}; messages: {said}."


def _memory_lines(detail: TurnTrace, *, is_mine: bool) -> Iterator[str]:
    """Lists the memories by id. Their text is shown only to the user whom they are about."""
    ids = dict.fromkeys(key for prompt in detail.prompts for key in prompt.memories)
    if not ids:
        return
    texts = {memory.id: memory.text for memory in detail.memories if is_mine or memory.is_core}
    told = "; ".join(f"`{key}`{f' {truncate(texts[key], _ARGS_CHARS)}' if key in texts else ''}" for key in ids)
    yield f"Memories that came up: {told}."


def _document_lines(detail: TurnTrace) -> Iterator[str]:
    proved = [f"`{each.ref}`" for each in detail.citations if each.doubt is None]
    doubted = [f"`{each.ref}` ({each.doubt})" for each in detail.citations if each.doubt is not None]
    if proved:
        yield f"Documents cited: {', '.join(proved)}."
    if doubted:
        yield f"Removed, because they are not proven: {', '.join(doubted)}."


def _token_line(turn: Turn) -> str:
    usage = turn.result.usage
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    shares = [(read, "cached"), (written, "written to the cache")]
    told = ", ".join(f"{format_percent(tokens, usage.input_tokens)} {how}" for tokens, how in shares if tokens)
    cached = f" ({told})" if told else ""
    cost = "cost unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    return f"Tokens: {usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out; {cost}."


def _call_line(record: CallRecord, *, in_full: bool) -> str:
    # A backtick would end the code span in which the arguments are shown.
    call, outcome, verdict = record.tool_call, record.outcome, record.outcome.verdict
    args = truncate(json.dumps(call.args, ensure_ascii=False), _ARGS_CHARS).replace("`", "'") if in_full else ""
    ended = "failed" if outcome.result.is_error else "done"
    how = "from the cache" if record.cached else f"{outcome.duration_ms} ms"
    said = f"{_DECISIONS[verdict.decision]}, tier {int(verdict.tier)}: {verdict.reason}"
    return f"`{call.tool}`{f' `{args}`' if args else ''} {said}; {ended}, {how}"


WHY = CommandDefinition(
    CommandSpec(
        "why",
        "See how a reply came about: model, tools, tokens, cost.",
        (CommandOption("message", "Id or link of the reply; without it the last one here."),),
    ),
    _why,
)


_SCOPE_NAMES = {
    BudgetScopeKind.SERVER: "everything",
    BudgetScopeKind.GUILD: "this server",
    BudgetScopeKind.CHANNEL: "this channel",
    BudgetScopeKind.AGENT: "agent",
}


async def _usage(context: CommandContext) -> CommandReply:
    mine = BudgetScope(BudgetScopeKind.USER, context.caller.principal.key)
    others = _admin_scopes(context) if context.caller.is_admin else []
    now, policy = context.now(), context.generation.budgets
    async with context.store.work(write=False) as work:
        standings = await work.spending.read([mine, *others], now=now)
    lines = list(_own_lines(standings[mine], policy.get_limits(mine)))
    if others:
        rows = [_scope_row(scope, standings[scope], policy.get_limits(scope)) for scope in others]
        body = [["USD", "today", "limit", "share", "month", "limit", "share"], *rows]
        room = context.message_limit - sum(map(len, lines)) - 10
        lines.append(code_block(format_rows(body), limit=room))
    return private_reply(*lines, "-# Days and months are those of UTC.")


def _admin_scopes(context: CommandContext) -> list[BudgetScope]:
    """Returns the scopes that an admin sees here, besides their own."""
    room = context.command.room
    *narrow, widest = place_scopes(room.place, room.guild)
    return [SERVER, widest, *narrow, BudgetScope(BudgetScopeKind.AGENT, context.agent.name)]


def _own_lines(spent: BudgetStatus, limits: BudgetLimits) -> Iterator[str]:
    spans = (
        ("You today", spent.day_usd, spent.day_requests, limits.per_day_usd),
        ("This month", spent.month_usd, spent.month_requests, limits.per_month_usd),
    )
    for when, usd, requests, limit in spans:
        of = f", {_budget_share(usd, limit)} of your budget" if limit is not None else ""
        yield f"{when}: ${usd:.4f}, {count_noun(requests, 'request')}{of}."


def _scope_row(scope: BudgetScope, spent: BudgetStatus, limits: BudgetLimits) -> list[str]:
    cells = [f"agent {scope.key}" if scope.kind is BudgetScopeKind.AGENT else _SCOPE_NAMES[scope.kind]]
    for usd, limit in ((spent.day_usd, limits.per_day_usd), (spent.month_usd, limits.per_month_usd)):
        cells += [f"{usd:.4f}", "-" if limit is None else f"{limit:.2f}", _budget_share(usd, limit)]
    return cells


def _budget_share(usd: Decimal, limit: Decimal | None) -> str:
    return f"{round(100 * usd / limit)} %" if limit else "-"


USAGE = CommandDefinition(CommandSpec("usage", "See what you have spent today and this month."), _usage)
