"""The record of a durable step as JSON: a model's reply, or the outcome of a call with the calls within it.

Written by `steps.py` once, read by it in the same run and when a run is taken up again. Keys that are added later have
to be optional: records of an earlier version may still be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, cast

from denizen.domain.demands import NO_TOOLS, ClientTools, demands_from_json
from denizen.domain.evidence import READ
from denizen.domain.ids import CallId, TurnId
from denizen.domain.json import JsonObject
from denizen.domain.message import (
    ImagePart,
    Message,
    Part,
    Role,
    ThinkingPart,
    ToolCallPart,
    list_calls,
    parts_from_json,
    parts_to_json,
)
from denizen.domain.record import record
from denizen.domain.taint import taint_to_json
from denizen.domain.tool import Origin, Taint, Tier, ToolCall, ToolResult
from denizen.domain.turn import Turn
from denizen.domain.usage import Usage, usage_to_json
from denizen.domain.verdict import CallOutcome, Decision, Verdict
from denizen.engine.configuration.generation import Generation
from denizen.ports.model import FinishReason, ModelReply
from denizen.ports.store import Store
from denizen.ports.toolset import CallTrail, NestedCall


def outcome_to_json(outcome: CallOutcome, taint: frozenset[Taint], trail: CallTrail) -> JsonObject:
    """`taint` is that of the call itself; the trail has what its inner calls have read, cost and done."""
    return {
        **_outcome_to_json(outcome),
        "data": dict(outcome.result.data),
        "taint": taint_to_json(taint | trail.taint),
        "observed": usage_to_json(trail.usage),
        "inner": [
            {
                **_outcome_to_json(inner.outcome),
                "id": inner.tool_call.id,
                "tool": inner.tool_call.tool,
                "args": inner.tool_call.args,
                READ: inner.outcome.result.data.get(READ),
            }
            for inner in trail.inner or ()
        ],
    }


def _outcome_to_json(outcome: CallOutcome) -> JsonObject:
    verdict = outcome.verdict
    return {
        "decision": verdict.decision.value,
        "tier": int(verdict.tier),
        "reason": verdict.reason,
        "decided_by": verdict.decided_by,
        "text": outcome.result.text,
        "is_error": outcome.result.is_error,
        "duration_ms": outcome.duration_ms,
    }


def outcome_from_json(row: Mapping[str, Any]) -> CallOutcome:
    """Reads the outcome of a call, or of one from within it, without the data for people."""
    verdict = Verdict(Decision(row["decision"]), Tier(row["tier"]), row["reason"], row["decided_by"])
    return CallOutcome(verdict, ToolResult(row["text"], row["is_error"]), row["duration_ms"])


def nested_calls_from_json(row: Mapping[str, Any]) -> list[NestedCall]:
    """Reads the calls from within a call."""
    return [
        NestedCall(ToolCall(CallId(inner["id"]), inner["tool"], inner["args"], Origin.SKILL), outcome_from_json(inner))
        for inner in row.get("inner") or ()
    ]


def reply_to_json(reply: ModelReply, duration_ms: int) -> JsonObject:
    usage = reply.usage
    return {
        "parts": parts_to_json(reply.parts),
        "finish_reason": reply.finish_reason,
        "model": reply.model,
        "provider": reply.provider,
        "duration_ms": duration_ms,
        "usage": [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens],
        "cost_usd": None if usage.cost_usd is None else str(usage.cost_usd),
        "requests": usage.requests,
    }


def reply_from_json(row: Mapping[str, Any]) -> tuple[ModelReply, int]:
    """The reply, and how long it took in milliseconds."""
    cost = None if row["cost_usd"] is None else Decimal(row["cost_usd"])
    usage = Usage(*row["usage"], cost_usd=cost, requests=row["requests"])
    parts = parts_from_json(row["parts"])
    finish = cast("FinishReason", row["finish_reason"])
    return ModelReply(parts, usage, finish, row["model"], row["provider"]), row["duration_ms"]


SHOWN = "shown"
"""The meta of a message of results with what they show to people by call, without pictures and files themselves."""
LATEST = 50
"""Among so many messages of its session the answer of a turn is looked for."""


@record
class ReplyExtras:
    """The parts of a reply besides its text: `images` of the model as data URIs, its reasoning, what tools have shown,
    as rows of `domain/attachments` in the order of the calls, and the calls that are left to the asker.
    """

    images: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    shown: tuple[Mapping[str, Any], ...] = ()
    calls: tuple[ToolCallPart, ...] = ()

    def __add__(self, more: ReplyExtras) -> ReplyExtras:
        return ReplyExtras(
            (*self.images, *more.images),
            (*self.reasoning, *more.reasoning),
            (*self.shown, *more.shown),
            (*self.calls, *more.calls),
        )

    @property
    def thoughts(self) -> str:
        return "\n\n".join(self.reasoning)

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """As rows of `domain/attachments`, for the piece in front of an answer."""
        rows = list(self.shown)
        if self.images:
            rows.append({"images": [{"url": url} for url in self.images]})
        if self.reasoning:
            rows.append({"reasoning": self.thoughts})
        return rows


def find_reply_extras(parts: Iterable[Part], *, with_reasoning: bool) -> ReplyExtras:
    """In the parts of one reply."""
    given = tuple(parts)
    thoughts = (part.text.strip() for part in given if isinstance(part, ThinkingPart)) if with_reasoning else ()
    return ReplyExtras(
        tuple(part.url for part in given if isinstance(part, ImagePart)), tuple(text for text in thoughts if text)
    )


async def load_reply_extras(store: Store, turn: Turn, generation: Generation) -> ReplyExtras:
    """Loads the extras of a turn that has ended, from its messages."""
    agent = generation.agents.get(turn.agent)
    async with store.work(write=False) as work:
        messages = await work.messages.list_tail(turn.session_id, limit=LATEST)
    tools, with_reasoning = demands_from_json(turn.options).tools, agent is not None and agent.show_reasoning
    return collect_reply_extras(messages, turn.id, with_reasoning=with_reasoning, tools=tools)


def collect_reply_extras(
    messages: Iterable[Message], turn_id: TurnId, *, with_reasoning: bool, tools: ClientTools = NO_TOOLS
) -> ReplyExtras:
    """In the messages of a session, of which those of the turn count. `tools` are those that the asker runs."""
    found = ReplyExtras()
    for message in messages:
        if message.turn_id != turn_id:
            continue
        if message.role is Role.TOOL:
            shown = cast("Mapping[str, Mapping[str, Any]]", message.meta.get(SHOWN, {}))
            found += ReplyExtras(shown=tuple(shown.values()))
        if message.role is Role.ASSISTANT:
            found += find_reply_extras(message.parts, with_reasoning=with_reasoning)
            found += ReplyExtras(calls=tools.select_calls(list_calls(message.parts)))
    return found
