"""Turns from the trigger to the final state, with their steps, tool calls and prompts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import (
    EnumValue,
    JsonText,
    JsonTuple,
    UtcTime,
    escape,
    id_columns,
    metadata,
    texts,
    times,
)
from denizen.adapters.store.conversations import conversations, sessions
from denizen.adapters.store.dialect import InsertInto, SqlDialect
from denizen.adapters.store.repository import Row, SqlRepository, insert_row, insert_rows, read_record, write_record
from denizen.adapters.store.usage import reopen_day, usage_columns
from denizen.domain.budget import utc_day
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.ids import AgentName, ConversationId, TurnId
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.prompt import Stability
from denizen.domain.routing import route_from_json, route_to_json
from denizen.domain.tool import Origin, Tier, ToolCall, ToolResult
from denizen.domain.trace import MessageUse, PromptUse, SegmentUse
from denizen.domain.turn import STOP, CallRecord, Step, Turn, TurnFailure, TurnResult, TurnStatus
from denizen.domain.verdict import CallOutcome, Decision, Verdict
from denizen.ports.store import TurnListing, TurnSearch

turns = sa.Table(
    "turns",
    metadata,
    *id_columns(),
    sa.Column("conversation_id", sa.Text(), sa.ForeignKey(conversations.c.id), nullable=False),
    sa.Column("session_id", sa.Text(), sa.ForeignKey(sessions.c.id), nullable=False),
    *texts("agent"),
    sa.Column("principal_kind", sa.Text(), nullable=False),
    *texts("principal_id", "principal_name"),
    sa.Column("principal_roles", JsonText(), nullable=False),
    sa.Column("trigger_id", sa.Text(), nullable=False),
    sa.Column("status", EnumValue(TurnStatus), nullable=False),
    *times("opened_at"),
    sa.Column("closed_at", UtcTime()),
    *texts("model", "reply", "failure"),
    sa.Column("failure_code", sa.Text(), nullable=False),
    sa.Column("failure_family", sa.Text(), nullable=False),
    *texts("failure_fix"),
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
    *texts("model"),
    sa.Column("purpose", sa.Text(), nullable=False),
    *texts("finish_reason"),
    *usage_columns(),
    sa.Column("duration_ms", sa.BigInteger(), nullable=False),
    *times("created_at"),
    sa.Column("day", sa.Text(), nullable=False),
    *texts("agent", "principal"),
    sa.Index("ix_steps_created_at", "created_at"),
    sa.Index("ix_steps_principal_created_at", "principal", "created_at"),
)
"""`day`, `agent` and `principal` repeat what time and turn say: a budget is summed before every request."""

tool_calls = sa.Table(
    "tool_calls",
    metadata,
    sa.Column("turn_id", sa.Text(), sa.ForeignKey(turns.c.id), primary_key=True),
    sa.Column("step", sa.Integer(), primary_key=True),
    sa.Column("position", sa.Integer(), primary_key=True),
    *texts("call_id", "tool"),
    sa.Column("args", JsonText(), nullable=False),
    sa.Column("origin", EnumValue(Origin), nullable=False),
    sa.Column("tier", EnumValue(Tier), nullable=False),
    sa.Column("decision", EnumValue(Decision), nullable=False),
    sa.Column("verdict_tier", EnumValue(Tier), nullable=False),
    *texts("reason", "decided_by", "result"),
    sa.Column("is_error", sa.Boolean(), nullable=False),
    sa.Column("duration_ms", sa.BigInteger(), nullable=False),
    sa.Column("cached", sa.Boolean(), nullable=False),
    *times("created_at"),
)
"""The tool calls of steps, each with its verdict."""

prompts = sa.Table(
    "prompts",
    metadata,
    sa.Column("turn_id", sa.Text(), sa.ForeignKey(turns.c.id), primary_key=True),
    sa.Column("step", sa.Integer(), primary_key=True),
    *texts("model"),
    sa.Column("segments", JsonText(), nullable=False),
    sa.Column("messages", JsonText(), nullable=False),
    sa.Column("tools", JsonTuple(), nullable=False),
    sa.Column("tool_tokens", sa.BigInteger(), nullable=False),
    sa.Column("memories", JsonTuple(), nullable=False),
)
"""The composition of a turn's prompts, by the step with which each began."""

