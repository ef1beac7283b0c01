"""The wire types: what one side writes the other reads, whichever of the two is newer."""

import json
from dataclasses import asdict

import pytest

from denizen_sdk.errors import ProblemDetails
from denizen_sdk.knowledge import SyncInfo, SyncProgress, decode_sync_event
from denizen_sdk.records import from_json
from denizen_sdk.turns import (
    CallInfo,
    ChatEvent,
    MessageInfo,
    MessageShare,
    NoticeEvent,
    PromptInfo,
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
    UnknownEvent,
    UsageInfo,
    decode_event,
    encode_event,
)
from denizen_sdk.usage import UsageOverview

EVENTS: list[ChatEvent] = [
    TurnOpenedEvent("turn_1", "denizen", "openai/gpt"),
    TextAddedEvent("Grüße"),
    TextRetractedEvent(),
    ToolStartedEvent("call_1", "weather", {"city": "Oslo", "days": [1, 2]}),
    ToolFinishedEvent("call_1", "weather", "Sunny.", is_error=False, truncated=True, duration_ms=3),
    NoticeEvent("Loading"),
    TurnFinishedEvent("turn_1", "done", "Hello.", UsageInfo(3, 2, 1, "0.001")),
    TurnFailedEvent("turn_1", ProblemDetails("busy", "Busy.", 429, "why", "fix", "err_1"), reasoning="Hm."),
]


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_survives_the_way_through_json(event: ChatEvent) -> None:
    assert decode_event(json.loads(json.dumps(encode_event(event)))) == event


def test_every_kind_of_event_is_covered() -> None:
    assert {encode_event(event)["type"] for event in EVENTS} == {
        "turn",
        "text",
        "retract",
        "tool_started",
        "tool_finished",
        "notice",
        "finished",
        "error",
    }


def test_an_unknown_event_is_handed_on() -> None:
    row = {"type": "plan_drawn", "id": "a1"}
    assert decode_event(row) == UnknownEvent("plan_drawn", row)


def test_unknown_fields_are_left_out_and_missing_ones_have_their_defaults() -> None:
    row = {"type": "finished", "turn_id": "t", "status": "done", "reply": "x", "usage": {"input_tokens": 1, "new": 2}}
    assert decode_event({**row, "mood": "good"}) == TurnFinishedEvent("t", "done", "x", UsageInfo(1))


def test_nested_lists_become_records() -> None:
    call = CallInfo("weather", {}, "approve", "", "tier", "Sunny.", is_error=False, duration_ms=1, cached=False)
    step = StepInfo(1, "m", "act", "stop", 5, UsageInfo(1, 2))
    segment = SegmentInfo("persona", "config", 12, 3, "ab12", "You are Ada.")
    prompt = PromptInfo(1, "m", (segment,), (MessageShare("question", 1, 7),), ("weather",), 30)
    spent = UsageInfo(1, 2)
    route = RouteInfo("simple", 8, "fast", "one lookup", "router")
    turn = TurnInfo(
        id="t",
        agent="a",
        status="done",
        model="m",
        question="how?",
        reply="x",
        opened_at="now",
        closed_at=None,
        usage=spent,
        error=None,
        trace=TraceInfo(steps=(step,), calls=(call,), prompts=(prompt,), route=route),
    )
    assert from_json(TurnInfo, json.loads(json.dumps(asdict(turn)))) == turn
    message = MessageInfo("m", "user", "ann", "hi", "now", "t", (ToolUse("c", "weather", {}, "Sunny."),))
    assert from_json(MessageInfo, json.loads(json.dumps(asdict(message)))) == message


def test_a_sync_survives_the_way_through_json_as_an_answer_and_as_an_event() -> None:
    sync = SyncInfo(
        "sync_1",
        ("a", "b"),
        "partial",
        "2026-11-21T12:00:00+00:00",
        None,
        "snap_1",
        ("a",),
        {"b": "gone"},
        progress={"a": SyncProgress("receiving", 1, 2)},
    )
    row = json.loads(json.dumps(asdict(sync)))
    assert from_json(SyncInfo, row) == sync
    assert decode_sync_event("run", row) == decode_sync_event("end", row) == sync
    assert decode_sync_event("mood", {"is": "good"}) == UnknownEvent("mood", {"is": "good"})


def test_what_is_not_there_stays_none() -> None:
    row = {"days": 1, "first_day": "", "last_day": "", "totals": None, "previous": None, "trend": None}
    lists: dict[str, list[object]] = {"by_model": [], "by_source": [], "daily": []}
    read = from_json(UsageOverview, {**row, **lists, "hourly": None})
    assert (read.by_model, read.hourly, read.top_users) == ((), None, None)
