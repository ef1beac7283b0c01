"""Schedules at `/admin/schedules`: when each runs next, how its runs went and what they cost; a form for each.

Admins look and run one by hand; owners add, change, switch and remove, which is written to the configuration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError
from denizen.domain.json import Json
from denizen.domain.principal import RoleName
from denizen.domain.record import record
from denizen.domain.schedule import CatchUp, DeliveryRoute, Schedule
from denizen.domain.workflow_triggers import CALL_NODE
from denizen.engine.schedules.catalog import RunListing, ScheduleListing
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import ScheduleServices, WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.forms import find_problem, lead_to, read_json_object
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

SCHEDULES = "/admin/schedules"
SHOWN_RUNS = 30
_TEXTS = ("when", "zone", "agent", "prompt", "session", "model")
_DELIVERY_TEXTS = ("subject", "secret")
_FIELDS = ("name", "kind", "tool", "workflow", "args", "to", "target", "catch_up", "new_session", "wake_agent")
_OF_PROMPTS = ("prompt", "session", "model", "new_session", "wake_agent", "delivery")
"""The keys that a tool and a workflow do not have."""
PROMPT, TOOL, WORKFLOW = "prompt", "tool", "workflow"
KINDS: Sequence[tuple[str, str]] = (
    (PROMPT, "tells the agent something"),
    (TOOL, "calls a tool"),
    (WORKFLOW, "runs a workflow"),
)
_NOTICES = {
    "added": "The schedule was added.",
    "changed": "The schedule was changed. What is new holds from the next run on.",
    "on": "The schedule is on. Its times count from now.",
    "off": "The schedule is off. It can still be run by hand.",
    "asked": "The run begins in a moment.",
    "removed": "The schedule was removed. The history of its runs stays.",
}
LOG = "log"
ROUTES: Sequence[tuple[str, str]] = (
    (LOG, "nowhere: it stays in the session"),
    ("discord", "into a channel on Discord"),
    ("discord-dm", "to a person on Discord"),
    ("webhook", "to a webhook, as signed JSON"),
    ("mail", "by mail"),
)
CATCH_UPS: Sequence[tuple[str, str]] = (
    (CatchUp.SKIP.value, "are left out"),
    (CatchUp.ONCE.value, "are made up for with one run"),
)


@record(kw_only=True)
class SchedulesPage:
    """The context of `schedules.html`."""

    frame: Frame
    may_edit: bool
    schedules: Sequence[ScheduleListing]
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class ScheduleForm:
    """The fields of a schedule, with what was typed or is written."""

    values: Mapping[str, str]
    agents: Sequence[tuple[str, str]]
    kinds: Sequence[tuple[str, str]]
    routes: Sequence[tuple[str, str]]
    catch_ups: Sequence[tuple[str, str]]


@record(kw_only=True)
class NewSchedulePage:
    """The context of `schedule_new.html`."""

    frame: Frame
    form: ScheduleForm
    problem: ProblemDetails | None = None


@record(kw_only=True)
class SchedulePage:
    """The context of `schedule.html`. `names` are those of persons, by the key of the principal, and of rooms, by
    id.
    """

    frame: Frame
    may_edit: bool
    listing: ScheduleListing
    runs: Sequence[RunListing]
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    form: ScheduleForm
    notice: str = ""
    problem: ProblemDetails | None = None


class SchedulePages:
    """The routes of schedules."""

    def __init__(self, deps: WebDependencies, services: ScheduleServices) -> None:
        self._deps = deps
        self._catalog = services.catalog
        self._configuration = services.configuration

    @property
    def routes(self) -> list[SitePageRoute]:
        one = f"{SCHEDULES}/{{schedule}}"
        return [
            SitePageRoute("GET", SCHEDULES, self.list, Access.ADMIN),
            SitePageRoute("GET", "/admin/add-schedule", self.show_form, Access.OWNER),
            SitePageRoute("POST", "/admin/add-schedule", self.add, Access.OWNER),
            SitePageRoute("GET", one, self.show, Access.ADMIN),
            SitePageRoute("POST", one, self.edit, Access.OWNER),
            SitePageRoute("POST", f"{one}/run", self.run, Access.ADMIN),
            SitePageRoute("POST", f"{one}/switch", self.switch, Access.OWNER),
            SitePageRoute("POST", f"{one}/remove", self.remove, Access.OWNER),
        ]

    async def list(self, request: Request) -> Response:
        page = SchedulesPage(
            frame=build_frame(request, self._deps, path=SCHEDULES),
            may_edit=_may_edit(request),
            schedules=await self._catalog.list_schedules(),
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
        )
        return render("admin/schedules.html", page)

    async def show_form(self, request: Request) -> Response:
        return self._show_form(request, {"wake_agent": "yes"})

    async def add(self, request: Request) -> Response:
        form = await read_form(request)
        name = form.get("name", "").strip()
        try:
            await self._configuration.add(get_principal(request), name, read_schedule_form(form))
        except DenizenError as error:
            return self._show_form(request, form, error)
        return lead_to(f"{SCHEDULES}/{name}", done="added")

    async def show(self, request: Request) -> Response:
        return await self._show(request)

    async def edit(self, request: Request) -> Response:
        form, name = await read_form(request), request.path_params["schedule"]
        try:
            known = read_schedule_form(_read_values(self._catalog.find(name).written))
            given = read_schedule_form(form).items()  # `when` always: the words may mean another time by now
            changed = {key: value for key, value in given if key == "when" or value != known[key]}
            await self._configuration.edit(get_principal(request), name, changed)
        except DenizenError as error:
            return await self._show(request, error, form)
        return lead_to(f"{SCHEDULES}/{name}", done="changed")

    async def run(self, request: Request) -> Response:
        name = request.path_params["schedule"]
        try:
            await self._catalog.run(name, get_principal(request))
        except DenizenError as error:
            return await self._show(request, error)
        return lead_to(f"{SCHEDULES}/{name}", done="asked")

    async def switch(self, request: Request) -> Response:
        form, name = await read_form(request), request.path_params["schedule"]
        try:
            await self._configuration.edit(get_principal(request), name, {"enabled": "on" in form})
        except DenizenError as error:
            return await self._show(request, error)
        return lead_to(f"{SCHEDULES}/{name}", done="on" if "on" in form else "off")

    async def remove(self, request: Request) -> Response:
        try:
            await self._configuration.remove(get_principal(request), request.path_params["schedule"])
        except DenizenError as error:
            return await self._show(request, error)
        return lead_to(SCHEDULES, done="removed")

    async def _show(
        self, request: Request, error: DenizenError | None = None, typed: Mapping[str, str] | None = None
    ) -> Response:
        listing = await self._catalog.get(request.path_params["schedule"])
        runs = await self._catalog.list_runs(listing.schedule.name, limit=SHOWN_RUNS)
        problem = find_problem(error)
        page = SchedulePage(
            frame=build_frame(request, self._deps, path=SCHEDULES),
            may_edit=_may_edit(request),
            listing=listing,
            runs=runs,
            names=await self._load_names(request, listing.schedule, runs),
            form=self._fill_form(typed if typed is not None else _read_values(listing.schedule.written)),
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("admin/schedule.html", page, status=problem.status if problem else 200)

    async def _load_names(self, request: Request, schedule: Schedule, runs: Sequence[RunListing]) -> Mapping[str, str]:
        names, delivery = self._deps.engine.queries.names, schedule.conduct.delivery
        rooms = [Place(delivery.platform, delivery.target)] if delivery.to is DeliveryRoute.CHANNEL else []
        people = await names.load_people({schedule.owner, *(each.run.asked_by for each in runs)})
        return {**people, **await names.load_rooms(get_principal(request), rooms)}

    def _show_form(self, request: Request, typed: Mapping[str, str], error: DenizenError | None = None) -> Response:
        problem = find_problem(error)
        page = NewSchedulePage(
            frame=build_frame(request, self._deps, path=SCHEDULES), form=self._fill_form(typed), problem=problem
        )
        return render("admin/schedule_new.html", page, status=problem.status if problem else 200)

    def _fill_form(self, typed: Mapping[str, str]) -> ScheduleForm:
        current = self._deps.engine.runtime.current
        default = (("", f"the default agent ({current.default_agent})"),)
        return ScheduleForm(
            values={name: typed.get(name, "") for name in (*_FIELDS, *_DELIVERY_TEXTS, *_TEXTS)},
            agents=[*default, *((name, name) for name in current.agents)],
            kinds=KINDS,
            routes=ROUTES,
            catch_ups=CATCH_UPS,
        )


def read_schedule_form(form: Mapping[str, str]) -> Mapping[str, Json]:
    """Returns the keys of the configuration that a form says; None for those that it leaves to the default."""
    to, target = form.get("to") or LOG, form.get("target", "").strip()
    delivery: dict[str, Json] = {"to": to, "target": target} if target else {"to": to}
    delivery |= {key: form[key].strip() for key in _DELIVERY_TEXTS if form.get(key, "").strip()}
    kind = form.get("kind") or PROMPT
    values: dict[str, Json] = {
        **{name: form.get(name, "").replace("\r\n", "\n").strip() or None for name in _TEXTS},
        "new_session": True if form.get("new_session") else None,
        "wake_agent": None if form.get("wake_agent") else False,
        "delivery": None if delivery == {"to": LOG} else delivery,
        "catch_up": None if form.get("catch_up", "") in ("", CatchUp.SKIP) else form["catch_up"],
        TOOL: form.get(TOOL, "").strip() or None if kind == TOOL else None,
        WORKFLOW: form.get(WORKFLOW, "").strip() or None if kind == WORKFLOW else None,
        "args": None if kind == PROMPT else read_json_object(form.get("args", ""), "The arguments are") or None,
    }
    return values if kind == PROMPT else {**values, **dict.fromkeys(_OF_PROMPTS)}


def _read_values(schedule: Schedule) -> Mapping[str, str]:
    conduct, call = schedule.conduct, schedule.tool_call
    called: Mapping[str, Json] = call.nodes[CALL_NODE].settings if call is not None else {}
    args = schedule.args if call is None else called["args"]
    return {
        "name": schedule.name,
        "kind": TOOL if call is not None else WORKFLOW if schedule.workflow else PROMPT,
        TOOL: str(called["tool"]) if call is not None else "",
        WORKFLOW: schedule.workflow,
        "args": json.dumps(args, ensure_ascii=False, indent=2) if args else "",
        "when": schedule.said,
        "zone": schedule.zone,
        "agent": schedule.agent,
        "prompt": schedule.prompt,
        "session": conduct.session,
        "model": conduct.model,
        "to": conduct.delivery.name,
        "target": conduct.delivery.target,
        "subject": conduct.delivery.subject,
        "catch_up": schedule.catch_up.value,
        "new_session": "yes" if conduct.new_session else "",
        "wake_agent": "yes" if conduct.wake_agent else "",
    }


def _may_edit(request: Request) -> bool:
    return RoleName.OWNER in get_principal(request).roles