prompt_texts = sa.Table("prompt_texts", metadata, sa.Column("sha256", sa.Text(), primary_key=True), *texts("text"))
"""The texts of segments, stored once under their hash, however many prompts contain them."""


_PROMPTS = sa.select(prompts).where(prompts.c.turn_id == sa.bindparam("turn")).order_by(prompts.c.step)
_TEXTS = sa.select(prompt_texts).where(prompt_texts.c.sha256.in_(sa.bindparam("hashes", expanding=True)))


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
def _recent_calls(dialect: SqlDialect, *, of_judges: bool) -> sa.Select[Any]:
    statement = (
        sa.select(tool_calls)
        .join(turns, turns.c.id == tool_calls.c.turn_id)
        .where(turns.c.opened_at >= sa.bindparam("since"))
        .order_by(turns.c.opened_at.desc(), turns.c.position.desc(), tool_calls.c.step.desc())
        .order_by(tool_calls.c.position.desc())
        .limit(sa.bindparam("most"))
    )
    return statement.where(dialect.among(tool_calls.c.decided_by, "judges")) if of_judges else statement


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


def _read_call(row: Row) -> CallRecord:
    verdict = Verdict(row.decision, row.verdict_tier, row.reason, row.decided_by)
    outcome = CallOutcome(verdict, ToolResult(row.result, row.is_error), row.duration_ms)
    return read_record(
        CallRecord, row, tool_call=ToolCall(row.call_id, row.tool, row.args, row.origin), outcome=outcome
    )


_NO_FAILURE = TurnFailure("")
"""How the columns say that a turn has not failed."""

_TURN_BY_ID = sa.select(turns).where(turns.c.id == sa.bindparam("id"))
_GIVEN_AT_START = ("position", "id", "conversation_id", "session_id", "agent", "trigger_id", "opened_at")
_FINAL = [
    name for name in map(str, turns.c.keys()) if name not in _GIVEN_AT_START and not name.startswith("principal_")
]
_CLOSE = (
    sa.update(turns)
    .where(turns.c.id == sa.bindparam("which"), turns.c.status == TurnStatus.OPEN)
    .values({name: sa.bindparam(name) for name in _FINAL})
)
_OPTIONS = sa.select(turns.c.options).where(turns.c.id == sa.bindparam("id"), turns.c.status == TurnStatus.OPEN)
_CHANGE_OPTIONS = (
    sa.update(turns)
    .where(turns.c.id == sa.bindparam("which"), turns.c.status == TurnStatus.OPEN)
    .values(options=sa.bindparam("options"))
)


@cache
def _turns_among(dialect: SqlDialect) -> sa.Select[Any]:
    return sa.select(turns).where(dialect.among(turns.c.id, "wanted"))


@cache
def _list_turns(status: TurnStatus | None, *, of_conversation: bool) -> sa.Select[Any]:
    statement = sa.select(turns).limit(sa.bindparam("limit"))
    if status is not None:
        statement = statement.where(turns.c.status == status)
    if of_conversation:
        statement = statement.where(turns.c.conversation_id == sa.bindparam("conversation"))
    if status is TurnStatus.OPEN:
        return statement.order_by(turns.c.opened_at, turns.c.position)
    return statement.order_by(turns.c.opened_at.desc(), turns.c.position.desc())


@cache
def _search_turns(filters: tuple[str, ...]) -> sa.Select[Any]:
    tests = {
        "agent": turns.c.agent == sa.bindparam("agent"),
        "status": turns.c.status == sa.bindparam("status"),
        "platform": conversations.c.platform == sa.bindparam("platform"),
        "since": turns.c.opened_at >= sa.bindparam("since"),
    }
    return (
        sa.select(turns, conversations.c.platform)
        .join(conversations, conversations.c.id == turns.c.conversation_id)
        .where(*(tests[name] for name in filters))
        .order_by(turns.c.opened_at.desc(), turns.c.position.desc())
        .limit(sa.bindparam("most"))
        .offset(sa.bindparam("skip"))
    )


