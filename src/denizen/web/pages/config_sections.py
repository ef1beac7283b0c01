"""Sections of the configuration as forms at `/admin/config/section/PATH`, made from its schema. Admins read them,
owners change them: what would be written is shown first, and comments of the file stay.

What has a page of its own is changed there, and a form has what that page lacks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import Conflict, DenizenError, InvalidInput
from denizen.domain.principal import RoleName
from denizen.domain.record import record
from denizen.ports.configuration import (
    ConfigurationEdit,
    ConfigurationFault,
    ConfigurationFiles,
    ConfigurationPart,
    PlannedChange,
)
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import QueryParameter, read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.forms import find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen.web.pages.setting_fields import (
    SettingField,
    find_literal_secrets,
    join_path,
    list_fields,
    list_inputs,
    read_changes,
)
from denizen_sdk.errors import ProblemDetails

CONFIG = "/admin/config"
SECTION = f"{CONFIG}/section"
SECTIONS: Mapping[str, str] = {
    "channels.discord": "Discord",
    "channels.github": "GitHub and its webhooks",
    "gate": "Permissions",
    "budgets": "Budgets",
    "tools": "Built-in skills",
    "custom_tools": "Custom tools",
    "skills": "Own skills",
    "commands": "Commands",
    "schedules": "Schedules",
    "projects": "Mirrored projects",
    "task_watcher": "Task watcher",
    "listeners": "Listeners",
    "events": "WebSockets and polled APIs",
    "webhooks": "Webhooks",
    "mcp": "MCP servers",
    "models": "Models",
    "agents": "Agents",
    "default_agent": "Default agent",
    "agent_defaults": "All agents",
    "server": "Server, keys, sign-in",
    "channels.web": "Pages",
    "channels.api": "API for clients of OpenAI",
    "channels.mcp": "Serving MCP",
    "channels.terminal": "Terminal",
    "google": "Google",
    "archive": "Archive",
    "memory": "Memory",
    "knowledge": "Knowledge",
    "embeddings": "Embeddings",
    "sandbox": "Shell",
    "folders": "Folders",
    "store": "Store",
    "backups": "Backups",
    "logging": "Logging",
    "telemetry": "Metrics and traces",
}
"""The sections that have a link, with what people call them."""
_SETTING = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, SECTIONS))})(?:\.[a-z0-9_-]+)+")
_ENTRY = r'\.(?:"(?P<quoted>[^"]+)"|(?P<name>[\w-]+))'
_WHOLLY_OWNED: Mapping[str, str] = {
    r"mcp(\.servers)?": "/admin/mcp",
    rf"mcp\.servers{_ENTRY}(\.(?!flows\b).*)?": "/admin/mcp/servers/{}",
    r"agents": "/admin/agents",
    r"schedules": "/admin/schedules",
    r"gate\.rules(\[\d+\].*)?": "/admin/gate#rules-title",
    r"models(\.providers|\.aliases)?": "/admin/models",
    rf"models\.aliases{_ENTRY}(\..*)?": "/admin/models?edit={}#alias",
    rf"models\.overrides{_ENTRY}\.price(\..*)?": "/admin/models?price={}#price",
}
"""The pages of what has no form here, by patterns of paths; `{}` is the name of an entry."""
_PARTLY_OWNED: Mapping[str, str] = {
    r"gate": "/admin/gate",
    rf"models\.providers{_ENTRY}(\.(kind|base_url|model|api_key))?": "/admin/models/providers/{}",
    rf"schedules{_ENTRY}(\.(?!hooks\b|owner\b|life\b|paused\b).*)?": "/admin/schedules/{}",
    rf"agents{_ENTRY}(\.(description|model|tools|(style|limits)(\..*)?))?": "/admin/agents/{}",
}
"""The pages that links lead to, where the form has the rest."""
_NAME = QueryParameter(name="name", max_chars=100)
_PART = re.compile(r'"[^"]*"|[^.\[\]"]+|\[\d+\]')
_NOTICES = {
    "saved": "Saved. It holds now.",
    "restart": "Saved. What was changed about {sections} holds from the next start of the server.",
    "same": "Nothing was changed.",
}


@record(kw_only=True)
class ConfigSectionPage:
    """The context of `admin/config_section.html`. `change` is what saving would write, and `hidden` what was typed for
    it. `entries_of` is the path of the map or list of which this is one entry, empty for a section. `faults` are all
    of them; those of a field stand at it, too.
    """

    frame: Frame
    title: str
    path: str
    parents: Sequence[tuple[str, str]]
    hint: str
    fields: Sequence[SettingField]
    digest: str
    may_edit: bool
    is_there: bool
    entries_of: str
    change: PlannedChange | None = None
    hidden: Mapping[str, str]
    faults: Sequence[ConfigurationFault] = ()
    notice: str = ""
    problem: ProblemDetails | None = None


class ConfigSectionPages:
    """The routes of the forms."""

    def __init__(self, deps: WebDependencies, files: ConfigurationFiles) -> None:
        self._deps = deps
        self._files = files

    @property
    def routes(self) -> list[SitePageRoute]:
        one = f"{SECTION}/{{path:path}}"
        return [SitePageRoute("GET", one, self.show, Access.ADMIN), SitePageRoute("POST", one, self.save, Access.OWNER)]

    async def show(self, request: Request) -> Response:
        """Answers with the form; `?name=` leads to that of the entry with this name."""
        part = await self._files.describe(request.path_params["path"])
        owner = _match_page(part.path, _WHOLLY_OWNED)
        if owner:
            return lead_to(owner)
        name = _NAME.read_text(request).strip()
        if name and '"' not in name:
            return lead_to(address(join_path(part.path, name)))
        return await self._render(request, part, {})

    async def save(self, request: Request) -> Response:
        """Shows what would be written, and writes it where that was confirmed. What is wrong is told at its field."""
        form = await read_form(request)
        part = await self._files.describe(request.path_params["path"])
        if owner := _match_page(part.path, _WHOLLY_OWNED):
            return lead_to(owner)
        expected = form.get("digest", "")
        try:
            if expected and expected != part.digest:
                raise Conflict(
                    "The configuration was changed meanwhile.",
                    code="configuration_changed",
                    fix="Open the form again, and make your change there.",
                )
            fields = list_fields(part, {})
            faults = find_literal_secrets(fields, form)
            if faults:
                return await self._render(request, part, form, faults=faults)
            changes = {part.path: None} if "remove" in form else read_changes(fields, form)
            if not changes:
                return lead_to(address(part.path), done="same")
            edit = ConfigurationEdit(values=changes)
            plan = await self._files.plan(edit)
            if plan.faults or "confirm" not in form:
                return await self._render(request, part, form, change=plan, faults=plan.faults)
            done = await self._files.apply(get_principal(request), edit, expected=expected)
        except DenizenError as error:
            found = read_faults(error)
            return await self._render(request, part, form, faults=found, error=None if found else error)
        sections = ", ".join(done.needs_restart)
        here = _find_parent(part.path) if "remove" in form else part.path
        if owner := _match_page(here, _WHOLLY_OWNED):
            return lead_to(owner, done="removed")
        return lead_to(address(here), done="restart" if sections else "saved", sections=sections)

    async def _render(
        self,
        request: Request,
        part: ConfigurationPart,
        form: Mapping[str, str],
        *,
        change: PlannedChange | None = None,
        faults: Sequence[ConfigurationFault] = (),
        error: DenizenError | None = None,
    ) -> Response:
        problem, query = find_problem(error), request.query_params
        written = list_fields(part, {})
        secrets = {each.path for each in find_literal_secrets(written, form)}
        typed = {name: value.replace("\r\n", "\n") for name, value in form.items() if name not in secrets}
        fields = list_fields(part, typed, faults)
        changed = {each.path for each in list_inputs(written) if typed.get(each.path, each.text) != each.text}
        is_owner = RoleName.OWNER in get_principal(request).roles
        page = ConfigSectionPage(
            frame=build_frame(request, self._deps, path=CONFIG),
            title=SECTIONS.get(part.path, part.path),
            path=part.path,
            parents=[(each, find_page(each)) for each in _list_parents(part.path) if each != "channels"],
            hint=str(part.schema.get("description", "")),
            fields=fields,
            digest=form.get("digest", part.digest),
            may_edit=is_owner and not (await self._files.read()).is_masked,
            is_there=part.value is not None,
            entries_of=await self._find_owner(part.path),
            change=change if change is not None and not faults else None,
            hidden={name: typed[name] for name in sorted(typed) if name in changed or name == "remove"},
            faults=faults,
            notice=_NOTICES.get(query.get("done", ""), "").format(sections=query.get("sections", "")[:200]),
            problem=problem,
        )
        return render("admin/config_section.html", page, status=problem.status if problem else 400 if faults else 200)

    async def _find_owner(self, path: str) -> str:
        """Returns the path of the map or list that this is an entry of, or empty."""
        parent = _find_parent(path)
        if not parent:
            return ""
        try:
            schema = (await self._files.describe(parent)).schema
        except InvalidInput:
            return ""
        return parent if "additionalProperties" in schema or "items" in schema else ""


def address(path: str) -> str:
    return f"{SECTION}/{quote(path)}" if path else CONFIG


def find_page(path: str) -> str:
    """Returns the address of the page where a part of the configuration is changed: its own, or that of its form."""
    return _match_page(path, {**_WHOLLY_OWNED, **_PARTLY_OWNED}) or address(path)


def find_setting(text: str) -> tuple[str, str] | None:
    """Returns what to call, and where to find, the page of the first setting that a text for people names."""
    found = _SETTING.search(text)
    if found is None:
        return None
    section, path = found[1], found[0]
    page = find_page(path)
    # A form has its fields by their paths; the one of an entry is below its section.
    form = re.match(rf"(agents|schedules|models\.\w+){_ENTRY}|", path)
    return SECTIONS[section], page if page != address(path) else f"{address((form and form[0]) or section)}#{path}"


def _match_page(path: str, owners: Mapping[str, str]) -> str:
    for pattern, page in owners.items():
        if found := re.fullmatch(pattern, path):
            name = found.groupdict().get("quoted") or found.groupdict().get("name") or ""
            return page.format(quote(name, safe=""))
    return ""


def read_faults(error: DenizenError) -> list[ConfigurationFault]:
    """Returns what loading a configuration found wrong with it; nothing for another error."""
    problems = cast("Sequence[Mapping[str, Any]]", error.context.get("problems", ()))
    return [ConfigurationFault(**each) for each in problems]


def _list_parents(path: str) -> list[str]:
    """Returns the paths above a path, the shortest first."""
    ends = [match.end() for match in _PART.finditer(path)]
    return [path[:end] for end in ends[:-1]]


def _find_parent(path: str) -> str:
    return next(reversed(_list_parents(path)), "")
