"""Events: what happened somewhere, in the vocabulary of CloudEvents 1.0. Pure.

`domain/events` is about what happens within a turn; these come from outside, or are emitted here. Everything in `data`
is foreign text: others wrote it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from fnmatch import fnmatchcase

from denizen.domain.errors import InvalidInput
from denizen.domain.ids import derive
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record

MAX_DEPTH = 5
"""So many events may follow from each other. The next one causes nothing any more."""
MESSAGE, REACTION = "message", "reaction"
JOIN, LEAVE = "member.join", "member.leave"
ROLE, CHANNEL, THREAD = "role.change", "channel.change", "thread.change"
COMMUNITY_KINDS = (MESSAGE, REACTION, JOIN, LEAVE, ROLE, CHANNEL, THREAD)
"""The kinds of events in communities; behind the name of the platform these are types."""
_GUILD = ("guild.id", "guild.name")
_USER = ("user.id", "user.name", "user.mention", "user.is_bot", "user.roles")
_CHANNEL = ("channel.id", "channel.name", "channel.mention")
_THREAD = ("thread.id", "thread.name", "thread.mention")
COMMUNITY_FIELDS: Mapping[str, frozenset[str]] = {
    MESSAGE: frozenset({*_GUILD, *_CHANNEL, *_THREAD, *_USER, "message.id", "message.text", "message.reply_to"}),
    REACTION: frozenset({*_GUILD, *_CHANNEL, *_THREAD, *_USER, "message.id", "reaction.emoji", "reaction.is_on"}),
    JOIN: frozenset({*_GUILD, "guild.members", *_USER}),
    LEAVE: frozenset({*_GUILD, "guild.members", *_USER}),
    ROLE: frozenset({*_GUILD, "guild.members", "change", "role.id", "role.name", "role.mention", *_USER}),
    CHANNEL: frozenset({*_GUILD, "guild.members", "change", *_CHANNEL}),
    THREAD: frozenset({*_GUILD, "guild.members", "change", *_CHANNEL, *_THREAD}),
}
"""The paths of the data of events in communities, by kind."""
MAX_NESTING = 64
"""So many objects and lists may stand within each other in the data. What copies or shows it goes down them one by one.
"""
EMITTED = "denizen.emitted."
"""Begins the types of events that are emitted here."""
LOCAL = "local."
"""Begins the types of events that agents emit by a tool, whoever asked them to."""
EVENT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}(?:\.[a-z0-9_-]{1,64}){0,4}")
"""The names that may stand behind `EMITTED` and `LOCAL`."""

PLACE = re.compile(r"\\\{\{|\{\{\s*(@?[^\s{}]{1,200})\s*\}\}")
"""A place with its path; or the escape of braces that begin none, without a path."""
BRACES = "{{"
"""Two braces; where they begin no place, they are written with an escape."""
ATTRIBUTES = ("id", "source", "type", "subject", "actor", "time")
MAX_FILLED_CHARS = 4000
"""The limit for one value in a template."""


@record(kw_only=True)
class CloudEvent:
    """One event. `id` is unique within its `source`; the same one again is the same event. `subject` is what of the
    source it is about, `actor` the key of the principal who did it, where that is known. `cause` is the key of the
    event from which it follows, `depth` how many stand before it.
    """

    id: str
    source: str
    type: str
    time: datetime
    subject: str = ""
    actor: str = ""
    data: JsonObject = field(default_factory=dict[str, Json])
    cause: str = ""
    depth: int = 0

    @property
    def key(self) -> str:
        """The key of the event in the store: the same for the same source and id, for ever."""
        return event_key(self.source, self.id)


def event_key(source: str, key: str) -> str:
    return derive("event", source, key)


def check_nesting(data: Json) -> None:
    """Raises InvalidInput for data that is nested too deeply."""
    level = _list_containers([data])
    for _ in range(MAX_NESTING):
        level = [inner for each in level for inner in _list_containers(_list_inner(each))]
    if level:
        raise nested_too_deeply()


def read_json(text: str) -> Json:
    """Returns the value that the JSON text stands for. Raises ValueError for what is no JSON or cannot be stored, and
    InvalidInput for what is nested too deeply.
    """
    try:
        content: Json = json.loads(text)
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode()  # half of a surrogate pair cannot be stored
    except RecursionError as error:
        raise nested_too_deeply() from error
    check_nesting(content)
    return content


def nested_too_deeply() -> InvalidInput:
    return InvalidInput(
        "The data of this event is nested too deeply.",
        code="json_nesting",
        why=f"more than {MAX_NESTING} objects and lists stand within each other",
        fix="Send it flatter, or its inner part as text.",
    )


def _list_inner(container: Sequence[Json] | Mapping[str, Json]) -> Iterable[Json]:
    return container.values() if isinstance(container, Mapping) else container


def _list_containers(values: Iterable[Json]) -> list[Sequence[Json] | Mapping[str, Json]]:
    return [each for each in values if isinstance(each, Sequence | Mapping) and not isinstance(each, str)]


def has_field(fields: Iterable[str], path: str) -> bool:
    """Tells whether a path names an attribute of events, one of these fields, something that holds one, or an entry of
    one that is a list.
    """
    if path.startswith("@"):
        return path[1:] in ATTRIBUTES
    return any(each == path or each.startswith(f"{path}.") or path.startswith(f"{each}.") for each in fields)


def matches_type(pattern: str, kind: str) -> bool:
    """Tells whether a type fits a pattern, in which `*` stands for anything."""
    return fnmatchcase(kind, pattern)


def find_field(event: CloudEvent, path: str) -> Json:
    """Returns the value at a dotted path in the data, where numbers are positions in lists; behind `@`, an attribute of
    the event itself. None where there is none.
    """
    if path.startswith("@"):
        name = path[1:]
        value = getattr(event, name) if name in ATTRIBUTES else None
        return value.isoformat() if isinstance(value, datetime) else value
    return find_value(event.data, path)


def find_value(content: Json, path: str) -> Json:
    """Returns the value at a dotted path, where numbers are positions in lists; None where there is none. An empty path
    is the content itself.
    """
    found = content
    for name in path.split(".") if path else ():
        if isinstance(found, Mapping):
            found = found.get(name)
        elif isinstance(found, Sequence) and not isinstance(found, str) and name.isdecimal() and len(name) < 6:
            found = found[int(name)] if int(name) < len(found) else None
        else:
            return None
    return found


def show_field(event: CloudEvent, path: str) -> str:
    """Returns the value at a path as text, which is empty where there is none."""
    value = find_field(event, path)
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_FILLED_CHARS else f"{text[: MAX_FILLED_CHARS - 3]}..."


def list_places(template: str) -> list[str]:
    """Returns the paths in the places `{{path}}` of a template."""
    return [path for path in PLACE.findall(template) if path]


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """Returns the template with its places filled, by path, and its escapes replaced. In one pass: what is filled in
    has no places.
    """
    return PLACE.sub(lambda place: values.get(place[1], "") if place[1] else BRACES, template)