class SqlTurns(SqlRepository):
    """Implements `denizen.ports.store.TurnRepository`."""

    async def open(self, turn: Turn) -> tuple[Turn, bool]:
        add, row = insert_row(self._dialect.insert, turns), _write_turn(turn)

        def job(connection: sa.Connection) -> tuple[Turn, bool]:
            is_new = connection.execute(add, row).first() is not None
            return (turn, True) if is_new else (_get_turn(connection, turn.id), False)

        return await self._transaction.write(job)

    async def close(self, turn: Turn) -> None:
        if not turn.status.is_final:
            raise InvalidInput("A turn is closed with a final status.", code="turn_not_final", turn=turn.id)
        row = _write_turn(turn)
        values = {name: row[name] for name in _FINAL} | {"which": turn.id}

        def job(connection: sa.Connection) -> None:
            if connection.execute(_CLOSE, values).rowcount == 0:
                _get_turn(connection, turn.id)  # raises NotFound; a final turn stays as it is

        await self._transaction.write(job)

    async def ask_stop(self, turn_id: TurnId) -> None:
        def job(connection: sa.Connection) -> None:
            row = connection.execute(_OPTIONS, {"id": turn_id}).first()
            if row is not None:  # nothing else changes the options of an open turn
                connection.execute(_CHANGE_OPTIONS, {"which": turn_id, "options": row.options | {STOP: True}})

        await self._transaction.write(job)

    async def get(self, turn_id: TurnId) -> Turn:
        return await self._transaction.read(lambda connection: _get_turn(connection, turn_id))

    async def find(self, turn_id: TurnId) -> Turn | None:
        return await self._find(_read_turn, _TURN_BY_ID, {"id": turn_id})

    async def find_many(self, turn_ids: Collection[TurnId]) -> Sequence[Turn]:
        wanted = self._dialect.bind_list(sorted(set(turn_ids)))
        return await self._list(_read_turn, _turns_among(self._dialect), {"wanted": wanted})

    async def list_turns(
        self, *, status: TurnStatus | None = None, conversation_id: ConversationId | None = None, limit: int = 100
    ) -> Sequence[Turn]:
        statement = _list_turns(status, of_conversation=conversation_id is not None)
        bounds: dict[str, Any] = {"limit": max(limit, 0)}
        if conversation_id is not None:
            bounds["conversation"] = conversation_id
        return await self._list(_read_turn, statement, bounds)

    async def search(self, wanted: TurnSearch) -> Sequence[TurnListing]:
        asked = {name: getattr(wanted, name) for name in ("agent", "status", "platform", "since")}
        given: dict[str, Any] = {name: value for name, value in asked.items() if value}
        bounds = {"most": max(wanted.limit, 0), "skip": max(wanted.skip, 0)}
        return await self._list(
            lambda row: TurnListing(_read_turn(row), row.platform), _search_turns(tuple(given)), given | bounds
        )

    async def add_step(self, step: Step) -> bool:
        add, day = _add_step(self._dialect.insert), utc_day(step.created_at)
        row = write_record(step) | {"day": day}

        def job(connection: sa.Connection) -> bool:
            is_new = connection.execute(add, row).scalar() is not None
            if is_new:
                reopen_day(connection, day)
            return is_new

        return await self._transaction.write(job)

    async def list_steps(self, turn_id: TurnId) -> Sequence[Step]:
        return await self._list(partial(read_record, Step), _STEPS, {"turn": turn_id})

    async def add_call(self, record: CallRecord) -> bool:
        call, outcome, verdict = record.tool_call, record.outcome, record.outcome.verdict
        row = write_record(record, "call", "outcome") | {
            "call_id": call.id,
            "tool": call.tool,
            "args": call.args,
            "origin": call.origin,
            "tier": verdict.tier,
            "decision": verdict.decision,
            "verdict_tier": verdict.tier,
            "reason": verdict.reason,
            "decided_by": verdict.decided_by,
            "result": outcome.result.text,
            "is_error": outcome.result.is_error,
            "duration_ms": outcome.duration_ms,
        }
        return await self._add(tool_calls, row)

    async def list_calls(self, turn_id: TurnId) -> Sequence[CallRecord]:
        return await self._list(_read_call, _CALLS, {"turn": turn_id})

    async def list_calls_in(
        self, agent: AgentName, platform: str, rooms: Collection[str], *, asker: Principal | None = None, limit: int
    ) -> Sequence[CallRecord]:
        bounds = {
            "whose": agent,
            "where": platform,
            "rooms": self._dialect.bind_list([escape(room) for room in sorted(set(rooms))]),
            # Empty for nobody: no principal has an empty kind.
            "asker_kind": asker.kind.value if asker else "",
            "asker_id": asker.id if asker else "",
            "most": max(limit, 0),
        }
        return await self._list(_read_call, _calls_in(self._dialect), bounds)

    async def list_recent_calls(
        self, *, since: datetime, judges: Collection[str] = (), limit: int
    ) -> Sequence[CallRecord]:
        bounds: dict[str, Any] = {"since": since, "most": max(limit, 0)}
        if judges:
            bounds["judges"] = self._dialect.bind_list([escape(judge) for judge in sorted(set(judges))])
        return await self._list(_read_call, _recent_calls(self._dialect, of_judges=bool(judges)), bounds)

    async def add_prompt(self, prompt: PromptUse) -> None:
        insert = self._dialect.insert
        texts = {s.sha256: s.text for s in prompt.segments if s.text is not None}
        # Sorted, so that two writers of the same texts cannot deadlock.
        text_rows = [{"sha256": sha256, "text": text} for sha256, text in sorted(texts.items())]
        row = write_record(prompt) | {
            "segments": [[s.name, int(s.stability), s.chars, s.tokens, s.sha256] for s in prompt.segments],
            "messages": [[m.kind, m.count, m.tokens] for m in prompt.messages],
        }

        def job(connection: sa.Connection) -> None:
            if text_rows:
                connection.execute(insert_rows(insert, prompt_texts), text_rows)
            connection.execute(insert_rows(insert, prompts), row)

        await self._transaction.write(job)

    async def list_prompts(self, turn_id: TurnId) -> Sequence[PromptUse]:
        def job(connection: sa.Connection) -> list[PromptUse]:
            rows = connection.execute(_PROMPTS, {"turn": turn_id}).all()
            hashes = {segment[-1] for row in rows for segment in row.segments}
            found = connection.execute(_TEXTS, {"hashes": sorted(hashes)}) if hashes else ()
            texts = {row.sha256: row.text for row in found}
            return [
                read_record(
                    PromptUse,
                    row,
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
                )
                for row in rows
            ]

        return await self._transaction.read(job)


