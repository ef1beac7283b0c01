"""The memories of agents at `/admin/memory`: who told it, where it may come up, and correcting or deleting it.

For owners alone, as the archive is: a memory may be of a room that an admin cannot read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import DenizenError
from denizen.domain.ids import AgentName
from denizen.domain.memory import CORE, MAX_CHARS, Memory, describe_audience
from denizen.domain.record import record
from denizen.engine.memory.browser import MemoryBrowser
from denizen.ports.memory import MemorySearch
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import QueryParameter, read_form
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.forms import ListPart, find_problem, lead_to, plan_part
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

PATH = "/admin/memory"
PAGE_SIZE = 25
_WORDS = QueryParameter(name="q", max_chars=200)
_AGENT = QueryParameter(name="agent", max_chars=100)
_ABOUT = QueryParameter(name="about", choices=("", "core"))
_HISTORY = QueryParameter(name="history", choices=("", "yes"))
_NOTICES = {"changed": "The memory is changed.", "forgotten": "The memory is forgotten, with its history."}


@record
class MemoryRow:
    """A memory; `place` names the room where it was told, and `audience` tells where it may come up. `owner` is the
    name of the person whom it is about, or the key where none is known, empty for everybody.
    """

    memory: Memory
    place: str
    audience: str
    owner: str = ""


@record(kw_only=True)
class MemoryPage:
    """The context of `admin/memory.html`."""

    frame: Frame
    listed: ListPart[MemoryRow]
    agents: Sequence[str]
    words: str
    agent: str
    about: str
    history: bool
    notice: str = ""


@record(kw_only=True)
class MemoryEditPage:
    """The context of `admin/memory_edit.html`. `text` is what stands in the form."""

    frame: Frame
    row: MemoryRow
    text: str
    max_chars: int = MAX_CHARS
    problem: ProblemDetails | None = None


class MemoryPages:
    """The routes of the list and of one memory."""

    def __init__(self, deps: WebDependencies, memories: MemoryBrowser) -> None:
        self._deps = deps
        self._memories = memories

    @property
    def routes(self) -> list[AccessRoute]:
        one = f"{PATH}/{{memory}}"
        return [
            SitePageRoute("GET", PATH, self.show_list, Access.OWNER),
            SitePageRoute("GET", one, self.show, Access.OWNER),
            AccessRoute("POST", one, self.change, Access.OWNER),
            AccessRoute("POST", f"{one}/forget", self.forget, Access.OWNER),
        ]

    async def show_list(self, request: Request) -> Response:
        viewer, query = get_principal(request), request.query_params
        words, agent, about = _WORDS.read_text(request), _AGENT.read_text(request), _ABOUT.read_text(request)
        wanted = MemorySearch(
            words=words,
            agent=AgentName(agent) if agent else None,
            owner=CORE if about else None,
            history=bool(_HISTORY.read_text(request)),
            limit=PAGE_SIZE,
        )
        part = plan_part(request, await self._memories.count(viewer, wanted), size=PAGE_SIZE)
        found = await self._memories.search(viewer, replace(wanted, first=(part.number - 1) * PAGE_SIZE))
        rooms, names = await self._memories.name_rooms(found), await self._name_owners(found)
        page = MemoryPage(
            frame=build_frame(request, self._deps, path=PATH),
            listed=replace(part, rows=[_row(each, rooms, names) for each in found]),
            agents=sorted(self._deps.engine.runtime.current.agents),
            words=words,
            agent=agent,
            about=about,
            history=wanted.history,
            notice=_NOTICES.get(query.get("done", ""), ""),
        )
        return render("admin/memory.html", page)

    async def show(self, request: Request) -> Response:
        return await self._render_one(request)

    async def change(self, request: Request) -> Response:
        form, viewer = await read_form(request), get_principal(request)
        text = form.get("text", "")
        return await self._act(
            request, lambda which: self._memories.rewrite(viewer, which, text), done="changed", text=text
        )

    async def forget(self, request: Request) -> Response:
        viewer = get_principal(request)
        return await self._act(request, lambda which: self._memories.forget(viewer, which), done="forgotten")

    async def _act(
        self, request: Request, act: Callable[[str], Awaitable[object]], *, done: str, text: str | None = None
    ) -> Response:
        try:
            await act(request.path_params["memory"])
        except DenizenError as error:
            return await self._render_one(request, text=text, error=error)
        return lead_to(PATH, done=done)

    async def _render_one(
        self, request: Request, *, text: str | None = None, error: DenizenError | None = None
    ) -> Response:
        found = await self._memories.get(get_principal(request), request.path_params["memory"])
        problem = find_problem(error)
        page = MemoryEditPage(
            frame=build_frame(request, self._deps, path=PATH),
            row=_row(found, await self._memories.name_rooms([found]), await self._name_owners([found])),
            text=found.text if text is None else text,
            problem=problem,
        )
        return render("admin/memory_edit.html", page, status=problem.status if problem else 200)

    async def _name_owners(self, memories: Sequence[Memory]) -> Mapping[str, str]:
        return await self._deps.engine.queries.names.load_people({each.owner for each in memories})


def _row(memory: Memory, rooms: Mapping[tuple[str, str], str], names: Mapping[str, str]) -> MemoryRow:
    told = memory.told_at
    place = rooms.get((told.platform, told.room), told.room) if told.platform else "the command line"
    return MemoryRow(memory, place, describe_audience(memory, place), names.get(memory.owner, memory.owner))
