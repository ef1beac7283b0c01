"""Events at `/admin/events`: the log, live, with what listeners did, and the deliveries that failed, to replay them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError
from denizen.domain.event_listener import EventDelivery, EventListener
from denizen.domain.event_source import SourceReport
from denizen.domain.record import record
from denizen.engine.event_bus.log import EventEntry, EventLog
from denizen.web.api.events import BEFORE, TYPE, WORDS, read_search
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.problems import describe_problem, fill_in
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

PATH = "/admin/events"
SHOWN = 50
SHOWN_DATA_CHARS = 10_000


@record
class EventRow:
    """An event, with its data as text."""

    entry: EventEntry
    data: str


@record(kw_only=True)
class EventsPage:
    """The context of `admin/events.html`. `here` is the address of this page, `older` that of the next, or empty.
    `names` are those of persons, by the key of the principal, and of rooms, by id.
    """

    frame: Frame
    rows: Sequence[EventRow]
    failed: Sequence[EventDelivery]
    listeners: Sequence[EventListener]
    sources: Sequence[SourceReport]
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    type: str
    words: str
    here: str
    older: str
    problem: ProblemDetails | None = None


class EventPages:
    """The routes of events."""

    def __init__(self, deps: WebDependencies, log: EventLog) -> None:
        self._deps = deps
        self._log = log

    @property
    def routes(self) -> list[AccessRoute]:
        return [
            SitePageRoute("GET", PATH, self.show, Access.OWNER),
            SitePageRoute("POST", f"{PATH}/{{delivery}}/replay", self.replay, Access.OWNER),
        ]

    async def show(self, request: Request) -> Response:
        return await self._render(request)

    async def replay(self, request: Request) -> Response:
        try:
            await self._log.replay(request.path_params["delivery"])
        except DenizenError as error:
            return await self._render(request, error)
        return RedirectResponse(PATH, status_code=303)

    async def _render(self, request: Request, error: DenizenError | None = None) -> Response:
        found = await self._log.search(read_search(request, limit=SHOWN + 1))
        shown, kind, words = found[:SHOWN], TYPE.read_text(request), WORDS.read_text(request)
        asked = {"type": kind, "words": words}
        listeners, names = self._log.list_listeners(), self._deps.engine.queries.names
        people = await names.load_people({each.event.actor for each in shown})
        rooms = [Place(each.action.platform, each.action.channel) for each in listeners if each.action.channel]
        problem = fill_in(describe_problem(error)) if error is not None else None
        here = urlencode(asked | {"before": BEFORE.read_text(request)})
        older = urlencode(asked | {"before": shown[-1].position if shown else 0})
        page = EventsPage(
            frame=build_frame(request, self._deps, path=PATH),
            rows=[
                EventRow(each, json.dumps(each.event.data, ensure_ascii=False, indent=1)[:SHOWN_DATA_CHARS])
                for each in shown
            ],
            failed=await self._log.list_failed(),
            listeners=listeners,
            sources=await self._log.list_sources(),
            names={**people, **await names.load_rooms(get_principal(request), rooms)},
            type=kind,
            words=words,
            here=f"{PATH}?{here}",
            older=f"{PATH}?{older}" if len(found) > SHOWN else "",
            problem=problem,
        )
        return render("admin/events.html", page, status=problem.status if problem else 200)