def _get_turn(connection: sa.Connection, turn_id: TurnId) -> Turn:
    row = connection.execute(_TURN_BY_ID, {"id": turn_id}).first()
    if row is None:
        raise NotFound(f"There is no turn {turn_id}.", code="turn_not_found")
    return _read_turn(row)


def _write_turn(turn: Turn) -> dict[str, Any]:
    principal, failure = turn.principal, turn.result.failure or _NO_FAILURE
    return write_record(turn, "principal") | {
        "principal_kind": principal.kind.value,
        "principal_id": principal.id,
        "principal_name": principal.name,
        "principal_roles": principal.roles,
        "failure": failure.message,
        "failure_code": failure.code,
        "failure_family": failure.family,
        "failure_fix": failure.fix,
        "route": None if turn.route is None else route_to_json(turn.route),
    }


def _read_turn(row: Row) -> Turn:
    principal = Principal(
        PrincipalKind(row.principal_kind), row.principal_id, row.principal_name, frozenset(row.principal_roles)
    )
    failure = TurnFailure(row.failure, row.failure_code, row.failure_family, row.failure_fix)
    result = read_record(TurnResult, row, failure=None if failure == _NO_FAILURE else failure)
    route = None if row.route is None else route_from_json(row.route)
    return read_record(Turn, row, principal=principal, route=route, result=result)
