"""`/api/approvals`: tool calls that wait for people, and decisions about them.

The engine checks who may decide: over HTTP that is the caller's own key, or one with the role that the rule names.
"""

from __future__ import annotations

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.approval import Approval, ApprovalChoice, ApprovalStatus, VoteOutcome
from denizen.domain.errors import Conflict, InvalidInput, NotFound
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.engine.gate.approvals import ApprovalQueue
from denizen.engine.turn import TurnRunner
from denizen.web.api.records import approval_to_wire
from denizen.web.http.auth import get_principal
from denizen.web.http.openapi import TEXT, ApiRoute, Operation, object_schema
from denizen.web.http.request import JsonBody, QueryParameter, read_object, read_text
from denizen.web.http.routing import Access
from denizen_sdk.turns import ApprovalInfo

_CHOICES = {
    ("approve", "once"): ApprovalChoice.ONCE,
    ("approve", "hour"): ApprovalChoice.HOUR,
    ("deny", "once"): ApprovalChoice.DENY,
}
_STATUS = QueryParameter(name="status", description="Only those in this state.", choices=tuple(ApprovalStatus))


class ApprovalRoutes:
    """The routes that list and decide approvals."""

    def __init__(self, turns: TurnRunner) -> None:
        self._approvals = turns.approvals

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "GET",
                "/api/approvals",
                self.list_approvals,
                Access.MEMBER,
                Operation(
                    "Calls that wait for people, or waited: own ones and those that one may decide",
                    answer=list[ApprovalInfo],
                    query=(_STATUS,),
                ),
            ),
            ApiRoute(
                "POST",
                "/api/approvals/{approval_id}",
                self.decide,
                Access.MEMBER,
                Operation(
                    "Say whether a call that waits for people may run",
                    object_schema(
                        "decision",
                        decision={"enum": ["approve", "deny"]},
                        scope={"enum": ["once", "hour"]},
                        reason=TEXT,
                    ),
                    ApprovalInfo,
                ),
            ),
        ]

    async def list_approvals(self, request: Request) -> Response:
        reader, status = get_principal(request), _STATUS.read_text(request)
        found = await self._approvals.list_for(reader, status=ApprovalStatus(status) if status else None)
        return JSONResponse([asdict(approval_to_wire(approval, reader)) for approval in found])

    async def decide(self, request: Request) -> Response:
        """Answers with the decided approval. Repeating a decision gives the same answer; one that comes too late is a
        conflict.
        """
        body, voter = await read_object(request), get_principal(request)
        word = ApprovalWord(request.path_params["approval_id"], read_choice(body), read_text(body, "reason"))
        return JSONResponse(asdict(approval_to_wire(await say_word(self._approvals, voter, word), voter)))


@record
class ApprovalWord:
    """A word of somebody about an approval: its id, the choice and a reason, which the agent is told."""

    approval_id: str
    choice: ApprovalChoice
    reason: str = ""


async def say_word(approvals: ApprovalQueue, voter: Principal, word: ApprovalWord) -> Approval:
    """Decides, and returns the approval as it is then. Raises NotFound, NotAllowed for somebody who may not decide it,
    and Conflict for a word that comes too late.
    """
    try:
        ruling = await approvals.decide(word.approval_id, voter, word.choice, note=word.reason)
    except NotFound as error:
        why = "no call that waits for people, or waited, has this id"
        raise NotFound(error.message, code=error.code, why=why, fix="GET /api/approvals lists them.") from error
    if ruling.outcome is VoteOutcome.LATE or ruling.approval.status is ApprovalStatus.EXPIRED:
        raise Conflict(ruling.text, code="approval_expired", fix="Ask the agent again.")
    return ruling.approval


def read_choice(body: JsonBody) -> ApprovalChoice:
    """Returns the decision in a body. Raises InvalidInput."""
    decision, scope = read_text(body, "decision"), read_text(body, "scope", "once") or "once"
    choice = _CHOICES.get((decision, scope))
    if choice is None:
        raise InvalidInput(
            "This is no decision.",
            code="decision_invalid",
            why=f"decision is '{decision}' and scope is '{scope}'",
            fix="Send decision: approve or deny, and with approve scope: once or hour.",
        )
    return choice
