"""The record of a durable step as JSON: a model's reply, or the outcome of a call with the calls within it.

Written by `steps.py` once, read by it in the same run and when a run is taken up again. Keys that are added later have
to be optional: records of an earlier version may still be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, cast

from denizen.domain.ids import CallId, TurnId
from denizen.domain.json import JsonObject
from denizen.domain.message import ImagePart, Part, Role, ThinkingPart, ToolCallPart, parts_from_json, parts_to_json
from denizen.domain.taint import taint_to_json
from denizen.domain.tool import Origin, Taint, Tier
from denizen.domain.turn import CallRecord, Turn
from denizen.domain.usage import Usage, usage_to_json
from denizen.domain.verdict import Decision, Verdict
from denizen.engine.gate.executor import CallOutcome
from denizen.engine.runtime.generation import Generation
from denizen.ports.model import FinishReason, ModelReply
from denizen.ports.store import Store
from denizen.ports.toolset import CallTrail, NestedCall


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """The answer to a call that the model reads."""

    text: str
    is_error: bool
    verdict: Verdict
    duration_ms: int


def refusal_answer(text: str) -> CallAnswer:
    """Returns the answer to a call that never reached the gate, because its arguments were not valid."""
    verdict = Verdict(Decision.DENY, Tier.HARMLESS, "not a valid call", "arguments")
    return CallAnswer(text, is_error=True, verdict=verdict, duration_ms=0)


def outcome_to_json(outcome: CallOutcome, reads: frozenset[Taint], trail: CallTrail) -> JsonObject:
    """`reads` is what the tool's own results hold; the trail has what its inner calls have read, cost and done."""
    result = outcome.result
    return {
        **_verdict_to_json(outcome.verdict),
        "text": result.text,
        "is_error": result.is_error,
        "data": dict(result.data),
        "duration_ms": outcome.duration_ms,
        "taint": taint_to_json(reads | trail.taint),
        "observed": usage_to_json(trail.usage),
        "inner": [_inner_to_json(inner) for inner in trail.inner or ()],
    }


def answer_from_json(row: Mapping[str, Any]) -> CallAnswer:
    """Reads the answer from an outcome, or from a call within one."""
    return CallAnswer(row["text"], row["is_error"], verdict_from_json(row), row["duration_ms"])


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


MAX_INNER = 1000
"""Calls from within one call that are recorded; their positions begin behind those of any step."""


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Where and when a call was made. `position` orders the calls of the step."""

    turn_id: TurnId
    step: int
    position: int
    at: datetime


def make_call_record(call: ToolCallPart, answer: CallAnswer, place: CallPlace, *, cached: bool) -> CallRecord:
    return CallRecord(
        place.turn_id,
        place.step,
        place.position,
        call.id,
        call.tool,
        call.args,
        Origin.MODEL,
        answer.verdict.tier,
        answer.verdict,
        answer.text,
        answer.is_error,
        answer.duration_ms,
        cached,
        place.at,
    )


def inner_records(rows: Sequence[Mapping[str, Any]], place: CallPlace) -> Iterator[CallRecord]:
    """The calls within the one at that place, behind those of the step. `rows` are as
    `step_record.outcome_to_json` writes them.
    """
    for number, row in enumerate(rows[:MAX_INNER]):
        verdict = verdict_from_json(row)
        yield CallRecord(
            place.turn_id,
            place.step,
            (place.position + 1) * MAX_INNER + number,
            CallId(row["id"]),
            row["tool"],
            row["args"],
            Origin.SKILL,
            verdict.tier,
            verdict,
            row["text"],
            row["is_error"],
            row["duration_ms"],
            cached=False,
            created_at=place.at,
        )


LATEST = 50
"""Among so many messages of its session the answer of a turn is looked for."""


@dataclass(frozen=True, slots=True)
class ReplyExtras:
    """`images` are data URIs."""

    images: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()

    def __add__(self, more: ReplyExtras) -> ReplyExtras:
        return ReplyExtras((*self.images, *more.images), (*self.reasoning, *more.reasoning))

    @property
    def thoughts(self) -> str:
        return "\n\n".join(self.reasoning)

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """For `domain/extras`, and for the piece in front of an answer."""
        rows: list[Mapping[str, Any]] = []
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
    found = ReplyExtras()
    for message in messages:
        if message.turn_id == turn.id and message.role is Role.ASSISTANT:
            found += find_reply_extras(message.parts, with_reasoning=agent is not None and agent.show_reasoning)
    return found
