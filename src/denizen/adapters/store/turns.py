"""Turns from the trigger to the final state, with their steps, tool calls and prompts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, UtcTime, escape, metadata, position_column
from denizen.adapters.store.conversations import conversations, sessions
from denizen.adapters.store.dialect import InsertInto, SqlDialect
from denizen.adapters.store.transaction import Transaction
from denizen.adapters.store.usage import parse_usage, reopen_day, usage_columns, usage_values
from denizen.domain.budget import utc_day
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.ids import AgentName, ConversationId, TurnId
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.prompt import Stability
from denizen.domain.routing import route_from_json, route_to_json
from denizen.domain.tool import Origin, Tier, ToolCall, ToolResult
from denizen.domain.trace import MessageUse, PromptUse, SegmentUse
from denizen.domain.turn import CallRecord, Step, Turn, TurnFailure, TurnResult, TurnStatus
from denizen.domain.verdict import CallOutcome, Decision, Verdict

turns = sa.Table(
    "turns",
    metadata,
    position_column(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("conversation_id", sa.Text(), sa.ForeignKey(conversations.c.id), nullable=False),
    sa.Column("session_id", sa.Text(), sa.ForeignKey(sessions.c.id), nullable=False),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("principal_kind", sa.Text(), nullable=False),
    sa.Column("principal_id", EscapedText(), nullable=False),
    sa.Column("principal_name", EscapedText(), nullable=False),
    sa.Column("principal_roles", JsonText(), nullable=False),
    sa.Column("trigger_id", sa.Text(), nullable=False),
    sa.Column("status", sa.Text(), nullable=False),
    sa.Column("opened_at", UtcTime(), nullable=False),
    sa.Column("closed_at", UtcTime()),
    sa.Column("model", EscapedText(), nullable=False),
    sa.Column("reply", EscapedText(), nullable=False),
    sa.Column("failure", EscapedText(), nullable=False),
    sa.Column("failure_code", sa.Text(), nullable=False),
    sa.Column("failure_family", sa.Text(), nullable=False),
    sa.Column("failure_fix", EscapedText(), nullable=False),
    *usage_columns(),
    sa.Column("options", JsonText(), nullable=False),
    sa.Column("route", JsonText(), nullable=False),
    sa.Index("ix_turns_status_opened_at", "status", "opened_at"),
    sa.Index("ix_turns_conversation_id_opened_at", "conversation_id", "opened_at"),
    sa.Index("ix_turns_opened_at", "opened_at"),
)

steps = sa.Table(
    "steps",
    metadata,
    sa.Column("turn_id", sa.Text(), sa.ForeignKey(turns.c.id), primary_key=True),
    sa.Column("number", sa.Integer(), primary_key=True),
    sa.Column("model", EscapedText(), nullable=False),
    sa.Column("purpose", sa.Text(), nullable=False),
    sa.Column("finish_reason", EscapedText(), nullable=False),
    *usage_columns(),
    sa.Column("duration_ms", sa.BigInteger(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("day", sa.Text(), nullable=False),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("principal", EscapedText(), nullable=False),
    sa.Index("ix_steps_created_at", "created_at"),
    sa.Index("ix_steps_principal_created_at", "principal", "created_at"),
)
"""`day`, `agent` and `principal` (its key) repeat what the time and the turn say, since a budget is summed before every
request.
"""

tool_calls = sa.Table(
    "tool_calls",
    metadata,
    sa.Column("turn_id", sa.Text(), sa.ForeignKey(turns.c.id), primary_key=True),
    sa.Column("step", sa.Integer(), primary_key=True),
    sa.Column("position", sa.Integer(), primary_key=True),
    sa.Column("call_id", EscapedText(), nullable=False),
    sa.Column("tool", EscapedText(), nullable=False),
    sa.Column("args", JsonText(), nullable=False),
    sa.Column("origin", sa.Text(), nullable=False),
    sa.Column("tier", sa.Integer(), nullable=False),
    sa.Column("decision", sa.Text(), nullable=False),
    sa.Column("verdict_tier", sa.Integer(), nullable=False),
    sa.Column("reason", EscapedText(), nullable=False),
    sa.Column("decided_by", EscapedText(), nullable=False),
    sa.Column("result", EscapedText(), nullable=False),
    sa.Column("is_error", sa.Boolean(), nullable=False),
    sa.Column("duration_ms", sa.BigInteger(), nullable=False),
    sa.Column("cached", sa.Boolean(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
)
"""The tool calls of steps, each with its verdict."""

prompts = sa.Table(
    "prompts",
    metadata,
    sa.Column("turn_id", sa.Text(), sa.ForeignKey(turns.c.id), primary_key=True),
    sa.Column("step", sa.Integer(), primary_key=True),
    sa.Column("model", EscapedText(), nullable=False),
    sa.Column("segments", JsonText(), nullable=False),
    sa.Column("messages", JsonText(), nullable=False),
    sa.Column("tools", JsonText(), nullable=False),
    sa.Column("tool_tokens", sa.BigInteger(), nullable=False),
    sa.Column("memories", JsonText(), nullable=False),
)
"""The composition of a turn's prompts, by the step with which each began."""

