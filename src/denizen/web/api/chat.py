"""`/api/chat`, `/api/turns` and `/api/sessions`: a message in, the events of its turn out, and what turns leave behind.

The page and the SDK's client use these routes. A turn belongs to a named session of the caller and goes on when the
reader leaves; only a cancellation stops it. The header `X-Denizen-Turn` tells the turn's id before its first event.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import asdict
from typing import get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain import conversation
from denizen.domain.approval import AskerReach
from denizen.domain.citation import Citation
from denizen.domain.conversation import Place
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.events import (
    ApprovalDecided,
    ApprovalRequested,
    Notice,
    ReasoningAdded,
    TextAdded,
    ToolFinished,
    ToolStarted,
    TurnEvent,
    TurnFinished,
    TurnStarted,
)
from denizen.domain.ids import TurnId, derive, fresh, turn_id
from denizen.domain.message import Author, Message, Role, TextPart, ToolCallPart, ToolResultPart, list_calls
from denizen.domain.principal import Principal
from denizen.domain.trace import PromptUse
from denizen.domain.turn import CallRecord, Sender, SessionChoice, Step, Turn, TurnRequest, TurnStatus
from denizen.domain.usage import Usage
from denizen.engine.inspection.queries import Queries, TurnTrace
from denizen.engine.turn import TurnRunner
from denizen.web.api.approvals import approval_to_wire
from denizen.web.http.auth import get_principal, may_see_all
from denizen.web.http.dependencies import WebTiming
from denizen.web.http.errors import describe_problem, restore_error
from denizen.web.http.event_stream import Chunks, EventStream, StreamOptions, encode_sse
from denizen.web.http.openapi import ApiRoute, Operation
from denizen.web.http.request import (
    IDEMPOTENCY_HEADER,
    TURN_HEADER,
    JsonBody,
    QueryParameter,
    read_flag,
    read_object,
    read_text,
)
from denizen_sdk.turns import (
    MAX_RESULT_CHARS,
    ApprovalDecidedEvent,
    ApprovalRequestedEvent,
    CallInfo,
    CancelResult,
    ChatEvent,
    ChatRequest,
    CitationInfo,
    MessageInfo,
    MessageShare,
    NoticeEvent,
    PromptInfo,
    ReasoningAddedEvent,
    RouteInfo,
    SegmentInfo,
    StepInfo,
    TextAddedEvent,
    TextRetractedEvent,
    ToolFinishedEvent,
    ToolStartedEvent,
    ToolUse,
    TraceInfo,
    TurnFailedEvent,
    TurnFinishedEvent,
    TurnInfo,
    TurnOpenedEvent,
    UsageInfo,
    encode_event,
)

WEB = "web"
"""The platform of `/api/chat`: the page, and programs that use the client."""

MAX_MESSAGE_CHARS = 100_000

_AGENT = QueryParameter(name="agent", description="Name of an agent; empty for the default one.")
_LIMIT = QueryParameter(name="limit", default="100", low=1, high=500)


class ChatRoutes:
    """The routes that start, stop and show turns."""

    def __init__(self, turns: TurnRunner, queries: Queries, timing: WebTiming) -> None:
        self._turns = turns
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
                Operation(
                    "Send a message and watch its turn",
                    ChatRequest,
                    stream="Each event's data is a JSON object with its `type`.",
                    events=get_args(ChatEvent),
                    headers=("Idempotency-Key",),
                ),
            ),
            ApiRoute("POST", "/api/turns/{turn_id}/cancel", self.cancel, Operation("Stop a turn", answer=CancelResult)),
        ]

    @property
    def history_routes(self) -> list[ApiRoute]:
        """The routes that show turns and messages."""
        return [
            ApiRoute(
                "GET",
                "/api/sessions/{name:path}/messages",
                self.list_messages,
                Operation(
                    "The messages of an own session, oldest first", answer=list[MessageInfo], query=(_AGENT, _LIMIT)
                ),
            ),
            ApiRoute(
                "GET",
                "/api/turns/{turn_id}",
                self.get_turn,
                Operation("A turn with its prompts, steps and tool calls", answer=TurnInfo),
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
        turn = turn_id_for(turn_request)
        options = StreamOptions(
            on_error=lambda error: _encode_event(TurnFailedEvent(turn, describe_problem(error))),
            on_gone=lambda: None,
            start_after_s=self._timing.chat_start_s,
            keep_alive_s=self._timing.keep_alive_s,
        )
        return EventStream(self._stream(turn_request), options, {TURN_HEADER: turn})

    async def _stream(self, turn_request: TurnRequest) -> Chunks:
        async with aclosing(self._turns.stream(turn_request)) as events:
            async for event in events:
                for sent in event_to_wire(event, turn_request.sender.principal):
                    yield _encode_event(sent)

    async def cancel(self, request: Request) -> Response:
        turn = TurnId(request.path_params["turn_id"])
        check_own(await self._turns.get(turn), get_principal(request))
        return JSONResponse(asdict(CancelResult(self._turns.cancel(turn))))

    async def list_messages(self, request: Request) -> Response:
        place = own_place(WEB, get_principal(request), request.path_params["name"])
        agent, limit = _AGENT.read_text(request), _LIMIT.read_number(request)
        messages = await self._queries.list_messages(place, agent, limit=limit)
        return JSONResponse([asdict(each) for each in messages_to_wire(messages)])

    async def get_turn(self, request: Request) -> Response:
        trace = await self._queries.get_turn(TurnId(request.path_params["turn_id"]))
        principal = get_principal(request)
        check_own(trace.turn, principal)
        return JSONResponse(asdict(turn_to_wire(trace, in_full=may_see_all(principal))))


def read_chat_request(body: JsonBody) -> ChatRequest:
    """Returns the message in a body. Raises InvalidInput."""
    message = read_text(body, "message")
    if not message.strip():
        raise InvalidInput("The message is empty.", code="message_empty", fix="Write something to answer.")
    if len(message) > MAX_MESSAGE_CHARS:
        raise InvalidInput(
            f"The message is longer than {MAX_MESSAGE_CHARS} characters.", code="message_too_long", fix="Shorten it."
        )
    session = read_text(body, "session", "default")
    return ChatRequest(
        message,
        read_text(body, "agent"),
        session,
        new=read_flag(body, "new"),
        wait_for_approval=read_flag(body, "wait_for_approval", default=True),
    )


def _encode_event(event: ChatEvent) -> bytes:
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


def check_own(turn: Turn, principal: Principal) -> None:
    """Raises NotFound for a turn of somebody else, unless an owner or admin asks. An unknown turn raises the same,
    so that nobody learns which turns exist.
    """
    if turn.principal.key == principal.key or may_see_all(principal):
        return
    raise NotFound(f"There is no turn {turn.id}.", code="turn_not_found")


# --- engine records as clients get them -------------------------------------------------------------------------------


def event_to_wire(event: TurnEvent, reader: Principal) -> list[ChatEvent]:
    """Returns the event as clients get it; text that replaces what came before becomes two events."""
    match event:
        case TurnStarted():
            return [TurnOpenedEvent(event.turn_id, event.agent, event.model)]
        case TextAdded():
            retract: list[ChatEvent] = [TextRetractedEvent()] if event.retract else []
            return [*retract, TextAddedEvent(event.text)] if event.text else retract
        case ReasoningAdded():
            return [ReasoningAddedEvent(event.text)]
        case ToolStarted():
            return [ToolStartedEvent(event.call_id, event.tool, event.args)]
        case ToolFinished():
            text = event.text[:MAX_RESULT_CHARS]
            truncated = len(text) < len(event.text)
            return [
                ToolFinishedEvent(
                    call_id=event.call_id,
                    tool=event.tool,
                    text=text,
                    is_error=event.is_error,
                    truncated=truncated,
                    duration_ms=event.duration_ms,
                )
            ]
        case ApprovalRequested():
            return [ApprovalRequestedEvent(approval_to_wire(event.approval, reader))]
        case ApprovalDecided():
            return [ApprovalDecidedEvent(approval_to_wire(event.approval, reader))]
        case Notice():
            return [NoticeEvent(event.text)]
        case TurnFinished(status=TurnStatus.DONE | TurnStatus.CANCELLED):
            return [
                TurnFinishedEvent(
                    turn_id=event.turn_id,
                    status=event.status,
                    reply=event.reply,
                    usage=usage_to_wire(event.usage),
                    images=event.images,
                    reasoning=event.reasoning,
                )
            ]
        case TurnFinished():
            return [TurnFailedEvent(event.turn_id, describe_problem(restore_error(event.status, event.failure)))]


def usage_to_wire(usage: Usage) -> UsageInfo:
    cost = None if usage.cost_usd is None else str(usage.cost_usd)
    return UsageInfo(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, cost)


def messages_to_wire(messages: Iterable[Message]) -> list[MessageInfo]:
    """Returns messages for people: each tool call holds its result, which is stored as a message of its own."""
    rows = list(messages)
    results = {p.call_id: p for message in rows for p in message.parts if isinstance(p, ToolResultPart)}

    def describe_call(call: ToolCallPart) -> ToolUse:
        result = results.get(call.id)
        return ToolUse(
            call_id=call.id,
            tool=call.tool,
            args=call.args,
            text=result.text[:MAX_RESULT_CHARS] if result else "",
            is_error=result is not None and result.is_error,
        )

    return [
        MessageInfo(
            id=message.id,
            role=message.role,
            author=message.author.name,
            text=message.text,
            created_at=message.created_at.isoformat(),
            turn_id=message.turn_id or "",
            calls=tuple(describe_call(call) for call in list_calls(message.parts)),
        )
        for message in rows
        if message.role in {Role.USER, Role.ASSISTANT}
    ]


def turn_to_wire(trace: TurnTrace, *, in_full: bool) -> TurnInfo:
    """Returns the record of a turn; `in_full` with the system prompt, which its writer may want to keep private."""
    turn, route = trace.turn, trace.turn.route
    has_no_answer = turn.status not in {TurnStatus.OPEN, TurnStatus.DONE}
    return TurnInfo(
        id=turn.id,
        agent=turn.agent,
        status=turn.status,
        model=turn.result.model,
        reply=turn.result.reply,
        opened_at=turn.opened_at.isoformat(),
        closed_at=turn.closed_at.isoformat() if turn.closed_at else None,
        usage=usage_to_wire(turn.result.usage),
        error=describe_problem(restore_error(turn.status, turn.result.failure)) if has_no_answer else None,
        question=trace.question,
        citations=tuple(_citation_to_wire(citation) for citation in trace.citations),
        trace=TraceInfo(
            steps=tuple(_step_to_wire(step) for step in trace.steps),
            calls=tuple(_call_to_wire(call) for call in trace.calls),
            prompts=tuple(_prompt_to_wire(prompt, in_full=in_full) for prompt in trace.prompts),
            route=RouteInfo(
                complexity=route.complexity,
                max_steps=route.max_steps,
                model=route.model,
                reason=route.reason,
                routed_by=route.routed_by,
            )
            if route
            else None,
        ),
    )


def _citation_to_wire(citation: Citation) -> CitationInfo:
    return CitationInfo(
        path=citation.ref.path,
        first_line=citation.ref.first_line,
        last_line=citation.ref.last_line,
        source=citation.source_id,
        revision=citation.revision,
        link=citation.link,
        doubt="" if citation.doubt is None else citation.doubt.value,
    )


def _prompt_to_wire(prompt: PromptUse, *, in_full: bool) -> PromptInfo:
    return PromptInfo(
        step=prompt.step,
        model=prompt.model,
        segments=tuple(
            SegmentInfo(
                name=segment.name,
                stability=segment.stability.name.lower(),
                chars=segment.chars,
                tokens=segment.tokens,
                sha256=segment.sha256,
                text=segment.text if in_full else None,
            )
            for segment in prompt.segments
        ),
        messages=tuple(MessageShare(share.kind, share.count, share.tokens) for share in prompt.messages),
        tools=prompt.tools,
        tool_tokens=prompt.tool_tokens,
        memories=prompt.memories,
    )


def _step_to_wire(step: Step) -> StepInfo:
    return StepInfo(
        number=step.number,
        model=step.model,
        purpose=step.purpose,
        finish_reason=step.finish_reason,
        duration_ms=step.duration_ms,
        usage=usage_to_wire(step.usage),
        cache_written_tokens=step.usage.cache_write_tokens,
    )


def _call_to_wire(record: CallRecord) -> CallInfo:
    outcome, verdict = record.outcome, record.outcome.verdict
    return CallInfo(
        tool=record.tool_call.tool,
        args=record.tool_call.args,
        decision=verdict.decision,
        reason=verdict.reason,
        decided_by=verdict.decided_by,
        text=outcome.result.text,
        is_error=outcome.result.is_error,
        duration_ms=outcome.duration_ms,
        cached=record.cached,
        step=record.step,
        tier=int(verdict.tier),
    )
