"""The nodes that only compute: conditions about values, transforms, and steering without waiting. Pure.

Regular expressions are not among them: an expression that takes too long has to be interrupted, which the engine does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from denizen.domain.authored_text import author, author_all, is_authored, join_texts
from denizen.domain.cloud_event import find_value
from denizen.domain.comparison import equality_key, is_equal
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.domain.workflow import WorkflowNode
from denizen.domain.workflow_nodes import CASE, ELSE, THEN, SettingKind, list_settings
from denizen.domain.workflow_values import (
    check_tests,
    fill,
    fill_post,
    misses_value,
    read_clock,
    read_days,
    show,
    show_parts,
)

MAX_ITEMS = 10_000


@record(kw_only=True)
class NodeResult:
    """How a node was left, and its outputs."""

    port: str = THEN
    outputs: Mapping[str, Json] = field(default_factory=dict[str, Json])


@record(kw_only=True)
class NodeInput:
    """The values that a node computes with. `settings` are filled, but for those that are filled for each item. `roles`
    are those of the one for whom the run is, `zone` is the time zone where a node names none.
    """

    settings: Mapping[str, Json]
    scope: Mapping[str, Json]
    now: datetime
    zone: str = "UTC"
    roles: frozenset[str] = frozenset()


def fill_settings(node: WorkflowNode, scope: Mapping[str, Json]) -> JsonObject:
    """Returns the settings of a node with their places filled, but for those that are filled for each item."""
    kinds, filled = list_settings(node.kind), dict[str, Json]()
    for name, value in node.settings.items():
        if kinds[name].is_per_item:
            filled[name] = value
        elif kinds[name].kind is SettingKind.POST:
            filled[name] = fill_post(show(value), scope)
        else:
            filled[name] = fill(value, scope)
    return filled


def needs_time(node: WorkflowNode) -> bool:
    """Whether what the node computes depends on the time."""
    return node.type in ("in_hours", "format_date")


def can_compute(node: WorkflowNode) -> bool:
    return node.type in _COMPUTED


def compute(node: WorkflowNode, given: NodeInput) -> NodeResult:
    """Returns what the node computes. Raises InvalidInput (`workflow_value`) for values that it cannot work with."""
    return _COMPUTED[node.type](node, given)


def list_items(value: Json) -> Sequence[Json]:
    """Returns the items of a list; of nothing none. Raises InvalidInput for what is no list."""
    if value in (None, ""):
        return []
    if isinstance(value, Mapping | str) or not isinstance(value, Sequence):
        raise _refuse(f"this is no list: {show(value)[:80]}", "Give it a list, such as one of `parse_json`.")
    if len(value) > MAX_ITEMS:
        raise _refuse(f"the list has more than {MAX_ITEMS} items", "Take a part of it first.")
    return value


def _refuse(message: str, fix: str) -> InvalidInput:
    return InvalidInput(f"{message[:1].upper()}{message[1:]}.", code="workflow_value", fix=fix)


def _pass(node: WorkflowNode, given: NodeInput) -> NodeResult:
    del node, given
    return NodeResult()


def _decide(holds: bool) -> NodeResult:  # noqa: FBT001
    return NodeResult(port=THEN if holds else ELSE, outputs={"result": holds})


def _if(node: WorkflowNode, given: NodeInput) -> NodeResult:
    # The test as it is written, which is filled where it is checked: what people wrote has no places of its own.
    return _decide(check_tests(node.settings["test"], given.scope, is_any=given.settings["any"] is True))


def _switch(node: WorkflowNode, given: NodeInput) -> NodeResult:
    value = None if misses_value(node.settings["value"], given.scope) else given.settings["value"]
    cases = [edge.port for edge in node.edges if edge.port.startswith(CASE)]
    port = next((each for each in cases if is_equal(value, each.removeprefix(CASE))), ELSE)
    return NodeResult(port=port, outputs={"case": author(port.removeprefix(CASE)) if port != ELSE else ""})


def _permission(node: WorkflowNode, given: NodeInput) -> NodeResult:
    del node
    implied = frozenset({"admin", "member"}) if "owner" in given.roles else frozenset[str]()
    held = given.roles | implied
    return _decide(not held.isdisjoint(map(str, list_items(given.settings["roles"]))))


def _in_hours(node: WorkflowNode, given: NodeInput) -> NodeResult:
    """A span over midnight belongs to the day on which it begins."""
    del node
    begin, end = read_clock(str(given.settings["start"])) or 0, read_clock(str(given.settings["end"])) or 0
    days = read_days(str(given.settings["days"] or "")) or frozenset()
    local = given.now.astimezone(_zone(given))
    minute, day = local.hour * 60 + local.minute, local.weekday()
    if begin <= end:
        return _decide(begin <= minute < end and day in days)
    return _decide((minute >= begin and day in days) or (minute < end and (day - 1) % 7 in days))


def _zone(given: NodeInput) -> ZoneInfo:
    return ZoneInfo(str(given.settings["zone"] or given.zone or "UTC"))


def _set(node: WorkflowNode, given: NodeInput) -> NodeResult:
    del node
    values = given.settings["values"]
    return NodeResult(outputs=values if isinstance(values, Mapping) else {})


def _template(node: WorkflowNode, given: NodeInput) -> NodeResult:
    del node
    return NodeResult(outputs={"text": show_parts(given.settings["text"])})


def _parse_json(node: WorkflowNode, given: NodeInput) -> NodeResult:
    del node
    text = show_parts(given.settings["text"])
    value = read_json(text)
    return NodeResult(outputs={"value": author_all(value) if is_authored(text) else value})


def read_json(text: str) -> Json:
    """Returns the value of a JSON text; of one in a code block, too. Raises InvalidInput (`workflow_value`)."""
    bare = text.strip()
    if bare.startswith("```"):
        bare = bare.partition("\n")[2].rpartition("```")[0]
    try:
        value: Json = json.loads(bare)
    except (ValueError, RecursionError):
        raise _refuse(f"this is no JSON: {text.strip()[:80]}", "Lead on by `on_error` where it may be none.") from None
    return value


def _filter(node: WorkflowNode, given: NodeInput) -> NodeResult:
    test, is_any = node.settings["test"], node.settings["any"] is True
    kept = [item for item, scope in _each(given) if check_tests(test, scope, is_any=is_any)]
    return _listed(kept)


def _map(node: WorkflowNode, given: NodeInput) -> NodeResult:
    return _listed([fill(node.settings["to"], scope) for _, scope in _each(given)])


def _each(given: NodeInput) -> Sequence[tuple[Json, Mapping[str, Json]]]:
    items = list_items(given.settings["items"])
    return [(item, {**given.scope, "item": item, "index": index}) for index, item in enumerate(items)]


def _sort(node: WorkflowNode, given: NodeInput) -> NodeResult:
    del node
    items = sorted(
        list_items(given.settings["items"]),
        key=lambda item: _order(_field(item, given)),
        reverse=given.settings["descending"] is True,
    )
    return _listed(items)


def _order(value: Json) -> tuple[int, int | float, str]:
    """Nothing comes first, then numbers, then all else as text."""
    if value is None:
        return 0, 0.0, ""
    if isinstance(value, int | float):
        return 1, value, ""
    return 2, 0.0, show(value).casefold()


def _field(item: Json, given: NodeInput) -> Json:
    path = str(given.settings["by"] or "")
    return find_value(item, path) if path else item


def _unique(node: WorkflowNode, given: NodeInput) -> NodeResult:
    del node
    found: dict[str, Json] = {}
    for item in list_items(given.settings["items"]):
        found.setdefault(equality_key(_field(item, given)), item)
    return _listed(list(found.values()))


def _slice(node: WorkflowNode, given: NodeInput) -> NodeResult:
    del node
    items = list_items(given.settings["items"])
    start, most = int(str(given.settings["start"])), int(str(given.settings["most"]))
    first = max(len(items) + start, 0) if start < 0 else start
    return _listed(items[first : first + most])


def _count(node: WorkflowNode, given: NodeInput) -> NodeResult:
    del node
    value = given.settings["items"]
    count = len(value) if isinstance(value, str | Mapping) else len(list_items(value))
    return NodeResult(outputs={"count": count})


def _split_text(node: WorkflowNode, given: NodeInput) -> NodeResult:
    del node
    separator, text = str(given.settings["separator"] or "\n"), show_parts(given.settings["text"])
    parts: list[Json] = [part.strip() for part in text.split(separator) if part.strip()]
    return _listed([author_all(each) for each in parts] if is_authored(text) else parts)


def _join_text(node: WorkflowNode, given: NodeInput) -> NodeResult:
    del node
    items = list_items(given.settings["items"])
    text = join_texts(str(given.settings["separator"] or ""), map(show_parts, items))
    return NodeResult(outputs={"text": text})


def _format_date(node: WorkflowNode, given: NodeInput) -> NodeResult:
    del node
    said = show(given.settings["time"]).strip()
    time = given.now
    if said:
        try:
            number = float(said)
            time = datetime.fromtimestamp(number, UTC)
        except (ValueError, OverflowError, OSError):
            time = _read_time(said)
    local = time.astimezone(_zone(given))
    text = local.strftime(str(given.settings["format"]))
    return NodeResult(outputs={"text": author(text), "time": local.isoformat()})


def _read_time(said: str) -> datetime:
    try:
        time = datetime.fromisoformat(said)
    except ValueError:
        raise _refuse(f"this is no time: {said[:80]}", "Give it one such as 2026-11-29T07:00:00Z.") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _pick(node: WorkflowNode, given: NodeInput) -> NodeResult:
    del node
    found = find_value(given.settings["from"], show(given.settings["path"]))
    value = given.settings["default"] if found is None else found
    return NodeResult(outputs={"value": value, "found": found is not None})


def _listed(items: Sequence[Json]) -> NodeResult:
    return NodeResult(outputs={"items": list(items), "count": len(items)})


_COMPUTED: Mapping[str, Callable[[WorkflowNode, Any], NodeResult]] = {
    "if": _if,
    "switch": _switch,
    "permission": _permission,
    "in_hours": _in_hours,
    "set": _set,
    "template": _template,
    "parse_json": _parse_json,
    "filter": _filter,
    "map": _map,
    "sort": _sort,
    "unique": _unique,
    "slice": _slice,
    "count": _count,
    "split_text": _split_text,
    "join_text": _join_text,
    "format_date": _format_date,
    "pick": _pick,
    "parallel": _pass,
    "join": _pass,
}
