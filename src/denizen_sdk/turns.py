"""Turns: asking an agent, following and stopping its turn, and deciding calls that wait for people.

Holds the events of `POST /api/chat`, the records of what a turn leaves behind, and the calls. Times are ISO 8601 in
UTC.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import asdict, field
from typing import Any
from uuid import NAMESPACE_OID, uuid4, uuid5

from denizen_sdk.calls import ClientCalls, idempotency_headers, quote_segment
from denizen_sdk.errors import ApiError, NetworkError, ProblemDetails
from denizen_sdk.records import Json, from_json, record

MAX_RESULT_CHARS = 1000
"""How many characters of a tool's result an event carries."""

MAX_OUTPUT_CHARS = 20_000
"""How many characters of the output of a command's program an event carries."""

TURN_HEADER = "X-Denizen-Turn"
"""Names the turn before its first event, so that a client whose connection breaks can ask for it."""


# --- what a turn leaves behind ----------------------------------------------------------------------------------------


@record
class UsageInfo:
    """Tokens of a turn; `input_tokens` includes the cached ones. `cost_usd` is a decimal, None when unknown; `requests`
    counts the requests to models.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: str | None = None
    requests: int = 0


@record
class RequestedCall:
    """The tool call that an approval is about, and the reason why people are asked. `preview` says in lines what the
    call would do; secrets are masked in `args`.
    """

    tool: str
    args: Json
    tier: int
    reason: str
    preview: str


@record
class DecisionInfo:
    """The end of an approval. `by` is empty if nobody decided in time; `note` is the reason that was given."""

    by: str = ""
    at: str | None = None
    note: str = ""


@record(kw_only=True)
class ApprovalInfo:
    """A tool call that waits for a decision, or waited for one. `status` is pending, approved, denied or expired;
    `decision` is None while it is pending. Without `expires_at` it waits for ever. `may_decide` tells whether the
    caller may decide.
    """

    id: str
    turn_id: str
    agent: str
    call: RequestedCall
    requester: str
    status: str
    created_at: str
    expires_at: str | None = None
    decision: DecisionInfo | None = None
    may_decide: bool = False


@record
class ToolUse:
    """A tool call in a stored message, with its result if that is known, how long it ran, and what people decided about
    it if they were asked.
    """

    call_id: str
    tool: str
    args: Json
    text: str = ""
    is_error: bool = False
    duration_ms: int | None = None
    approval: ApprovalInfo | None = None


@record
class MessageInfo:
    """One message for people. `role` is `user` or `assistant`."""

    id: str
    role: str
    author: str
    text: str
    created_at: str
    turn_id: str
    calls: tuple[ToolUse, ...] = ()


@record
class CallInfo:
    """One tool call of a turn with the gate's decision. `origin` is model, skill (from within another call) or hook."""

    tool: str
    args: Json
    decision: str
    reason: str
    decided_by: str
    text: str
    is_error: bool
    duration_ms: int
    cached: bool
    step: int = 0
    tier: int = 0
    origin: str = "model"


@record
class StepInfo:
    """One request to a model. The provider read `usage.cached_tokens` from its cache and wrote `cache_written_tokens`
    to it; the rest of the input was new.
    """

    number: int
    model: str
    purpose: str
    finish_reason: str
    duration_ms: int
    usage: UsageInfo
    cache_written_tokens: int = 0


@record
class RouteInfo:
    """The model that the complexity router chose for a question, by its alias, and the turn's limit of steps.
    `routed_by` is router, kept (a follow-up) or fallback.
    """

    complexity: str
    max_steps: int
    model: str
    reason: str
    routed_by: str


@record
class SegmentInfo:
    """A segment of the system prompt. `stability` is forever, config, session or turn. `text` is None where it is not
    stored, and for callers who are neither owner nor admin.
    """

    name: str
    stability: str
    chars: int
    tokens: int
    sha256: str
    text: str | None = None


@record
class MessageShare:
    """The messages of one kind in a prompt: history, surroundings, question, note; their tokens are estimated."""

    kind: str
    count: int
    tokens: int


