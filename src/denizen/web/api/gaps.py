"""`/api/gaps`: what no document answers, and the review of answers that people proposed. For owners and admins.

What was asked in private is only counted here; the operator's command line tells it.
"""

from __future__ import annotations

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from denizen.domain.errors import InvalidInput
from denizen.domain.gap import GapGroup
from denizen.engine.knowledge.learning import Review
from denizen.web.api.knowledge import require_admin
from denizen.web.http.request import read_object, read_text
from denizen.web.http.dependencies import GapServices
from denizen.web.http.auth import get_principal
from denizen_sdk.gaps import ClosedGaps, DecidedProposal, GapInfo, GapList, ProposalInfo

DAYS = 30
MAX_DAYS = 3650


class GapRoutes:
    """The routes."""

    def __init__(self, parts: GapServices) -> None:
        self._report = parts.report
        self._learning = parts.learning

    @property
    def routes(self) -> list[Route]:
        return [
            Route("/api/gaps", self.list_gaps, methods=["GET"]),
            Route("/api/gaps/proposals", self.list_proposals, methods=["GET"]),
            Route("/api/gaps/proposals/{proposal}", self.decide, methods=["POST"]),
            Route("/api/gaps/{gap}/close", self.close, methods=["POST"]),
        ]

    async def list_gaps(self, request: Request) -> Response:
        """What was asked most comes first. `hidden` were asked in private; with `truncated` there are older ones."""
        require_admin(request)
        days = _days(request)
        found = await self._report.load(days, with_private=False)
        gaps = tuple(map(_gap_to_wire, found.groups))
        return JSONResponse(asdict(GapList(days, found.total, found.hidden, gaps, found.is_cut)))

    async def close(self, request: Request) -> Response:
        """With all that ask the same."""
        require_admin(request)
        closed = await self._report.close(request.path_params["gap"], with_private=False)
        return JSONResponse(asdict(ClosedGaps(len(closed))))

    async def list_proposals(self, request: Request) -> Response:
        """Those that nobody has decided about, each with the file that accepting it writes."""
        require_admin(request)
        reviews = await self._learning.list_reviews(get_principal(request))
        return JSONResponse([asdict(_review(review)) for review in reviews])

    async def decide(self, request: Request) -> Response:
        """`text` takes the place of the answer; `sync` is the run that reads the file."""
        require_admin(request)
        body, which, by = await read_object(request), request.path_params["proposal"], get_principal(request)
        match read_text(body, "decision"):
            case "accept":
                run = await self._learning.accept(which, by, read_text(body, "text"))
                return JSONResponse(asdict(DecidedProposal("accepted", run.id if run is not None else "")))
            case "reject":
                await self._learning.reject(which, by, read_text(body, "reason"))
                return JSONResponse(asdict(DecidedProposal("rejected")))
            case other:
                raise InvalidInput(
                    f"'{other}' is no decision.", code="field_invalid", fix="Send accept or reject.", field="decision"
                )


def _days(request: Request) -> int:
    given = request.query_params.get("days", str(DAYS))
    if not given.isascii() or not given.isdecimal() or not 1 <= int(given[:9]) <= MAX_DAYS:
        raise InvalidInput(f"'days' must be a whole number from 1 to {MAX_DAYS}.", code="field_invalid", field="days")
    return int(given)


def _gap_to_wire(group: GapGroup) -> GapInfo:
    newest = group.newest
    return GapInfo(
        id=newest.id,
        question=newest.question,
        questions=tuple(dict.fromkeys(gap.question for gap in group.gaps)),
        times=len(group.gaps),
        askers=group.askers,
        agent=newest.agent,
        kind=newest.kind.value,
        last_at=newest.created_at.isoformat(),
    )


def _review(review: Review) -> ProposalInfo:
    proposal = review.proposal
    return ProposalInfo(
        id=proposal.id,
        question=proposal.question,
        answer=proposal.answer,
        author=proposal.author_name,
        author_id=proposal.author,
        proposed_by=proposal.proposer,
        link=proposal.link,
        said_at=proposal.said_at.isoformat(),
        created_at=proposal.created_at.isoformat(),
        gap=proposal.gap_id,
        file=review.file,
        content=review.content,
        diff=review.diff,
    )
