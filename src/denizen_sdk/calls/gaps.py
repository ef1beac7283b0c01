"""What no document answers, and the review of answers that people proposed. For owners and admins."""

from __future__ import annotations

from collections.abc import Mapping

from denizen_sdk.calls.calls import ClientCalls
from denizen_sdk.gaps import ClosedGaps, DecidedProposal, GapList, ProposalInfo
from denizen_sdk.wire import from_json


class GapCalls(ClientCalls):
    """`/api/gaps`. All raise ApiError (403 but for owners and admins) and NetworkError."""

    async def list_gaps(self, *, days: int = 30) -> GapList:
        """What was asked in so many days and no document answers, the most asked first."""
        return await self._get(GapList, "/api/gaps", days=days)

    async def close_gap(self, gap: str) -> int:
        """Takes a question off the list, with all that ask the same; how many these were. Raises ApiError (404) for one
        that is not open.
        """
        return from_json(
            ClosedGaps, await self._connection.request("POST", f"/api/gaps/{quote_segment(gap)}/close")
        ).closed

    async def list_proposals(self) -> list[ProposalInfo]:
        """Answers of members that nobody has decided about, the newest first."""
        return await self._list(ProposalInfo, "/api/gaps/proposals")

    async def accept_proposal(self, proposal: str, text: str = "") -> DecidedProposal:
        """Makes it a document, with `text` in place of the answer, and starts reading it. Raises ApiError: 404 when it
        was taken back, 409 when somebody has decided already.
        """
        return await self._decide_proposal(proposal, {"decision": "accept", "text": text})

    async def reject_proposal(self, proposal: str, reason: str = "") -> DecidedProposal:
        """The reason stands in the audit log. Raises as `accept_proposal`."""
        return await self._decide_proposal(proposal, {"decision": "reject", "reason": reason})

    async def _decide_proposal(self, proposal: str, body: Mapping[str, str]) -> DecidedProposal:
        row = await self._connection.request("POST", f"/api/gaps/proposals/{quote_segment(proposal)}", body=body)
        return from_json(DecidedProposal, row)
