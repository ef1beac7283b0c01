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
from denizen.web.http.request import JsonBody, read_flag, read_object, read_text
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.errors import describe_problem
from denizen.web.http.event_stream import Chunks, EventStream, StreamOptions
from denizen.web.http.auth import get_principal
from denizen_sdk.turns import ChatEvent, ChatRequest, TurnFailedEvent, encode_event
from denizen.domain import conversation
from denizen.domain.conversation import Place
from denizen.domain.errors import NotAllowed, NotFound
from denizen.domain.ids import TurnId, derive, fresh, turn_id
from denizen.domain.principal import Principal, RoleName
from denizen.domain.turn import Inbound, Turn
from collections.abc import Iterable
from denizen.domain.agent import Agent
from denizen.domain.approval import Approval, ApprovalStatus, may_decide
from denizen.domain.citation import Citation
from denizen.domain.errors import NotFound
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
from denizen.domain.ids import CallId
from denizen.domain.message import Message, Role, ToolResultPart, calls_of
from denizen.domain.principal import Principal
from denizen.domain.routing import Route
from denizen.domain.trace import PromptUse
from denizen.domain.turn import CallRecord, Step, Turn, TurnStatus
from denizen.domain.usage import Usage
from denizen.engine.gate.card import mask
from denizen.engine.queries import ToolInfo
from denizen.engine.trace import Trace
from denizen.ports.model import ModelInfo, Models
from denizen.web.http.errors import describe_problem, turn_failure
from denizen_sdk.agents import AgentListing, ModelListing, ToolListing
from denizen_sdk.errors import ProblemDetails
from denizen_sdk.turns import (
    MAX_RESULT_CHARS,
    ApprovalDecidedEvent,
    ApprovalInfo,
    ApprovalRequestedEvent,
    CallInfo,
    ChatEvent,
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
    TurnFailedEvent,
    TurnFinishedEvent,
    TurnInfo,
    TurnOpenedEvent,
    UsageInfo,
)

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


API = "api"
"""The platform of OpenAI-compatible requests."""

WEB = "web"
"""The platform of `/api/chat`: the page, and programs that use the client."""

TURN_HEADER = "X-Denizen-Turn"
IDEMPOTENCY_HEADER = "idempotency-key"


def own_place(platform: str, principal: Principal, session: str) -> Place:
    """The place of a principal's own session of that name. Raises InvalidInput for a name that cannot be."""
    return conversation.own_place(platform, principal.key, session)


def message_key(principal: Principal, idempotency_key: str) -> str:
    """The platform id of a message: the same for the same key of the same principal, else a new one (promise 1)."""
    return derive("idem", principal.key, idempotency_key) if idempotency_key else fresh("req")


def turn_id_for(inbound: Inbound) -> TurnId:
    """The id that the turn of this message has, or will have."""
    return turn_id(inbound.agent, inbound.place.platform, inbound.platform_id)


def may_see_all(principal: Principal) -> bool:
    """Owners and admins."""
    return bool(principal.roles & {RoleName.OWNER, RoleName.ADMIN})


def require_admin(request: Request) -> None:
    """Raises NotAllowed for everybody but owners and admins."""
    if not may_see_all(get_principal(request)):
        raise NotAllowed("This is for owners and admins.", code="admin_only", fix="Use a key with the role admin.")


def check_own(turn: Turn, principal: Principal) -> None:
    """Raises NotFound for a turn of somebody else, unless an owner or admin asks. The error is the one of a turn that
    does not exist, so that nobody learns whether it does.
    """
    if turn.principal.key == principal.key or may_see_all(principal):
        return
    raise NotFound(f"There is no turn {turn.id}.", code="turn_not_found")


def event_to_wire(event: TurnEvent, reader: Principal) -> list[ChatEvent]:
    """The event as clients see it; text that takes back what came before is two events."""
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
            return [ToolFinishedEvent(event.call_id, event.tool, text, event.is_error, truncated, event.duration_ms)]
        case ApprovalRequested():
            return [ApprovalRequestedEvent(approval_to_wire(event.approval, reader))]
        case ApprovalDecided():
            return [ApprovalDecidedEvent(approval_to_wire(event.approval, reader))]
        case Notice():
            return [NoticeEvent(event.text)]
        case TurnFinished(status=TurnStatus.DONE | TurnStatus.CANCELLED):
            usage = usage_to_wire(event.usage)
            return [TurnFinishedEvent(event.turn_id, event.status, event.reply, usage, event.images, event.reasoning)]
        case TurnFinished():
            return [TurnFailedEvent(event.turn_id, describe_problem(turn_failure(event)))]


def approval_to_wire(approval: Approval, reader: Principal) -> ApprovalInfo:
    """What waits, as the reader may see it."""
    is_open = approval.status is ApprovalStatus.PENDING
    return ApprovalInfo(
        approval.id, approval.turn_id, approval.agent, approval.tool, dict(mask(approval.args)), int(approval.tier),
        approval.reason, approval.preview, approval.requester_name, approval.status, approval.created_at.isoformat(),
        approval.expires_at.isoformat() if approval.expires_at else None,
        approval.decider_name or approval.decided_by,
        approval.decided_at.isoformat() if approval.decided_at else None,
        approval.note, is_open and may_decide(approval, reader),
    )  # fmt: skip


