"""The store without a database: a real implementation for tests of what is built on it.

Transactional: a unit of work that fails changes nothing, since every change leaves behind how it is undone. Payloads go
through JSON, so that a value that a database would give back changed, or refuse, does the same here. One unit of work
runs at a time. Passes `denizen.testing.store_contract`, as the databases do. It finds words only as they are written;
a database may also find other forms of them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import anyio

from denizen.domain.conversation import Conversation, Place, Session
from denizen.domain.errors import InvalidInput, NotFound, Unavailable
from denizen.domain.ids import AgentName, ConversationId, MessageId, SessionId, TurnId, fresh
from denizen.domain.json import Json
from denizen.domain.message import Message, Role, parts_from_json, parts_to_json
from denizen.domain.turn import CallRecord, Step, Turn, TurnStatus
from denizen.domain.usage import Usage
from denizen.domain.words import excerpt_of, words_of
from denizen.ports.store import GenerationRow, Hit, UsageRow, Work

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class _Tables:
    """In the order of arrival. `tails` has the messages of each session, in order."""

    conversations: dict[str, Conversation] = field(default_factory=dict[str, Conversation])
    sessions: dict[str, Session] = field(default_factory=dict[str, Session])
    messages: dict[str, Message] = field(default_factory=dict[str, Message])
    tails: dict[str, list[Message]] = field(default_factory=dict[str, list[Message]])
    turns: dict[str, Turn] = field(default_factory=dict[str, Turn])
    steps: dict[tuple[str, int], Step] = field(default_factory=dict[tuple[str, int], Step])
    calls: dict[tuple[str, int, int], CallRecord] = field(default_factory=dict[tuple[str, int, int], CallRecord])
    generations: list[GenerationRow] = field(default_factory=list[GenerationRow])
    settings: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])


class _Unit:
    """The tables, and the way back from every change to them."""

    def __init__(self, tables: _Tables, *, write: bool) -> None:
        self._tables = tables
        self._write = write
        self._over = False
        self._undo: list[Callable[[], object]] = []

    @property
    def tables(self) -> _Tables:
        if self._over:
            raise RuntimeError("this unit of work is over")
        return self._tables

    def check_writes(self) -> None:
        if not self._write:
            raise RuntimeError("this unit of work only reads: open it with write=True")

    def put(self, table: dict[K, V], key: K, value: V) -> None:
        if key in table:
            self._undo.append(lambda old=table[key]: table.__setitem__(key, old))
        else:
            self._undo.append(lambda: table.__delitem__(key))
        table[key] = value

    def remove(self, table: dict[K, V], key: K) -> None:
        if key in table:
            old = table.pop(key)
            self._undo.append(lambda: table.__setitem__(key, old))

    def append(self, rows: list[V], row: V) -> None:
        rows.append(row)
        self._undo.append(rows.pop)

    def end(self, *, keep: bool) -> None:
        self._over = True
        while self._undo and not keep:
            self._undo.pop()()


class _Conversations:
    def __init__(self, unit: _Unit) -> None:
        self._unit = unit

    async def put(self, place: Place, *, title: str = "", now: datetime) -> Conversation:
        self._unit.check_writes()
        rows, key = self._unit.tables.conversations, place.conversation_id
        found = rows.get(key) or Conversation(key, place, title, _utc(now))
        if key not in rows or title not in {"", found.title}:
            found = replace(found, title=title or found.title)
            self._unit.put(rows, key, found)
        return found

    async def get(self, conversation_id: ConversationId) -> Conversation:
        return _get(self._unit.tables.conversations, conversation_id, "conversation")

    async def list_recent(self, *, platform: str = "", limit: int = 50) -> Sequence[Conversation]:
        tables = self._unit.tables
        latest: dict[str, datetime] = {}
        for message in tables.messages.values():
            known = latest.get(message.conversation_id, message.created_at)
            latest[message.conversation_id] = max(known, message.created_at)
        rows = [row for row in tables.conversations.values() if platform in {"", row.place.platform}]
        return _newest_first(rows, lambda row: latest.get(row.id, row.created_at), limit)


class _Sessions:
    def __init__(self, unit: _Unit) -> None:
        self._unit = unit

    async def current(self, conversation_id: ConversationId, agent: AgentName, *, now: datetime) -> Session:
        self._unit.check_writes()
        return self._find_open(conversation_id, agent) or self._open(conversation_id, agent, now)

    async def renew(self, conversation_id: ConversationId, agent: AgentName, *, now: datetime) -> Session:
        self._unit.check_writes()
        found = self._find_open(conversation_id, agent)
        if found is not None:
            self._unit.put(self._unit.tables.sessions, found.id, replace(found, closed_at=_utc(now)))
        return self._open(conversation_id, agent, now)

    async def get(self, session_id: SessionId) -> Session:
        return _get(self._unit.tables.sessions, session_id, "session")

    async def list_sessions(self, conversation_id: ConversationId, agent: AgentName) -> Sequence[Session]:
        return _newest_first(self._all(conversation_id, agent), lambda session: session.created_at)

    def _all(self, conversation_id: ConversationId, agent: AgentName) -> list[Session]:
        rows = self._unit.tables.sessions.values()
        return [row for row in rows if row.conversation_id == conversation_id and row.agent == agent]

    def _find_open(self, conversation_id: ConversationId, agent: AgentName) -> Session | None:
        return next((row for row in self._all(conversation_id, agent) if row.closed_at is None), None)

    def _open(self, conversation_id: ConversationId, agent: AgentName, now: datetime) -> Session:
        _refer(self._unit.tables.conversations, conversation_id)
        session = Session(SessionId(fresh("sess")), conversation_id, agent, _utc(now))
        self._unit.put(self._unit.tables.sessions, session.id, session)
        return session


class _Messages:
    def __init__(self, unit: _Unit) -> None:
        self._unit = unit

    async def add(self, message: Message) -> Message:
        self._unit.check_writes()
        tables = self._unit.tables
        if message.id in tables.messages:
            return tables.messages[message.id]
        _refer(tables.conversations, message.conversation_id)
        stored = replace(
            message,
            parts=parts_from_json(_through_json(parts_to_json(message.parts))),
            meta=_through_json(dict(message.meta)),
            created_at=_utc(message.created_at),
            sequence=0,
        )
        if message.session_id is not None:
            _refer(tables.sessions, message.session_id)
            tail = tables.tails.setdefault(message.session_id, [])
            stored = replace(stored, sequence=tail[-1].sequence + 1 if tail else 1)
            self._unit.append(tail, stored)
        self._unit.put(tables.messages, message.id, stored)
        return stored

    async def get(self, message_id: MessageId) -> Message:
        return _get(self._unit.tables.messages, message_id, "message")

    async def list_tail(self, session_id: SessionId, *, limit: int, before: int | None = None) -> Sequence[Message]:
        tail = self._unit.tables.tails.get(session_id, [])
        end = len(tail) if before is None else max(min(before - 1, len(tail)), 0)  # sequences count from 1, no gaps
        return tail[max(end - max(limit, 0), 0) : end]

    async def search(self, words: str, *, conversation_ids: Sequence[ConversationId], limit: int = 10) -> Sequence[Hit]:
        wanted, chosen = words_of(words), set(conversation_ids)
        found = [
            message
            for message in (self._unit.tables.messages.values() if wanted else ())
            if message.conversation_id in chosen
            and message.role in {Role.USER, Role.ASSISTANT}
            and set(wanted) <= set(words_of(message.text))
        ]
        newest = _newest_first(found, lambda message: message.created_at, limit)
        return [Hit(message, excerpt_of(message.text, wanted)) for message in newest]


class _Turns:
    def __init__(self, unit: _Unit) -> None:
        self._unit = unit

    async def open(self, turn: Turn) -> tuple[Turn, bool]:
        self._unit.check_writes()
        tables = self._unit.tables
        if turn.id in tables.turns:
            return tables.turns[turn.id], False
        _refer(tables.conversations, turn.conversation_id)
        _refer(tables.sessions, turn.session_id)
        stored = replace(turn, options=_through_json(dict(turn.options)), opened_at=_utc(turn.opened_at))
        self._unit.put(tables.turns, turn.id, stored)
        return stored, True

    async def close(self, turn: Turn) -> None:
        self._unit.check_writes()
        if not turn.status.is_final:
            raise InvalidInput("A turn is closed with a final status.", code="turn_not_final", turn=turn.id)
        stored = await self.get(turn.id)
        if stored.status.is_final:
            return
        closed = replace(
            stored,
            status=turn.status,
            closed_at=None if turn.closed_at is None else _utc(turn.closed_at),
            model=turn.model,
            reply=turn.reply,
            failure=turn.failure,
            failure_code=turn.failure_code,
            failure_family=turn.failure_family,
            failure_fix=turn.failure_fix,
            usage=turn.usage,
            options=_through_json(dict(turn.options)),
        )
        self._unit.put(self._unit.tables.turns, turn.id, closed)

    async def get(self, turn_id: TurnId) -> Turn:
        return _get(self._unit.tables.turns, turn_id, "turn")

    async def find(self, turn_id: TurnId) -> Turn | None:
        return self._unit.tables.turns.get(turn_id)

    async def list_turns(
        self, *, status: TurnStatus | None = None, conversation_id: ConversationId | None = None, limit: int = 100
    ) -> Sequence[Turn]:
        rows = [
            turn
            for turn in self._unit.tables.turns.values()
            if status in {None, turn.status} and conversation_id in {None, turn.conversation_id}
        ]
        if status is TurnStatus.OPEN:
            return sorted(rows, key=lambda turn: turn.opened_at)[: max(limit, 0)]
        return _newest_first(rows, lambda turn: turn.opened_at, limit)

    async def add_step(self, step: Step) -> None:
        self._unit.check_writes()
        _refer(self._unit.tables.turns, step.turn_id)
        if (step.turn_id, step.number) not in self._unit.tables.steps:
            self._unit.put(
                self._unit.tables.steps,
                (step.turn_id, step.number),
                replace(step, created_at=_utc(step.created_at)),
            )

    async def list_steps(self, turn_id: TurnId) -> Sequence[Step]:
        rows = [step for step in self._unit.tables.steps.values() if step.turn_id == turn_id]
        return sorted(rows, key=lambda step: step.number)

    async def add_call(self, record: CallRecord) -> None:
        self._unit.check_writes()
        _refer(self._unit.tables.turns, record.turn_id)
        key = (record.turn_id, record.step, record.position)
        if key not in self._unit.tables.calls:
            stored = replace(record, args=_through_json(dict(record.args)), created_at=_utc(record.created_at))
            self._unit.put(self._unit.tables.calls, key, stored)

    async def list_calls(self, turn_id: TurnId) -> Sequence[CallRecord]:
        rows = [record for record in self._unit.tables.calls.values() if record.turn_id == turn_id]
        return sorted(rows, key=lambda record: (record.step, record.position))


class _Ledger:
    def __init__(self, unit: _Unit) -> None:
        self._unit = unit

    async def list_usage(self, *, since: datetime, agent: str = "", principal: str = "") -> Sequence[UsageRow]:
        tables = self._unit.tables
        sums: dict[tuple[str, str, str], Usage] = {}
        for step in tables.steps.values():
            turn = tables.turns[step.turn_id]
            if step.created_at >= since and agent in {"", turn.agent} and principal in {"", turn.principal.key}:
                key = (step.created_at.date().isoformat(), turn.agent, step.model)
                sums[key] = sums.get(key, Usage()) + step.usage
        rows = [UsageRow(*key, usage) for key, usage in sorted(sums.items(), key=lambda item: item[0][1:])]
        return sorted(rows, key=lambda row: row.day, reverse=True)


class _Generations:
    def __init__(self, unit: _Unit) -> None:
        self._unit = unit

    async def add(self, *, digest: str, source: str, now: datetime) -> GenerationRow:
        self._unit.check_writes()
        rows = self._unit.tables.generations
        if not rows or rows[-1].digest != digest:
            self._unit.append(rows, GenerationRow(len(rows) + 1, digest, source, _utc(now)))
        return rows[-1]

    async def list_generations(self, *, limit: int = 20) -> Sequence[GenerationRow]:
        return self._unit.tables.generations[::-1][: max(limit, 0)]


class _UserSettings:
    def __init__(self, unit: _Unit) -> None:
        self._unit = unit

    async def get(self, principal: str) -> Mapping[str, Json]:
        rows = sorted(self._unit.tables.settings.items())
        return {key: json.loads(text) for (owner, key), text in rows if owner == principal}

    async def put(self, principal: str, key: str, value: Json, *, now: datetime) -> None:
        del now  # a database keeps it for its operator
        self._unit.check_writes()
        if value is None:
            self._unit.remove(self._unit.tables.settings, (principal, key))
        else:
            self._unit.put(self._unit.tables.settings, (principal, key), json.dumps(value, allow_nan=False))


class _Work:
    def __init__(self, unit: _Unit) -> None:
        self.conversations = _Conversations(unit)
        self.sessions = _Sessions(unit)
        self.messages = _Messages(unit)
        self.turns = _Turns(unit)
        self.ledger = _Ledger(unit)
        self.generations = _Generations(unit)
        self.user_settings = _UserSettings(unit)


class MemoryStore:
    """`denizen.ports.store.Store`. Empty at first; a second instance shares nothing with it."""

    def __init__(self) -> None:
        self._tables = _Tables()
        self._lock = anyio.Lock()
        self._closed = False

    def work(self, *, write: bool = True) -> AbstractAsyncContextManager[Work]:
        if self._closed:
            raise Unavailable("The store is closed.", code="store_closed", why="Denizen is shutting down.")
        return self._work(write=write)

    async def aclose(self) -> None:
        self._closed = True

    @asynccontextmanager
    async def _work(self, *, write: bool) -> AsyncGenerator[Work]:
        async with self._lock:
            unit = _Unit(self._tables, write=write)
            keep = False
            try:
                with anyio.CancelScope(shield=True):
                    yield _Work(unit)
                keep = True
            finally:
                unit.end(keep=keep)


def _get(rows: Mapping[str, V], key: str, noun: str) -> V:
    if key not in rows:
        raise NotFound(f"There is no {noun} {key}.", code=f"{noun}_not_found")
    return rows[key]


def _refer(rows: Mapping[str, object], key: str) -> None:
    if key not in rows:
        raise NotFound("What this belongs to does not exist.", code="store_reference", why=f"{key} is not there")


def _newest_first(rows: Iterable[V], time_of: Callable[[V], datetime], limit: int | None = None) -> list[V]:
    """Of equal times the last to arrive is the newest."""
    newest = sorted(rows, key=time_of)[::-1]
    return newest if limit is None else newest[: max(limit, 0)]


def _through_json(value: object) -> Any:  # noqa: ANN401 - JSON in, the same JSON out
    return json.loads(json.dumps(value, allow_nan=False))


def _utc(time: datetime) -> datetime:
    if time.tzinfo is None:
        raise ValueError(f"a time without a time zone: {time.isoformat()}")
    return time.astimezone(UTC)
