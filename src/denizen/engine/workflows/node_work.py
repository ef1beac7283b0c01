"""Records of the walk through a workflow: its levels, nodes that run or wait, and how they end; and the decisions that
need nothing but these. `runner` walks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from denizen.domain.errors import DenizenError, InvalidInput, Unavailable
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.domain.workflow import Workflow, WorkflowNode
from denizen.domain.workflow_compute import NodeResult
from denizen.domain.workflow_nodes import ELSE, THEN, NodeEffect
from denizen.domain.workflow_values import show, show_parts
from denizen.engine.workflows.history import FORGOTTEN
from denizen.ports.toolset import CallScope

DENIED = "workflow_denied"
"""A no is not asked about again."""
MAY_HAVE_ACTED = "workflow_not_repeated"
STOPPED = "workflow_stopped"
FAILED, FAILED_FOR_GOOD = "workflow_failed", "workflow_failed_for_good"
"""A node has failed, and no way leads on: what is around it may be tried again, or not."""
FINAL = frozenset({DENIED, MAY_HAVE_ACTED, STOPPED, FAILED_FOR_GOOD, FORGOTTEN})
"""The codes of errors after which a node is not tried again."""

MAX_RATE_WAIT_S = 3600.0
"""So long a node waits in all for a limit of the gate; after that it fails."""
TOO_OFTEN = "workflow_rate"
_FREE_AGAIN = re.compile(r"free again in (\d+) s")
"""The words of the gate about a call that came too often."""

PATIENT = (NodeEffect.PEOPLE, NodeEffect.WAITS)


class RunStopped(Exception):  # noqa: N818 - a `stop` node is no fault
    """Ends a run at a `stop` node, with its settings."""

    def __init__(self, settings: JsonObject) -> None:
        super().__init__()
        self.is_failed = settings["result"] == "failed"
        self.text = show_parts(settings["text"])
        output = settings["output"]
        self.output: Json = dict(output) if isinstance(output, Mapping) else {}


@dataclass(slots=True, kw_only=True)
class WalkLevel:
    """The nodes that run together: all of a workflow, or one round of a loop. `scope` grows with their outputs.
    `is_retried`: what is around them is tried again when one of them fails.
    """

    workflow: Workflow
    among: frozenset[str]
    start: Sequence[str]
    scope: dict[str, Json]
    prefix: str = ""
    depth: int = 0
    is_retried: bool = False
    replies: list[str] = field(default_factory=list[str])

    def path(self, node: WorkflowNode) -> str:
        return f"{self.prefix}{node.id}"


@record
class NodeWork:
    """A node that is about to run. `inputs` are its filled settings, of that size; `fault` is why they could not be
    filled.
    """

    node: WorkflowNode
    path: str
    inputs: JsonObject
    started_at: datetime
    fault: DenizenError | None = None
    size_chars: int = 0


@record
class NodeWait:
    """A node that waits for people or a time, `until` then at the latest. `scope` has the key of what it asks."""

    work: NodeWork
    scope: CallScope
    until: datetime


@record
class InnerWorkflow:
    """A workflow within the run: its definition, which stays the same when it is tried again, and what it said."""

    workflow: Workflow
    replies: list[str]


NodeOutcome = NodeResult | DenizenError


def choose_batch(ready: Sequence[WorkflowNode]) -> Sequence[WorkflowNode]:
    """Returns the nodes that run next: one that only computes or asks a model, else all tools side by side, else all
    that wait.
    """
    alone = next((each for each in ready if each.kind.effect in (NodeEffect.NONE, NodeEffect.MODEL)), None)
    if alone is not None:
        return [alone]
    tools = [each for each in ready if each.kind.effect not in PATIENT]
    return tools or ready


def is_wanted(work: NodeWork, outcome: NodeOutcome | None, attempt: int) -> bool:
    """Whether the node is to be tried: for the first time, or again after an error that may pass."""
    if outcome is None:
        return True
    retries = 0 if work.node.kind.is_trigger else int(show(work.node.settings["retry"]))
    may_pass = isinstance(outcome, DenizenError) and work.fault is None and outcome.code not in FINAL
    return may_pass and attempt <= retries


def find_rate_wait_s(outcome: NodeOutcome | None) -> float | None:
    """Returns in how many seconds a call that came too often may be made; None for every other end."""
    if not isinstance(outcome, DenizenError) or outcome.code != TOO_OFTEN:
        return None
    found = _FREE_AGAIN.search(outcome.message)
    return max(float(found[1]), 1.0) if found else None


def list_error(node: WorkflowNode, error: DenizenError) -> JsonObject:
    """Returns the outputs of a node that failed and leads on: what else it would put out has no value."""
    told: JsonObject = {"error": error.message, "code": error.code}
    return told | {"is_error": True} if "is_error" in node.kind.outputs else told


def raise_error(outcome: NodeOutcome) -> NodeResult:
    if isinstance(outcome, DenizenError):
        raise outcome
    return outcome


def explain_failure(workflow: Workflow, path: str, error: DenizenError) -> DenizenError:
    """Returns the error of a run in which a node failed. What may pass stays such; an inner error is told as it is."""
    if error.code in (FAILED, FAILED_FOR_GOOD):
        return error
    message = f"The node '{path}' of the workflow '{workflow.name}' failed: {error.message}"
    family = Unavailable if isinstance(error, Unavailable) else InvalidInput
    code = FAILED_FOR_GOOD if error.code in FINAL else FAILED
    return family(message, code=code, why=error.why, fix=error.fix)


def read_wait(node: WorkflowNode, row: Mapping[str, Json]) -> NodeOutcome:
    if "fault" in row:
        return InvalidInput(show(row["fault"]), code=show(row["code"]), fix=show(row["fix"]))
    is_yes = row.get("approved" if node.type == "approval" else "answered", True)
    return NodeResult(port=THEN if is_yes else ELSE, outputs=row)