def usage_to_wire(usage: Usage) -> UsageInfo:
    cost = None if usage.cost_usd is None else str(usage.cost_usd)
    return UsageInfo(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, cost)


def failure_to_wire(turn: Turn) -> ProblemDetails | None:
    """Why a turn has no answer; None when it has one, or may still get one."""
    if turn.status in {TurnStatus.OPEN, TurnStatus.DONE}:
        return None
    return describe_problem(turn_failure(turn))


def tool_to_wire(tool: ToolInfo) -> ToolListing:
    spec = tool.spec
    return ToolListing(spec.name, spec.description, int(tool.tier), spec.source, spec.read_only, dict(spec.parameters))


def messages_to_wire(messages: Iterable[Message]) -> list[MessageInfo]:
    """Messages as people read them: results of tools stand with the calls that they answer."""
    rows = list(messages)
    results = {p.call_id: p for message in rows for p in message.parts if isinstance(p, ToolResultPart)}
    return [_message(message, results) for message in rows if message.role in {Role.USER, Role.ASSISTANT}]


def _message(message: Message, results: dict[CallId, ToolResultPart]) -> MessageInfo:
    calls: list[ToolUse] = []
    for call in calls_of(message.parts):
        result = results.get(call.id)
        text = result.text[:MAX_RESULT_CHARS] if result else ""
        calls.append(ToolUse(call.id, call.tool, call.args, text, result is not None and result.is_error))
    return MessageInfo(
        message.id,
        message.role,
        message.author.name,
        message.text,
        message.created_at.isoformat(),
        message.turn_id or "",
        tuple(calls),
    )


def agent_to_wire(agent: Agent, model: ModelInfo | None, *, is_default: bool) -> AgentListing:
    return AgentListing(
        name=agent.name,
        description=agent.description,
        model=agent.model_word,
        provider=model.provider if model else "",
        is_default=is_default,
        is_embedded=model is not None and model.is_embedded,
    )


def model_to_wire(model: ModelInfo) -> ModelListing:
    return ModelListing(
        name=model.name,
        provider=model.provider,
        aliases=model.aliases,
        fallbacks=model.fallbacks,
        context_tokens=model.capabilities.context_tokens,
        is_small=model.capabilities.small,
        is_embedded=model.is_embedded,
    )


def turn_to_wire(detail: Trace, *, in_full: bool) -> TurnInfo:
    """`in_full` with the texts of the system prompt, which the operator wrote and may want to keep."""
    turn = detail.turn
    return TurnInfo(
        id=turn.id,
        agent=turn.agent,
        status=turn.status,
        model=turn.model,
        reply=turn.reply,
        opened_at=turn.opened_at.isoformat(),
        closed_at=turn.closed_at.isoformat() if turn.closed_at else None,
        usage=usage_to_wire(turn.usage),
        error=failure_to_wire(turn),
        steps=tuple(_step(step) for step in detail.steps),
        calls=tuple(_call(call) for call in detail.calls),
        question=detail.question,
        prompts=tuple(_prompt(prompt, in_full=in_full) for prompt in detail.prompts),
        citations=tuple(map(_citation, detail.citations)),
        route=_route(turn.route) if turn.route else None,
    )


def _citation(each: Citation) -> CitationInfo:
    doubt = "" if each.doubt is None else each.doubt.value
    return CitationInfo(
        each.ref.path, each.ref.first_line, each.ref.last_line, each.source_id, each.revision, each.link, doubt
    )


def _route(route: Route) -> RouteInfo:
    return RouteInfo(route.complexity, route.max_steps, route.model, route.reason, route.routed_by)


def _prompt(prompt: PromptUse, *, in_full: bool) -> PromptInfo:
    segments = tuple(
        SegmentInfo(s.name, s.stability.name.lower(), s.chars, s.tokens, s.sha256, s.text if in_full else None)
        for s in prompt.segments
    )
    messages = tuple(MessageShare(m.kind, m.count, m.tokens) for m in prompt.messages)
    return PromptInfo(prompt.step, prompt.model, segments, messages, prompt.tools, prompt.tool_tokens, prompt.memories)


def _step(step: Step) -> StepInfo:
    usage = usage_to_wire(step.usage)
    return StepInfo(
        step.number,
        step.model,
        step.purpose,
        step.finish_reason,
        step.duration_ms,
        usage,
        step.usage.cache_write_tokens,
    )


def _call(call: CallRecord) -> CallInfo:
    return CallInfo(
        tool=call.tool,
        args=dict(call.args),
        decision=call.verdict.decision,
        reason=call.verdict.reason,
        decided_by=call.verdict.decided_by,
        text=call.result,
        is_error=call.is_error,
        duration_ms=call.duration_ms,
        cached=call.cached,
        step=call.step,
        tier=int(call.verdict.tier),
    )


def find_model(models: Models, name: str) -> ModelInfo | None:
    """What is known of the model that an agent names, by alias or as `provider/model`."""
    try:
        full = models.get(name).name
    except NotFound:
        return None
    return next((info for info in models.list_models() if full in {info.name, f"{info.provider}/{info.name}"}), None)
