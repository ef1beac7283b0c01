"""Tools at `/admin/tools`: what there is, who has it, what becomes of a call, what is off; and a form to try one.

A tried call passes the gate in the name of whoever tries it, and stands in the audit log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import DenizenError, InvalidInput, NotFound
from denizen.domain.json import Json
from denizen.domain.record import record
from denizen.domain.tool import IdleTools, ToolResult, ToolSpec
from denizen.engine.external.requests import DirectCall
from denizen.engine.inspection.queries import ToolInfo
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.problems import describe_problem, fill_in
from denizen.web.http.request import QueryParameter, read_form
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

PATH = "/admin/tools"
_AGENT = QueryParameter(name="agent", max_chars=100)


@record
class ToolRow:
    """A tool and the agents that have it."""

    tool: ToolInfo
    agents: Sequence[str]


@record(kw_only=True)
class ToolsPage:
    """The context of `admin/tools.html`. With an `agent` it lists what that one has; `idle` is what is off."""

    frame: Frame
    rows: Sequence[ToolRow]
    idle: Sequence[IdleTools]
    agents: Sequence[str]
    agent: str


@record(kw_only=True)
class ToolField:
    """An argument in the form. `kind` is its JSON type; a text is typed as it is, everything else as JSON."""

    name: str
    kind: str
    description: str
    is_required: bool
    choices: Sequence[str]
    value: str = ""


@record(kw_only=True)
class ToolPage:
    """The context of `admin/tool.html`. `agents` have the tool; nobody can try it when that is empty."""

    frame: Frame
    tool: ToolInfo
    schema: str
    fields: Sequence[ToolField]
    agents: Sequence[str]
    agent: str
    result: ToolResult | None = None
    problem: ProblemDetails | None = None


class ToolPages:
    """The routes of tools."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self._queries = deps.engine.queries
        self._calls = deps.engine.calls

    @property
    def routes(self) -> list[AccessRoute]:
        one = f"{PATH}/{{tool}}"
        return [
            SitePageRoute("GET", PATH, self.list_tools, Access.ADMIN),
            SitePageRoute("GET", one, self.show, Access.ADMIN),
            *([SitePageRoute("POST", one, self.attempt, Access.ADMIN)] if self._calls is not None else ()),
        ]

    async def list_tools(self, request: Request) -> Response:
        agent, owners = _AGENT.read_text(request), await self._list_owners()
        tools = await self._queries.list_tools(agent)
        page = ToolsPage(
            frame=build_frame(request, self._deps, path=PATH),
            rows=[ToolRow(tool, owners.get(tool.spec.name, [])) for tool in tools],
            idle=self._deps.instance.list_idle_tools(),
            agents=[each.name for each in self._queries.list_agents()],
            agent=agent,
        )
        return render("admin/tools.html", page)

    async def show(self, request: Request) -> Response:
        return await self._render(request, {"agent": _AGENT.read_text(request)})

    async def attempt(self, request: Request) -> Response:
        """Makes the call. What the gate or the tool refuses is told on the page, with the form as it was."""
        form = await read_form(request)
        if self._calls is None:
            raise AssertionError("the route is there with calls only")
        spec = (await self._find(request)).spec
        try:
            args = _read_args(spec, form)
            wanted = DirectCall(get_principal(request), spec.name, args, form.get("agent", ""))
            made = await self._calls.make(wanted)
        except DenizenError as error:
            return await self._render(request, form, problem=fill_in(describe_problem(error)))
        return await self._render(request, form, made.result)

    async def _find(self, request: Request) -> ToolInfo:
        name = request.path_params["tool"]
        found = next((tool for tool in await self._queries.list_tools() if tool.spec.name == name), None)
        if found is None:
            raise NotFound(f"There is no tool '{name}'.", code="tool_unknown", fix=f"{PATH} lists them.")
        return found

    async def _list_owners(self) -> dict[str, list[str]]:
        """The agents that have each tool."""
        owners: dict[str, list[str]] = {}
        for agent in self._queries.list_agents():
            for tool in await self._queries.list_tools(agent.name):
                owners.setdefault(tool.spec.name, []).append(agent.name)
        return owners

    async def _render(
        self,
        request: Request,
        form: Mapping[str, str],
        result: ToolResult | None = None,
        problem: ProblemDetails | None = None,
    ) -> Response:
        tool = await self._find(request)
        page = ToolPage(
            frame=build_frame(request, self._deps, path=PATH),
            tool=tool,
            schema=json.dumps(dict(tool.spec.parameters), indent=2, ensure_ascii=False),
            fields=_list_fields(tool.spec, form),
            agents=(await self._list_owners()).get(tool.spec.name, []) if self._calls is not None else [],
            agent=form.get("agent", ""),
            result=result,
            problem=problem,
        )
        return render("admin/tool.html", page, status=problem.status if problem else 200)


def _list_fields(spec: ToolSpec, form: Mapping[str, str]) -> list[ToolField]:
    required = cast("Sequence[str]", spec.parameters.get("required", ()))
    fields: list[ToolField] = []
    for name, schema in _properties(spec).items():
        kind, choices = schema.get("type"), schema.get("enum")
        fields.append(
            ToolField(
                name=name,
                kind=kind if isinstance(kind, str) else "json",
                description=str(schema.get("description", "")),
                is_required=name in required,
                choices=[str(each) for each in choices] if kind == "string" and isinstance(choices, list) else (),
                value=form.get(_field_name(name), ""),
            )
        )
    return fields


def _read_args(spec: ToolSpec, form: Mapping[str, str]) -> dict[str, Json]:
    """Returns the arguments that were typed; an empty field is left out. Raises InvalidInput."""
    args: dict[str, Json] = {}
    for name, schema in _properties(spec).items():
        typed = form.get(_field_name(name), "")
        if not typed:
            continue
        try:
            args[name] = typed if schema.get("type") == "string" else json.loads(typed)
        except (ValueError, RecursionError) as error:
            fix = 'Write numbers as 5, lists as ["a", "b"], yes and no as true and false.'
            raise InvalidInput(f"'{name}' is not JSON.", code="field_invalid", why=str(error), fix=fix) from error
    return args


def _properties(spec: ToolSpec) -> Mapping[str, Mapping[str, Json]]:
    return cast("Mapping[str, Mapping[str, Json]]", spec.parameters.get("properties", {}))


def _field_name(name: str) -> str:
    return f"arg-{name}"
