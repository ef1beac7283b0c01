"""Runs of workflows: how one is started, and what is kept of it and of each of its nodes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum

from denizen.domain.cloud_event import CloudEvent, find_field
from denizen.domain.ids import AgentName, TurnId, derive
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.domain.turn import TurnStatus
from denizen.domain.workflow_nodes import NodeGroup

STARTED = "workflow"
"""Among the options of a turn: the run of a workflow that it is."""
MAX_STORED_CHARS = 200_000
"""The limit of the outputs of one node, as JSON; larger inputs are not kept."""
MAX_INPUT_CHARS = 1_000_000
"""The limit of the inputs of one node, and of what a run is given."""
MAX_RUN_CHARS = 10_000_000
"""The limit of the outputs of all nodes of one run."""


@record(kw_only=True)
class WorkflowStart:
    """The start of a run: of which definition, at which trigger, and what places can name from the beginning: `event`
    or `input`. In a run that repeats a part of another one, that starts at `from_node`.
    """

    name: str
    digest: str
    trigger: str
    scope: Mapping[str, Json] = field(default_factory=dict[str, Json])
    rerun_of: str = ""
    from_node: str = ""


def is_foreign_run(options: Mapping[str, Json]) -> bool:
    """Whether a turn is a run with values of an event, or with those of an earlier run: others may have written them,
    whoever starts it.
    """
    started = options.get(STARTED)
    scope = started.get("scope") if isinstance(started, Mapping) else None
    has_event = isinstance(scope, Mapping) and bool(scope.get("event"))
    return has_event or (isinstance(started, Mapping) and bool(started.get("rerun_of")))


def start_to_json(start: WorkflowStart) -> JsonObject:
    return {
        "name": start.name,
        "digest": start.digest,
        "trigger": start.trigger,
        "scope": dict(start.scope),
        "rerun_of": start.rerun_of,
        "from_node": start.from_node,
    }


def start_from_json(value: Json) -> WorkflowStart | None:
    """Returns the start that a turn has among its options; None for a turn that is no run."""
    if not isinstance(value, Mapping):
        return None
    scope = value.get("scope")
    return WorkflowStart(
        name=str(value["name"]),
        digest=str(value["digest"]),
        trigger=str(value["trigger"]),
        scope=scope if isinstance(scope, Mapping) else {},
        rerun_of=str(value.get("rerun_of", "")),
        from_node=str(value.get("from_node", "")),
    )


@record(kw_only=True)
class WorkflowVersion:
    """A definition as runs have it. `tree` is what `read_workflow` reads."""

    digest: str
    workflow: str
    tree: Mapping[str, Json]
    kept_at: datetime


@record(kw_only=True)
class WorkflowRun:
    """One run, whose id is that of its turn. `started_by` is the key of the principal who asked, or whose doing an
    event tells of.
    """

    id: TurnId
    workflow: str
    digest: str
    trigger: str
    scope: Mapping[str, Json]
    agent: AgentName
    started_by: str
    rerun_of: str
    from_node: str
    started_at: datetime


class NodeStatus(StrEnum):
    """The end of a node. REUSED: it was not run, its outputs are those of the run that this one repeats."""

    DONE = "done"
    FAILED = "failed"
    REUSED = "reused"


@record(kw_only=True)
class NodeRun:
    """A node that has run. `path` is its id, behind the loops and workflows within which it ran: `each[2]/greet`.
    `inputs` are its settings as they were filled, `port` is the way by which it led on.
    """

    id: str
    run: TurnId
    path: str
    type: str
    status: NodeStatus
    port: str
    inputs: Mapping[str, Json]
    outputs: Mapping[str, Json]
    error: str
    started_at: datetime
    ended_at: datetime

    @property
    def duration_ms(self) -> int:
        return round((self.ended_at - self.started_at).total_seconds() * 1000)


def node_run_id(run: TurnId, path: str) -> str:
    return derive("node", run, path)


@record(kw_only=True)
class WorkflowRunListing:
    """A run with what became of it; `family` is that of the error where it failed. `nodes` are those that ran, in their
    order; empty where they were not asked for.
    """

    run: WorkflowRun
    status: TurnStatus
    reply: str = ""
    failure: str = ""
    family: str = ""
    ended_at: datetime | None = None
    nodes: tuple[NodeRun, ...] = ()


@record(kw_only=True)
class PlannedNode:
    """A node as a dry run comes to it. `effect` says in words what it would do, and is empty for one that only
    computes. `gate` says what the gate would say. `is_sure` is False where it depends on a result that only a real run
    has.
    """

    path: str
    type: str
    group: NodeGroup
    inputs: Mapping[str, Json]
    outputs: Mapping[str, Json]
    effect: str = ""
    gate: str = ""
    is_sure: bool = True
    error: str = ""


def event_scope(event: CloudEvent) -> JsonObject:
    """Returns the event as places name it: its data, and its attributes behind `@`."""
    names = ("@id", "@source", "@type", "@subject", "@actor", "@time")
    attributes: JsonObject = {name: find_field(event, name) for name in names}
    return {**event.data, **attributes, "@key": event.key, "@depth": event.depth}


def find_guild(start: WorkflowStart) -> tuple[str, str] | None:
    """Returns the platform and the community from which the event of a run came; None for other runs."""
    event = start.scope.get("event")
    if not isinstance(event, Mapping):
        return None
    parts, kind = str(event.get("@source") or "").split("/"), str(event.get("@type") or "")
    if len(parts) != 3 or parts[0] or not parts[2].isdecimal() or not kind.startswith(f"{parts[1]}."):
        return None
    return parts[1], parts[2]
