"""The wire types: what one side writes the other reads, whichever of the two is newer."""

import json
from dataclasses import asdict, replace

import pytest

from denizen_sdk import wire

EVENTS: list[wire.ChatEvent] = [
    wire.TurnOpenedEvent("turn_1", "denizen", "openai/gpt"),
    wire.TextAddedEvent("Grüße"),
    wire.TextRetractedEvent(),
    wire.ToolStartedEvent("call_1", "weather", {"city": "Oslo", "days": [1, 2]}),
    wire.ToolFinishedEvent("call_1", "weather", "Sunny.", is_error=False, truncated=True, duration_ms=3),
    wire.NoticeEvent("Loading"),
    wire.TurnFinishedEvent("turn_1", "done", "Hello.", wire.UsageInfo(3, 2, 1, "0.001")),
    wire.TurnFailedEvent("turn_1", wire.ProblemDetails("busy", "Busy.", 429, "why", "fix", "err_1")),
]


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_survives_the_way_through_json(event: wire.ChatEvent) -> None:
    assert wire.decode_event(json.loads(json.dumps(wire.encode_event(event)))) == event


def test_every_kind_of_event_is_covered() -> None:
    assert {wire.encode_event(event)["type"] for event in EVENTS} == {
        "turn", "text", "retract", "tool_started", "tool_finished", "notice", "finished", "error",
    }  # fmt: skip


def test_an_unknown_event_is_handed_on() -> None:
    row = {"type": "plan_drawn", "id": "a1"}
    assert wire.decode_event(row) == wire.UnknownEvent("plan_drawn", row)


def test_unknown_fields_are_left_out_and_missing_ones_have_their_defaults() -> None:
    row = {"type": "finished", "turn_id": "t", "status": "done", "reply": "x", "usage": {"input_tokens": 1, "new": 2}}
    assert wire.decode_event({**row, "mood": "good"}) == wire.TurnFinishedEvent("t", "done", "x", wire.UsageInfo(1))


def test_nested_lists_become_records() -> None:
    call = wire.CallInfo("weather", {}, "approve", "", "tier", "Sunny.", is_error=False, duration_ms=1, cached=False)
    step = wire.StepInfo(1, "m", "act", "stop", 5, wire.UsageInfo(1, 2))
    segment = wire.SegmentInfo("persona", "config", 12, 3, "ab12", "You are Ada.")
    prompt = wire.PromptInfo(1, "m", (segment,), (wire.MessageShare("question", 1, 7),), ("weather",), 30)
    spent = wire.UsageInfo(1, 2)
    turn = wire.TurnInfo("t", "a", "done", "m", "x", "now", None, spent, None, (step,), (call,), "how?", (prompt,))
    turn = replace(turn, route=wire.RouteInfo("simple", 8, "fast", "one lookup", "router"))
    assert wire.from_json(wire.TurnInfo, json.loads(json.dumps(asdict(turn)))) == turn
    message = wire.MessageInfo("m", "user", "ann", "hi", "now", "t", (wire.ToolUse("c", "weather", {}, "Sunny."),))
    assert wire.from_json(wire.MessageInfo, json.loads(json.dumps(asdict(message)))) == message


def test_a_sync_survives_the_way_through_json_as_an_answer_and_as_an_event() -> None:
    sync = wire.SyncInfo(
        "sync_1", ("a", "b"), "partial", "2026-11-21T12:00:00+00:00", None, "snap_1", ("a",), {"b": "gone"},
        progress={"a": wire.SyncProgress("receiving", 1, 2)},
    )  # fmt: skip
    row = json.loads(json.dumps(asdict(sync)))
    assert wire.from_json(wire.SyncInfo, row) == sync
    assert wire.decode_sync_event("run", row) == wire.decode_sync_event("end", row) == sync
    assert wire.decode_sync_event("mood", {"is": "good"}) == wire.UnknownEvent("mood", {"is": "good"})


def test_what_is_not_there_stays_none() -> None:
    row = {"days": 1, "first_day": "", "last_day": "", "totals": None, "previous": None, "trend": None}
    lists: dict[str, list[object]] = {"by_model": [], "by_source": [], "daily": []}
    read = wire.from_json(wire.UsageOverview, {**row, **lists, "hourly": None})
    assert (read.by_model, read.hourly, read.top_users) == ((), None, None)
