"""The section `events`: sources of events that are listened to or asked from here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, WrapValidator, field_validator

from denizen.app.settings.fields import HttpUrl, Section, Text, WebSocketUrl, Whole, at_most, keep_template, refuse
from denizen.app.settings.problem import ConfigProblem, KeyPath
from denizen.app.settings.yaml_document import ConfigDocument
from denizen.domain.cloud_event import matches_type
from denizen.domain.event_source import (
    CONNECTED,
    LEAST_EVERY,
    POLL,
    WEBSOCKET,
    PollSource,
    SourceMapping,
    WebSocketSource,
)

MAX_SOURCES = 50
MAX_MESSAGES = 10
MESSAGE_CHARS = 8000
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_SECURE = frozenset({"https", "wss"})


def _source_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        fix = "Use lower-case letters, digits, and _ - after the first character; 64 at most."
        raise refuse("this cannot be a name.", fix)
    return value


def _plain_address(value: str) -> str:
    if not value:
        raise refuse("must not be empty.", "Write its address.")
    if "@" in urlsplit(value).netloc:
        raise refuse("an address must not hold a user name or password.", "Write them as a header, from a secret.")
    return value


SourceName = Annotated[str, AfterValidator(_source_name)]
SocketAddress = Annotated[WebSocketUrl, AfterValidator(_plain_address), WrapValidator(keep_template)]
ResourceAddress = Annotated[HttpUrl, AfterValidator(_plain_address), WrapValidator(keep_template)]
FieldPath = Annotated[Text, at_most(200)]
SubscribeMessage = Annotated[Text, at_most(MESSAGE_CHARS)]


class EventSourceSection(Section):
    """The keys that WebSockets and polls have in common."""

    headers: dict[str, Text] = Field(
        default_factory=dict[str, str], description="Sent to it, such as Authorization: Bearer ${NAME}."
    )
    id: FieldPath = Field(
        default="",
        description="Path of the field that names a message or item, such as `data.id`. The same is one event.",
    )
    type: FieldPath = Field(
        default="", description="Path of the field with its type, which then stands at the end of the event's type."
    )
    private: bool = Field(default=False, description="Whether the address may be one of your own network.")
    enabled: bool = Field(default=True, description="Whether it is used.")

    @field_validator("headers")
    @classmethod
    def _plain_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not (re.fullmatch(r"[A-Za-z0-9-]{1,100}", name) and value.isascii() and value.isprintable()):
                raise refuse("a header has a plain name and one line of text.", "Take line breaks out.")
        return headers

    @property
    def mapping(self) -> SourceMapping:
        return SourceMapping(id=self.id, type=self.type)


class WebSocketSection(EventSourceSection):
    """A WebSocket: each message is an event of the type `websocket.NAME`."""

    KIND: ClassVar[str] = WEBSOCKET
    url: SocketAddress = Field(description="Its address, such as wss://stream.example.org/v1.")
    messages: tuple[SubscribeMessage, ...] = Field(
        default=(), max_length=MAX_MESSAGES, description="Sent whenever it is connected, such as to subscribe."
    )


class PollSection(EventSourceSection):
    """A REST resource: each new item of its answer is an event of the type `poll.NAME`."""

    KIND: ClassVar[str] = POLL
    url: ResourceAddress = Field(description="Its address, such as https://api.example.org/v1/tickets.")
    every: Whole = Field(
        default=300, ge=int(LEAST_EVERY.total_seconds()), le=7 * 24 * 3600, description="Seconds between two looks."
    )
    items: FieldPath = Field(
        default="", description="Path of the list of items; empty: the answer itself. What is no list is one item."
    )
    first: Literal["skip", "all"] = Field(
        default="skip", description="What of the first look becomes events: nothing (`skip`), or `all` that it lists."
    )


class EventsSection(Section):
    """Sources of events that are listened to or asked from here."""

    websockets: dict[SourceName, WebSocketSection] = Field(
        default_factory=dict[str, WebSocketSection], max_length=MAX_SOURCES, description="WebSockets by name."
    )
    polls: dict[SourceName, PollSection] = Field(
        default_factory=dict[str, PollSection], max_length=MAX_SOURCES, description="REST resources by name."
    )

    @property
    def active(self) -> Mapping[tuple[str, str], WebSocketSection | PollSection]:
        """Those that are used, by the group and the name that stand in the file."""
        return {
            **{("websockets", name): each for name, each in self.websockets.items() if each.enabled},
            **{("polls", name): each for name, each in self.polls.items() if each.enabled},
        }

    def list_types(self) -> tuple[set[str], set[str]]:
        """Returns the types of events that can come, and the beginnings of those whose ends the sources tell."""
        types, prefixes = set[str](), set[str]()
        for (_, name), each in self.active.items():
            types.add(f"{each.KIND}.{name}")
            if each.KIND == WEBSOCKET:
                types.add(CONNECTED)
            if each.type:
                prefixes.add(f"{each.KIND}.{name}.")
        return types, prefixes


def build_sources(section: EventsSection) -> tuple[Mapping[str, WebSocketSource], Mapping[str, PollSource]]:
    """Returns the WebSockets and the polls that are used, by name."""
    websockets = {
        name: WebSocketSource(
            name=name,
            url=each.url,
            headers=each.headers,
            messages=each.messages,
            mapping=each.mapping,
            is_private=each.private,
        )
        for name, each in section.websockets.items()
        if each.enabled
    }
    polls = {
        name: PollSource(
            name=name,
            url=each.url,
            headers=each.headers,
            mapping=each.mapping,
            is_private=each.private,
            every=timedelta(seconds=each.every),
            items=each.items,
            takes_first=each.first == "all",
        )
        for name, each in section.polls.items()
        if each.enabled
    }
    return websockets, polls


def find_source_warnings(
    document: ConfigDocument, section: EventsSection, patterns: Sequence[str]
) -> Iterator[ConfigProblem]:
    """Yields a warning for each source in force that no listener waits for, and for each whose headers are sent in the
    clear. `patterns` are the types that listeners wait for.
    """
    for (group, name), each in section.active.items():
        kind = f"{each.KIND}.{name}"
        if not any(_may_fit(pattern, kind) for pattern in patterns):
            fix = f"Add a listener with on: {kind}, or action: log to keep its events only."
            yield document.problem(("events", group, name), "no listener waits for its events.", fix)
        if each.headers and not each.private and urlsplit(each.url).scheme not in _SECURE:
            at: KeyPath = ("events", group, name, "url")
            yield document.problem(at, "its headers are sent without encryption.", "Write https or wss.")


def _may_fit(pattern: str, kind: str) -> bool:
    """Returns whether an event of that type, or of one that begins with it, may fit."""
    head = pattern.partition("*")[0]
    is_open = head != pattern
    return matches_type(pattern, kind) or head.startswith(f"{kind}.") or (is_open and kind.startswith(head))
