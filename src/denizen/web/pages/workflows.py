"""Workflows at `/admin/workflows`: graphs as pictures, texts with what is wrong with them by line, and runs with the
time and the outputs of each node. For owners: runs hold what events tell of people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import DenizenError, NotFound
from denizen.domain.ids import TurnId
from denizen.domain.json import Json
from denizen.domain.record import record
from denizen.domain.workflow import BrokenWorkflow, Workflow
from denizen.domain.workflow_run import NodeRun, WorkflowRunListing
from denizen.engine.workflows.catalog import RunOrder, new_key
from denizen.ports.configuration import ConfigurationFault
from denizen.ports.workflow_configuration import WorkflowExample
from denizen.ports.workflows import RunSearch
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies, WorkflowServices
from denizen.web.http.request import QueryParameter, read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.config_sections import read_faults
from denizen.web.pages.forms import find_problem, lead_to, read_json_object
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

WORKFLOWS = "/admin/workflows"
RUNS = "/admin/workflow-runs"
ADD = "/admin/add-workflow"
SHOWN_RUNS = 30
MAX_VALUE_CHARS = 2000
"""So much is shown of what went into a node, and of what came out."""
_EXAMPLE = QueryParameter(name="example", max_chars=64)
_PICTURE_HEADERS = {"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; sandbox"}
_NOTICES = {
    "added": "The workflow was added.",
    "changed": "The workflow was changed. Runs that have begun go on as they began.",
    "same": "Nothing was changed.",
    "checked": "Nothing is wrong with this text. It is not saved yet.",
    "on": "The workflow is on.",
    "off": "The workflow is off. It can still be run by hand.",
    "removed": "The workflow was removed. The history of its runs stays.",
    "begun": "The run begins.",
}


@record(kw_only=True)
class WorkflowRow:
    """A workflow with the types of its triggers, and its newest run, if there was one."""

    workflow: Workflow
    triggers: Sequence[str]
    last: WorkflowRunListing | None = None


@record(kw_only=True)
class WorkflowsPage:
    """The context of `workflows.html`."""

    frame: Frame
    rows: Sequence[WorkflowRow]
    broken: Sequence[BrokenWorkflow] = ()
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class NewWorkflowPage:
    """The context of `workflow_new.html`, with what was typed."""

    frame: Frame
    examples: Sequence[WorkflowExample]
    name: str = ""
    text: str = ""
    faults: Sequence[ConfigurationFault] = ()
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class WorkflowPage:
    """The context of `workflow.html`. `text` is what stands in the editor, made on the text with this `digest`; `given`
    is what was typed as the input of a run. Without `workflow` the file cannot be used.
    """

    frame: Frame
    name: str
    workflow: Workflow | None
    text: str
    digest: str
    runs: Sequence[WorkflowRunListing] = ()
    given: str = ""
    faults: Sequence[ConfigurationFault] = ()
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class ShownNode:
    """A node of a run, with its values as they are shown."""

    node: NodeRun
    inputs: str
    outputs: str


@record(kw_only=True)
class WorkflowRunPage:
    """The context of `workflow_run.html`. `starts` are the nodes from which it can be run again."""

    frame: Frame
    listing: WorkflowRunListing
    scope: str
    nodes: Sequence[ShownNode]
    starts: Sequence[tuple[str, str]]
    has_picture: bool
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class _Draft:
    """The state of the forms that come back: the text in the editor, None for that of the file, and the input."""

    text: str | None = None
    digest: str = ""
    given: str = ""
    faults: Sequence[ConfigurationFault] = ()


class WorkflowPages:
    """The routes of workflows."""

    def __init__(self, deps: WebDependencies, services: WorkflowServices) -> None:
        self._deps = deps
        self._workflows = services.workflows
        self._configuration = services.configuration

    @property
    def routes(self) -> list[SitePageRoute]:
        one = f"{WORKFLOWS}/{{workflow}}"
        return [
            SitePageRoute("GET", WORKFLOWS, self.list, Access.OWNER),
            SitePageRoute("GET", ADD, self.show_form, Access.OWNER),
            SitePageRoute("POST", ADD, self.add, Access.OWNER),
            SitePageRoute("GET", one, self.show, Access.OWNER),
            SitePageRoute("POST", one, self.save, Access.OWNER),
            SitePageRoute("GET", f"{one}/picture.svg", self.draw, Access.OWNER),
            SitePageRoute("POST", f"{one}/switch", self.switch, Access.OWNER),
            SitePageRoute("POST", f"{one}/remove", self.remove, Access.OWNER),
            SitePageRoute("POST", f"{one}/run", self.run, Access.OWNER),
        ]

    async def list(self, request: Request) -> Response:
        rows = [
            WorkflowRow(
                workflow=each,
                triggers=[trigger.type for trigger in each.triggers],
                last=next(iter(await self._workflows.list_runs(RunSearch(workflow=each.name, limit=1))), None),
            )
            for each in self._workflows.list_workflows()
        ]
        page = WorkflowsPage(
            frame=build_frame(request, self._deps, path=WORKFLOWS),
            rows=rows,
            broken=self._workflows.list_broken(),
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
        )
        return render("admin/workflows.html", page)

    async def show_form(self, request: Request) -> Response:
        """Answers with the form; `?example=` fills it in with one."""
        wanted = _EXAMPLE.read_text(request)
        example = next((each for each in self._configuration.list_examples() if each.name == wanted), None)
        return self._show_form(request, example.name if example else "", example.text if example else "")

    async def add(self, request: Request) -> Response:
        form = await read_form(request)
        name, text = form.get("name", "").strip(), form.get("text", "").replace("\r\n", "\n")
        try:
            faults = await self._configuration.find_faults(name, text)
            if faults or "check" in form:
                return self._show_form(request, name, text, faults=faults, notice="" if faults else "checked")
            await self._configuration.add(get_principal(request), name, text)
        except DenizenError as error:
            found = read_faults(error)
            return self._show_form(request, name, text, faults=found, error=None if found else error)
        return lead_to(f"{WORKFLOWS}/{name}", done="added")

    async def show(self, request: Request) -> Response:
        return await self._show(request)

    async def save(self, request: Request) -> Response:
        form, name = await read_form(request), request.path_params["workflow"]
        text, digest = form.get("text", "").replace("\r\n", "\n"), form.get("digest", "")
        try:
            faults = await self._configuration.find_faults(name, text)
            if faults or "check" in form:
                draft = _Draft(text=text, digest=digest, faults=faults)
                return await self._show(request, draft=draft, notice="" if faults else "checked")
            done = await self._configuration.put(get_principal(request), name, text, expected=digest)
        except DenizenError as error:
            found = read_faults(error)
            draft = _Draft(text=text, digest=digest, faults=found)
            return await self._show(request, draft=draft, error=None if found else error)
        return lead_to(f"{WORKFLOWS}/{name}", done="changed" if done.changed else "same")

    async def draw(self, request: Request) -> Response:
        from denizen.domain.workflow_picture import draw_workflow

        picture = draw_workflow(self._workflows.get(request.path_params["workflow"]))
        return Response(picture, media_type="image/svg+xml", headers=_PICTURE_HEADERS)

    async def switch(self, request: Request) -> Response:
        form, name = await read_form(request), request.path_params["workflow"]
        try:
            await self._configuration.switch(get_principal(request), name, is_on="on" in form)
        except DenizenError as error:
            return await self._show(request, error=error)
        return lead_to(f"{WORKFLOWS}/{name}", done="on" if "on" in form else "off")

    async def remove(self, request: Request) -> Response:
        try:
            await self._configuration.remove(get_principal(request), request.path_params["workflow"])
        except DenizenError as error:
            return await self._show(request, error=error)
        return lead_to(WORKFLOWS, done="removed")

    async def run(self, request: Request) -> Response:
        """Begins a run with the input that was typed."""
        form, name, by = await read_form(request), request.path_params["workflow"], get_principal(request)
        typed = form.get("given", "").strip()
        try:
            turn = await self._workflows.start(
                name, read_json_object(typed, "The input is"), RunOrder(key=new_key(by), by=by)
            )
        except DenizenError as error:
            return await self._show(request, draft=_Draft(given=typed), error=error)
        return lead_to(f"{RUNS}/{turn.id}", done="begun")

    async def _show(
        self, request: Request, *, draft: _Draft | None = None, notice: str = "", error: DenizenError | None = None
    ) -> Response:
        draft = draft or _Draft()
        name = request.path_params["workflow"]
        file, problem = await self._configuration.read(name), find_problem(error)
        is_broken = self._workflows.find_broken(name) is not None
        faults = draft.faults
        if is_broken and draft.text is None:
            faults = await self._configuration.find_faults(name, file.text)
        page = WorkflowPage(
            frame=build_frame(request, self._deps, path=WORKFLOWS),
            name=name,
            workflow=None if is_broken else self._workflows.get(name),
            text=file.text if draft.text is None else draft.text,
            digest=draft.digest or file.digest,
            runs=await self._workflows.list_runs(RunSearch(workflow=name, limit=SHOWN_RUNS)),
            notice=_NOTICES.get(notice or request.query_params.get("done", ""), ""),
            given=draft.given,
            faults=faults,
            problem=problem,
        )
        status = problem.status if problem else 400 if draft.faults else 200
        return render("admin/workflow.html", page, status=status)

    def _show_form(
        self,
        request: Request,
        name: str,
        text: str,
        *,
        faults: Sequence[ConfigurationFault] = (),
        notice: str = "",
        error: DenizenError | None = None,
    ) -> Response:
        problem = find_problem(error)
        page = NewWorkflowPage(
            frame=build_frame(request, self._deps, path=WORKFLOWS),
            examples=self._configuration.list_examples(),
            name=name,
            text=text,
            faults=faults,
            notice=_NOTICES.get(notice, ""),
            problem=problem,
        )
        return render("admin/workflow_new.html", page, status=problem.status if problem else 400 if faults else 200)


class WorkflowRunPages:
    """The routes of runs."""

    def __init__(self, deps: WebDependencies, services: WorkflowServices) -> None:
        self._deps = deps
        self._workflows = services.workflows

    @property
    def routes(self) -> list[SitePageRoute]:
        one = f"{RUNS}/{{run}}"
        return [
            SitePageRoute("GET", one, self.show, Access.OWNER),
            SitePageRoute("GET", f"{one}/picture.svg", self.draw, Access.OWNER),
            SitePageRoute("POST", f"{one}/rerun", self.rerun, Access.OWNER),
        ]

    async def show(self, request: Request) -> Response:
        return await self._show(request)

    async def draw(self, request: Request) -> Response:
        listing = await self._workflows.get_run(TurnId(request.path_params["run"]))
        workflow = self._find_workflow(listing)
        if workflow is None:
            raise NotFound("The workflow was changed since this run.", code="workflow_unknown")
        states = {each.path: each.status.value for each in listing.nodes}
        from denizen.domain.workflow_picture import draw_workflow

        return Response(draw_workflow(workflow, states), media_type="image/svg+xml", headers=_PICTURE_HEADERS)

    async def rerun(self, request: Request) -> Response:
        form, by = await read_form(request), get_principal(request)
        try:
            order, run = RunOrder(key=new_key(by), by=by), TurnId(request.path_params["run"])
            turn = await self._workflows.rerun(run, order, from_node=form.get("from", ""))
        except DenizenError as error:
            return await self._show(request, error)
        return lead_to(f"{RUNS}/{turn.id}", done="begun")

    async def _show(self, request: Request, error: DenizenError | None = None) -> Response:
        listing, problem = await self._workflows.get_run(TurnId(request.path_params["run"])), find_problem(error)
        page = WorkflowRunPage(
            frame=build_frame(request, self._deps, path=WORKFLOWS),
            listing=listing,
            scope=_show_value(listing.run.scope),
            nodes=[
                ShownNode(node=each, inputs=_show_value(each.inputs), outputs=_show_value(each.outputs))
                for each in listing.nodes
            ],
            starts=[("", "from the beginning"), *((each.path, f"from {each.path}") for each in listing.nodes)],
            has_picture=self._find_workflow(listing) is not None,
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("admin/workflow_run.html", page, status=problem.status if problem else 200)

    def _find_workflow(self, listing: WorkflowRunListing) -> Workflow | None:
        """Returns the workflow where it is still what has run."""
        found = {each.name: each for each in self._workflows.list_workflows()}.get(listing.run.workflow)
        return found if found is not None and found.digest == listing.run.digest else None


def _show_value(value: Mapping[str, Json]) -> str:
    if not value:
        return ""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}\n..."
