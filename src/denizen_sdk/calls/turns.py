"""Turns: asking an agent, following and stopping it, and what people decide meanwhile."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from denizen_sdk.calls.calls import ClientCalls
from denizen_sdk.connection import idempotency_headers
from denizen_sdk.errors import ApiError, NetworkError
from denizen_sdk.wire import (
    ApprovalInfo,
    CancelResult,
    ChatEvent,
    ChatRequest,
    MessageInfo,
    TurnFailedEvent,
    TurnFinishedEvent,
    TurnInfo,
    UnknownEvent,
    decode_event,
    from_json,
)

TURN_HEADER = "X-Denizen-Turn"


class TurnCalls(ClientCalls):
    """`/api/chat`, `/api/turns`, `/api/sessions`, `/api/approvals`."""

    async def ask(self, request: ChatRequest | str, *, idempotency_key: str = "") -> TurnFinishedEvent:
        """Sends a message and waits for the answer.

        Raises ApiError (the turn failed, or was refused) and NetworkError.
        """
        async with aclosing(self.chat(request, idempotency_key=idempotency_key)) as events:
            async for event in events:
                if isinstance(event, TurnFinishedEvent):
                    return event
                if isinstance(event, TurnFailedEvent):
                    raise ApiError(event.error, turn_id=event.turn_id)
        raise AssertionError("a chat that does not raise ends with one of the two")

    async def chat(
        self, request: ChatRequest | str, *, idempotency_key: str = ""
    ) -> AsyncGenerator[ChatEvent | UnknownEvent]:
        """Sends a message and yields what happens; the last event is `TurnFinishedEvent` or `TurnFailedEvent`.

        The same `idempotency_key` again gives the same turn. Raises ApiError when the message was not taken, and
        NetworkError, which names the turn when the connection broke while it ran: `get_turn` tells how it ended.
        """
        body = ChatRequest(request) if isinstance(request, str) else request
        turn_id = ""
        try:
            async with self._connection.stream(
                "POST", "/api/chat", body=_body(body), headers=idempotency_headers(idempotency_key)
            ) as source:
                turn_id = source.response.headers.get(TURN_HEADER, "")
                async for sent in source:
                    row: Any = sent.json()
                    event = decode_event(row)
                    yield event
                    if isinstance(event, TurnFinishedEvent | TurnFailedEvent):
                        return
        except NetworkError as error:
            error.turn_id = turn_id
            raise
        raise NetworkError("The server ended the stream before the turn had ended.", turn_id=turn_id)

    async def cancel(self, turn_id: str) -> bool:
        """Stops a turn; False when it had ended already. Raises ApiError, NetworkError."""
        row = await self._connection.request("POST", f"/api/turns/{quote_segment(turn_id)}/cancel")
        return from_json(CancelResult, row).cancelled

    async def list_approvals(self, *, status: str = "") -> list[ApprovalInfo]:
        """Calls that wait for people, or waited, newest first: own ones and those that the caller may decide. Raises
        ApiError, NetworkError.
        """
        return await self._list(ApprovalInfo, "/api/approvals", status=status)

    async def approve(self, approval_id: str, *, for_an_hour: bool = False) -> ApprovalInfo:
        """Lets the call run: once, or with all others of that tool here for an hour. Raises ApiError (403 for somebody
        who may not decide, 409 when it is too late), NetworkError.
        """
        return await self._decide(approval_id, {"decision": "approve", "scope": "hour" if for_an_hour else "once"})

    async def deny(self, approval_id: str, reason: str = "") -> ApprovalInfo:
        """The agent is told the reason. Raises as `approve` does."""
        return await self._decide(approval_id, {"decision": "deny", "reason": reason})

    async def get_turn(self, turn_id: str) -> TurnInfo:
        """Raises ApiError (404 for a turn of somebody else), NetworkError."""
        return await self._get(TurnInfo, f"/api/turns/{quote_segment(turn_id)}")

    async def list_messages(self, session: str = "default", *, agent: str = "") -> list[MessageInfo]:
        """The history of an own session, oldest first. Raises ApiError, NetworkError."""
        path = f"/api/sessions/{quote_segment(session)}/messages"
        return await self._list(MessageInfo, path, agent=agent)

    async def _decide(self, approval_id: str, body: Mapping[str, str]) -> ApprovalInfo:
        row = await self._connection.request("POST", f"/api/approvals/{quote_segment(approval_id)}", body=body)
        return from_json(ApprovalInfo, row)


def _body(request: ChatRequest) -> dict[str, Any]:
    return {"message": request.message, "agent": request.agent, "session": request.session, "new": request.new}
