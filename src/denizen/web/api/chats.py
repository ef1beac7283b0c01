"""`/api/chats`, `/api/shared`, `/api/messages` and the events of chats: what the chat page needs.

A chat is a session of the caller (`web/api/chat.py`) that is listed under a title. Everything is the caller's own: what
somebody else has is answered with 404. The history never comes from the client: each route takes one message.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.approval import AskerReach
from denizen.domain.chat import MAX_REASON_CHARS, MAX_WRITTEN_TITLE_CHARS, Chat, ChatId, ChatMode, Vote, check_chat_id
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import AgentName, MessageId, SessionId, TurnId, fresh
from denizen.domain.message import Author, Part, TextPart
from denizen.domain.principal import Principal
from denizen.domain.turn import RequestOptions, Sender, SessionChoice, TurnRequest
from denizen.engine.chats.chats import Chats
from denizen.engine.chats.live_chats import ChatChanged, MessageTaken, TitleChanged
from denizen.engine.inspection.queries import Queries
from denizen.web.api.chat import WEB, check_message, encode_chat_event, message_key, own_place, turn_id_for
from denizen.web.api.chat_records import chat_to_wire, details_to_wire, shared_to_wire
from denizen.web.api.records import event_to_wire
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebTiming
from denizen.web.http.event_stream import Chunks, EventStream, StreamOptions
from denizen.web.http.openapi import ApiRoute, Operation, object_schema
from denizen.web.http.problems import describe_problem, fill_in
from denizen.web.http.record_response import RecordResponse
from denizen.web.http.request import (
    IDEMPOTENCY_HEADER,
    TURN_HEADER,
    JsonBody,
    QueryParameter,
    check_field_names,
    field_error,
    has_body,
    read_flag,
    read_object,
    read_text,
    read_texts,
)
from denizen.web.http.routing import Access
from denizen_sdk.chats import (
    BranchResult,
    ChatDetails,
    ChatInfo,
    ChatMessageRequest,
    CreatedChat,
    FeedbackResult,
    NewChat,
    NewSession,
    SessionSummary,
    SharedChat,
    ShareResult,
)
from denizen_sdk.turns import TURN_EVENTS, ChangedEvent, MessageEvent, TitleEvent, TurnFailedEvent

SHARED_CACHE_S = 300
MAX_SEARCH_CHARS = 200

_SEARCH = QueryParameter(
    name="search", description="Words of the title or of messages; empty for all.", max_chars=MAX_SEARCH_CHARS
)
_LIMIT = QueryParameter(name="limit", default="50", low=1, high=200)
_OLDER = QueryParameter(name="before", description="Only chats whose last message is older, as ISO 8601.", max_chars=40)
_SESSION = QueryParameter(name="session", description="An earlier session of the chat; empty for the current one.")
_MESSAGES = QueryParameter(name="limit", description="How many messages, the newest.", default="100", low=1, high=500)
_BEFORE = QueryParameter(
    name="before", description="Only messages with a lower sequence; 0 for the newest.", default="0", high=999_999_999
)
_AGENT = QueryParameter(name="agent", description="Only sessions of this agent; empty for all.")

_TEXT = {"type": "string"}
_CHANGES = object_schema(
    title={"type": "string", "maxLength": MAX_WRITTEN_TITLE_CHARS}, agent=_TEXT, is_pinned={"type": "boolean"}
)
_SHARE = object_schema("is_public", is_public={"type": "boolean"})
_BRANCH = object_schema("before_message_id", before_message_id=_TEXT)
_FEEDBACK = object_schema(
    "feedback",
    feedback={"type": ["string", "null"], "enum": [*Vote, None]},
    reason={"type": "string", "maxLength": MAX_REASON_CHARS},
)
_WATCHED = (*TURN_EVENTS, TitleEvent, MessageEvent, ChangedEvent)
_STREAM = "Each event's data is a JSON object with its `type`."


class ChatListRoutes:
    """The routes of chats."""

    def __init__(self, chats: Chats, queries: Queries, timing: WebTiming) -> None:
        self._chats = chats
        self._queries = queries
        self._timing = timing

    @property
    def routes(self) -> list[ApiRoute]:
        return [*self._list_routes, *self._one_routes, *self._session_routes]

    @property
    def _list_routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "GET",
                "/api/chats",
                self.list_chats,
                Access.MEMBER,
                Operation("Own chats, newest first", answer=list[ChatInfo], query=(_SEARCH, _LIMIT, _OLDER)),
            ),
            ApiRoute(
                "POST",
                "/api/chats",
                self.create,
                Access.MEMBER,
                Operation("Make a chat", NewChat, CreatedChat, 201, headers=("Idempotency-Key",), needs_body=False),
            ),
            ApiRoute(
                "GET",
                "/api/events/chats/{chat_id}",
                self.watch,
                Access.MEMBER,
                Operation("Watch what happens in an own chat", stream=_STREAM, events=_WATCHED),
            ),
            ApiRoute(
                "GET",
                "/api/shared/{token}",
                self.get_shared,
                Access.PUBLIC,
                Operation("A chat that its owner shares", answer=SharedChat),
            ),
        ]

    @property
    def _one_routes(self) -> list[ApiRoute]:
        one = "/api/chats/{chat_id}"
        return [
            ApiRoute(
                "GET",
                one,
                self.get,
                Access.MEMBER,
                Operation("An own chat with its messages", answer=ChatDetails, query=(_SESSION, _BEFORE, _MESSAGES)),
            ),
            ApiRoute(
                "PATCH",
                one,
                self.change,
                Access.MEMBER,
                Operation("Change the title, the agent or the pin of an own chat", _CHANGES, ChatInfo),
            ),
            ApiRoute(
                "POST",
                one,
                self.send,
                Access.MEMBER,
                Operation(
                    "Send a message to an own chat and watch its turn",
                    ChatMessageRequest,
                    stream=_STREAM,
                    events=(*TURN_EVENTS, TitleEvent),
                    headers=("Idempotency-Key",),
                ),
            ),
            ApiRoute(
                "DELETE",
                one,
                self.remove,
                Access.MEMBER,
                Operation("Delete an own chat with everything in it, for good", status=204),
            ),
            ApiRoute(
                "PATCH",
                one + "/share",
                self.share,
                Access.MEMBER,
                Operation("Share an own chat under a new token, or end the sharing", _SHARE, ShareResult),
            ),
            ApiRoute(
                "PATCH",
                "/api/messages/{message_id}/feedback",
                self.give_feedback,
                Access.MEMBER,
                Operation("Mark an answer in an own chat as positive, negative or neither", _FEEDBACK, FeedbackResult),
            ),
        ]

    @property
    def _session_routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "POST",
                "/api/chats/{chat_id}/branch",
                self.branch,
                Access.MEMBER,
                Operation("Go on from before a message in a session of its own", _BRANCH, BranchResult),
            ),
            ApiRoute(
                "POST",
                "/api/chats/{chat_id}/sessions/{session_id}/activate",
                self.activate,
                Access.MEMBER,
                Operation("Go on with an earlier session of an own chat", answer=BranchResult),
            ),
            ApiRoute(
                "GET",
                "/api/sessions",
                self.list_sessions,
                Access.MEMBER,
                Operation("Own sessions that go on, newest first", answer=list[SessionSummary], query=(_AGENT, _LIMIT)),
            ),
            ApiRoute(
                "POST",
                "/api/sessions",
                self.new_session,
                Access.MEMBER,
                Operation("Begin an own session afresh", NewSession, NewSession, needs_body=False),
            ),
        ]

    # --- chats -------------------------------------------------------------------------------------------------------

    async def list_chats(self, request: Request) -> Response:
        found = await self._chats.list_chats(
            get_principal(request).key,
            words=_SEARCH.read_text(request),
            before=_read_time(_OLDER, request),
            limit=_LIMIT.read_number(request),
        )
        return RecordResponse([chat_to_wire(chat) for chat in found])

    async def create(self, request: Request) -> Response:
        body: JsonBody = await read_object(request) if has_body(request) else {}
        check_field_names(body, NewChat.__dataclass_fields__)
        principal, agent = get_principal(request), read_text(body, "agent")
        mode = _read_mode(body)
        chat_id = check_chat_id(read_text(body, "id") or fresh("chat"))
        message, turn_id = read_text(body, "message"), ""
        if message:
            turn_request = self._build_request(
                request, chat_id, agent, (TextPart(check_message(message)),), ChatMessageRequest(message=message)
            )
            turn_id = (await self._chats.submit(turn_request, mode=mode)).id
            chat = await self._chats.get(principal.key, chat_id)
        else:
            chat = await self._chats.create(principal, chat_id, agent=agent, mode=mode)
        return JSONResponse(asdict(CreatedChat(chat_to_wire(chat), turn_id)), status_code=201)

    async def get(self, request: Request) -> Response:
        principal, session = get_principal(request), _SESSION.read_text(request)
        shown = await self._chats.read(
            principal.key,
            _chat_id(request),
            session_id=SessionId(session) if session else None,
            before=_BEFORE.read_number(request) or None,
            limit=_MESSAGES.read_number(request),
        )
        calls = await self._queries.list_calls(shown.messages)
        return RecordResponse(details_to_wire(shown, calls, principal))

    async def change(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, ("title", "agent", "is_pinned"))
        title = read_text(body, "title").strip() if body.get("title") is not None else None
        if title is not None and not 0 < len(title) <= MAX_WRITTEN_TITLE_CHARS:
            raise field_error("title", f"a text of 1 to {MAX_WRITTEN_TITLE_CHARS} characters")
        chat = await self._chats.change(
            get_principal(request).key,
            _chat_id(request),
            title=title,
            agent=read_text(body, "agent") or None,
            is_pinned=read_flag(body, "is_pinned") if body.get("is_pinned") is not None else None,
        )
        return JSONResponse(asdict(chat_to_wire(chat)))

    async def remove(self, request: Request) -> Response:
        await self._chats.remove(get_principal(request).key, _chat_id(request))
        return Response(status_code=204)

    async def share(self, request: Request) -> Response:
        body = await read_object(request)
        if body.get("is_public") is None:
            raise field_error("is_public", "true or false")
        token = await self._chats.share(
            get_principal(request).key, _chat_id(request), is_public=read_flag(body, "is_public")
        )
        return JSONResponse(asdict(ShareResult(token or None)))

    async def get_shared(self, request: Request) -> Response:
        shown = await self._chats.read_shared(request.path_params["token"])
        headers = {"Cache-Control": f"public, max-age={SHARED_CACHE_S}"}
        return RecordResponse(shared_to_wire(shown), headers=headers)

    async def branch(self, request: Request) -> Response:
        before = MessageId(read_text(await read_object(request), "before_message_id"))
        session = await self._chats.forks.branch(get_principal(request).key, _chat_id(request), before)
        return JSONResponse(asdict(BranchResult(session.id)))

    async def activate(self, request: Request) -> Response:
        session_id = SessionId(request.path_params["session_id"])
        await self._chats.forks.activate(get_principal(request).key, _chat_id(request), session_id)
        return JSONResponse(asdict(BranchResult(session_id)))

    async def give_feedback(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, ("feedback", "reason"))
        given: Any = body.get("feedback")
        if "feedback" not in body or given not in {*Vote, None}:
            raise field_error("feedback", f"{', '.join(Vote)} or null")
        reason = read_text(body, "reason")
        if len(reason) > MAX_REASON_CHARS:
            raise field_error("reason", f"a text of at most {MAX_REASON_CHARS} characters")
        vote = None if given is None else Vote(given)
        message_id = MessageId(request.path_params["message_id"])
        await self._chats.vote(get_principal(request).key, message_id, vote, reason)
        return JSONResponse(asdict(FeedbackResult(vote, reason if vote is not None else "")))

    # --- messages ----------------------------------------------------------------------------------------------------

    async def send(self, request: Request) -> Response:
        chat_id, body = _chat_id(request), await read_object(request)
        check_field_names(body, ChatMessageRequest.__dataclass_fields__)
        sent = ChatMessageRequest(
            message=read_text(body, "message"),
            agent=read_text(body, "agent"),
            model=read_text(body, "model"),
            uploads=tuple(read_texts(body, "uploads")),
            new=read_flag(body, "new"),
            wait_for_approval=read_flag(body, "wait_for_approval", default=True),
        )
        owner = get_principal(request).key
        files = await self._chats.uploads.load_parts(owner, chat_id, sent.uploads)
        if sent.message.strip() or not files:
            files = (TextPart(check_message(sent.message)), *files)
        chat = await self._chats.find(owner, chat_id)
        agent = sent.agent or (chat.agent if chat is not None else "")
        turn_request = await self._chats.address(self._build_request(request, chat_id, agent, files, sent))
        turn = turn_id_for(turn_request)
        return EventStream(self._stream(turn_request, chat), self._options(turn), {TURN_HEADER: turn})

    async def _stream(self, turn_request: TurnRequest, chat: Chat | None) -> Chunks:
        mode = chat.mode if chat is not None else ChatMode.CHAT
        async with aclosing(self._chats.stream(turn_request, mode=mode)) as events:
            async for event in events:
                if isinstance(event, TitleChanged):
                    yield encode_chat_event(TitleEvent(event.title))
                else:
                    for sent in event_to_wire(event, turn_request.sender.principal):
                        yield encode_chat_event(sent)

    async def watch(self, request: Request) -> Response:
        principal, chat_id = get_principal(request), _chat_id(request)
        await self._chats.get(principal.key, chat_id)
        return EventStream(self._news(principal, chat_id), self._options(TurnId("")), {})

    async def _news(self, principal: Principal, chat_id: ChatId) -> Chunks:
        async with aclosing(self._chats.watch(principal.key, chat_id)) as events:
            async for event in events:
                match event:
                    case MessageTaken():
                        yield encode_chat_event(MessageEvent(event.turn_id))
                    case TitleChanged():
                        yield encode_chat_event(TitleEvent(event.title))
                    case ChatChanged():
                        yield encode_chat_event(ChangedEvent(event.is_removed))
                    case _, happened:
                        for sent in event_to_wire(happened, principal):
                            yield encode_chat_event(sent)

    def _options(self, turn: TurnId) -> StreamOptions:
        return StreamOptions(
            on_error=lambda error: encode_chat_event(TurnFailedEvent(turn, fill_in(describe_problem(error)))),
            on_gone=lambda: None,
            start_after_s=self._timing.chat_start_s,
            keep_alive_s=self._timing.keep_alive_s,
        )

    def _build_request(
        self, request: Request, chat_id: ChatId, agent: str, parts: tuple[Part, ...], sent: ChatMessageRequest
    ) -> TurnRequest:
        principal, key = get_principal(request), request.headers.get(IDEMPOTENCY_HEADER, "")
        if sent.model:
            self._queries.check_model(sent.model)
        return TurnRequest(
            agent=AgentName(self._queries.get_agent(agent).name),
            place=own_place(WEB, principal, chat_id),
            sender=Sender(
                Author(principal.id, principal.name),
                principal,
                AskerReach.WATCHER if sent.wait_for_approval else AskerReach.NOBODY,
            ),
            parts=parts,
            platform_id=message_key(principal, key),
            keyed=bool(key),
            session=SessionChoice(is_new=sent.new),
            options=RequestOptions(model=sent.model),
        )

    # --- sessions ----------------------------------------------------------------------------------------------------

    async def list_sessions(self, request: Request) -> Response:
        agent = _AGENT.read_text(request)
        if agent:
            agent = self._queries.get_agent(agent).name
        found = await self._chats.list_sessions(
            get_principal(request).key, agent=agent, limit=_LIMIT.read_number(request)
        )
        rows = [
            SessionSummary(
                session=each.place.thread,
                agent=each.session.agent,
                created_at=each.session.created_at.isoformat(),
                messages=each.messages,
                last_at=each.last_at.isoformat(),
            )
            for each in found
        ]
        return JSONResponse([asdict(row) for row in rows])

    async def new_session(self, request: Request) -> Response:
        body: JsonBody = await read_object(request) if has_body(request) else {}
        check_field_names(body, NewSession.__dataclass_fields__)
        session = await self._chats.new_session(
            get_principal(request), read_text(body, "session", "default"), read_text(body, "agent")
        )
        return JSONResponse(asdict(NewSession(read_text(body, "session", "default"), session.agent)))


def _chat_id(request: Request) -> ChatId:
    """Returns the id in the path. Raises InvalidInput for a text that no chat can have."""
    return check_chat_id(request.path_params["chat_id"])


def _read_mode(body: JsonBody) -> ChatMode:
    given = read_text(body, "mode", ChatMode.CHAT)
    if given not in {*ChatMode}:
        raise field_error("mode", f"one of {', '.join(ChatMode)}")
    return ChatMode(given)


def _read_time(parameter: QueryParameter, request: Request) -> datetime | None:
    text = parameter.read_text(request)
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text.replace(" ", "+"))  # a plus sign in an address that was not escaped
    except ValueError as error:
        raise InvalidInput(
            f"'{parameter.name}' must be a time.", code="field_invalid", why=str(error), fix="Give it as ISO 8601."
        ) from error
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