@record
class PromptInfo:
    """The parts of the prompt from step `step` on. `model` is the model that was asked; `memories` are the ids of the
    memories that were added without a search by the agent.
    """

    step: int
    model: str
    segments: tuple[SegmentInfo, ...]
    messages: tuple[MessageShare, ...]
    tools: tuple[str, ...]
    tool_tokens: int
    memories: tuple[str, ...] = ()


@record
class CitationInfo:
    """A place in a document that a reply cites, with lines from 1 (0 for the whole document). `link` leads to the
    revision that was read. A citation with a `doubt` was taken out of the reply, since it is not proved.
    """

    path: str
    first_line: int
    last_line: int
    source: str = ""
    revision: str = ""
    link: str = ""
    doubt: str = ""


@record(kw_only=True)
class CitationLines:
    """The lines that an answer cites, from `first_line` to `last_line`, among those around them. The first of `lines`
    is line `from_line`. `is_newer` tells that the document may have changed since.
    """

    path: str
    first_line: int
    last_line: int
    from_line: int
    lines: tuple[str, ...]
    source: str = ""
    link: str = ""
    is_newer: bool = False


@record(kw_only=True)
class TraceInfo:
    """The way to a reply: prompts, steps and tool calls. The step with number 0 is the request to the router; `route`
    is None if no router chose the model. Calls of step 0 were made before the model was asked. `parent_id` is the turn
    that gave this one its task, `delegated` are the turns to which it gave tasks.
    """

    steps: tuple[StepInfo, ...] = ()
    calls: tuple[CallInfo, ...] = ()
    prompts: tuple[PromptInfo, ...] = ()
    route: RouteInfo | None = None
    parent_id: str = ""
    delegated: tuple[str, ...] = ()


@record(kw_only=True)
class TurnInfo:
    """A turn: question, reply and the way there. `status` is open, done, failed, cancelled or refused; `error` says why
    there is no reply.
    """

    id: str
    agent: str
    status: str
    model: str
    question: str
    reply: str
    citations: tuple[CitationInfo, ...] = ()
    opened_at: str
    closed_at: str | None
    usage: UsageInfo
    error: ProblemDetails | None
    trace: TraceInfo


@record
class CancelResult:
    """The answer to a cancellation. `cancelled` is false if the turn had ended already, or runs in another process."""

    cancelled: bool


# --- events of POST /api/chat -----------------------------------------------------------------------------------------


@record
class ChatRequest:
    """A message for an agent; an empty `agent` is the default one. `session` names a history of the caller's own, which
    `new` starts afresh. Without `wait_for_approval`, calls that need approval are denied at once.
    """

    message: str
    agent: str = ""
    session: str = "default"
    new: bool = False
    wait_for_approval: bool = True


@record
class TurnOpenedEvent:
    """The first event of a turn."""

    turn_id: str
    agent: str
    model: str


@record
class TextAddedEvent:
    """The answer's text grew by `text`."""

    text: str


@record
class TextRetractedEvent:
    """The text streamed so far is not the answer: remove it."""


@record
class ReasoningAddedEvent:
    """The model's reasoning grew by `text`. Only agents that are configured to show it send it."""

    text: str


@record
class ToolStartedEvent:
    """A tool call runs."""

    call_id: str
    tool: str
    args: Json = field(default_factory=dict[str, Any])


@record
class ToolFinishedEvent:
    """A tool call ended. `text` holds at most `MAX_RESULT_CHARS` characters of its result; `truncated` says that there
    was more.
    """

    call_id: str
    tool: str
    text: str
    is_error: bool = False
    truncated: bool = False
    duration_ms: int = 0


@record
class ApprovalRequestedEvent:
    """The turn waits until somebody decides with `POST /api/approvals/{id}`, or nobody has in time."""

    approval: ApprovalInfo


@record
class ApprovalDecidedEvent:
    """The wait for a decision is over: approved, denied or expired."""

    approval: ApprovalInfo


