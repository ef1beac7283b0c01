"""The definitions and runs of workflows that are kept: what a run begins with, and what it takes over from another."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from denizen.domain.errors import NotAllowed, NotFound
from denizen.domain.ids import TurnId
from denizen.domain.workflow import Workflow, find_reachable
from denizen.domain.workflow_checks import read_workflow
from denizen.domain.workflow_run import NodeRun, WorkflowRun, WorkflowStart, WorkflowVersion
from denizen.domain.workflow_values import show
from denizen.engine.prompt.context import TurnContext
from denizen.ports.store import UnitOfWork

FORGOTTEN = "workflow_forgotten"
"""The code of the error with which a run ends that was removed from under itself."""


async def load_version(work: UnitOfWork, digest: str) -> Workflow:
    """Raises NotFound for a definition that is not kept, or that this version of Denizen cannot read."""
    version = await work.workflows.find_version(digest)
    workflow = read_workflow(version.workflow, version.tree).workflow if version else None
    if workflow is None:
        raise NotFound(
            "The definition of this run cannot be read any more.",
            code="workflow_version_unknown",
            why="it was removed, or another version of Denizen wrote it, with nodes that this one does not know",
            fix="Start the workflow anew.",
        )
    return workflow


def describe_run(context: TurnContext, start: WorkflowStart) -> WorkflowRun:
    """Returns the run that a turn is, as it is kept."""
    event = start.scope.get("event")
    actor = show(event.get("@actor")) if isinstance(event, Mapping) else ""
    return WorkflowRun(
        id=context.turn.id,
        workflow=start.name,
        digest=start.digest,
        trigger=start.trigger,
        scope=start.scope,
        agent=context.agent.name,
        started_by=actor or context.turn.principal.key,
        rerun_of=start.rerun_of,
        from_node=start.from_node,
        started_at=context.turn.opened_at,
    )


async def load_reused(work: UnitOfWork, workflow: Workflow, start: WorkflowStart) -> Mapping[str, NodeRun]:
    """Returns, by path, the nodes of the run that this one repeats which are not run again: all that `from_node` does
    not lead to. Raises NotFound: without their outputs all of them would act anew.
    """
    if not start.from_node:
        return {}
    again = find_reachable(workflow.nodes, [start.from_node])
    first = await work.workflows.find_run(TurnId(start.rerun_of))
    if first is None:
        raise run_unknown(start.rerun_of)
    ran = await work.workflows.list_nodes(first.id)
    return {each.path: each for each in ran if each.port and "/" not in each.path and each.path not in again}


def require_kept(run: WorkflowRun | None) -> None:
    """Raises NotAllowed for a run that is gone: it holds what is to be forgotten, so it neither acts nor writes."""
    if run is None:
        raise NotAllowed(
            "This run ends here.",
            code=FORGOTTEN,
            why="whoever caused it, or the event that started it, was forgotten meanwhile",
        )


def run_unknown(key: str) -> NotFound:
    """Returns the error for a run that is not kept."""
    return NotFound(
        f"There is no run '{key[:60]}'.",
        code="workflow_run_unknown",
        why="there never was, or it is not kept any more",
        fix="`denizen workflows runs` lists those that are kept.",
    )


async def keep_version(work: UnitOfWork, workflow: Workflow, now: datetime) -> None:
    """Keeps the definition, for the runs that begin with it."""
    await work.workflows.add_version(
        WorkflowVersion(digest=workflow.digest, workflow=workflow.name, tree=workflow.tree, kept_at=now)
    )
