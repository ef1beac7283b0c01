"""`POST /api/chat`: one message in, the events of its turn out; and `POST /api/turns/{id}/cancel`.

The page and the SDK's client use it. A turn belongs to a named session of the caller and goes on when the reader
leaves; to stop it, it must be cancelled. `X-Denizen-Turn` tells the turn's id before its first event.
"""

from __future__ import annotations

import json
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from denizen.domain.approval import Reach
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import TurnId
from denizen.domain.message import Author, TextPart
from denizen.domain.turn import Inbound
from denizen.web.api.inbound import IDEMPOTENCY_HEADER, TURN_HEADER, WEB, check_own, message_key, own_place, turn_id_for
from denizen.web.api.translate import event_to_wire
from denizen.web.body import JsonBody, read_flag, read_object, read_text
from denizen.web.dependencies import WebDependencies
from denizen.web.errors import describe_problem
from denizen.web.event_stream import Chunks, EventStream, StreamOptions
from denizen.web.guard import get_principal
from denizen_sdk.turns import ChatEvent, ChatRequest, TurnFailedEvent, encode_event

MAX_MESSAGE_CHARS = 100_000


class ChatRoutes:
    """The routes that start and stop turns."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps

    @property
    def routes(self) -> list[Route]:
        return [
            Route("/api/chat", self.chat, methods=["POST"]),
            Route("/api/turns/{turn_id}/cancel", self.cancel, methods=["POST"]),
        ]

    async def chat(self, request: Request) -> Response:
        asked = read_chat_request(await read_object(request))
        agent = self._deps.queries.get_agent(asked.agent)
        principal = get_principal(request)
        idempotency_key = request.headers.get(IDEMPOTENCY_HEADER, "")
        inbound = Inbound(
            agent=agent.name,
            place=own_place(WEB, principal, asked.session),
            principal=principal,
            author=Author(principal.id, principal.name),
            parts=(TextPart(asked.message),),
            platform_id=message_key(principal, idempotency_key),
            new_session=asked.new,
            reach=Reach.WATCHER,
            keyed=bool(idempotency_key),
        )
        turn_id = turn_id_for(inbound)
        conduct = StreamOptions(
            on_error=lambda error: _encode_chat_event(TurnFailedEvent(turn_id, describe_problem(error))),
            on_gone=lambda: None,
            start_after_s=self._deps.timing.chat_start_s,
            keep_alive_s=self._deps.timing.keep_alive_s,
        )
        return EventStream(self._chunks(inbound), conduct, {TURN_HEADER: turn_id})

    async def _chunks(self, inbound: Inbound) -> Chunks:
        async with aclosing(self._deps.turns.stream(inbound)) as events:
            async for event in events:
                for sent in event_to_wire(event, inbound.principal):
                    yield _encode_chat_event(sent)

    async def cancel(self, request: Request) -> Response:
        turn_id = TurnId(request.path_params["turn_id"])
        check_own(await self._deps.turns.get(turn_id), get_principal(request))
        return JSONResponse({"cancelled": self._deps.turns.cancel(turn_id)})


def read_chat_request(body: JsonBody) -> ChatRequest:
    """Raises InvalidInput."""
    message = read_text(body, "message")
    if not message.strip():
        raise InvalidInput("The message is empty.", code="message_empty", fix="Write something to answer.")
    if len(message) > MAX_MESSAGE_CHARS:
        raise InvalidInput(
            f"The message is longer than {MAX_MESSAGE_CHARS} characters.", code="message_too_long", fix="Shorten it."
        )
    session = read_text(body, "session", "default")
    return ChatRequest(message, read_text(body, "agent"), session, read_flag(body, "new"))


def _encode_chat_event(event: ChatEvent) -> bytes:
    row = encode_event(event)
    return f"event: {row['type']}\ndata: {json.dumps(row, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
