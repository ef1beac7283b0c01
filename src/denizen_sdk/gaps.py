"""Gaps: questions that no document answers, and answers that people proposed. For owners and admins.

Times are ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping

from denizen_sdk.calls import ClientCalls, quote_segment
from denizen_sdk.records import from_json, record


@record
class GapInfo:
    """A question that `askers` people asked `times` times and that no document answers. `questions` are its wordings,
    the newest first; `kind` is `unknown` if the agent said that it does not know, `not found` if its search failed.
    """

    id: str
    question: str
    questions: tuple[str, ...]
    times: int
    askers: int
    agent: str
    kind: str
    last_at: str


@record
class GapList:
    """Unanswered questions, the most asked first. `hidden` of the `total` were asked in private and are not listed;
    `truncated` tells that there are older ones, which were not counted.
    """

    days: int
    total: int
    hidden: int
    gaps: tuple[GapInfo, ...]
    truncated: bool = False


@record
class ClosedGaps:
    """The answer to closing a question. `closed` counts the open questions that ask the same."""

    closed: int


@record
class ProposedMessage:
    """The message of a member in which somebody found an answer."""

    author: str
    author_id: str
    link: str
    said_at: str


@record
class ProposedDocument:
    """The file that accepting a proposal writes, with its content; `diff` shows that as a change."""

    file: str
    content: str
    diff: str


@record(kw_only=True)
class ProposalInfo:
    """An answer of a member that somebody proposed for the documents. `gap` is the id of the question that it closes,
    empty if there is none.
    """

    id: str
    question: str
    answer: str
    message: ProposedMessage
    proposed_by: str
    created_at: str
    gap: str
    document: ProposedDocument


@record
class DecidedProposal:
    """The decision about a proposal. `status` is accepted or rejected; `sync` is the id of the sync that reads the
    accepted file.
    """

    status: str
    sync: str = ""


class GapCalls(ClientCalls):
    """The calls of `/api/gaps`. All raise NetworkError, and ApiError (403 for everybody but owners and admins)."""

    async def list_gaps(self, *, days: int = 30) -> GapList:
        """Returns the unanswered questions of the last `days` days, the most asked first."""
        return await self._get(GapList, "/api/gaps", days=days)

    async def close_gap(self, gap: str) -> int:
        """Closes a question and all that ask the same. Returns how many it closed. Raises ApiError (404) for a question
        that is not open.
        """
        return from_json(
            ClosedGaps, await self._connection.request("POST", f"/api/gaps/{quote_segment(gap)}/close")
        ).closed

    async def list_proposals(self) -> list[ProposalInfo]:
        """Returns the proposed answers that wait for a decision, the newest first."""
        return await self._list(ProposalInfo, "/api/gaps/proposals")

    async def accept_proposal(self, proposal: str, text: str = "") -> DecidedProposal:
        """Writes the answer, or `text` in its place, to a document and starts a sync that reads it.

        Raises ApiError: 404 if the proposal was withdrawn, 409 if somebody has decided already.
        """
        return await self._decide_proposal(proposal, {"decision": "accept", "text": text})

    async def reject_proposal(self, proposal: str, reason: str = "") -> DecidedProposal:
        """Rejects a proposed answer; the audit log keeps the reason. Raises as `accept_proposal` does."""
        return await self._decide_proposal(proposal, {"decision": "reject", "reason": reason})

    async def _decide_proposal(self, proposal: str, body: Mapping[str, str]) -> DecidedProposal:
        row = await self._connection.request("POST", f"/api/gaps/proposals/{quote_segment(proposal)}", body=body)
        return from_json(DecidedProposal, row)
