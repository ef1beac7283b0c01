"""Workflows: graphs of typed nodes, with their runs. Times are ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from denizen_sdk.calls import ClientCalls, idempotency_headers, quote_segment
from denizen_sdk.configuration import JsonValue
from denizen_sdk.records import from_json, record


@record(kw_only=True)
class WorkflowFault:
    """Something that is wrong with the text of a workflow. Lines and columns count from 1; 0 is the file as a whole."""

    line: int
    column: int
    message: str
    fix: str = ""


@record
class WorkflowFaults:
    """Everything that is wrong with a text."""

    faults: tuple[WorkflowFault, ...]


@record
class WorkflowEdgeInfo:
    """A way on from a node, which it takes when it leaves by this port."""

    port: str
    target: str


@record(kw_only=True)
class WorkflowNodeInfo:
    """A node: its id, its type and the group of that, and where it leads."""

    id: str
    type: str
    group: str
    edges: tuple[WorkflowEdgeInfo, ...] = ()


@record(kw_only=True)
class WorkflowInfo:
    """A workflow in force. `triggers` are the types of its triggers; `digest` names its definition. `agent` is empty
    for the default one. `problem` says why it cannot be used: nothing starts such a one, and its other
    fields are empty.
    """

    name: str
    description: str
    agent: str
    enabled: bool
    digest: str
    triggers: tuple[str, ...] = ()
    problem: str = ""


@record(kw_only=True)
class WorkflowDefinition:
    """A workflow with its nodes and its text, as the file has it. `text_digest` names that text in a change."""

    workflow: WorkflowInfo
    text: str
    text_digest: str
    nodes: tuple[WorkflowNodeInfo, ...] = ()


@record
class WorkflowExampleInfo:
    """A workflow that ships with Denizen, to begin from."""

    name: str
    description: str
    text: str


@record
class WorkflowPicture:
    """The graph of a workflow, or of a run, as an SVG document."""

    svg: str


@record(kw_only=True)
class WorkflowNodeRun:
    """A node that has run. `path` is its id, behind the loops and workflows within which it ran: `each[2]/greet`.
    `status` is done, failed or reused; `port` is the way by which it led on.
    """

    path: str
    type: str
    status: str
    port: str
    started_at: str
    duration_ms: int
    inputs: dict[str, Any] = field(default_factory=dict[str, Any])
    outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    error: str = ""


@record(kw_only=True)
class WorkflowRunOrigin:
    """The beginning of a run: its trigger, the key of who started or caused it, and what it was given. One that repeats
    another one from a node on has the id of that and the node.
    """

    trigger: str
    started_by: str
    scope: dict[str, Any] = field(default_factory=dict[str, Any])
    rerun_of: str = ""
    from_node: str = ""


@record(kw_only=True)
class WorkflowRunInfo:
    """A run, whose id is that of its turn. `status` is open, done, failed, cancelled, refused or skipped; `failure`
    says why. `digest` names the definition that it runs, which is the one of its start. `nodes` are there where one run
    was asked for, in the order in which they ended.
    """

    id: str
    workflow: str
    digest: str
    agent: str
    origin: WorkflowRunOrigin
    status: str
    started_at: str
    ended_at: str | None = None
    reply: str = ""
    failure: str = ""
    nodes: tuple[WorkflowNodeRun, ...] = ()


@record
class StartedWorkflowRun:
    """The answer to a request for a run."""

    run: str


class WorkflowCalls(ClientCalls):
    """The calls of `/api/workflows` and `/api/workflow-runs`, for owners. All raise NetworkError, and ApiError: 403 for
    everybody else, 404 for an unknown workflow or run, 400 for a text that cannot be used, of which nothing is written.
    """

    async def list_workflows(self) -> list[WorkflowInfo]:
        return await self._list(WorkflowInfo, "/api/workflows")

    async def get_workflow(self, workflow: str) -> WorkflowDefinition:
        return await self._get(WorkflowDefinition, _path(workflow))

    async def list_workflow_examples(self) -> list[WorkflowExampleInfo]:
        """Returns the workflows that ship with Denizen, to begin from."""
        return await self._list(WorkflowExampleInfo, "/api/workflow-examples")

    async def check_workflow(self, workflow: str, text: str) -> tuple[WorkflowFault, ...]:
        """Returns what is wrong with a text; nothing is written."""
        row = await self._connection.request("POST", f"{_path(workflow)}/check", body={"text": text})
        return from_json(WorkflowFaults, row).faults

    async def add_workflow(self, workflow: str, text: str) -> WorkflowInfo:
        """Adds a workflow. Raises ApiError (409) for a name that is taken."""
        row = await self._connection.request("POST", "/api/workflows", body={"name": workflow, "text": text})
        return from_json(WorkflowInfo, row)

    async def put_workflow(self, workflow: str, text: str, *, digest: str = "") -> WorkflowInfo:
        """Replaces a workflow. Raises ApiError (409) where another text than that of `digest` is there."""
        row = await self._connection.request("PUT", _path(workflow), body={"text": text, "digest": digest})
        return from_json(WorkflowInfo, row)

    async def switch_workflow(self, workflow: str, *, enabled: bool) -> WorkflowInfo:
        row = await self._connection.request("PUT", f"{_path(workflow)}/enabled", body={"enabled": enabled})
        return from_json(WorkflowInfo, row)

    async def delete_workflow(self, workflow: str) -> None:
        """Removes a workflow. The history of its runs stays."""
        await self._connection.request("DELETE", _path(workflow))

    async def draw_workflow(self, workflow: str) -> str:
        """Returns the graph as an SVG document."""
        return (await self._get(WorkflowPicture, f"{_path(workflow)}/picture")).svg

    async def run_workflow(
        self,
        workflow: str,
        given: Mapping[str, JsonValue] | None = None,
        *,
        trigger: str = "",
        idempotency_key: str = "",
    ) -> str:
        """Begins a run at the named trigger, or else the `manual` one, and returns its id. Raises ApiError (409) for a
        workflow that is off.
        """
        row = await self._connection.request(
            "POST",
            f"{_path(workflow)}/run",
            body={"input": dict(given or {}), "trigger": trigger},
            headers=idempotency_headers(idempotency_key),
        )
        return from_json(StartedWorkflowRun, row).run

    async def list_workflow_runs(self, workflow: str = "", *, limit: int = 20) -> list[WorkflowRunInfo]:
        """Returns the runs of a workflow, or of all, the newest first; also of one that is gone."""
        return await self._list(WorkflowRunInfo, "/api/workflow-runs", workflow=workflow, limit=limit)

    async def get_workflow_run(self, run: str) -> WorkflowRunInfo:
        """Returns a run with its nodes."""
        return await self._get(WorkflowRunInfo, f"/api/workflow-runs/{quote_segment(run)}")

    async def rerun_workflow(self, run: str, *, from_node: str = "", idempotency_key: str = "") -> str:
        """Runs it again, as it was defined then, from a node on, and returns the id of the new run."""
        path, headers = f"/api/workflow-runs/{quote_segment(run)}/rerun", idempotency_headers(idempotency_key)
        row = await self._connection.request("POST", path, body={"from": from_node}, headers=headers)
        return from_json(StartedWorkflowRun, row).run


def _path(workflow: str) -> str:
    return f"/api/workflows/{quote_segment(workflow)}"