prompt_texts = sa.Table(
    "prompt_texts",
    metadata,
    sa.Column("sha256", sa.Text(), primary_key=True),
    sa.Column("text", EscapedText(), nullable=False),
)
"""The texts of segments, stored once under their hash, however many prompts contain them."""


_PROMPTS = sa.select(prompts).where(prompts.c.turn_id == sa.bindparam("turn")).order_by(prompts.c.step)
_TEXTS = sa.select(prompt_texts).where(prompt_texts.c.sha256.in_(sa.bindparam("hashes", expanding=True)))


@cache
def _add_once(insert: InsertInto, table: sa.Table) -> sa.Executable:
    return insert(table).on_conflict_do_nothing().inline()


def _prompt(row: sa.Row[Any], texts: dict[str, str]) -> PromptUse:
    return PromptUse(
        turn_id=row.turn_id,
        step=row.step,
        model=row.model,
        segments=tuple(
            SegmentUse(
                name=name,
                stability=Stability(stability),
                chars=chars,
                tokens=tokens,
                sha256=sha256,
                text=texts.get(sha256),
            )
            for name, stability, chars, tokens, sha256 in row.segments
        ),
        messages=tuple(MessageUse(*message) for message in row.messages),
        tools=tuple(row.tools),
        tool_tokens=row.tool_tokens,
        memories=tuple(row.memories),
    )


_STEPS = sa.select(steps).where(steps.c.turn_id == sa.bindparam("turn")).order_by(steps.c.number)
_CALLS = (
    sa.select(tool_calls)
    .where(tool_calls.c.turn_id == sa.bindparam("turn"))
    .order_by(tool_calls.c.step, tool_calls.c.position)
)


@cache
def _calls_in(dialect: SqlDialect) -> sa.Select[Any]:
    no_thread = conversations.c.thread == sa.literal_column("''")
    room = sa.case((no_thread, conversations.c.channel), else_=conversations.c.thread)
    asked = sa.and_(
        turns.c.principal_kind == sa.bindparam("asker_kind"), turns.c.principal_id == sa.bindparam("asker_id")
    )
    return (
        sa.select(tool_calls)
        .join(turns, turns.c.id == tool_calls.c.turn_id)
        .join(conversations, conversations.c.id == turns.c.conversation_id)
        .where(turns.c.agent == sa.bindparam("whose"), conversations.c.platform == sa.bindparam("where"))
        .where(sa.or_(dialect.among(room, "rooms"), asked))
        .order_by(tool_calls.c.created_at.desc(), tool_calls.c.turn_id, tool_calls.c.step.desc())
        .limit(sa.bindparam("most"))
    )


