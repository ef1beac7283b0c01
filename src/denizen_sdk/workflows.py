"""Workflows: graphs of typed steps, with their runs. Times are ISO 8601 in UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowFault:
    """Something that is wrong with the text of a workflow. Lines and columns count from 1; 0 is the file as a whole."""

    line: int
    column: int
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class WorkflowFaults:
    """Everything that is wrong with a text."""

    faults: tuple[WorkflowFault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowNodeInfo:
    """A node: its id, its type and the group of that, and where it leads, by the names of its ports."""

    id: str
    type: str
    group: str
    leads_to: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRunInfo:
    """A run. `status` is running, waiting, done, failed or stopped; `reason` says why. `digest` names the definition
    that it runs, which is the one of its start.
    """

    id: str
    workflow: str
    status: str
    trigger: str
    started_at: str
    digest: str
    ended_at: str | None = None
    reason: str = ""
    turn_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowNodeRun:
    """How one node went in a run. `duration_s` is None until it has ended."""

    node: str
    type: str
    status: str
    started_at: str | None = None
    duration_s: float | None = None
    input: Any = None
    output: Any = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRunDetails:
    """A run with its input and its nodes, in the order in which they ran."""

    run: WorkflowRunInfo
    input: Any = None
    nodes: tuple[WorkflowNodeRun, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowInfo:
    """A workflow in force, with its newest run in `last`."""

    name: str
    description: str
    agent: str
    enabled: bool
    digest: str
    triggers: tuple[str, ...] = ()
    last: WorkflowRunInfo | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDefinitionInfo:
    """A workflow with its text, as the file has it, and the nodes that this means."""

    workflow: WorkflowInfo
    text: str
    nodes: tuple[WorkflowNodeInfo, ...] = ()
