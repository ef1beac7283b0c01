"""`/api/workflows` and `/api/workflow-runs`: the workflows of the home folder, their texts and their runs.

For owners: a workflow acts by itself, and its runs hold what events tell of people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.ids import TurnId, derive
from denizen.domain.json import Json, JsonObject
from denizen.domain.workflow import BrokenWorkflow, Workflow, WorkflowNode
from denizen.domain.workflow_run import NodeRun, WorkflowRunListing
from denizen.engine.workflows.catalog import RunOrder, Workflows, new_key
from denizen.ports.configuration import ConfigurationFault
from denizen.ports.workflows import RunSearch
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WorkflowServices
from denizen.web.http.openapi import ANY_OBJECT, FLAG, TEXT, ApiRoute, Operation, object_schema
from denizen.web.http.request import (
    IDEMPOTENCY_HEADER,
    JsonBody,
    QueryParameter,
    check_field_names,
    field_error,
    has_body,
    read_flag,
    read_object,
    read_text,
)
from denizen.web.http.routing import Access, Handler
from denizen_sdk.workflows import (
    StartedWorkflowRun,
    WorkflowDefinition,
    WorkflowEdgeInfo,
    WorkflowExampleInfo,
    WorkflowFault,
    WorkflowFaults,
    WorkflowInfo,
    WorkflowNodeInfo,
    WorkflowNodeRun,
    WorkflowPicture,
    WorkflowRunInfo,
    WorkflowRunOrigin,
)

_ONE = "/api/workflows/{workflow}"
_RUN = "/api/workflow-runs/{run}"
_INPUT = object_schema(input=ANY_OBJECT, trigger=TEXT)
_TEXT = object_schema("text", text=TEXT, digest=TEXT)
_LIMIT = QueryParameter(name="limit", default="20", low=1, high=500)
_WORKFLOW = QueryParameter(name="workflow", max_chars=64)


class WorkflowRoutes:
    """The routes of workflows and their texts."""

    def __init__(self, services: WorkflowServices) -> None:
        self._workflows = services.workflows
        self._configuration = services.configuration

    @property
    def routes(self) -> list[ApiRoute]:
        def route(method: str, path: str, handler: Handler, operation: Operation) -> ApiRoute:
            return ApiRoute(method, path, handler, Access.OWNER, operation)

        return [
            route("GET", "/api/workflows", self.list, Operation("The workflows", answer=list[WorkflowInfo])),
            route(
                "POST",
                "/api/workflows",
                self.add,
                Operation("Add a workflow", object_schema("name", "text", name=TEXT, text=TEXT), WorkflowInfo, 201),
            ),
            route(
                "GET",
                "/api/workflow-examples",
                self.list_examples,
                Operation("Workflows to begin from", answer=list[WorkflowExampleInfo]),
            ),
            route("GET", _ONE, self.get, Operation("A workflow with its text", answer=WorkflowDefinition)),
            route("PUT", _ONE, self.put, Operation("Replace the text of a workflow", _TEXT, WorkflowInfo)),
            route("DELETE", _ONE, self.remove, Operation("Remove a workflow", status=204)),
            route(
                "POST",
                f"{_ONE}/check",
                self.check,
                Operation(
                    "What is wrong with a text, of which nothing is written",
                    object_schema("text", text=TEXT),
                    WorkflowFaults,
                ),
            ),
            route(
                "PUT",
                f"{_ONE}/enabled",
                self.switch,
                Operation("Switch a workflow on or off", object_schema("enabled", enabled=FLAG), WorkflowInfo),
            ),
            route("GET", f"{_ONE}/picture", self.draw, Operation("The graph as SVG", answer=WorkflowPicture)),
        ]

    async def list(self, request: Request) -> Response:
        del request
        usable = [workflow_to_wire(each) for each in self._workflows.list_workflows()]
        broken = [broken_to_wire(each) for each in self._workflows.list_broken()]
        return JSONResponse([asdict(each) for each in (*usable, *broken)])

    async def list_examples(self, request: Request) -> Response:
        del request
        found = self._configuration.list_examples()
        return JSONResponse([asdict(WorkflowExampleInfo(each.name, each.description, each.text)) for each in found])

    async def get(self, request: Request) -> Response:
        name = request.path_params["workflow"]
        file = await self._configuration.read(name)
        if (broken := self._workflows.find_broken(name)) is not None:
            found = WorkflowDefinition(workflow=broken_to_wire(broken), text=file.text, text_digest=file.digest)
            return JSONResponse(asdict(found))
        workflow = self._workflows.get(name)
        found = WorkflowDefinition(
            workflow=workflow_to_wire(workflow),
            text=file.text,
            text_digest=file.digest,
            nodes=tuple(node_to_wire(each) for each in workflow.nodes.values()),
        )
        return JSONResponse(asdict(found))

    async def add(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, ("name", "text"))
        name = read_text(body, "name")
        await self._configuration.add(get_principal(request), name, read_text(body, "text"))
        return JSONResponse(asdict(workflow_to_wire(self._workflows.get(name))), status_code=201)

    async def put(self, request: Request) -> Response:
        body, name = await read_object(request), request.path_params["workflow"]
        check_field_names(body, ("text", "digest"))
        text, expected = read_text(body, "text"), read_text(body, "digest")
        await self._configuration.put(get_principal(request), name, text, expected=expected)
        return JSONResponse(asdict(workflow_to_wire(self._workflows.get(name))))

    async def check(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, ("text",))
        faults = await self._configuration.find_faults(request.path_params["workflow"], read_text(body, "text"))
        return JSONResponse(asdict(WorkflowFaults(tuple(map(fault_to_wire, faults)))))

    async def switch(self, request: Request) -> Response:
        body, name = await read_object(request), request.path_params["workflow"]
        check_field_names(body, ("enabled",))
        if "enabled" not in body:
            raise field_error("enabled", "true or false")
        await self._configuration.switch(get_principal(request), name, is_on=read_flag(body, "enabled"))
        return JSONResponse(asdict(workflow_to_wire(self._workflows.get(name))))

    async def remove(self, request: Request) -> Response:
        await self._configuration.remove(get_principal(request), request.path_params["workflow"])
        return Response(status_code=204)

    async def draw(self, request: Request) -> Response:
        from denizen.domain.workflow_picture import draw_workflow

        picture = draw_workflow(self._workflows.get(request.path_params["workflow"]))
        return JSONResponse(asdict(WorkflowPicture(picture)))


class WorkflowRunRoutes:
    """The routes of runs."""

    def __init__(self, workflows: Workflows) -> None:
        self._workflows = workflows

    @property
    def routes(self) -> list[ApiRoute]:
        def route(method: str, path: str, handler: Handler, operation: Operation) -> ApiRoute:
            return ApiRoute(method, path, handler, Access.OWNER, operation)

        def start(summary: str, body: Mapping[str, object]) -> Operation:
            return Operation(summary, body, StartedWorkflowRun, 202, needs_body=False, headers=("Idempotency-Key",))

        return [
            route("POST", f"{_ONE}/run", self.start, start("Run a workflow now", _INPUT)),
            route(
                "GET",
                "/api/workflow-runs",
                self.list,
                Operation(
                    "Runs, the newest first, of one workflow or of all",
                    answer=list[WorkflowRunInfo],
                    query=(_WORKFLOW, _LIMIT),
                ),
            ),
            route("GET", _RUN, self.get, Operation("A run with its nodes", answer=WorkflowRunInfo)),
            route(
                "POST",
                f"{_RUN}/rerun",
                self.rerun,
                start("Run it again from a node on", object_schema(**{"from": TEXT})),
            ),
        ]

    async def start(self, request: Request) -> Response:
        """Answers at once; the run goes on by itself."""
        body: JsonBody = await read_object(request) if has_body(request) else {}
        check_field_names(body, ("input", "trigger"))
        given: Json = body.get("input") or {}
        if not isinstance(given, Mapping):
            raise field_error("input", "an object")
        name, trigger = request.path_params["workflow"], read_text(body, "trigger")
        turn = await self._workflows.start(name, cast("JsonObject", given), _read_order(request), trigger=trigger)
        return JSONResponse(asdict(StartedWorkflowRun(turn.id)), status_code=202)

    async def list(self, request: Request) -> Response:
        wanted = RunSearch(workflow=_WORKFLOW.read_text(request), limit=_LIMIT.read_number(request))
        return JSONResponse([asdict(run_to_wire(each)) for each in await self._workflows.list_runs(wanted)])

    async def get(self, request: Request) -> Response:
        return JSONResponse(asdict(run_to_wire(await self._workflows.get_run(TurnId(request.path_params["run"])))))

    async def rerun(self, request: Request) -> Response:
        body: JsonBody = await read_object(request) if has_body(request) else {}
        check_field_names(body, ("from",))
        run, node = TurnId(request.path_params["run"]), read_text(body, "from")
        turn = await self._workflows.rerun(run, _read_order(request), from_node=node)
        return JSONResponse(asdict(StartedWorkflowRun(turn.id)), status_code=202)


def workflow_to_wire(workflow: Workflow) -> WorkflowInfo:
    return WorkflowInfo(
        name=workflow.name,
        description=workflow.description,
        agent=workflow.agent,
        enabled=workflow.enabled,
        digest=workflow.digest,
        triggers=tuple(each.type for each in workflow.triggers),
    )


def broken_to_wire(broken: BrokenWorkflow) -> WorkflowInfo:
    return WorkflowInfo(name=broken.name, description="", agent="", enabled=False, digest="", problem=broken.problem)


def node_to_wire(node: WorkflowNode) -> WorkflowNodeInfo:
    edges = tuple(WorkflowEdgeInfo(each.port, each.target) for each in node.edges)
    return WorkflowNodeInfo(id=node.id, type=node.type, group=node.kind.group.value, edges=edges)


def fault_to_wire(fault: ConfigurationFault) -> WorkflowFault:
    return WorkflowFault(line=fault.line, column=fault.column, message=fault.message, fix=fault.fix)


def run_to_wire(listing: WorkflowRunListing) -> WorkflowRunInfo:
    run = listing.run
    return WorkflowRunInfo(
        id=run.id,
        workflow=run.workflow,
        digest=run.digest,
        agent=run.agent,
        origin=WorkflowRunOrigin(
            trigger=run.trigger,
            started_by=run.started_by,
            scope=dict(run.scope),
            rerun_of=run.rerun_of,
            from_node=run.from_node,
        ),
        status=listing.status.value,
        started_at=run.started_at.isoformat(),
        ended_at=listing.ended_at.isoformat() if listing.ended_at else None,
        reply=listing.reply,
        failure=listing.failure,
        nodes=tuple(map(node_run_to_wire, listing.nodes)),
    )


def node_run_to_wire(node: NodeRun) -> WorkflowNodeRun:
    return WorkflowNodeRun(
        path=node.path,
        type=node.type,
        status=node.status.value,
        port=node.port,
        started_at=node.started_at.isoformat(),
        duration_ms=node.duration_ms,
        inputs=dict(node.inputs),
        outputs=dict(node.outputs),
        error=node.error,
    )


def _read_order(request: Request) -> RunOrder:
    by, key = get_principal(request), request.headers.get(IDEMPOTENCY_HEADER, "")
    return RunOrder(key=derive("idem", by.key, key) if key else new_key(by), by=by)