@record
class NoticeEvent:
    """A message that is not part of the answer: a model is loading, a request waits."""

    text: str


@record
class TurnFinishedEvent:
    """The last event of a turn that answered, was stopped, or was skipped. `status` is `done`, `cancelled` or
    `skipped`; `images` are pictures of the model and of tools, as data URIs or web addresses; `cards` are cards,
    buttons and files of tools as Markdown, to be shown below the reply; `reasoning` is empty unless the agent is
    configured to show it. `skipped`: a hook found that there was nothing to answer, so the reply is empty.
    """

    turn_id: str
    status: str
    reply: str
    usage: UsageInfo = field(default_factory=UsageInfo)
    images: tuple[str, ...] = ()
    cards: str = ""
    reasoning: str = ""
    skipped: bool = False


@record
class TurnFailedEvent:
    """The last event of a turn that has no answer. `status` is `failed` or `refused`; `reasoning` as of an answer."""

    turn_id: str
    error: ProblemDetails
    status: str = "failed"
    usage: UsageInfo = field(default_factory=UsageInfo)
    reasoning: str = ""


@record
class TitleEvent:
    """The chat has a title, or a better one. It may come after the end of the turn."""

    title: str


@record
class MessageEvent:
    """Only for those who watch a chat: a message was taken, and the events of its turn follow."""

    turn_id: str


@record
class ChangedEvent:
    """Only for those who watch a chat: it has to be read again: at the beginning, and when something about it is
    different. `removed`: it is gone.
    """

    removed: bool = False


@record
class ShellOutputEvent:
    """The program of a command ended. `text` holds at most `MAX_OUTPUT_CHARS` characters of what it printed;
    `truncated` says that there was more.
    """

    text: str
    is_error: bool = False
    truncated: bool = False


@record
class CommandFinishedEvent:
    """The last event of a command that started no turn. `text` is its reply as Markdown, empty if all there is to say
    was the program's output. `is_failure`: what was asked for was not done, and the text says why. `agent` is the one
    that the chat has now.
    """

    text: str
    agent: str
    is_failure: bool = False


@record
class UnknownEvent:
    """An event that this client does not know, of a newer server."""

    type: str
    data: Json


ChatEvent = (
    TurnOpenedEvent
    | TextAddedEvent
    | TextRetractedEvent
    | ReasoningAddedEvent
    | ToolStartedEvent
    | ToolFinishedEvent
    | ApprovalRequestedEvent
    | ApprovalDecidedEvent
    | NoticeEvent
    | TurnFinishedEvent
    | TurnFailedEvent
    | TitleEvent
    | MessageEvent
    | ChangedEvent
    | ShellOutputEvent
    | CommandFinishedEvent
)

TURN_EVENTS = (
    TurnOpenedEvent,
    TextAddedEvent,
    TextRetractedEvent,
    ReasoningAddedEvent,
    ToolStartedEvent,
    ToolFinishedEvent,
    ApprovalRequestedEvent,
    ApprovalDecidedEvent,
    NoticeEvent,
    TurnFinishedEvent,
    TurnFailedEvent,
)
"""The events of one turn, which `POST /api/chat` sends; those of chats are more."""

_EVENTS: dict[str, type[ChatEvent]] = {
    "turn": TurnOpenedEvent,
    "text": TextAddedEvent,
    "retract": TextRetractedEvent,
    "reasoning": ReasoningAddedEvent,
    "tool_started": ToolStartedEvent,
    "tool_finished": ToolFinishedEvent,
    "approval_request": ApprovalRequestedEvent,
    "approval_decided": ApprovalDecidedEvent,
    "notice": NoticeEvent,
    "finished": TurnFinishedEvent,
    "error": TurnFailedEvent,
    "title": TitleEvent,
    "message": MessageEvent,
    "changed": ChangedEvent,
    "shell_output": ShellOutputEvent,
    "command": CommandFinishedEvent,
}
_TYPES = {kind: name for name, kind in _EVENTS.items()}


