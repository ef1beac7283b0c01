"""Reads a workflow from its tree of values, and finds everything that is wrong with it. Pure.

A problem names the place in the tree, what is wrong there and how to correct it; who has the text knows the line.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from denizen.domain.cloud_event import list_places
from denizen.domain.comparison import find_number
from denizen.domain.event_listener import CONDITIONS
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.domain.record import record
from denizen.domain.workflow import (
    MAX_EDGES,
    MAX_NODES,
    RESERVED,
    Edge,
    Workflow,
    WorkflowNode,
    find_ancestors,
    find_cycle,
    find_reachable,
)
from denizen.domain.workflow_nodes import (
    CASE,
    CASES,
    EACH,
    ELSE,
    NODE_TYPES,
    ON_ERROR,
    THEN,
    NodeSetting,
    NodeType,
    SettingKind,
    list_settings,
)
from denizen.domain.workflow_values import (
    TESTS,
    find_broken_place,
    list_all_places,
    list_texts,
    read_clock,
    read_days,
    read_duration,
)

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
NODE_ID = re.compile(r"[a-z][a-z0-9_]{0,63}")
MAX_DESCRIPTION_CHARS = 500
_KEYS = ("description", "agent", "enabled", "nodes")
_PORT_KEYS = (THEN, ELSE, ON_ERROR, EACH, CASES)
_UNFILLED = (SettingKind.LITERAL, SettingKind.LITERALS, SettingKind.FILTER)
_RESERVED_FIELDS: Mapping[str, frozenset[str]] = {
    "run": frozenset({"id", "workflow", "agent", "started_by"}),
    "error": frozenset(),
    "index": frozenset(),
}
_AS_LONG_AS = "a number of seconds, or like 30s, 10m, 2h, 1d"


@record
class WorkflowProblem:
    """A fault at a place: `path` leads to it through the keys of the tree."""

    path: tuple[str | int, ...]
    message: str
    fix: str


@record
class WorkflowReading:
    """A workflow, or None where there are problems."""

    workflow: Workflow | None
    problems: Sequence[WorkflowProblem]


def read_workflow(name: str, tree: Mapping[str, Json]) -> WorkflowReading:
    """Reads a workflow. Whether the agents, tools, routes and workflows exist that it names is for others to check."""
    reader = _Reader()
    workflow = reader.read(name, tree)
    return WorkflowReading(workflow if not reader.problems else None, tuple(reader.problems))


def find_nesting_problems(
    workflows: Mapping[str, Workflow], broken: Collection[str] = ()
) -> Iterator[tuple[str, WorkflowProblem]]:
    """Yields a problem for each `sub_workflow` that names no workflow, a broken one, or one that leads back to it."""
    for workflow in workflows.values():
        for node in workflow.nodes.values():
            if node.type != "sub_workflow":
                continue
            wanted, path = str(node.settings["workflow"]), ("nodes", node.id, "workflow")
            if wanted in broken:
                problem = WorkflowProblem(path, f"the workflow '{wanted}' cannot be used itself.", "Correct that one.")
                yield workflow.name, problem
            elif wanted not in workflows:
                yield (
                    workflow.name,
                    WorkflowProblem(path, f"there is no workflow '{wanted}'.", _near(wanted, workflows)),
                )
            elif workflow.name in _list_nested(workflows, wanted):
                fix = "A workflow must not run within itself: let it emit an event, or use `for_each`."
                yield workflow.name, WorkflowProblem(path, f"'{wanted}' leads back to '{workflow.name}'.", fix)


def _list_nested(workflows: Mapping[str, Workflow], start: str) -> set[str]:
    """Returns the workflows that may run within one, and it itself."""
    found, waiting = set[str](), [start]
    while waiting:
        name = waiting.pop()
        if name not in found and name in workflows:
            found.add(name)
            nodes = workflows[name].nodes.values()
            waiting += [str(each.settings["workflow"]) for each in nodes if each.type == "sub_workflow"]
    return found


@dataclass(slots=True)
class _Reader:
    problems: list[WorkflowProblem] = field(default_factory=list[WorkflowProblem])

    def refuse(self, path: tuple[str | int, ...], message: str, fix: str) -> None:
        self.problems.append(WorkflowProblem(path, message, fix))

    def read(self, name: str, tree: Mapping[str, Json]) -> Workflow | None:
        if not NAME.fullmatch(name):
            fix = "Use lower-case letters, digits, and _ - after the first character; 64 at most."
            self.refuse((), f"'{name}' cannot be the name of a workflow.", fix)
        for key in tree:
            if key not in _KEYS:
                self.refuse((key,), "this key is not known.", _near(key, _KEYS))
        description, agent = tree.get("description", ""), tree.get("agent", "")
        if not isinstance(description, str) or len(description) > MAX_DESCRIPTION_CHARS:
            fix = f"Write a text of at most {MAX_DESCRIPTION_CHARS} characters."
            self.refuse(("description",), "this is no description.", fix)
        if not isinstance(agent, str):
            self.refuse(("agent",), "this is no name of an agent.", "Write the name of one.")
        enabled = tree.get("enabled", True)
        if not isinstance(enabled, bool):
            self.refuse(("enabled",), "this is neither true nor false.", "Write true or false.")
        rows = tree.get("nodes")
        if not isinstance(rows, Mapping) or not rows:
            self.refuse(("nodes",), "a workflow needs nodes.", "Write `nodes:` with a trigger, such as `type: manual`.")
            return None
        if len(rows) > MAX_NODES:
            fix = "Put a part of them into another workflow, for a `sub_workflow` node."
            self.refuse(("nodes",), f"a workflow has {MAX_NODES} nodes at most.", fix)
            return None
        nodes = {id_: node for id_, row in rows.items() if (node := self._read_node(id_, row)) is not None}
        if len(nodes) == len(rows):
            self._check_graph(nodes)
        if self.problems:
            return None
        defined = {key: tree[key] for key in ("agent", "nodes") if key in tree}
        text = json.dumps([name, defined], sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return Workflow(
            name=name,
            description=str(description),
            agent=AgentName(str(agent)),
            enabled=enabled is True,
            nodes=nodes,
            digest=hashlib.sha256(text.encode()).hexdigest(),
            tree=defined,
        )

    # --- nodes -------------------------------------------------------------------------------------------------------

    def _read_node(self, id_: str, row: Json) -> WorkflowNode | None:
        path = ("nodes", id_)
        if not NODE_ID.fullmatch(id_) or id_ in RESERVED:
            why = "means something else in places." if id_ in RESERVED else "cannot be the id of a node."
            self.refuse(path, f"'{id_}' {why}", "Use another: lower-case letters, digits and _, a letter first.")
        if not isinstance(row, Mapping):
            self.refuse(path, "a node has keys.", "Write `type:` and its settings below, indented.")
            return None
        kind = NODE_TYPES.get(str(row.get("type", "")))
        if kind is None:
            said = f"there is no type '{row['type']}'." if row.get("type") else "this node has no type."
            self.refuse((*path, "type") if "type" in row else path, said, _near(str(row.get("type", "")), NODE_TYPES))
            return None
        known = list_settings(kind)
        for key in row:
            if key != "type" and key not in known and key not in _PORT_KEYS:
                keys = [*known, *(CASES if each == CASES else each for each in kind.all_ports)]
                self.refuse((*path, key), f"{kind.name} has no setting '{key}'.", _near(key, keys))
        settings = {name: self._read_setting((*path, name), row, name, each) for name, each in known.items()}
        return WorkflowNode(id=id_, type=kind.name, settings=settings, edges=tuple(self._read_edges(id_, row, kind)))

    def _read_edges(self, id_: str, row: Mapping[str, Json], kind: NodeType) -> Iterator[Edge]:
        for key in _PORT_KEYS:
            if key not in row:
                continue
            path = ("nodes", id_, key)
            if key not in kind.all_ports:
                ways = ", ".join(kind.all_ports) or "none"
                self.refuse(path, f"{kind.name} does not lead on by `{key}`.", f"Its ways are: {ways}.")
            elif key != CASES:
                yield from self._read_targets(path, id_, key, row[key])
            elif isinstance(cases := row[key], Mapping):
                for case, targets in cases.items():
                    yield from self._read_targets((*path, case), id_, f"{CASE}{case}", targets)
            else:
                self.refuse(
                    path, "cases are values with the nodes that follow.", "Write `cases: {yes: greet, no: stop}`."
                )

    def _read_targets(self, path: tuple[str, ...], id_: str, port: str, value: Json) -> Iterator[Edge]:
        targets = [value] if isinstance(value, str) else value
        if not isinstance(targets, list) or not all(isinstance(each, str) for each in targets):
            self.refuse(path, "this is no id of a node.", "Write the id of a node, or a list of them.")
            return
        yield from (Edge(id_, port, str(each)) for each in dict.fromkeys(map(str, targets)))

    def _read_setting(self, path: tuple[str, ...], row: Mapping[str, Json], name: str, setting: NodeSetting) -> Json:
        value = row.get(name)
        if value is None or value == "":
            if setting.is_required:
                self.refuse(path, f"`{name}` is missing.", f"{setting.about} Write `{name}:`.")
            return setting.default if value is None else value
        wrong = _find_fault(value, setting)
        if wrong:
            self.refuse(path, f"this is not {wrong}.", setting.about)
            return None
        if setting.kind is SettingKind.TEST:
            self._check_tests(path, value)
        if setting.kind is SettingKind.FILTER and isinstance(value, Mapping):
            self._check_filter(path, value)
        if setting.kind is SettingKind.LITERALS and isinstance(value, str):
            return [value]
        if setting.kind in (SettingKind.TEXT, SettingKind.POST, SettingKind.LITERAL):
            return str(value)
        return read_duration(value) if setting.kind is SettingKind.DURATION else value

    def _check_tests(self, path: tuple[str | int, ...], value: Json) -> None:
        for at, test in enumerate(value if isinstance(value, list) else [value]):
            here = (*path, at) if isinstance(value, list) else path
            if not isinstance(test, Mapping) or test.get("value") is None or len(test) == 1:
                fix = f"Write `{{value: '{{{{event.a}}}}', equals: b}}`. Tests: {', '.join(TESTS)}."
                self.refuse(here, "a test has a value and what it must be.", fix)
                continue
            for key, wanted in test.items():
                if key not in ("value", *TESTS):
                    self.refuse((*here, key), f"there is no test '{key}'.", _near(key, TESTS))
                elif key != "value" and (noun := _find_test_fault(key, wanted)):
                    self.refuse((*here, key), f"this is not {noun}.", _MISSING)

    def _check_filter(self, path: tuple[str | int, ...], conditions: Mapping[str, Json]) -> None:
        for field_path, wanted in conditions.items():
            here = (*path, field_path)
            if not isinstance(wanted, Mapping):
                if not _are_scalars(wanted):
                    self.refuse(here, "this is not a value or a list of values.", _MISSING)
                continue
            if not wanted:
                self.refuse(here, "this condition says nothing.", f"Conditions: {', '.join(CONDITIONS)}.")
            for key, each in wanted.items():
                if key not in CONDITIONS:
                    fix = f"{_near(key, CONDITIONS)} The field of a field is written with a dot: `{field_path}.{key}`."
                    self.refuse((*here, key), f"there is no condition '{key}'.", fix)
                elif noun := _find_condition_fault(key, each):
                    self.refuse((*here, key), f"this is not {noun}.", _MISSING)

    # --- the graph ---------------------------------------------------------------------------------------------------

    def _check_graph(self, nodes: Mapping[str, WorkflowNode]) -> None:
        if sum(len(each.edges) for each in nodes.values()) > MAX_EDGES:
            fix = "Bring ways together in a `join`, and lead on from there."
            self.refuse(("nodes",), f"a workflow has {MAX_EDGES} ways between nodes at most.", fix)
            return
        triggers = [each.id for each in nodes.values() if each.kind.is_trigger]
        if not triggers:
            names = ", ".join(name for name, kind in NODE_TYPES.items() if kind.is_trigger)
            self.refuse(("nodes",), "nothing starts this workflow.", f"Add a node of one of the types {names}.")
        for edge in (edge for node in nodes.values() for edge in node.edges):
            path = ("nodes", edge.source, *_find_key(edge.port))
            if edge.target not in nodes:
                self.refuse(path, f"there is no node '{edge.target}'.", _near(edge.target, nodes))
            elif nodes[edge.target].kind.is_trigger:
                fix = "Lead to another node; a trigger only begins."
                self.refuse(path, f"'{edge.target}' is a trigger, and nothing leads to one.", fix)
        if self.problems:
            return
        cycle = find_cycle(nodes)
        if cycle:
            way = " -> ".join([*cycle, cycle[0]])
            fix = (
                "Take one of these ways out; `for_each` repeats nodes for the items of a list, `retry` one that failed."
            )
            self.refuse(("nodes", cycle[-1]), f"these nodes lead in a circle: {way}.", fix)
            return
        reached = find_reachable(nodes, triggers)
        for each in nodes:
            if each not in reached and triggers:
                self.refuse(("nodes", each), "no way leads to this node.", f"Write `then: {each}` in another node.")
        self._check_loops(nodes)
        self._check_places(nodes)

    def _check_loops(self, nodes: Mapping[str, WorkflowNode]) -> None:
        for loop in (each for each in nodes.values() if each.type == "for_each"):
            starts = loop.list_targets(EACH)
            if not starts:
                fix = "Write `each:` with the node that runs for every item."
                self.refuse(("nodes", loop.id), "this loop has nothing to run.", fix)
            body = find_reachable(nodes, starts)
            for edge in (edge for node in nodes.values() for edge in node.edges):
                is_entry = edge.source == loop.id and edge.port == EACH
                if edge.target in body and edge.source not in body and not is_entry:
                    self.refuse(
                        ("nodes", edge.source, *_find_key(edge.port)),
                        f"'{edge.target}' runs for each item of '{loop.id}', so nothing else leads to it.",
                        f"Lead on by `then` of '{loop.id}', which follows when all items are done.",
                    )

    def _check_places(self, nodes: Mapping[str, WorkflowNode]) -> None:
        """Each place has to name something that is there before its node runs."""
        loops = [each for each in nodes.values() if each.type == "for_each"]
        bodies = {each.id: find_reachable(nodes, each.list_targets(EACH)) for each in loops}
        for node in nodes.values():
            before = find_ancestors(nodes, node.id)
            is_in_loop = any(node.id in body for body in bodies.values())
            for name, value in node.settings.items():
                setting = list_settings(node.kind)[name]
                known = (RESERVED - {"item", "index"}) | before
                if setting.is_per_item or is_in_loop:
                    known |= {"item", "index"}
                if node.type == "for_each" and setting.is_per_item:
                    known |= bodies[node.id]
                for at, text in list_texts(value) if setting.kind not in _UNFILLED else ():
                    path = ("nodes", node.id, name, *at)
                    if broken := find_broken_place(text):
                        fix = (
                            "Write `{{event.user.name}}`: two braces on each side, and a path without spaces; "
                            "or `\\{{` for braces that are no place."
                        )
                        self.refuse(path, f"`{broken}`: this place is not closed, or has no path.", fix)
                    for place in list_places(text):
                        if fault := _find_place_fault(nodes, node, place, known):
                            self.refuse(path, f"`{{{{{place}}}}}`: {fault[0]}", fault[1])


def _find_place_fault(
    nodes: Mapping[str, WorkflowNode], node: WorkflowNode, place: str, known: AbstractSet[str]
) -> tuple[str, str] | None:
    """Returns what is wrong with a place in a setting of the node, and how to correct it; None where nothing is."""
    first, _, rest = place.partition(".")
    if node.type == "manual":
        return "the values of inputs are taken as they are.", "Write a value without places."
    if first in known:
        outputs, output = _list_outputs(nodes, first), rest.partition(".")[0]
        if outputs is None or not output or output in outputs:
            return None
        return f"'{first}' has no '{output}'.", _near(output, outputs) if outputs else f"Write `{{{{{first}}}}}` alone."
    if first in nodes:
        return f"'{first}' does not run before this node.", "Lead from it to this node."
    if first in ("item", "index"):
        return "this is there in loops only.", "Put the node behind `each` of a `for_each`."
    return "names nothing.", _near(first, known)


def _list_outputs(nodes: Mapping[str, WorkflowNode], name: str) -> frozenset[str] | None:
    """Returns what a place can take out of what it names first; None where that is open, as inputs are that no manual
    trigger names.
    """
    if name == "input":
        given = [each.settings["input"] for each in nodes.values() if each.type == "manual"]
        named = frozenset(name for each in given if isinstance(each, Mapping) for name in each)
        return named | {"text", "planned_at"} if named else None
    if name in RESERVED:
        return _RESERVED_FIELDS.get(name)
    node = nodes[name]
    if node.kind.is_trigger:
        return None
    values = node.settings.get("values") if node.type == "set" else None
    own = frozenset(values) if isinstance(values, Mapping) else frozenset(node.kind.outputs)
    return own | {"error", "code"} if node.list_targets(ON_ERROR) else own


def _find_fault(value: Json, setting: NodeSetting) -> str:
    """Returns what the value is not; empty for one that fits."""
    match setting.kind:
        case SettingKind.CHOICE:
            return "" if value in setting.choices else f"one of {', '.join(setting.choices)}"
        case SettingKind.WHOLE | SettingKind.NUMBER:
            wanted = int if setting.kind is SettingKind.WHOLE else (int, float)
            fits = isinstance(value, wanted) and not isinstance(value, bool)
            return "" if fits and _is_within(float(str(value)), setting) else f"a number {_range(setting)}"
        case SettingKind.DURATION:
            seconds = read_duration(value)
            return "" if seconds is not None and _is_within(seconds, setting) else f"{_AS_LONG_AS}, {_range(setting)}"
        case kind:
            is_fit, noun = _SHAPES[kind]
            return "" if is_fit(value) else noun


_MISSING = "Correct it; whether there is a value at all is asked by `exists: true` or `exists: false`."


def _find_test_fault(name: str, wanted: Json) -> str:
    """Returns what the value of a test has to be and is not; empty for one that fits."""
    has_place = any(list_all_places(wanted))
    match name:
        case "exists":
            return "" if isinstance(wanted, bool) else "true or false"
        case "one_of":
            return "" if has_place or wanted not in (None, "", []) else "a list of values"
        case "contains":
            return "" if wanted not in (None, "") else "a text or an entry"
        case "matches":
            return "" if isinstance(wanted, str) and not has_place else "a text without places"
        case "at_least" | "at_most":
            return "" if has_place or find_number(wanted) is not None else "a number"
        case _:
            return "" if wanted is not None else "a value"


def _find_condition_fault(name: str, wanted: Json) -> str:
    """Returns what the value of a condition of a filter has to be and is not; empty for one that fits."""
    match name:
        case "exists":
            return "" if isinstance(wanted, bool) else "true or false"
        case "at_least" | "at_most":
            is_number = isinstance(wanted, int | float) and find_number(wanted) is not None
            return "" if is_number else "a number"
        case "contains":
            return "" if isinstance(wanted, str) and _are_scalars(wanted) and wanted else "a text without places"
        case _:
            return "" if _are_scalars(wanted) else "a value or a list of values, without places"


def _are_scalars(value: Json) -> bool:
    """Whether it is a value, or a list of some, without places."""
    several = value if isinstance(value, list) else [value]
    return bool(several) and all(
        isinstance(each, str | int | float) and not any(list_all_places(each)) for each in several
    )


def _is_text(value: Json) -> bool:
    return not isinstance(value, Mapping | list | bool)


def _is_literal(value: Json) -> bool:
    return _is_text(value) and not any(list_all_places(value))


def _are_literals(value: Json) -> bool:
    several = [value] if isinstance(value, str) else value
    is_list = isinstance(several, list) and bool(several) and all(isinstance(each, str) for each in several)
    return is_list and not any(list_all_places(value))


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


_SHAPES: Mapping[SettingKind, tuple[Callable[[Json], bool], str]] = {
    SettingKind.TEXT: (_is_text, "a text"),
    SettingKind.POST: (_is_text, "a text"),
    SettingKind.LITERAL: (_is_literal, "a text without places"),
    SettingKind.LITERALS: (_are_literals, "a text without places, or a list of them"),
    SettingKind.FLAG: (lambda value: isinstance(value, bool), "true or false"),
    SettingKind.OBJECT: (lambda value: isinstance(value, Mapping), "a mapping of names to values"),
    SettingKind.FILTER: (lambda value: isinstance(value, Mapping), "a mapping of paths to conditions"),
    SettingKind.TEST: (lambda value: isinstance(value, Mapping | list) and bool(value), "a test or a list of them"),
    SettingKind.VALUE: (lambda _: True, "a value"),
    SettingKind.ZONE: (lambda value: _is_zone(str(value)), "a time zone"),
    SettingKind.CLOCK: (lambda value: read_clock(str(value)) is not None, "a time of the day, in quotes"),
    SettingKind.DAYS: (lambda value: read_days(str(value)) is not None, "days of the week"),
}


def _is_within(number: float, setting: NodeSetting) -> bool:
    least, most = setting.least, setting.most
    return (least is None or number >= least) and (most is None or number <= most)


def _range(setting: NodeSetting) -> str:
    return f"from {setting.least or 0:g} to {setting.most:g}" if setting.most is not None else "that fits"


def _find_key(port: str) -> tuple[str, ...]:
    return (CASES, port.removeprefix(CASE)) if port.startswith(CASE) else (port,)


def _near(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    listed = f"Known: {', '.join(names)}."
    return f"Did you mean '{near[0]}'? {listed}" if near else listed