@cache
def _add_step(insert: InsertInto) -> sa.Executable:
    turn = sa.bindparam("turn_id", type_=sa.Text())
    agent = sa.select(turns.c.agent).where(turns.c.id == turn).scalar_subquery()
    principal = (
        sa.select(turns.c.principal_kind + sa.literal(":", sa.Text()) + sa.type_coerce(turns.c.principal_id, sa.Text()))
        .where(turns.c.id == turn)
        .scalar_subquery()
    )
    given: dict[str, Any] = {column.name: sa.bindparam(column.name) for column in steps.c}
    # Empty when the turn is missing, so that the foreign key fails and not a NULL.
    found = {"turn_id": turn, "agent": sa.func.coalesce(agent, ""), "principal": sa.func.coalesce(principal, "")}
    return insert(steps).values(given | found).on_conflict_do_nothing().returning(steps.c.number)


@cache
def _add_call(insert: InsertInto) -> sa.Executable:
    return insert(tool_calls).on_conflict_do_nothing().returning(tool_calls.c.position)


def _step(row: sa.Row[Any]) -> Step:
    return Step(
        turn_id=row.turn_id,
        number=row.number,
        model=row.model,
        purpose=row.purpose,
        finish_reason=row.finish_reason,
        usage=parse_usage(row),
        duration_ms=row.duration_ms,
        created_at=row.created_at,
    )


def _call(row: sa.Row[Any]) -> CallRecord:
    return CallRecord(
        turn_id=row.turn_id,
        step=row.step,
        position=row.position,
        call=ToolCall(row.call_id, row.tool, row.args, Origin(row.origin)),
        outcome=CallOutcome(
            Verdict(Decision(row.decision), Tier(row.verdict_tier), row.reason, row.decided_by),
            ToolResult(row.result, row.is_error),
            row.duration_ms,
        ),
        cached=row.cached,
        created_at=row.created_at,
    )


_NO_FAILURE = TurnFailure("")
"""How the columns say that a turn has not failed."""

_TURN_BY_ID = sa.select(turns).where(turns.c.id == sa.bindparam("id"))
_FINAL = [
    *(
        "status",
        "closed_at",
        "model",
        "reply",
        "failure",
        "failure_code",
        "failure_family",
        "failure_fix",
        "options",
        "route",
    ),
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd", "requests"),
]
_CLOSE = (
    sa.update(turns)
    .where(turns.c.id == sa.bindparam("which"), turns.c.status == TurnStatus.OPEN.value)
    .values({name: sa.bindparam(name) for name in _FINAL})
)


@cache
def _add_turn(insert: InsertInto) -> sa.Executable:
    return insert(turns).on_conflict_do_nothing(index_elements=[turns.c.id]).returning(turns.c.position)


@cache
def _list_turns(status: TurnStatus | None, *, of_conversation: bool) -> sa.Select[Any]:
    statement = sa.select(turns).limit(sa.bindparam("limit"))
    if status is not None:
        statement = statement.where(turns.c.status == status.value)
    if of_conversation:
        statement = statement.where(turns.c.conversation_id == sa.bindparam("conversation"))
    if status is TurnStatus.OPEN:
        return statement.order_by(turns.c.opened_at, turns.c.position)
    return statement.order_by(turns.c.opened_at.desc(), turns.c.position.desc())


