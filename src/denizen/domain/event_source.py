"""Sources of events that are listened to or asked from here: WebSockets and polled REST resources. Pure.

What they send is written by strangers: it only ever becomes the data, the id and the type of an event.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar
from urllib.parse import urlsplit

from denizen.domain.cloud_event import CloudEvent, find_value
from denizen.domain.errors import InvalidInput
from denizen.domain.feed import MAX_PAUSE, FeedVersion
from denizen.domain.json import Json
from denizen.domain.record import record

WEBSOCKET, POLL = "websocket", "poll"
"""The kinds of sources; behind each stands its name in the types of events."""
CONNECTED = "source.connected"
"""The type of the event that a WebSocket is connected. Its source tells which."""
LEAST_EVERY = timedelta(minutes=1)
"""A REST resource is never asked more often."""
MAX_ITEMS = 100
"""So many new items of a poll become events at a time; the others follow with the next time."""
MAX_KEY_CHARS = 200
SHOWN_FIELDS, SHOWN_CHARS = 10, 200
"""How much is told of an answer in which the items are not where they should be."""
STALE_AFTER = timedelta(minutes=3)
"""A connection that was not confirmed for so long is not there any more, or its server is not."""

_TYPE_PART = re.compile(r"[^a-z0-9_-]+")
_BACKOFF_S = (1.0, 2.0, 5.0, 15.0, 60.0, 300.0)


@record(kw_only=True)
class SourceMapping:
    """The paths in a message or an item where its id and its type stand; empty: it has none."""

    id: str = ""
    type: str = ""


@record(kw_only=True)
class EventSource:
    """A source at an address of others. `headers` are sent there and may hold a secret. With `is_private` the address
    may be one of the own network.
    """

    KIND: ClassVar[str]
    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    mapping: SourceMapping = SourceMapping()
    is_private: bool = False

    @property
    def key(self) -> str:
        """Names it among all sources."""
        return f"{self.KIND}:{self.name}"

    @property
    def source(self) -> str:
        """The source of its events."""
        return f"/{self.KIND}s/{self.name}"

    @property
    def type(self) -> str:
        """The type of its events, behind which their own may stand."""
        return f"{self.KIND}.{self.name}"

    @property
    def private_hosts(self) -> Sequence[str]:
        """The `host:port` pair that may be one of the own network, where it may."""
        parts = urlsplit(self.url)
        port = parts.port or (443 if parts.scheme in ("https", "wss") else 80)
        return [f"{parts.hostname}:{port}"] if self.is_private else []


@record(kw_only=True)
class WebSocketSource(EventSource):
    """A WebSocket to which a connection is kept. `messages` are sent whenever it is connected."""

    KIND: ClassVar[str] = WEBSOCKET
    messages: tuple[str, ...] = ()


@record(kw_only=True)
class PollSource(EventSource):
    """A REST resource that is asked at intervals. `items` is the path of the list in the answer; empty: the answer
    itself. What is no list is one item, which is new whenever it has changed. With `takes_first`, what the resource
    lists at the first look becomes events too.
    """

    KIND: ClassVar[str] = POLL
    every: timedelta = timedelta(minutes=5)
    items: str = ""
    takes_first: bool = False


@record(kw_only=True)
class EventSourceState:
    """The state of a source as it was noted last. `looked_at` is when it was asked, or its connection was there or
    lost; `failures` counts those in a row, and `failure` tells why the last one was. `version` was read last.
    With `was_reached` it has answered, or was connected, at least once.
    """

    key: str
    url: str
    looked_at: datetime
    version: FeedVersion = FeedVersion()
    failures: int = 0
    failure: str = ""
    was_reached: bool = False


class EventSourceStatus(StrEnum):
    """WAITING: nobody has looked yet, or not for long, such as while no server runs; WORKING: it is connected, or has
    answered; FAILING: the last try failed.
    """

    WAITING = "waiting"
    WORKING = "working"
    FAILING = "failing"


@record
class SourceReport:
    """A source with its state; None where nobody has looked yet."""

    source: EventSource
    state: EventSourceState | None
    status: EventSourceStatus

    @property
    def address(self) -> str:
        """The address without what follows `?`, which may hold a secret."""
        return self.source.url.partition("?")[0].partition("#")[0]


def report_source(source: EventSource, state: EventSourceState | None, now: datetime) -> SourceReport:
    if state is None or state.url != source.url:
        return SourceReport(source, None, EventSourceStatus.WAITING)
    if state.failures:
        return SourceReport(source, state, EventSourceStatus.FAILING)
    pause = source.every if isinstance(source, PollSource) else timedelta()
    is_stale = not state.was_reached or now - state.looked_at > pause + STALE_AFTER
    return SourceReport(source, state, EventSourceStatus.WAITING if is_stale else EventSourceStatus.WORKING)


@record
class ResourceItem:
    """An item of an answer. One without an id of its own has that of its content."""

    id: str
    content: Json


@record
class ResourceListing:
    """The items of an answer. With `is_state` it is no list: what counts is whether it has changed."""

    items: Sequence[ResourceItem] = ()
    is_state: bool = False

    def choose_new(self, seen: Collection[str]) -> Sequence[ResourceItem]:
        """Returns the items that were not seen, each once, in the order of the answer."""
        return list({each.id: each for each in self.items if each.id not in seen}.values())


def read_listing(source: PollSource, content: Json, *, is_known: bool = False) -> ResourceListing:
    """Returns the items of an answer. Raises InvalidInput where the path of the items leads nowhere. A resource that
    `is_known` may leave out the field itself, as some do while a list is empty.
    """
    found = find_value(content, source.items)
    if found is None:
        _check_path(content, source.items, is_known=is_known)
        return ResourceListing()
    items = found if isinstance(found, Sequence) and not isinstance(found, str) else None
    read = [
        ResourceItem(_shorten(_find_text(each, source.mapping.id)) or _digest(each), each)
        for each in ([found] if items is None else items)
    ]
    return ResourceListing(read, is_state=items is None)


def _check_path(content: Json, path: str, *, is_known: bool) -> None:
    before, _, last = path.rpartition(".")
    parent = find_value(content, before)
    if not path or (isinstance(parent, Mapping) and (is_known or last in parent)):
        return
    names = path.split(".")
    depth = max(n for n in range(len(names)) if not n or find_value(content, ".".join(names[:n])) is not None)
    reached = ".".join(names[:depth])
    inner = find_value(content, reached)
    where = f"'{reached}'" if reached else "The answer"
    known = [name for name in inner if name.isprintable()] if isinstance(inner, Mapping) else []
    has = f"has the fields {', '.join(known[:SHOWN_FIELDS])}" if known else f"is {_name_kind(inner)}"
    raise InvalidInput(
        f"The answer has nothing at '{path}'.",
        code="poll_items",
        why=f"{where} {has}"[:SHOWN_CHARS],
        fix="Correct `items`, or leave it out where the answer itself is the list.",
    )


def _name_kind(value: Json) -> str:
    if isinstance(value, Mapping):
        return "an object without fields"
    return "a list" if isinstance(value, list | tuple) else "no object"


def make_event(source: EventSource, content: Json, *, key: str, now: datetime) -> CloudEvent:
    """Returns the event of a message or an item; `key` is its id."""
    return CloudEvent(
        id=_shorten(key),
        source=source.source,
        type=name_type(source, content),
        time=now,
        data=dict(content) if isinstance(content, Mapping) else {"value": content},
    )


def name_type(source: EventSource, content: Json) -> str:
    """Returns the type of an event: that of its source, with the type of the message or item behind it."""
    part = _TYPE_PART.sub("_", _find_text(content, source.mapping.type).lower()).strip("_")[:64]
    return f"{source.type}.{part}" if part else source.type


def find_message_id(source: WebSocketSource, content: Json) -> str:
    """Returns the id that a message has of its own, or nothing."""
    return _find_text(content, source.mapping.id)


def plan_next_look(source: PollSource, state: EventSourceState) -> datetime:
    """Returns when the resource is asked again. One that fails is asked half as often each time."""
    return state.looked_at + min(source.every * 2 ** min(state.failures, 10), max(MAX_PAUSE, source.every))


def plan_reconnect_s(failures: int, chance: float) -> float:
    """Returns how long to wait before a connection is tried again after so many failures. `chance`, from 0 to 1,
    spreads the tries, so that a server that was away is not asked by everybody at once.
    """
    return _BACKOFF_S[min(failures, len(_BACKOFF_S)) - 1] * (0.5 + chance / 2)


def _find_text(content: Json, path: str) -> str:
    if not path:
        return ""
    value = find_value(content, path)
    if value is None or isinstance(value, Mapping | list | tuple):
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _shorten(key: str) -> str:
    """Returns the key, or a digest of one that no index of a database holds."""
    return key if len(key) <= MAX_KEY_CHARS else _digest(key)


def _digest(content: Json) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
