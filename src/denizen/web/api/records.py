"""Records of the engine as clients get them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from denizen.domain.agent import Agent
from denizen.domain.approval import Approval, ApprovalStatus, may_decide
from denizen.domain.citation import Citation
from denizen.domain.errors import Conflict, DenizenError, NotAllowed, NotFound
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
from denizen.domain.ids import CallId, TurnId
from denizen.domain.message import Message, Role, ToolCallPart, ToolResultPart, list_calls
from denizen.domain.principal import Principal
from denizen.domain.trace import PromptUse
from denizen.domain.turn import CallRecord, Step, TurnFailure, TurnStatus
from denizen.domain.usage import Usage
from denizen.engine.gate.approval_card import mask_secrets
from denizen.engine.inspection.queries import RecordedCall, ToolInfo, TurnTrace
from denizen.ports.model import ModelInfo, Models
from denizen.web.http.problems import STATUS, describe_problem, fill_in
from denizen_sdk.agents import AgentListing, ModelListing, ToolListing
from denizen_sdk.turns import (
    MAX_RESULT_CHARS,
    ApprovalDecidedEvent,
    ApprovalInfo,
    ApprovalRequestedEvent,
    CallInfo,
    ChatEvent,
    CitationInfo,
    DecisionInfo,
    MessageInfo,
    MessageShare,
    NoticeEvent,
    PromptInfo,
    ReasoningAddedEvent,
    RequestedCall,
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
)

_FAMILIES = {family.__name__: family for family in STATUS}


def restore_error(status: TurnStatus, failure: TurnFailure | None) -> DenizenError:
    """Returns the error of a turn that ended without an answer, from its record."""
    if status is TurnStatus.CANCELLED:
        return Conflict("The turn was stopped before it had an answer.", code="turn_cancelled")
    failure = failure or TurnFailure("The turn ended without an answer.")
    family = _FAMILIES.get(failure.family, NotAllowed if status is TurnStatus.REFUSED else DenizenError)
    return family(failure.message, code=failure.code or family.code, fix=failure.fix)


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
        case TurnFinished(status=TurnStatus.DONE | TurnStatus.CANCELLED | TurnStatus.SKIPPED):
            return [
                TurnFinishedEvent(
                    turn_id=event.turn_id,
                    status=event.status,
                    reply=event.reply,
                    usage=usage_to_wire(event.usage),
                    images=event.images,
                    cards=event.cards,
                    reasoning=event.reasoning,
                    skipped=event.status is TurnStatus.SKIPPED,
                )
            ]
        case TurnFinished():
            problem = fill_in(describe_problem(restore_error(event.status, event.failure)))
            usage = usage_to_wire(event.usage)
            return [TurnFailedEvent(event.turn_id, problem, event.status, usage, event.reasoning)]


def usage_to_wire(usage: Usage) -> UsageInfo:
    cost = None if usage.cost_usd is None else str(usage.cost_usd)
    return UsageInfo(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, cost, usage.requests)


def messages_to_wire(
    messages: Iterable[Message], calls: Mapping[tuple[TurnId, CallId], RecordedCall], reader: Principal
) -> list[MessageInfo]:
    """Returns messages for people: each tool call holds its result, which is stored as a message of its own, and what
    is recorded of it.
    """
    rows = list(messages)
    results = {
        (message.turn_id, part.call_id): part
        for message in rows
        for part in message.parts
        if isinstance(part, ToolResultPart)
    }

    def describe_call(turn_id: TurnId | None, call: ToolCallPart) -> ToolUse:
        result = results.get((turn_id, call.id))
        known = calls.get((turn_id, call.id)) if turn_id is not None else None
        approval = known.approval if known is not None else None
        return ToolUse(
            call_id=call.id,
            tool=call.tool,
            args=call.args,
            text=result.text[:MAX_RESULT_CHARS] if result else "",
            is_error=result is not None and result.is_error,
            duration_ms=known.record.outcome.duration_ms if known is not None else None,
            approval=approval_to_wire(approval, reader) if approval is not None else None,
        )

    return [
        MessageInfo(
            id=message.id,
            role=message.role,
            author=message.author.name,
            text=message.text,
            created_at=message.created_at.isoformat(),
            turn_id=message.turn_id or "",
            calls=tuple(describe_call(message.turn_id, call) for call in list_calls(message.parts)),
        )
        for message in rows
        if message.role in {Role.USER, Role.ASSISTANT}
    ]


def turn_to_wire(trace: TurnTrace, *, in_full: bool) -> TurnInfo:
    """Returns the record of a turn; `in_full` with the system prompt, which its writer may want to keep private."""
    turn, route = trace.turn, trace.turn.route
    return TurnInfo(
        id=turn.id,
        agent=turn.agent,
        status=turn.status,
        model=turn.result.model,
        reply=turn.result.reply,
        opened_at=turn.opened_at.isoformat(),
        closed_at=turn.closed_at.isoformat() if turn.closed_at else None,
        usage=usage_to_wire(turn.result.usage),
        error=fill_in(describe_problem(restore_error(turn.status, turn.result.failure)))
        if turn.status.is_error
        else None,
        question=trace.question,
        citations=tuple(citation_to_wire(citation) for citation in trace.citations),
        trace=TraceInfo(
            parent_id=turn.parent.id if turn.parent else "",
            delegated=tuple(each.turn_id for each in trace.delegated),
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


def citation_to_wire(citation: Citation) -> CitationInfo:
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
        origin=record.tool_call.origin,
    )


def approval_to_wire(approval: Approval, reader: Principal) -> ApprovalInfo:
    """Returns the approval as the reader may see it."""
    is_open, request, decision = approval.status is ApprovalStatus.PENDING, approval.request, approval.decision
    return ApprovalInfo(
        id=approval.id,
        turn_id=request.turn_id,
        agent=request.agent,
        call=RequestedCall(
            request.tool,
            dict(mask_secrets(request.args)),
            tier=int(request.tier),
            reason=request.reason,
            preview=request.preview,
        ),
        requester=request.requester_name,
        status=approval.status,
        created_at=approval.created_at.isoformat(),
        expires_at=approval.expires_at.isoformat() if approval.expires_at else None,
        decision=None
        if is_open
        else DecisionInfo(
            decision.name or decision.by, decision.at.isoformat() if decision.at else None, decision.note
        ),
        may_decide=is_open and may_decide(approval, reader),
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


def tool_to_wire(tool: ToolInfo) -> ToolListing:
    spec = tool.spec
    return ToolListing(
        name=spec.name,
        description=spec.description,
        tier=int(tool.tier),
        source=spec.source,
        read_only=spec.read_only,
        parameters=dict(spec.parameters),
    )


def find_model(models: Models, name: str) -> ModelInfo | None:
    """Returns the model that an agent names, by alias or as `provider/model`; None for an unknown one."""
    try:
        full = models.get(name).name
    except NotFound:
        return None
    return next((info for info in models.list_models() if full in {info.name, f"{info.provider}/{info.name}"}), None)