class SqlTurns:
    """Implements `denizen.ports.store.TurnRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def open(self, turn: Turn) -> tuple[Turn, bool]:
        add, row = _add_turn(self._transaction.dialect.insert), _turn_row(turn)

        def job(connection: sa.Connection) -> tuple[Turn, bool]:
            is_new = connection.execute(add, row).scalar() is not None
            return (turn, True) if is_new else (_get_turn(connection, turn.id), False)

        return await self._transaction.write(job)

    async def close(self, turn: Turn) -> None:
        if not turn.status.is_final:
            raise InvalidInput("A turn is closed with a final status.", code="turn_not_final", turn=turn.id)
        values = _final_values(turn) | {"which": turn.id}

        def job(connection: sa.Connection) -> None:
            if connection.execute(_CLOSE, values).rowcount == 0:
                _get_turn(connection, turn.id)  # raises NotFound; a final turn stays as it is

        await self._transaction.write(job)

    async def get(self, turn_id: TurnId) -> Turn:
        return await self._transaction.read(lambda connection: _get_turn(connection, turn_id))

    async def find(self, turn_id: TurnId) -> Turn | None:
        return await self._transaction.read(lambda connection: _find_turn(connection, turn_id))

    async def list_turns(
        self, *, status: TurnStatus | None = None, conversation_id: ConversationId | None = None, limit: int = 100
    ) -> Sequence[Turn]:
        statement = _list_turns(status, of_conversation=conversation_id is not None)
        bounds: dict[str, Any] = {"limit": max(limit, 0)}
        if conversation_id is not None:
            bounds["conversation"] = conversation_id

        return await self._transaction.read(
            lambda connection: [_turn(row) for row in connection.execute(statement, bounds)]
        )

    async def add_step(self, step: Step) -> bool:
        add, day = _add_step(self._transaction.dialect.insert), utc_day(step.created_at)
        row = {
            "turn_id": step.turn_id,
            "number": step.number,
            "model": step.model,
            "purpose": step.purpose,
            "finish_reason": step.finish_reason,
            "duration_ms": step.duration_ms,
            "created_at": step.created_at,
            "day": day,
            **usage_values(step.usage),
        }

        def job(connection: sa.Connection) -> bool:
            is_new = connection.execute(add, row).scalar() is not None
            if is_new:
                reopen_day(connection, day)
            return is_new

        return await self._transaction.write(job)

    async def list_steps(self, turn_id: TurnId) -> Sequence[Step]:
        which = {"turn": turn_id}
        return await self._transaction.read(
            lambda connection: [_step(row) for row in connection.execute(_STEPS, which)]
        )

    async def add_call(self, record: CallRecord) -> bool:
        add = _add_call(self._transaction.dialect.insert)
        call, outcome = record.call, record.outcome
        row = {
            "turn_id": record.turn_id,
            "step": record.step,
            "position": record.position,
            "call_id": call.id,
            "tool": call.tool,
            "args": call.args,
            "origin": call.origin.value,
            "tier": int(outcome.verdict.tier),
            "decision": outcome.verdict.decision.value,
            "verdict_tier": int(outcome.verdict.tier),
            "reason": outcome.verdict.reason,
            "decided_by": outcome.verdict.decided_by,
            "result": outcome.result.text,
            "is_error": outcome.result.is_error,
            "duration_ms": outcome.duration_ms,
            "cached": record.cached,
            "created_at": record.created_at,
        }
        return await self._transaction.write(lambda connection: connection.execute(add, row).first() is not None)

    async def list_calls(self, turn_id: TurnId) -> Sequence[CallRecord]:
        which = {"turn": turn_id}
        return await self._transaction.read(
            lambda connection: [_call(row) for row in connection.execute(_CALLS, which)]
        )

    async def list_calls_in(
        self, agent: AgentName, platform: str, rooms: Collection[str], *, asker: Principal | None = None, limit: int
    ) -> Sequence[CallRecord]:
        dialect = self._transaction.dialect
        bounds = {
            "whose": agent,
            "where": platform,
            "rooms": dialect.bind_list([escape(room) for room in sorted(set(rooms))]),
            # Empty for nobody: no principal has an empty kind.
            "asker_kind": asker.kind.value if asker else "",
            "asker_id": asker.id if asker else "",
            "most": max(limit, 0),
        }
        return await self._transaction.read(
            lambda connection: [_call(row) for row in connection.execute(_calls_in(dialect), bounds)]
        )

    async def add_prompt(self, prompt: PromptUse) -> None:
        insert = self._transaction.dialect.insert
        texts = {s.sha256: s.text for s in prompt.segments if s.text is not None}
        # Sorted, so that two writers of the same texts cannot deadlock.
        text_rows = [{"sha256": sha256, "text": text} for sha256, text in sorted(texts.items())]
        row = {
            "turn_id": prompt.turn_id,
            "step": prompt.step,
            "model": prompt.model,
            "segments": [[s.name, int(s.stability), s.chars, s.tokens, s.sha256] for s in prompt.segments],
            "messages": [[m.kind, m.count, m.tokens] for m in prompt.messages],
            "tools": list(prompt.tools),
            "tool_tokens": prompt.tool_tokens,
            "memories": list(prompt.memories),
        }

        def job(connection: sa.Connection) -> None:
            if text_rows:
                connection.execute(_add_once(insert, prompt_texts), text_rows)
            connection.execute(_add_once(insert, prompts), row)

        await self._transaction.write(job)

    async def list_prompts(self, turn_id: TurnId) -> Sequence[PromptUse]:
        def job(connection: sa.Connection) -> list[PromptUse]:
            rows = connection.execute(_PROMPTS, {"turn": turn_id}).all()
            hashes = {segment[-1] for row in rows for segment in row.segments}
            found = connection.execute(_TEXTS, {"hashes": sorted(hashes)}) if hashes else ()
            texts = {row.sha256: row.text for row in found}
            return [_prompt(row, texts) for row in rows]

        return await self._transaction.read(job)


def _find_turn(connection: sa.Connection, turn_id: TurnId) -> Turn | None:
    row = connection.execute(_TURN_BY_ID, {"id": turn_id}).first()
    return None if row is None else _turn(row)


def _get_turn(connection: sa.Connection, turn_id: TurnId) -> Turn:
    found = _find_turn(connection, turn_id)
    if found is None:
        raise NotFound(f"There is no turn {turn_id}.", code="turn_not_found")
    return found


def _turn_row(turn: Turn) -> dict[str, Any]:
    return _final_values(turn) | {
        "id": turn.id,
        "conversation_id": turn.conversation_id,
        "session_id": turn.session_id,
        "agent": turn.agent,
        "principal_kind": turn.principal.kind.value,
        "principal_id": turn.principal.id,
        "principal_name": turn.principal.name,
        "principal_roles": sorted(turn.principal.roles),
        "trigger_id": turn.trigger_id,
        "opened_at": turn.opened_at,
    }


def _final_values(turn: Turn) -> dict[str, Any]:
    result, failure = turn.result, turn.result.failure or _NO_FAILURE
    return {
        "status": turn.status.value,
        "closed_at": turn.closed_at,
        "model": result.model,
        "reply": result.reply,
        "failure": failure.message,
        "failure_code": failure.code,
        "failure_family": failure.family,
        "failure_fix": failure.fix,
        "options": dict(turn.options),
        "route": None if turn.route is None else route_to_json(turn.route),
        **usage_values(result.usage),
    }


def _turn(row: sa.Row[Any]) -> Turn:
    failure = TurnFailure(row.failure, row.failure_code, row.failure_family, row.failure_fix)
    return Turn(
        id=row.id,
        conversation_id=row.conversation_id,
        session_id=row.session_id,
        agent=row.agent,
        principal=Principal(
            PrincipalKind(row.principal_kind), row.principal_id, row.principal_name, frozenset(row.principal_roles)
        ),
        trigger_id=row.trigger_id,
        status=TurnStatus(row.status),
        opened_at=row.opened_at,
        closed_at=row.closed_at,
        options=row.options,
        route=None if row.route is None else route_from_json(row.route),
        result=TurnResult(
            reply=row.reply,
            failure=None if failure == _NO_FAILURE else failure,
            model=row.model,
            usage=parse_usage(row),
        ),
    )
