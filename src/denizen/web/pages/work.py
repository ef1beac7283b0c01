"""Who works on what, at `/admin/work`: each agent with its turns in flight, its tasks, and when it starts next. Live.

Turns that were asked in private are counted, and shown to those only who may read them; tasks are those of projects
that the reader may read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.ids import TurnId
from denizen.domain.principal import Principal
from denizen.domain.project import MAX_FOUND, Task, TaskQuery, TaskStatus
from denizen.domain.record import record
from denizen.domain.turn import TurnStatus
from denizen.engine.schedules.catalog import ScheduleListing
from denizen.ports.store import TurnListing, TurnSearch
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.page import Frame, build_frame, render

PATH = "/admin/work"
MAX_TURNS = 200
_UNDER_WAY = frozenset({TaskStatus.IN_PROGRESS, TaskStatus.BLOCKED, TaskStatus.IN_REVIEW})


@record(kw_only=True)
class AgentWork:
    """The work of one agent. `hidden` is how many of its turns in flight the reader may not see."""

    agent: str
    turns: Sequence[TurnListing]
    hidden: int
    tasks: Sequence[Task]
    next_run: ScheduleListing | None

    @property
    def is_idle(self) -> bool:
        return not (self.turns or self.hidden)


@record(kw_only=True)
class WorkPage:
    """The context of `admin/work.html`: first the agents at work. `queued` are turns that wait behind others, `waiting`
    those with a call that waits for people.
    """

    frame: Frame
    agents: Sequence[AgentWork]
    queued: frozenset[TurnId]
    waiting: frozenset[TurnId]


class WorkPages:
    """The route of the page."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps

    @property
    def routes(self) -> list[SitePageRoute]:
        return [SitePageRoute("GET", PATH, self.show, Access.ADMIN)]

    async def show(self, request: Request) -> Response:
        queries, reader = self._deps.engine.queries, get_principal(request)
        running = await queries.search_turns(TurnSearch(status=TurnStatus.OPEN, limit=MAX_TURNS))
        readable = {each.turn.id for each in running if await queries.may_read(each.turn, reader)}
        tasks, schedules = await self._find_tasks(reader), await self._list_next_runs()
        names = dict.fromkeys(
            [*(agent.name for agent in queries.list_agents()), *(each.turn.agent for each in running)]
        )
        found: list[AgentWork] = []
        for name in names:
            turns = [each for each in running if each.turn.agent == name]
            shown = [each for each in turns if each.turn.id in readable]
            found.append(
                AgentWork(
                    agent=name,
                    turns=shown,
                    hidden=len(turns) - len(shown),
                    tasks=[each for each in tasks if each.assignee.casefold() == name.casefold()],
                    next_run=schedules.get(name),
                )
            )
        page = WorkPage(
            frame=build_frame(request, self._deps, path=PATH),
            agents=sorted(found, key=lambda each: each.is_idle),
            queued=self._deps.engine.turns.here.queued,
            waiting=frozenset(each.request.turn_id for each in (await queries.load_overview()).waiting),
        )
        return render("admin/work.html", page)

    async def _find_tasks(self, reader: Principal) -> Sequence[Task]:
        if self._deps.projects is None:
            return ()
        return await self._deps.projects.open_for(reader).find_tasks(TaskQuery(statuses=_UNDER_WAY, limit=MAX_FOUND))

    async def _list_next_runs(self) -> Mapping[str, ScheduleListing]:
        """By agent."""
        if self._deps.schedules is None:
            return {}
        due = [each for each in await self._deps.schedules.catalog.list_schedules() if each.next_at is not None]
        due.sort(key=lambda each: each.next_at or self._deps.clock.now(), reverse=True)
        return {each.schedule.agent: each for each in due}
