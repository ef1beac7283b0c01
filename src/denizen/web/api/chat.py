"""`/api/chat`, `/api/turns` and `/api/sessions`: a message in, the events of its turn out, and what turns leave behind.

The page and the SDK's client use these routes. A turn belongs to a named session of the caller and goes on when the
reader leaves; only a cancellation stops it. The header `X-Denizen-Turn` tells the turn's id before its first event.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain import conversation
from denizen.domain.approval import AskerReach
from denizen.domain.conversation import Place
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.ids import TurnId, derive, fresh, turn_id
from denizen.domain.message import Author, TextPart
from denizen.domain.principal import Principal
from denizen.domain.turn import Sender, SessionChoice, Turn, TurnRequest
from denizen.engine.chats.chats import Chats
from denizen.engine.chats.live_chats import TitleChanged
from denizen.engine.chats.reading import WEB
from denizen.engine.inspection.queries import Queries
from denizen.engine.turn import TurnRunner
from denizen.web.api.records import event_to_wire, messages_to_wire, turn_to_wire
from denizen.web.http.auth import get_principal, may_see_all
from denizen.web.http.dependencies import WebTiming
from denizen.web.http.event_stream import Chunks, EventStream, StreamOptions, encode_sse
from denizen.web.http.openapi import ApiRoute, Operation
from denizen.web.http.problems import describe_problem, fill_in
from denizen.web.http.request import (
    IDEMPOTENCY_HEADER,
    TURN_HEADER,
    JsonBody,
    QueryParameter,
    read_flag,
    read_object,
    read_text,
)
from denizen.web.http.routing import Access
from denizen_sdk.turns import (
    TURN_EVENTS,
    CancelResult,
    ChatEvent,
    ChatRequest,
    CitationLines,
    MessageInfo,
    TurnFailedEvent,
    TurnInfo,
    encode_event,
)

MAX_MESSAGE_CHARS = 100_000

_AGENT = QueryParameter(name="agent", description="Name of an agent; empty for the default one.")
_PLACE = QueryParameter(name="place", description="The place as the answer cites it: `path:first-last`.", max_chars=500)
_LIMIT = QueryParameter(name="limit", default="100", low=1, high=500)


class ChatRoutes:
    """The routes that start, stop and show turns."""

    def __init__(self, turns: TurnRunner, chats: Chats, queries: Queries, timing: WebTiming) -> None:
        self._turns = turns
        self._chats = chats
        self._queries = queries
        self._timing = timing

    @property
    def chat_routes(self) -> list[ApiRoute]:
        """The routes that start and stop turns, for servers whose channel `web` is enabled."""
        return [
            ApiRoute(
                "POST",
                "/api/chat",
                self.chat,
                Access.MEMBER,
                Operation(
                    "Send a message and watch its turn",
                    ChatRequest,
                    stream="Each event's data is a JSON object with its `type`.",
                    events=TURN_EVENTS,
                    headers=("Idempotency-Key",),
                ),
            ),
            ApiRoute(
                "POST",
                "/api/turns/{turn_id}/cancel",
                self.cancel,
                Access.MEMBER,
                Operation("Stop a turn", answer=CancelResult),
            ),
        ]

    @property
    def history_routes(self) -> list[ApiRoute]:
        """The routes that show turns and messages."""
        return [
            ApiRoute(
                "GET",
                "/api/sessions/{name:path}/messages",
                self.list_messages,
                Access.MEMBER,
                Operation(
                    "The messages of an own session, oldest first", answer=list[MessageInfo], query=(_AGENT, _LIMIT)
                ),
            ),
            ApiRoute(
                "GET",
                "/api/turns/{turn_id}",
                self.get_turn,
                Access.MEMBER,
                Operation("A turn with its prompts, steps and tool calls", answer=TurnInfo),
            ),
            ApiRoute(
                "GET",
                "/api/turns/{turn_id}/citation",
                self.get_citation,
                Access.MEMBER,
                Operation("The lines that a turn cites, with those around them", answer=CitationLines, query=(_PLACE,)),
            ),
        ]

    async def chat(self, request: Request) -> Response:
        chat = read_chat_request(await read_object(request))
        agent = self._queries.get_agent(chat.agent)
        principal = get_principal(request)
        idempotency_key = request.headers.get(IDEMPOTENCY_HEADER, "")
        turn_request = TurnRequest(
            agent=agent.name,
            place=own_place(WEB, principal, chat.session),
            sender=Sender(
                Author(principal.id, principal.name),
                principal,
                AskerReach.WATCHER if chat.wait_for_approval else AskerReach.NOBODY,
            ),
            parts=(TextPart(chat.message),),
            platform_id=message_key(principal, idempotency_key),
            keyed=bool(idempotency_key),
            session=SessionChoice(is_new=chat.new),
        )
        turn_request = await self._chats.address(turn_request)
        turn = turn_id_for(turn_request)
        options = StreamOptions(
            on_error=lambda error: encode_chat_event(TurnFailedEvent(turn, fill_in(describe_problem(error)))),
            on_gone=lambda: None,
            start_after_s=self._timing.chat_start_s,
            keep_alive_s=self._timing.keep_alive_s,
        )
        return EventStream(self._stream(turn_request), options, {TURN_HEADER: turn})

    async def _stream(self, turn_request: TurnRequest) -> Chunks:
        async with aclosing(self._chats.stream(turn_request, is_plain=True)) as events:
            async for event in events:
                if not isinstance(event, TitleChanged):
                    for sent in event_to_wire(event, turn_request.sender.principal):
                        yield encode_chat_event(sent)

    async def cancel(self, request: Request) -> Response:
        turn = TurnId(request.path_params["turn_id"])
        await self._check_readable(await self._turns.get(turn), get_principal(request))
        return JSONResponse(asdict(CancelResult(self._turns.cancel(turn))))

    async def list_messages(self, request: Request) -> Response:
        place = own_place(WEB, get_principal(request), request.path_params["name"])
        agent, limit = _AGENT.read_text(request), _LIMIT.read_number(request)
        messages = await self._queries.list_messages(place, agent, limit=limit)
        calls = await self._queries.list_calls(messages)
        return JSONResponse([asdict(each) for each in messages_to_wire(messages, calls, get_principal(request))])

    async def get_turn(self, request: Request) -> Response:
        trace = await self._queries.get_turn(TurnId(request.path_params["turn_id"]))
        principal = get_principal(request)
        await self._check_readable(trace.turn, principal)
        return JSONResponse(asdict(turn_to_wire(trace, in_full=may_see_all(principal))))

    async def get_citation(self, request: Request) -> Response:
        turn = await self._turns.get(TurnId(request.path_params["turn_id"]))
        await self._check_readable(turn, get_principal(request))
        found = await self._queries.read_cited_lines(turn, _PLACE.read_text(request))
        citation, last_shown = found.citation, found.first_shown + len(found.lines) - 1
        return JSONResponse(
            asdict(
                CitationLines(
                    path=citation.ref.path,
                    first_line=citation.ref.first_line or found.first_shown,
                    last_line=citation.ref.last_line or last_shown,
                    from_line=found.first_shown,
                    lines=tuple(found.lines),
                    source=citation.source_id,
                    link=citation.link,
                    is_newer=found.is_newer,
                )
            )
        )

    async def _check_readable(self, turn: Turn, principal: Principal) -> None:
        """Raises NotFound for a turn of somebody else. Owners see all, and admins those that were not asked in private.
        An unknown turn raises the same, so that nobody learns which turns exist.
        """
        if not await self._queries.may_read(turn, principal):
            raise NotFound(f"There is no turn {turn.id}.", code="turn_not_found")


def read_chat_request(body: JsonBody) -> ChatRequest:
    """Returns the message in a body. Raises InvalidInput."""
    message = check_message(read_text(body, "message"))
    session = read_text(body, "session", "default")
    return ChatRequest(
        message,
        read_text(body, "agent"),
        session,
        new=read_flag(body, "new"),
        wait_for_approval=read_flag(body, "wait_for_approval", default=True),
    )


def check_message(message: str) -> str:
    """Returns the message. Raises InvalidInput for one that is empty or too long."""
    if not message.strip():
        raise InvalidInput("The message is empty.", code="message_empty", fix="Write something to answer.")
    if len(message) > MAX_MESSAGE_CHARS:
        raise InvalidInput(
            f"The message is longer than {MAX_MESSAGE_CHARS} characters.", code="message_too_long", fix="Shorten it."
        )
    return message


def encode_chat_event(event: ChatEvent) -> bytes:
    row = encode_event(event)
    return encode_sse(row["type"], row)


# --- the identity of a message ----------------------------------------------------------------------------------------


def own_place(platform: str, principal: Principal, session: str) -> Place:
    """Returns the place of a principal's own session. Raises InvalidInput for a name that is not allowed."""
    return conversation.own_place(platform, principal.key, session)


def message_key(principal: Principal, idempotency_key: str) -> str:
    """Returns the platform id of a message: the same for the same key of the same principal, so that a repeated request
    is answered once; without a key a new one.
    """
    return derive("idem", principal.key, idempotency_key) if idempotency_key else fresh("req")


def turn_id_for(turn_request: TurnRequest) -> TurnId:
    """Returns the id that the turn of this message has, or will have."""
    return turn_id(turn_request.agent, turn_request.place.platform, turn_request.platform_id)
