"""`POST /api/approvals/{id}`: somebody's word about a call that waits for people. `listings` lists those.

Who may decide is the engine's business: over HTTP it is the caller's own key, or one with the role that the rule names.
"""

from __future__ import annotations

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from denizen.domain.approval import ApprovalStatus, Choice, Outcome
from denizen.domain.errors import Conflict, InvalidInput, NotFound
from denizen.web.api.chat import approval_to_wire
from denizen.web.http.request import JsonBody, read_object, read_text
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.auth import get_principal

_CHOICES = {("approve", "once"): Choice.ONCE, ("approve", "hour"): Choice.HOUR, ("deny", "once"): Choice.DENY}


class ApprovalRoutes:
    """The route that decides."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps

    @property
    def routes(self) -> list[Route]:
        return [Route("/api/approvals/{approval_id}", self.decide, methods=["POST"])]

    async def decide(self, request: Request) -> Response:
        """The approval as it is then. The same word twice gives the same answer; one that comes too late is a
        conflict.
        """
        body, voter = await read_object(request), get_principal(request)
        choice, note = read_choice(body), read_text(body, "reason")
        try:
            key = request.path_params["approval_id"]
            ruling = await self._deps.turns.approvals.decide(key, voter, choice, note=note)
        except NotFound as error:
            why = "no call that waits for people, or waited, has this id"
            raise NotFound(error.message, code=error.code, why=why, fix="GET /api/approvals lists them.") from error
        approval = ruling.approval
        if ruling.outcome is Outcome.LATE or approval.status is ApprovalStatus.EXPIRED:
            raise Conflict(ruling.text, code="approval_expired", fix="Ask the agent again.")
        return JSONResponse(asdict(approval_to_wire(approval, voter)))


def read_choice(body: JsonBody) -> Choice:
    """Raises InvalidInput."""
    said = read_text(body, "decision"), read_text(body, "scope", "once") or "once"
    choice = _CHOICES.get(said)
    if choice is None:
        raise InvalidInput(
            "This is no decision.",
            code="decision_invalid",
            why=f"decision is '{said[0]}' and scope is '{said[1]}'",
            fix="Send decision: approve or deny, and with approve scope: once or hour.",
        )
    return choice
