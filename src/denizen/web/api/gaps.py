"""`/api/gaps`: questions that no document answers, and the review of proposed answers. For owners and admins.

Questions that were asked in private are only counted here. The operator's command line shows them.
"""

from __future__ import annotations

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.errors import InvalidInput
from denizen.domain.gap import GapGroup
from denizen.engine.knowledge.coverage import ProposalReview
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import GapServices
from denizen.web.http.openapi import TEXT, ApiRoute, Operation, object_schema
from denizen.web.http.request import QueryParameter, read_object, read_text
from denizen.web.http.routing import Access
from denizen_sdk.gaps import (
    ClosedGaps,
    DecidedProposal,
    GapInfo,
    GapList,
    ProposalInfo,
    ProposedDocument,
    ProposedMessage,
)

_DAYS = QueryParameter(name="days", default="30", low=1, high=3650)


class GapRoutes:
    """The routes that list and close unanswered questions, and decide about proposed answers."""

    def __init__(self, services: GapServices) -> None:
        self._report = services.report
        self._learning = services.learning

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "GET",
                "/api/gaps",
                self.list_gaps,
                Access.ADMIN,
                Operation("Questions that no document answers, the most asked first", answer=GapList, query=(_DAYS,)),
            ),
            ApiRoute(
                "GET",
                "/api/gaps/proposals",
                self.list_proposals,
                Access.ADMIN,
                Operation("Answers that people proposed", answer=list[ProposalInfo]),
            ),
            ApiRoute(
                "POST",
                "/api/gaps/proposals/{proposal}",
                self.decide,
                Access.ADMIN,
                Operation(
                    "Accept a proposed answer, or reject it",
                    object_schema(
                        "decision", decision={"type": "string", "enum": ["accept", "reject"]}, text=TEXT, reason=TEXT
                    ),
                    DecidedProposal,
                ),
            ),
            ApiRoute(
                "POST",
                "/api/gaps/{gap}/close",
                self.close,
                Access.ADMIN,
                Operation("Close a question and all that ask the same", answer=ClosedGaps),
            ),
        ]

    async def list_gaps(self, request: Request) -> Response:
        days = _DAYS.read_number(request)
        found = await self._report.load(days, with_private=False)
        gaps = tuple(map(_gap_to_wire, found.groups))
        return JSONResponse(asdict(GapList(days, found.total, found.hidden, gaps, found.is_cut)))

    async def close(self, request: Request) -> Response:
        closed = await self._report.close(request.path_params["gap"], with_private=False)
        return JSONResponse(asdict(ClosedGaps(len(closed))))

    async def list_proposals(self, request: Request) -> Response:
        """Answers with the proposals that wait for a decision, each with the file that accepting it would write."""
        reviews = await self._learning.list_reviews(get_principal(request))
        return JSONResponse([asdict(proposal_to_wire(review)) for review in reviews])

    async def decide(self, request: Request) -> Response:
        """Accepts or rejects. `text` replaces the proposed answer."""
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


def proposal_to_wire(review: ProposalReview) -> ProposalInfo:
    proposal, answer = review.proposal, review.proposal.answer
    return ProposalInfo(
        id=proposal.id,
        question=proposal.question,
        answer=answer.text,
        message=ProposedMessage(answer.author_name, answer.author, answer.link, said_at=answer.said_at.isoformat()),
        proposed_by=proposal.proposer,
        created_at=proposal.created_at.isoformat(),
        gap=proposal.gap_id,
        document=ProposedDocument(review.file, review.content, review.diff),
    )
