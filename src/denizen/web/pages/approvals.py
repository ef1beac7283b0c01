"""The inbox at `/admin/approvals`: calls that wait for people, to decide, and the ones decided last. Live.

Who may decide is the engine's rule, the same as for `/api/approvals`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from denizen.domain.approval import (
    Approval,
    ApprovalChoice,
    ApprovalStatus,
    describe_deciders,
    describe_end,
    may_decide,
)
from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.web.api.approvals import ApprovalWord, say_word
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.problems import describe_problem, fill_in
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

PATH = "/admin/approvals"
DECIDED = 20


@record(kw_only=True)
class ApprovalCard:
    """An approval as its reader sees it. `told` says for whom it waits, or how it ended."""

    approval: Approval
    told: str
    may_decide: bool


@record(kw_only=True)
class ApprovalsPage:
    """The context of `admin/approvals.html`. `names` are those of rooms, by id."""

    frame: Frame
    pending: Sequence[ApprovalCard]
    decided: Sequence[ApprovalCard]
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    problem: ProblemDetails | None = None


class ApprovalPages:
    """The routes of the inbox."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self._names = deps.engine.queries.names
        self._approvals = deps.engine.turns.approvals

    @property
    def routes(self) -> list[AccessRoute]:
        return [
            SitePageRoute("GET", PATH, self.show, Access.ADMIN),
            SitePageRoute("POST", f"{PATH}/{{approval_id}}", self.decide, Access.ADMIN),
        ]

    async def show(self, request: Request) -> Response:
        return await self._render(request)

    async def decide(self, request: Request) -> Response:
        form = await read_form(request)
        try:
            word = ApprovalWord(request.path_params["approval_id"], _read_choice(form), form.get("reason", "").strip())
            await say_word(self._approvals, get_principal(request), word)
        except DenizenError as error:
            return await self._render(request, error)
        return RedirectResponse(PATH, status_code=303)

    async def _render(self, request: Request, error: DenizenError | None = None) -> Response:
        reader = get_principal(request)
        pending = await self._approvals.list_for(reader, status=ApprovalStatus.PENDING)
        known = await self._approvals.list_for(reader)
        decided = [each for each in known if each.status.is_final][:DECIDED]
        problem = fill_in(describe_problem(error)) if error is not None else None
        page = ApprovalsPage(
            frame=build_frame(request, self._deps, path=PATH),
            pending=[_card(each, reader) for each in reversed(pending)],
            decided=[_card(each, reader) for each in decided],
            names=await self._names.load_rooms(reader, [each.request.place for each in pending]),
            problem=problem,
        )
        return render("admin/approvals.html", page, status=problem.status if problem else 200)


def _card(approval: Approval, reader: Principal) -> ApprovalCard:
    if approval.status.is_final:
        return ApprovalCard(approval=approval, told=describe_end(approval), may_decide=False)
    told = f"Waits for {describe_deciders(approval.rule)}."
    return ApprovalCard(approval=approval, told=told, may_decide=may_decide(approval, reader))


def _read_choice(form: Mapping[str, str]) -> ApprovalChoice:
    given = form.get("decision", "")
    if given not in tuple(ApprovalChoice):
        raise InvalidInput("This is no decision.", code="decision_invalid", fix="Press one of the buttons.")
    return ApprovalChoice(given)
