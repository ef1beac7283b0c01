"""What a durable step leaves behind, as JSON: a model's reply, and what became of a call with the calls within it.

Written by `steps.py` once, read by it in the same run and when a run is taken up again. Keys that are added later have
to be optional: records of an earlier version may still be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from denizen.domain.json import JsonObject
from denizen.domain.message import parts_from_json, parts_to_json
from denizen.domain.taint import to_json
from denizen.domain.tool import Taint, Tier
from denizen.domain.usage import Usage, usage_to_json
from denizen.domain.verdict import Decision, Verdict
from denizen.engine.gate.door import Outcome
from denizen.ports.model import FinishReason, ModelReply
from denizen.ports.toolset import CallTrail, NestedCall


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model is told of a call."""

    text: str
    is_error: bool
    verdict: Verdict
    duration_ms: int


def refusal(text: str) -> Answer:
    """Of a call that never reached the gate, because there was nothing valid to decide about."""
    verdict = Verdict(Decision.DENY, Tier.HARMLESS, "not a valid call", "arguments")
    return Answer(text, is_error=True, verdict=verdict, duration_ms=0)


def outcome_to_json(outcome: Outcome, reads: frozenset[Taint], trail: CallTrail) -> JsonObject:
    """`reads` is what the tool's own results hold; the trail has what its inner calls have read, cost and done."""
    result = outcome.result
    return {
        **_verdict_to_json(outcome.verdict),
        "text": result.text,
        "is_error": result.is_error,
        "data": dict(result.data),
        "duration_ms": outcome.duration_ms,
        "taint": to_json(reads | trail.taint),
        "observed": usage_to_json(trail.usage),
        "inner": [_inner_to_json(inner) for inner in trail.inner or ()],
    }


def answer_from_json(row: Mapping[str, Any]) -> Answer:
    """Of an outcome, or of a call within one."""
    return Answer(row["text"], row["is_error"], verdict_from_json(row), row["duration_ms"])


def verdict_from_json(row: Mapping[str, Any]) -> Verdict:
    return Verdict(Decision(row["decision"]), Tier(row["tier"]), row["reason"], row["decided_by"])


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


def _verdict_to_json(verdict: Verdict) -> JsonObject:
    return {
        "decision": verdict.decision.value,
        "tier": int(verdict.tier),
        "reason": verdict.reason,
        "decided_by": verdict.decided_by,
    }


def _inner_to_json(inner: NestedCall) -> JsonObject:
    return {
        **_verdict_to_json(inner.verdict),
        "id": inner.call.id,
        "tool": inner.call.tool,
        "args": inner.call.args,
        "text": inner.result,
        "is_error": inner.is_error,
        "duration_ms": inner.duration_ms,
    }