def encode_event(event: ChatEvent) -> Json:
    """Returns the event as `{"type": ..., field: value}`."""
    return {"type": _TYPES[type(event)], **asdict(event)}


def decode_event(row: Json) -> ChatEvent | UnknownEvent:
    """Returns the event that `encode_event` wrote. Raises TypeError when a field that has no default is missing."""
    name = str(row.get("type", ""))
    kind = _EVENTS.get(name)
    return UnknownEvent(name, row) if kind is None else from_json(kind, row)


# --- calls ------------------------------------------------------------------------------------------------------------


class TurnCalls(ClientCalls):
    """The calls of `/api/chat`, `/api/turns`, `/api/sessions` and `/api/approvals`."""

    async def ask(self, request: ChatRequest | str, *, idempotency_key: str = "") -> TurnFinishedEvent:
        """Sends a message and waits for the answer. A text alone stands alone: it continues no session, and calls that
        need approval are denied at once.

        Raises ApiError (the turn failed, or was refused) and NetworkError.
        """
        if isinstance(request, str):
            # The same for the same key, since a repeated message has to be the same one.
            name = uuid5(NAMESPACE_OID, idempotency_key) if idempotency_key else uuid4()
            request = ChatRequest(request, session=f"once_{name.hex}", wait_for_approval=False)
        async with aclosing(self.chat(request, idempotency_key=idempotency_key)) as events:
            async for event in events:
                if isinstance(event, TurnFinishedEvent):
                    return event
                if isinstance(event, TurnFailedEvent):
                    raise ApiError(event.error, turn_id=event.turn_id)
        raise AssertionError("a chat that does not raise ends with TurnFinishedEvent or TurnFailedEvent")

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
                "POST", "/api/chat", body=asdict(body), headers=idempotency_headers(idempotency_key)
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
        """Stops a turn. Returns False if it had ended already. Raises ApiError, NetworkError."""
        row = await self._connection.request("POST", f"/api/turns/{quote_segment(turn_id)}/cancel")
        return from_json(CancelResult, row).cancelled

    async def list_approvals(self, *, status: str = "") -> list[ApprovalInfo]:
        """Returns calls that wait for a decision, or waited, newest first: the caller's own, and those that the caller
        may decide. Raises ApiError, NetworkError.
        """
        return await self._list(ApprovalInfo, "/api/approvals", status=status)

    async def approve(self, approval_id: str, *, for_an_hour: bool = False) -> ApprovalInfo:
        """Lets the call run: this one, or every call of that tool in the conversation for an hour. Raises ApiError (403
        for somebody who may not decide, 409 when it is too late), NetworkError.
        """
        return await self._decide(approval_id, {"decision": "approve", "scope": "hour" if for_an_hour else "once"})

    async def deny(self, approval_id: str, reason: str = "") -> ApprovalInfo:
        """Refuses the call, and tells the agent the reason. Raises as `approve` does."""
        return await self._decide(approval_id, {"decision": "deny", "reason": reason})

    async def get_turn(self, turn_id: str) -> TurnInfo:
        """Returns a turn. Raises ApiError (404 also for a turn of somebody else), NetworkError."""
        return await self._get(TurnInfo, f"/api/turns/{quote_segment(turn_id)}")

    async def get_citation(self, turn_id: str, place: str) -> CitationLines:
        """Returns the lines that a turn cites as `path:first-last`. Raises ApiError, NetworkError."""
        return await self._get(CitationLines, f"/api/turns/{quote_segment(turn_id)}/citation", place=place)

    async def list_messages(self, session: str = "default", *, agent: str = "") -> list[MessageInfo]:
        """Returns the messages of an own session, oldest first. Raises ApiError, NetworkError."""
        path = f"/api/sessions/{quote_segment(session)}/messages"
        return await self._list(MessageInfo, path, agent=agent)

    async def _decide(self, approval_id: str, body: Mapping[str, str]) -> ApprovalInfo:
        row = await self._connection.request("POST", f"/api/approvals/{quote_segment(approval_id)}", body=body)
        return from_json(ApprovalInfo, row)
