"""Workflows: directed graphs without cycles whose nodes have types, and the order in which their nodes run. Pure.

A trigger is a node, too. A run begins at one of them; a node runs when each way to it is either taken or known not to
be, and at least one is taken. The nodes behind `each` of a `for_each` belong to that loop: they run once for each item,
and nothing leads into or out of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.domain.record import record
from denizen.domain.workflow_nodes import EACH, NODE_TYPES, NodeEffect, NodeType

RESERVED = frozenset({"event", "input", "run", "item", "index", "error"})
"""The names in places that mean no node."""
MAX_NODES = 200
MAX_EDGES = 2000
MAX_STEPS = 500
"""So many nodes of one run may run, those of loops and of other workflows within it counted each time."""
MAX_DEPTH = 5
"""So many workflows may run within each other."""

ANY_PORT = "*"
"""Stands for all ways on from a node, in a dry run that cannot know which."""
_PATIENT = (NodeEffect.PEOPLE, NodeEffect.WAITS)


@record
class Edge:
    """A way from a node: taken when the node leaves by this port."""

    source: str
    port: str
    target: str


@record(kw_only=True)
class WorkflowNode:
    """One node. `settings` are complete: those that the file leaves out have their defaults."""

    id: str
    type: str
    settings: Mapping[str, Json]
    edges: tuple[Edge, ...] = ()

    @property
    def kind(self) -> NodeType:
        return NODE_TYPES[self.type]

    def list_targets(self, port: str) -> Sequence[str]:
        return [edge.target for edge in self.edges if edge.port == port]


@record(kw_only=True)
class Workflow:
    """One workflow. `agent` is empty for the default one. `digest` names this definition among those of all times, and
    does not change when it is switched on or off. `tree` is what it was read from, as far as that tells them apart.
    """

    name: str
    description: str
    agent: AgentName
    nodes: Mapping[str, WorkflowNode]
    digest: str
    enabled: bool = True
    tree: Mapping[str, Json] = field(default_factory=dict[str, Json], repr=False, compare=False)

    @property
    def triggers(self) -> Sequence[WorkflowNode]:
        return [each for each in self.nodes.values() if each.kind.is_trigger]

    @property
    def edges(self) -> Sequence[Edge]:
        return [edge for node in self.nodes.values() for edge in node.edges]

    def find_trigger(self, kind: str) -> WorkflowNode | None:
        return next((each for each in self.triggers if each.type == kind), None)

    def list_body(self, loop: str) -> frozenset[str]:
        """Returns the nodes that run for each item of a `for_each`, those of loops within it among them."""
        return frozenset(find_reachable(self.nodes, self.nodes[loop].list_targets(EACH)))

    def list_level(self, loop: str = "") -> frozenset[str]:
        """Returns the nodes that run in each round of a loop, or, without one, those that belong to no loop. What runs
        in loops within is not among them.
        """
        nodes = self.list_body(loop) if loop else frozenset(self.nodes)
        inner = [self.list_body(each) for each in nodes if self.nodes[each].type == "for_each"]
        return nodes.difference(*inner)


@record
class BrokenWorkflow:
    """A workflow that cannot be used: nothing starts it until it is corrected. `problem` says where, with the line."""

    name: str
    problem: str
    fix: str

    @property
    def error(self) -> InvalidInput:
        return InvalidInput(
            f"The workflow '{self.name[:64]}' cannot be used: {self.problem}", code="workflow_broken", fix=self.fix
        )


def find_reachable(nodes: Mapping[str, WorkflowNode], start: Iterable[str]) -> AbstractSet[str]:
    """Returns the nodes that can be reached, those to start from among them."""
    found: dict[str, None] = {}
    waiting = [each for each in start if each in nodes]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting += [edge.target for edge in nodes[node].edges if edge.target in nodes]
    return found.keys()


def find_ancestors(nodes: Mapping[str, WorkflowNode], node: str) -> AbstractSet[str]:
    """Returns the nodes from which this one can be reached, without it."""
    before: dict[str, list[str]] = {}
    for edge in (edge for each in nodes.values() for edge in each.edges):
        before.setdefault(edge.target, []).append(edge.source)
    found: dict[str, None] = {}
    waiting = list(before.get(node, ()))
    while waiting:
        each = waiting.pop()
        if each not in found:
            found[each] = None
            waiting += before.get(each, ())
    return found.keys()


def find_cycle(nodes: Mapping[str, WorkflowNode]) -> Sequence[str]:
    """Returns the nodes of one cycle in order; empty where there is none."""
    done: set[str] = set()
    for start in nodes:
        if start in done:
            continue
        path: list[str] = [start]
        ways: list[Iterator[str]] = [iter([edge.target for edge in nodes[start].edges])]
        while ways:
            target = next(ways[-1], None)
            if target is None:
                done.add(path.pop())
                ways.pop()
            elif target in path:
                return path[path.index(target) :]
            elif target in nodes and target not in done:
                path.append(target)
                ways.append(iter([edge.target for edge in nodes[target].edges]))
    return ()


@dataclass(slots=True)
class GraphWalk:
    """The way of one run through nodes of a workflow: all of its top, or those of one round of a loop. `start` are the
    nodes that run first, whatever leads to them.
    """

    workflow: Workflow
    among: frozenset[str]
    start: Sequence[str]
    _ended: dict[str, str] = field(default_factory=dict[str, str])
    """The port by which each node was left; empty for one that did not run, or ended the run."""
    _incoming: dict[str, list[Edge]] = field(default_factory=dict[str, list[Edge]])

    def __post_init__(self) -> None:
        for edge in self.workflow.edges:
            if edge.source in self.among and edge.target in self.among:
                self._incoming.setdefault(edge.target, []).append(edge)
        self._leave_out()

    def list_ready(self) -> Sequence[str]:
        """Returns the nodes that can run now, in the order of the file; those that wait for people or a time last."""
        ready = [each for each in self.workflow.nodes if each in self.among and self._is_ready(each)]
        return sorted(ready, key=lambda each: self.workflow.nodes[each].kind.effect in _PATIENT)

    def finish(self, node: str, port: str) -> None:
        """Notes by which port the node was left; empty: by none."""
        self._ended[node] = port
        self._leave_out()

    def leave_other_ways(self, node: str) -> Sequence[str]:
        """Leaves out the nodes that lead to this one and have not ended, and what only they lead to. Returns the
        former: another way to the node was the first.
        """
        before = find_ancestors(self.workflow.nodes, node)
        left = [each for each in before if each in self.among and each not in self._ended]
        self._ended |= dict.fromkeys(left, "")
        self._leave_out()
        return left

    def _is_ready(self, node: str) -> bool:
        if node in self._ended:
            return False
        if node in self.start:
            return True
        edges = self._incoming.get(node, [])
        taken = any(self._is_taken(edge) for edge in edges)
        takes_first = self.workflow.nodes[node].settings.get("wait_for") == "any"
        return taken and (takes_first or all(edge.source in self._ended for edge in edges))

    def _is_taken(self, edge: Edge) -> bool:
        return self._ended.get(edge.source) in (edge.port, ANY_PORT)

    def _leave_out(self) -> None:
        """Notes the nodes that cannot be reached any more."""
        has_changed = True
        while has_changed:
            has_changed = False
            for node in self.among:
                edges = self._incoming.get(node, [])
                if node in self._ended or node in self.start or not all(edge.source in self._ended for edge in edges):
                    continue
                if not any(self._is_taken(edge) for edge in edges):
                    self._ended[node] = ""
                    has_changed = True


def get_workflow(workflows: Mapping[str, Workflow], name: str) -> Workflow:
    """Raises NotFound, naming the nearest."""
    found = workflows.get(name)
    if found is None:
        near = difflib.get_close_matches(name, workflows, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"Known workflows: {', '.join(sorted(workflows)) or 'none'}."
        raise NotFound(f"There is no workflow '{name[:64]}'.", code="workflow_unknown", fix=hint)
    return found
