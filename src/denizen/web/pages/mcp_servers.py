"""MCP servers at `/admin/mcp`: how each fares, its tools and what it wrote; starting it anew, adding and removing.

Admins look and restart, owners change. A server is written down, or changed, after it has answered.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import Conflict, DenizenError, InvalidInput
from denizen.domain.principal import RoleName
from denizen.domain.record import record
from denizen.ports.configuration import ConfigurationFault, ConfigurationPart, PlannedChange
from denizen.ports.mcp_configuration import McpConfiguration, McpServerDraft, McpServerEdit, McpServerInfo
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.config_sections import read_faults
from denizen.web.pages.forms import find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen.web.pages.setting_fields import SettingField, list_fields, read_changes
from denizen_sdk.errors import ProblemDetails

MCP = "/admin/mcp"
_FIELDS = ("name", "command", "url", "variables", "secrets", "trusted")
_NOTICES = {
    "added": "The server has answered, and is added. Agents have its tools from the next question on.",
    "changed": "The server has answered, and is changed.",
    "same": "Nothing was changed.",
    "on": "The server is on, and is being reached.",
    "off": "The server is off.",
    "restarted": "The server is being started anew.",
    "removed": "The server is removed. Its secrets stay in secrets.env, where you can take them out.",
}


@record(kw_only=True)
class McpServersPage:
    """The context of `mcp_servers.html`."""

    frame: Frame
    may_edit: bool
    servers: Sequence[McpServerInfo]
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class McpServerPage:
    """The context of `mcp_server.html`."""

    frame: Frame
    may_edit: bool
    server: McpServerInfo
    notice: str = ""


@record(kw_only=True)
class McpServerFormPage:
    """The context of `mcp_server_new.html`: what was typed of a new server. With `is_secret_lost` there were secrets
    among it, which have to be typed again.
    """

    frame: Frame
    values: Mapping[str, str]
    is_secret_lost: bool
    problem: ProblemDetails | None = None


@record(kw_only=True)
class McpServerEditPage:
    """The context of `mcp_server_edit.html`: the settings of a server, with what was typed. `change` is what saving
    would write. `is_secret_lost` is as for a new server.
    """

    frame: Frame
    name: str
    fields: Sequence[SettingField]
    digest: str
    is_off: bool
    is_secret_lost: bool
    change: PlannedChange | None = None
    faults: Sequence[ConfigurationFault] = ()
    problem: ProblemDetails | None = None


class McpServerPages:
    """The routes of MCP servers."""

    def __init__(self, deps: WebDependencies, servers: McpConfiguration) -> None:
        self._deps = deps
        self._servers = servers

    @property
    def routes(self) -> list[SitePageRoute]:
        one = f"{MCP}/servers/{{name}}"
        return [
            SitePageRoute("GET", MCP, self.list, Access.ADMIN),
            SitePageRoute("GET", f"{MCP}/add", self.show_form, Access.OWNER),
            SitePageRoute("POST", f"{MCP}/add", self.add, Access.OWNER),
            SitePageRoute("GET", one, self.show, Access.ADMIN),
            SitePageRoute("GET", f"{one}/edit", self.show_edit, Access.OWNER),
            SitePageRoute("POST", f"{one}/edit", self.edit, Access.OWNER),
            SitePageRoute("POST", f"{one}/restart", self.restart, Access.ADMIN),
            SitePageRoute("POST", f"{one}/switch", self.switch, Access.OWNER),
            SitePageRoute("POST", f"{one}/remove", self.remove, Access.OWNER),
        ]

    async def list(self, request: Request) -> Response:
        return self._list(request)

    async def show(self, request: Request) -> Response:
        page = McpServerPage(
            frame=build_frame(request, self._deps, path=MCP),
            may_edit=self._may_edit(request),
            server=self._servers.get_server(request.path_params["name"]),
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
        )
        return render("admin/mcp_server.html", page)

    async def show_form(self, request: Request) -> Response:
        return self._show_form(request, {})

    async def add(self, request: Request) -> Response:
        form = await read_form(request)
        try:
            draft = _read_draft(form)
            await self._servers.add(get_principal(request), draft)
        except DenizenError as error:
            return self._show_form(request, form, error)
        return lead_to(f"{MCP}/servers/{draft.name}", done="added")

    async def show_edit(self, request: Request) -> Response:
        return await self._show_edit(request, await self._servers.describe(request.path_params["name"]), {})

    async def edit(self, request: Request) -> Response:
        """Tries the server as it would be, and saves it, or only shows what would be written."""
        form, name = await read_form(request), request.path_params["name"]
        part = await self._servers.describe(name)
        expected = form.get("digest", "")
        try:
            if expected != part.digest:
                raise Conflict(
                    "The configuration was changed meanwhile.",
                    code="configuration_changed",
                    fix="Open the form again, and make your change there.",
                )
            secrets = _read_pairs(form.get("secrets", ""))
            edit = McpServerEdit(values=read_changes(list_fields(part, {}), form), secrets=secrets, expected=expected)
            if not edit.values and not secrets:
                return lead_to(f"{MCP}/servers/{name}", done="same")
            if "check" in form:
                change = await self._servers.plan(name, edit)
                return await self._show_edit(request, part, form, change=change, faults=change.faults)
            await self._servers.edit(get_principal(request), name, edit)
        except DenizenError as error:
            found = read_faults(error)
            return await self._show_edit(request, part, form, faults=found, error=None if found else error)
        return lead_to(f"{MCP}/servers/{name}", done="changed")

    async def restart(self, request: Request) -> Response:
        name = request.path_params["name"]
        try:
            self._servers.restart(name)
        except DenizenError as error:
            return self._list(request, error)
        return lead_to(f"{MCP}/servers/{name}", done="restarted")

    async def switch(self, request: Request) -> Response:
        form, name = await read_form(request), request.path_params["name"]
        try:
            await self._servers.switch(get_principal(request), name, is_on="on" in form)
        except DenizenError as error:
            return self._list(request, error)
        return lead_to(f"{MCP}/servers/{name}", done="on" if "on" in form else "off")

    async def remove(self, request: Request) -> Response:
        try:
            await self._servers.remove(get_principal(request), request.path_params["name"])
        except DenizenError as error:
            return self._list(request, error)
        return lead_to(MCP, done="removed")

    def _list(self, request: Request, error: DenizenError | None = None) -> Response:
        problem = find_problem(error)
        page = McpServersPage(
            frame=build_frame(request, self._deps, path=MCP),
            may_edit=self._may_edit(request),
            servers=self._servers.list_servers(),
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("admin/mcp_servers.html", page, status=problem.status if problem else 200)

    def _show_form(self, request: Request, form: Mapping[str, str], error: DenizenError | None = None) -> Response:
        problem = find_problem(error)
        values = {name: form.get(name, "") for name in _FIELDS if name != "secrets"}
        page = McpServerFormPage(
            frame=build_frame(request, self._deps, path=MCP),
            values=values,
            is_secret_lost=bool(form.get("secrets", "").strip()),
            problem=problem,
        )
        return render("admin/mcp_server_new.html", page, status=problem.status if problem else 200)

    async def _show_edit(
        self,
        request: Request,
        part: ConfigurationPart,
        form: Mapping[str, str],
        *,
        change: PlannedChange | None = None,
        faults: Sequence[ConfigurationFault] = (),
        error: DenizenError | None = None,
    ) -> Response:
        problem, name = find_problem(error), request.path_params["name"]
        fields = list_fields(part, {key: value.replace("\r\n", "\n") for key, value in form.items()}, faults)
        page = McpServerEditPage(
            frame=build_frame(request, self._deps, path=MCP),
            name=name,
            fields=fields,
            digest=form.get("digest", part.digest),
            is_off=self._servers.get_server(name).phase == "off",
            is_secret_lost=bool(form.get("secrets", "").strip()),
            change=change if not faults else None,
            faults=faults,
            problem=problem,
        )
        return render("admin/mcp_server_edit.html", page, status=problem.status if problem else 400 if faults else 200)

    def _may_edit(self, request: Request) -> bool:
        return RoleName.OWNER in get_principal(request).roles


def _read_draft(form: Mapping[str, str]) -> McpServerDraft:
    url = form.get("url", "").strip()
    try:
        command = shlex.split(form.get("command", ""))
    except ValueError as error:
        fix = "Close every quote, or put a backslash before one that is meant as it is."
        raise InvalidInput("The command cannot be read.", code="field_invalid", why=str(error), fix=fix) from error
    if bool(command) == bool(url):
        raise InvalidInput("A server has either a command or an address.", code="field_invalid", fix="Fill in one.")
    return McpServerDraft(
        name=form.get("name", "").strip(),
        command=command,
        url=url,
        variables=_read_pairs(form.get("variables", "")),
        secrets=_read_pairs(form.get("secrets", "")),
        is_trusted="trusted" in form,
    )


def _read_pairs(text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        name, equals, value = line.partition("=")
        if not line.strip():
            continue
        if not equals or not name.strip() or not value.strip():
            # The line itself may be a secret, so it is not repeated.
            raise InvalidInput(f"Line {number} is not NAME=value.", code="field_invalid", fix="Write one pair a line.")
        pairs[name.strip()] = value.strip()
    return pairs
