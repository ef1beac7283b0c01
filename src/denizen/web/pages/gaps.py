"""The gaps at `/admin/gaps`: questions to which agents found nothing, and answers of people that may become documents.

Questions that were asked in private are only counted here, as over the API.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import DenizenError
from denizen.domain.gap import GapGroup
from denizen.domain.record import record
from denizen.engine.knowledge.coverage import ProposalReview
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import GapServices, WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.forms import ListPart, cut_list, find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

GAPS = "/admin/gaps"
SHOWN = 20
SHOWN_PROPOSALS = 10
PERIODS = (7, 30, 90, 365)
_NOTICES = {
    "closed": "The question is closed, with all that ask the same.",
    "accepted": "The answer was accepted. It is a document as soon as it was read.",
    "rejected": "The answer was rejected.",
}


@record(kw_only=True)
class GapsPage:
    """The context of `gaps.html`. `hidden` of the `total` questions were asked in private; with `is_cut` there are
    older ones. `more_proposals` wait besides those that are shown.
    """

    frame: Frame
    days: int
    periods: Sequence[int]
    listed: ListPart[GapGroup]
    total: int
    hidden: int
    is_cut: bool
    proposals: Sequence[ProposalReview]
    more_proposals: int
    address: str
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class ProposalPage:
    """The context of `proposal.html`: one proposed answer, with the text that was typed instead of it."""

    frame: Frame
    review: ProposalReview
    text: str
    reason: str = ""
    problem: ProblemDetails | None = None


class GapPages:
    """The routes of gaps and proposals."""

    def __init__(self, deps: WebDependencies, services: GapServices) -> None:
        self._deps = deps
        self._report = services.report
        self._learning = services.learning

    @property
    def routes(self) -> list[SitePageRoute]:
        one = f"{GAPS}/proposals/{{proposal}}"
        return [
            SitePageRoute("GET", GAPS, self.list, Access.ADMIN),
            SitePageRoute("POST", f"{GAPS}/close", self.close, Access.ADMIN),
            SitePageRoute("GET", one, self.show, Access.ADMIN),
            SitePageRoute("POST", f"{one}/accept", self.accept, Access.ADMIN),
            SitePageRoute("POST", f"{one}/reject", self.reject, Access.ADMIN),
        ]

    async def list(self, request: Request) -> Response:
        return await self._show_list(request)

    async def close(self, request: Request) -> Response:
        form = await read_form(request)
        try:
            await self._report.close(form.get("gap", ""), with_private=False)
        except DenizenError as error:
            return await self._show_list(request, error)
        return lead_to(GAPS, days=form.get("days", ""), done="closed")

    async def show(self, request: Request) -> Response:
        review = await self._learning.review(request.path_params["proposal"], get_principal(request))
        return self._show(request, review, review.proposal.answer.text)

    async def accept(self, request: Request) -> Response:
        """Accepts the answer with the text of the form, or shows what that text would become first."""
        form, which, by = await read_form(request), request.path_params["proposal"], get_principal(request)
        text = form.get("text", "")
        try:
            if "preview" in form:
                return self._show(request, await self._learning.review(which, by, text), text)
            await self._learning.accept(which, by, text)
        except DenizenError as error:
            return await self._show_refused(request, text, "", error)
        return lead_to(GAPS, done="accepted")

    async def reject(self, request: Request) -> Response:
        form, which = await read_form(request), request.path_params["proposal"]
        reason = form.get("reason", "")
        try:
            await self._learning.reject(which, get_principal(request), reason)
        except DenizenError as error:
            return await self._show_refused(request, "", reason, error)
        return lead_to(GAPS, done="rejected")

    async def _show_list(self, request: Request, error: DenizenError | None = None) -> Response:
        asked, problem = request.query_params, find_problem(error)
        days = next((each for each in PERIODS if str(each) == asked.get("days")), 30)
        found = await self._report.load(days, with_private=False)
        reviews = await self._learning.list_reviews(get_principal(request))
        page = GapsPage(
            frame=build_frame(request, self._deps),
            days=days,
            periods=PERIODS,
            listed=cut_list(request, found.groups, size=SHOWN),
            total=found.total,
            hidden=found.hidden,
            is_cut=found.is_cut,
            proposals=reviews[:SHOWN_PROPOSALS],
            more_proposals=len(reviews[SHOWN_PROPOSALS:]),
            address=f"{GAPS}?{request.url.query}",
            notice=_NOTICES.get(asked.get("done", ""), ""),
            problem=problem,
        )
        return render("admin/gaps.html", page, status=problem.status if problem else 200)

    async def _show_refused(self, request: Request, text: str, reason: str, error: DenizenError) -> Response:
        """Shows the proposal with what is wrong; the list when there is no such proposal, or it is decided."""
        try:
            review = await self._learning.review(request.path_params["proposal"], get_principal(request))
        except DenizenError:
            return await self._show_list(request, error)
        return self._show(request, review, text or review.proposal.answer.text, reason, error)

    def _show(
        self, request: Request, review: ProposalReview, text: str, reason: str = "", error: DenizenError | None = None
    ) -> Response:
        problem = find_problem(error)
        page = ProposalPage(
            frame=build_frame(request, self._deps), review=review, text=text, reason=reason, problem=problem
        )
        return render("admin/proposal.html", page, status=problem.status if problem else 200)
