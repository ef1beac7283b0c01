"""The tables of the memory store, one unit of work on them, and what its repositories share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from denizen.domain.approval import Approval, Grant
from denizen.domain.assistant import SettingsSet
from denizen.domain.audit import AuditEntry
from denizen.domain.budget import Scope
from denizen.domain.citation import Citation
from denizen.domain.conversation import Conversation, Place, Session
from denizen.domain.delivery import Delivery
from denizen.domain.errors import NotFound
from denizen.domain.gap import Gap
from denizen.domain.memory import Memory
from denizen.domain.message import Message
from denizen.domain.proposal import Proposal
from denizen.domain.reminder import Reminder
from denizen.domain.room import Post, PostVersion, Room
from denizen.domain.source import Source, SourceState, SyncRun
from denizen.domain.statistics import Report, SideRequest, Used
from denizen.domain.summary import Summary
from denizen.domain.trace import PromptUse
from denizen.domain.transcript import Block
from denizen.domain.turn import CallRecord, Step, Turn
from denizen.domain.usage import Usage
from denizen.ports.archive import Backfill
from denizen.ports.documents import IndexedDocument
from denizen.ports.inbox import MessageClaim
from denizen.ports.memory import StoredVector
from denizen.ports.store import ConfigGeneration
from denizen.ports.usage import Reservation

K = TypeVar("K")
V = TypeVar("V")

Pair = tuple[str, str]
Triple = tuple[str, str, str]
Cell = tuple[str, str, str, str]
"""Day, user or hour, source, model."""


@dataclass(slots=True)
class Tables:
    """In the order of arrival. `tails` has the messages of each session, in order; `hidden` those not searched.

    `disowned` has the steps whose asker was forgotten. Keys begin with the agent, where there is one, and the platform.
    """

    conversations: dict[str, Conversation] = field(default_factory=dict[str, Conversation])
    sessions: dict[str, Session] = field(default_factory=dict[str, Session])
    messages: dict[str, Message] = field(default_factory=dict[str, Message])
    tails: dict[str, list[Message]] = field(default_factory=dict[str, list[Message]])
    summaries: dict[str, list[Summary]] = field(default_factory=dict[str, list[Summary]])
    hidden: dict[str, bool] = field(default_factory=dict[str, bool])
    turns: dict[str, Turn] = field(default_factory=dict[str, Turn])
    steps: dict[tuple[str, int], Step] = field(default_factory=dict[tuple[str, int], Step])
    calls: dict[tuple[str, int, int], CallRecord] = field(default_factory=dict[tuple[str, int, int], CallRecord])
    prompts: dict[tuple[str, int], PromptUse] = field(default_factory=dict[tuple[str, int], PromptUse])
    prompt_texts: dict[str, str] = field(default_factory=dict[str, str])
    generations: list[ConfigGeneration] = field(default_factory=list[ConfigGeneration])
    settings: dict[Pair, str] = field(default_factory=dict[Pair, str])
    agent_settings: dict[Pair, SettingsSet] = field(default_factory=dict[Pair, SettingsSet])
    rooms: dict[Pair, Room] = field(default_factory=dict[Pair, Room])
    posts: dict[Pair, Post] = field(default_factory=dict[Pair, Post])
    versions: dict[Pair, tuple[PostVersion, ...]] = field(default_factory=dict[Pair, tuple[PostVersion, ...]])
    backfills: dict[Pair, Backfill] = field(default_factory=dict[Pair, Backfill])
    opt_outs: dict[Triple, bool] = field(default_factory=dict[Triple, bool])
    claims: dict[Triple, MessageClaim] = field(default_factory=dict[Triple, MessageClaim])
    positions: dict[Triple, str] = field(default_factory=dict[Triple, str])
    follows: dict[Triple, bool] = field(default_factory=dict[Triple, bool])
    allowed: dict[tuple[str, str, str, str], str] = field(default_factory=dict[tuple[str, str, str, str], str])
    exchanges: dict[Pair, int] = field(default_factory=dict[Pair, int])
    deliveries: dict[str, Delivery] = field(default_factory=dict[str, Delivery])
    blocks: dict[tuple[Place, int], Block] = field(default_factory=dict[tuple[Place, int], Block])
    spend: dict[tuple[Scope, str], Usage] = field(default_factory=dict[tuple[Scope, str], Usage])
    reservations: dict[str, Reservation] = field(default_factory=dict[str, Reservation])
    warnings: dict[Scope, str] = field(default_factory=dict[Scope, str])
    leaving: dict[str, str] = field(default_factory=dict[str, str])
    approvals: dict[str, Approval] = field(default_factory=dict[str, Approval])
    grants: dict[str, Grant] = field(default_factory=dict[str, Grant])
    audit: dict[int, AuditEntry] = field(default_factory=dict[int, AuditEntry])
    memories: dict[str, Memory] = field(default_factory=dict[str, Memory])
    sources: dict[str, Source] = field(default_factory=dict[str, Source])
    source_states: dict[str, SourceState] = field(default_factory=dict[str, SourceState])
    syncs: dict[str, SyncRun] = field(default_factory=dict[str, SyncRun])
    citations: dict[str, tuple[Citation, ...]] = field(default_factory=dict[str, tuple[Citation, ...]])
    gaps: dict[str, Gap] = field(default_factory=dict[str, Gap])
    proposals: dict[str, Proposal] = field(default_factory=dict[str, Proposal])
    documents: dict[str, IndexedDocument] = field(default_factory=dict[str, IndexedDocument])
    indexed: dict[str, str] = field(default_factory=dict[str, str])
    vectors: dict[Triple, StoredVector] = field(default_factory=dict[Triple, StoredVector])
    reminders: dict[str, Reminder] = field(default_factory=dict[str, Reminder])
    reports: dict[str, Report] = field(default_factory=dict[str, Report])
    side_requests: list[SideRequest] = field(default_factory=list[SideRequest])
    used_days: dict[Cell, Used] = field(default_factory=dict[Cell, Used])
    used_hours: dict[Cell, Used] = field(default_factory=dict[Cell, Used])
    computed: dict[str, datetime] = field(default_factory=dict[str, datetime])
    disowned: dict[tuple[str, int], bool] = field(default_factory=dict[tuple[str, int], bool])


class Unit:
    """The tables, and the way back from every change to them."""

    def __init__(self, tables: Tables, *, write: bool) -> None:
        self._tables = tables
        self._write = write
        self._over = False
        self._undo: list[Callable[[], object]] = []

    @property
    def tables(self) -> Tables:
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

    def remove(self, table: dict[K, V], *keys: K) -> bool:
        """False when none was there. Undone, all are where they were: the order is that of arrival."""
        before = dict(table)
        found = [key for key in keys if table.pop(key, None) is not None]
        if found:
            self._undo.append(lambda: (table.clear(), table.update(before)))
        return bool(found)

    def append(self, rows: list[V], row: V) -> None:
        rows.append(row)
        self._undo.append(rows.pop)

    def exchange(self, rows: list[V], number: int, row: V) -> None:
        self._undo.append(lambda old=rows[number]: rows.__setitem__(number, old))
        rows[number] = row

    def end(self, *, keep: bool) -> None:
        self._over = True
        while self._undo and not keep:
            self._undo.pop()()


def get_row(rows: Mapping[str, V], key: str, noun: str) -> V:
    """Raises NotFound."""
    if key not in rows:
        raise NotFound(f"There is no {noun} {key}.", code=f"{noun}_not_found")
    return rows[key]


def refer(rows: Mapping[str, object], key: str) -> None:
    """Raises NotFound, as a foreign key does."""
    if key not in rows:
        raise NotFound("What this belongs to does not exist.", code="store_reference", why=f"{key} is not there")


def newest_first(rows: Iterable[V], time_of: Callable[[V], datetime], limit: int | None = None) -> list[V]:
    """Of equal times the last to arrive is the newest."""
    newest = sorted(rows, key=time_of)[::-1]
    return newest if limit is None else newest[: max(limit, 0)]


def through_json(value: object) -> Any:  # noqa: ANN401 - JSON in, the same JSON out
    return json.loads(json.dumps(value, allow_nan=False))


def in_utc(time: datetime) -> datetime:
    """Raises ValueError for a time without a zone."""
    if time.tzinfo is None:
        raise ValueError(f"a time without a time zone: {time.isoformat()}")
    return time.astimezone(UTC)
