"""Calls that take long: people are told after a while, hear of the progress, and hear no more once the call is over."""

from dataclasses import dataclass, field, replace

import anyio
import pytest

from denizen.domain.clock import SystemClock
from denizen.domain.events import Notice, ToolFinished, ToolStarted
from denizen.domain.ids import CallId
from denizen.domain.tool import ToolCall, ToolResult
from denizen.engine.gate.executor import INTERIM_AFTER_S, ToolExecutor
from denizen.engine.listener.turn_display import _PreviewState
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.engine.engine_fixture import LOOK, ToolsetFixture, message, open_engine

pytestmark = pytest.mark.anyio


@dataclass
class SlowTool:
    """A tool that goes on until the test lets it end."""

    progress: str = ""
    ending: ToolResult | Exception = field(default_factory=lambda: ToolResult("found"))
    told: anyio.Event = field(default_factory=anyio.Event)

    async def run(self, call: ToolCall, scope: CallScope) -> ToolResult:
        scope.options.report(self.progress)
        await self.told.wait()
        if isinstance(self.ending, Exception):
            raise self.ending
        return self.ending


def _set() -> anyio.Event:
    event = anyio.Event()
    event.set()
    return event


async def _record_events(slow: SlowTool, after_s: float) -> list[object]:
    model = ScriptedModel(ScriptedReply(calls=[call("look", q="x")]), ScriptedReply("Here."))
    tools = ToolsetFixture(specs=[replace(LOOK, timeout_s=60)], run=slow.run)
    events: list[object] = []
    async with open_engine(model, tools) as engine:
        engine.services.gate._interim_after_s = after_s
        async for event in engine.turns.stream(message("look it up")):
            events.append(event)
            if isinstance(event, Notice):
                slow.told.set()
    return events


@pytest.mark.proves("L6")
async def test_a_call_that_takes_long_tells_what_it_is_at_until_it_ends():
    events = await _record_events(SlowTool(progress="page 3 of 9"), 0)
    (call_id,) = [event.call_id for event in events if isinstance(event, ToolStarted)]
    notices = [event for event in events if isinstance(event, Notice)]
    assert notices == [Notice("`look` is still at work: page 3 of 9", call_id)]
    assert [type(event) for event in events].index(Notice) < [type(event) for event in events].index(ToolFinished)


@pytest.mark.proves("L6", "LW8")
@pytest.mark.parametrize("ending", [RuntimeError("broken"), ToolResult("no", is_error=True)])
async def test_nothing_is_told_of_a_call_that_has_failed(ending: ToolResult | Exception):
    events = await _record_events(SlowTool(ending=ending), 0)
    kinds = [type(event) for event in events]
    assert kinds.count(Notice) == 1
    assert Notice not in kinds[kinds.index(ToolFinished) :]


@pytest.mark.proves("L6", "LW8")
async def test_a_quick_call_tells_nothing_even_if_it_fails():
    slow = SlowTool(ending=RuntimeError("broken"))
    slow.told.set()
    assert not [event for event in await _record_events(slow, 0.05) if isinstance(event, Notice)]
    assert ToolExecutor(SystemClock())._interim_after_s == INTERIM_AFTER_S == 30.0


@pytest.mark.proves("L6", "LW8")
async def test_a_call_that_failed_is_not_told_of_while_the_next_one_takes_long():
    slow = SlowTool()
    runs = iter([SlowTool(ending=RuntimeError("broken"), told=_set()), slow])
    model = ScriptedModel(
        ScriptedReply(calls=[call("look", q="x")]), ScriptedReply(calls=[call("look", q="y")]), ScriptedReply("Here.")
    )
    tools = ToolsetFixture(specs=[replace(LOOK, timeout_s=60)], run=lambda asked, scope: next(runs).run(asked, scope))
    events: list[object] = []
    async with open_engine(model, tools) as engine:
        engine.services.gate._interim_after_s = 0.05
        async for event in engine.turns.stream(message("look it up")):
            events.append(event)
            if isinstance(event, Notice):  # the first call's would have come before the second's
                slow.told.set()
    failed, long = [event.call_id for event in events if isinstance(event, ToolStarted)]
    assert [event.call_id for event in events if isinstance(event, Notice)] == [long]
    assert failed != long


@pytest.mark.proves("L6", "LW8")
def test_the_preview_shows_what_a_call_is_at_and_takes_it_away_with_the_call():
    picture, slow, quick = _PreviewState(), CallId("1"), CallId("2")
    picture.take(ToolStarted(slow, "draw", {}))
    picture.take(ToolStarted(quick, "look", {}))
    picture.take(Notice("`draw` is still at work.", slow))
    picture.take(ToolFinished(quick, "look", "x", is_error=False, duration_ms=1))
    assert "still at work" in picture.text_to_show()
    picture.take(ToolFinished(slow, "draw", "broken", is_error=True, duration_ms=1))
    assert "still at work" not in picture.text_to_show()
