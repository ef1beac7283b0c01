"""Events of turns for those who watch from the beginning, and for those who come later."""

import pytest

from denizen.domain.events import Notice, ReasoningAdded, TextAdded, ToolStarted, TurnEvent, TurnFinished, TurnStarted
from denizen.domain.ids import CallId, TurnId
from denizen.domain.turn import TurnStatus
from denizen.domain.usage import Usage
from denizen.engine.events.live_events import LiveEvents, Sign
from tests.engine.deaf_relay import DeafRelay

pytestmark = pytest.mark.anyio

TURN = TurnId("turn")
STARTED = TurnStarted(TURN, "denizen", "m")
FINISHED = TurnFinished(turn_id=TURN, status=TurnStatus.DONE, reply="x", usage=Usage())


def catch_up(live: LiveEvents) -> list[Sign]:
    with live.watch(TURN) as events:
        return [events.receive_nowait() for _ in range(events.statistics().current_buffer_used)]


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ([STARTED, TextAdded("a"), TextAdded("b")], [STARTED, TextAdded("ab")]),
        ([TextAdded("a"), Notice("wait"), TextAdded("b", retract=True), TextAdded("c")], [TextAdded("bc")]),
        ([TextAdded("a"), STARTED, TextAdded("", retract=True)], [STARTED]),
        ([ReasoningAdded("a"), ReasoningAdded("b"), TextAdded("c")], [ReasoningAdded("ab"), TextAdded("c")]),
    ],
)
async def test_who_comes_later_gets_what_has_happened_so_far_in_few_events(
    told: list[TurnEvent], kept: list[TurnEvent]
) -> None:
    live = LiveEvents()
    live.keep(TURN)
    for event in told:
        live.publish(TURN, event)
    assert catch_up(live) == kept


async def test_nothing_is_kept_of_other_turns_nor_after_the_end() -> None:
    live = LiveEvents()
    live.publish(TURN, STARTED)
    assert catch_up(live) == []
    live.keep(TURN)
    live.publish(TURN, STARTED)
    live.publish(TURN, FINISHED)
    assert catch_up(live) == [] and not live.is_kept(TURN)


async def test_who_watches_from_the_beginning_gets_each_event_once() -> None:
    live = LiveEvents()
    live.keep(TURN)
    with live.watch(TURN) as events:
        for event in (STARTED, TextAdded("a"), FINISHED):
            live.publish(TURN, event)
        assert [events.receive_nowait() for _ in range(3)] == [STARTED, TextAdded("a"), FINISHED]
        assert events.statistics().current_buffer_used == 0


async def test_only_so_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("denizen.engine.events.live_events.KEPT_EVENTS", 3)
    monkeypatch.setattr("denizen.engine.events.live_events.KEPT_TURNS", 2)
    live = LiveEvents()
    live.keep(TURN)
    tools = [ToolStarted(CallId(str(number)), "look", {}) for number in range(4)]
    for event in (STARTED, *tools):
        live.publish(TURN, event)
    assert catch_up(live) == [STARTED, *tools[2:]]
    for other in ("a", "b"):
        live.keep(TurnId(other))
    assert not live.is_kept(TURN)


async def test_what_another_process_tells_is_kept_only_while_somebody_watches() -> None:
    live = LiveEvents()
    live.relay = DeafRelay(runs_turns=False)
    live.keep(TURN)
    with live.watch(TURN), live.watch(TURN):
        live.tell(TURN, STARTED)
        assert catch_up(live) == [STARTED]
    assert not live.is_kept(TURN)
