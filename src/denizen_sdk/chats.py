"""Chats of the caller: listing, reading, sending messages, forks, sharing, feedback and uploads.

Times are ISO 8601 in UTC. Everything here is the caller's own: what somebody else has is answered with 404.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import asdict, field
from typing import Any
from urllib.parse import quote

from denizen_sdk.calls import ClientCalls, idempotency_headers, quote_segment
from denizen_sdk.errors import ProblemDetails
from denizen_sdk.records import from_json, record
from denizen_sdk.turns import ChatEvent, CitationInfo, ToolUse, UnknownEvent, UsageInfo, decode_event


@record(kw_only=True)
class ChatInfo:
    """A chat in a list. `updated_at` is the time of its last message; `mode` is chat or admin. `share_token` is empty
    unless everybody with the address `/api/shared/{token}` may read it.
    """

    id: str
    title: str
    agent: str
    created_at: str
    updated_at: str
    mode: str = "chat"
    share_token: str = ""
    is_pinned: bool = False


@record
class UploadInfo:
    """A file that was uploaded. `path` names it in a message, and `url` is its address on the server. Of a picture that
    came with a message the size is 0.
    """

    path: str
    url: str
    name: str
    media_type: str
    size_bytes: int


@record
class AnswerExtras:
    """The parts of an answer besides its text. `images` are data URIs, web addresses or paths of this server; `cards`
    is Markdown to be shown below the reply; `reasoning` is empty unless the agent is configured to show it.
    """

    images: tuple[str, ...] = ()
    cards: str = ""
    reasoning: str = ""


@record(kw_only=True)
class AnswerInfo:
    """The turn of a message: how it ended, and what came of it besides its text. `status` is open, done, failed,
    cancelled or refused; `origin` is web or api.
    """

    id: str
    status: str
    agent: str
    model: str
    origin: str
    opened_at: str
    duration_ms: int | None = None
    usage: UsageInfo = field(default_factory=UsageInfo)
    error: ProblemDetails | None = None
    citations: tuple[CitationInfo, ...] = ()
    extras: AnswerExtras = field(default_factory=AnswerExtras)


@record(kw_only=True)
class ChatMessage:
    """A message of a chat. `role` is user or assistant; `sequence` orders the messages of a session. `turn` is set in
    the last message of each turn, which is the question while there is no answer. `feedback` is positive or negative.
    """

    id: str
    role: str
    author: str
    text: str
    created_at: str
    sequence: int
    turn_id: str = ""
    calls: tuple[ToolUse, ...] = ()
    uploads: tuple[UploadInfo, ...] = ()
    turn: AnswerInfo | None = None
    feedback: str | None = None
    feedback_reason: str = ""


@record(kw_only=True)
class ChatSession:
    """A session of a chat. A fork begins with copies of what its parent had before the message `fork_sequence`."""

    id: str
    agent: str
    created_at: str
    is_current: bool = False
    parent_id: str = ""
    fork_sequence: int = 0


@record
class ForkInfo:
    """A place where other sessions go on differently: in the place of the message `sequence`. `sessions` are all of
    them, oldest first, and `current` is the index of the one that is shown.
    """

    sequence: int
    sessions: tuple[str, ...]
    current: int


@record
class HandoverInfo:
    """The agent that a chat was handed to: it answers until then, for so many messages more."""

    agent: str
    until: str
    messages_left: int


@record(kw_only=True)
class ChatDetails:
    """A chat with the newest messages of a session of it, oldest first; `has_earlier` tells that there are older ones.
    `session_id` is empty while nothing was said. `running` are the ids of turns that have not ended; their events are
    in `GET /api/events/chats/{id}`. `handover` is set while the chat is with an agent that it was handed to.
    """

    chat: ChatInfo
    session_id: str = ""
    messages: tuple[ChatMessage, ...] = ()
    has_earlier: bool = False
    sessions: tuple[ChatSession, ...] = ()
    forks: tuple[ForkInfo, ...] = ()
    running: tuple[str, ...] = ()
    handover: HandoverInfo | None = None


@record(kw_only=True)
class SharedMessage:
    """A message of a shared chat: what was asked and answered, and nothing of how."""

    role: str
    author: str
    text: str
    created_at: str
    citations: tuple[CitationInfo, ...] = ()
    images: tuple[str, ...] = ()


@record(kw_only=True)
class SharedChat:
    """A chat that its owner shares, for everybody who has the address."""

    title: str
    agent: str
    updated_at: str
    messages: tuple[SharedMessage, ...] = ()


@record(kw_only=True)
class NewChat:
    """The body of `POST /api/chats`. Without `id` the server chooses one; a `message` is answered at once. `agent` is
    the default one when it is empty, and `mode` is chat or admin.
    """

    id: str = ""
    message: str = ""
    mode: str = "chat"
    agent: str = ""


@record
class CreatedChat:
    """The new chat, and the id of the turn that answers its first message, which is empty without one."""

    chat: ChatInfo
    turn_id: str = ""


@record(kw_only=True)
class ChatMessageRequest:
    """The body of `POST /api/chats/{id}`. `agent` and `model` are those of the chat when they are empty; another agent
    goes on with what was said. `uploads` are paths of files of this chat. `new` begins a fresh session. Without
    `wait_for_approval`, calls that need approval are denied at once.
    """

    message: str = ""
    agent: str = ""
    model: str = ""
    uploads: tuple[str, ...] = ()
    new: bool = False
    wait_for_approval: bool = True


@record
class ShareResult:
    """The token of a shared chat; None when it is not shared any more."""

    share_token: str | None


@record
class BranchResult:
    """The session in which the chat goes on."""

    session_id: str


@record
class FeedbackResult:
    """The feedback that the message has now."""

    feedback: str | None
    reason: str = ""


@record
class SessionSummary:
    """An own session: its name, and the agent whose history it is."""

    session: str
    agent: str
    created_at: str
    messages: int
    last_at: str


@record
class NewSession:
    """The body of `POST /api/sessions`, and the answer: the session that an agent begins afresh."""

    session: str = "default"
    agent: str = ""


class ChatCalls(ClientCalls):
    """The calls of `/api/chats`, `/api/shared` and `/api/messages`. All raise ApiError and NetworkError."""

    async def list_chats(self, *, search: str = "", limit: int = 50, before: str = "") -> list[ChatInfo]:
        """Returns own chats, newest first: those whose last message is older than `before`, and whose title or messages
        have the words of `search`.
        """
        return await self._list(ChatInfo, "/api/chats", search=search, limit=limit, before=before)

    async def create_chat(self, chat: NewChat | None = None) -> CreatedChat:
        """Makes a chat, and sends its first message if there is one."""
        body = {name: value for name, value in asdict(chat or NewChat()).items() if value}
        return from_json(CreatedChat, await self._connection.request("POST", "/api/chats", body=body))

    async def get_chat(self, chat_id: str, *, session: str = "", before: int = 0, limit: int = 100) -> ChatDetails:
        """Returns a chat with messages. Raises ApiError (404 also for a chat of somebody else)."""
        params: dict[str, str | int] = {"session": session, "limit": limit}
        if before:
            params["before"] = before
        return await self._get(ChatDetails, f"/api/chats/{quote_segment(chat_id)}", **params)

    async def change_chat(
        self, chat_id: str, *, title: str | None = None, agent: str | None = None, is_pinned: bool | None = None
    ) -> ChatInfo:
        """Changes what is given."""
        given = {"title": title, "agent": agent, "is_pinned": is_pinned}
        body = {name: value for name, value in given.items() if value is not None}
        row = await self._connection.request("PATCH", f"/api/chats/{quote_segment(chat_id)}", body=body)
        return from_json(ChatInfo, row)

    async def delete_chat(self, chat_id: str) -> None:
        """Deletes a chat with everything in it, for good."""
        await self._connection.request("DELETE", f"/api/chats/{quote_segment(chat_id)}")

    async def send_to_chat(
        self, chat_id: str, request: ChatMessageRequest | str, *, idempotency_key: str = ""
    ) -> AsyncGenerator[ChatEvent | UnknownEvent]:
        """Sends a message and yields what happens, titles of the chat among it. A title may follow the end of the turn,
        so the last event is not always `TurnFinishedEvent` or `TurnFailedEvent`.
        """
        body = ChatMessageRequest(message=request) if isinstance(request, str) else request
        path = f"/api/chats/{quote_segment(chat_id)}"
        async with self._connection.stream(
            "POST", path, body=asdict(body), headers=idempotency_headers(idempotency_key)
        ) as source:
            async for sent in source:
                row: Any = sent.json()
                yield decode_event(row)

    async def watch_chat(self, chat_id: str) -> AsyncGenerator[ChatEvent | UnknownEvent]:
        """Yields what happens in a chat, whoever sends the messages, until it is deleted."""
        path = f"/api/events/chats/{quote_segment(chat_id)}"
        async with self._connection.stream("GET", path) as source:
            async for sent in source:
                row: Any = sent.json()
                yield decode_event(row)

    async def share_chat(self, chat_id: str, *, is_public: bool = True) -> str | None:
        """Shares a chat under a new token, which it returns, or ends the sharing."""
        row = await self._connection.request(
            "PATCH", f"/api/chats/{quote_segment(chat_id)}/share", body={"is_public": is_public}
        )
        return from_json(ShareResult, row).share_token

    async def get_shared_chat(self, token: str) -> SharedChat:
        """Returns a chat that somebody shares. Needs no key."""
        return await self._get(SharedChat, f"/api/shared/{quote_segment(token)}")

    async def branch_chat(self, chat_id: str, before_message_id: str) -> str:
        """Goes on from before a message in a session of its own, whose id it returns."""
        row = await self._connection.request(
            "POST", f"/api/chats/{quote_segment(chat_id)}/branch", body={"before_message_id": before_message_id}
        )
        return from_json(BranchResult, row).session_id

    async def activate_session(self, chat_id: str, session_id: str) -> str:
        """Goes on with an earlier session of the chat."""
        path = f"/api/chats/{quote_segment(chat_id)}/sessions/{quote_segment(session_id)}/activate"
        return from_json(BranchResult, await self._connection.request("POST", path)).session_id

    async def give_feedback(self, message_id: str, feedback: str | None, reason: str = "") -> None:
        """Marks an answer as positive or negative; None takes it back."""
        path = f"/api/messages/{quote_segment(message_id)}/feedback"
        await self._connection.request("PATCH", path, body={"feedback": feedback, "reason": reason})

    async def list_sessions(self, *, agent: str = "") -> list[SessionSummary]:
        """Returns own sessions that go on, by their last message, newest first."""
        return await self._list(SessionSummary, "/api/sessions", agent=agent)

    async def new_session(self, session: str = "default", *, agent: str = "") -> NewSession:
        """Begins a session afresh, as the command `/new` does."""
        body = asdict(NewSession(session, agent))
        return from_json(NewSession, await self._connection.request("POST", "/api/sessions", body=body))

    async def upload(self, chat_id: str, name: str, data: bytes) -> UploadInfo:
        """Uploads a picture, a PDF or a CSV file of at most 8 MB to an own chat."""
        path = f"/api/upload/{quote_segment(chat_id)}"
        return from_json(UploadInfo, await self._connection.request("PUT", path, params={"name": name}, content=data))

    async def delete_upload(self, path: str) -> None:
        """Deletes an own upload by its path."""
        await self._connection.request("DELETE", f"/api/upload/{quote(path)}")
