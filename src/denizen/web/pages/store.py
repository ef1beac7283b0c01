"""The store at `/admin/store`: the database in use, the rows of each table, and moving everything elsewhere. Live.

Admins look; owners move. Where it goes is in the configuration, as for `/migrate`.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import DenizenError
from denizen.domain.principal import RoleName
from denizen.domain.record import record
from denizen.domain.store_move import MoveProgress, StoreStatus
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import StoreServices, WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.forms import find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

STORE = "/admin/store"
COUNTED_EVERY_S = 10.0
"""How long the rows are shown that were counted: with millions of them that takes a while."""
_NOTICES = {"start": "The move has begun.", "cancel": "The move is being stopped. The store stays where it is."}


@record(kw_only=True)
class StorePage:
    """The context of `store.html`. `target` is where the configuration has the store moved to; empty for nowhere."""

    frame: Frame
    status: StoreStatus
    move: MoveProgress
    total: int
    target: str
    is_owner: bool
    notice: str = ""
    problem: ProblemDetails | None = None


class StorePages:
    """The routes of the store."""

    def __init__(self, deps: WebDependencies, services: StoreServices) -> None:
        self._deps = deps
        self._move = services.move
        self._audit = services.audit
        self._counted: tuple[float, StoreStatus] | None = None

    @property
    def routes(self) -> list[SitePageRoute]:
        return [
            SitePageRoute("GET", STORE, self.show, Access.ADMIN),
            SitePageRoute("POST", f"{STORE}/move", self.change, Access.OWNER),
        ]

    async def show(self, request: Request) -> Response:
        return await self._render(request)

    async def change(self, request: Request) -> Response:
        """Begins a move, or stops it."""
        action = "cancel" if (await read_form(request)).get("action") == "cancel" else "start"
        try:
            await self._audit.switch(get_principal(request), "store", action)
            if action == "cancel":
                self._move.cancel()
            else:
                await self._move.start()
        except DenizenError as error:
            return await self._render(request, error=error)
        return lead_to(STORE, done=action)

    async def _render(self, request: Request, *, error: DenizenError | None = None) -> Response:
        problem, now_s = find_problem(error), self._deps.clock.monotonic_s()
        code = problem.status if problem else 200
        try:
            target = await self._move.find_target()
        except DenizenError as unusable:  # the page is shown all the same
            target, problem = "", problem or find_problem(unusable)
        if self._counted is None or now_s - self._counted[0] > COUNTED_EVERY_S:
            self._counted = now_s, await self._move.status()
        status = self._counted[1]
        page = StorePage(
            frame=build_frame(request, self._deps),
            status=status,
            move=self._move.progress,
            total=sum(each.rows for each in status.tables),
            target=target,
            is_owner=RoleName.OWNER in get_principal(request).roles,
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("admin/store.html", page, status=code)
