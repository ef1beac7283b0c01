"""The line that says how long a turn has shown nothing."""

from __future__ import annotations

import io
from contextlib import redirect_stderr

import pytest

from denizen.cli.waiting_line import WaitingLine
from denizen_sdk.turns import (
    ApprovalDecidedEvent,
    ApprovalInfo,
    ApprovalRequestedEvent,
    ChatEvent,
    RequestedCall,
    TextAddedEvent,
    ToolStartedEvent,
    TurnFinishedEvent,
    TurnOpenedEvent,
)

OPENED = TurnOpenedEvent("turn_1", "denizen", "local/tiny")
TOOL = ToolStartedEvent("call_1", "calculator")
SHOWN = "\r[waiting for the answer: 4 s]"
TAKEN_AWAY = f"\r{' ' * (len(SHOWN) - 1)}\r"
CALL = RequestedCall("calculator", {}, 2, "sums are serious", "6 * 6")
WAITS = ApprovalInfo(
    id="apr_1", turn_id="turn_1", agent="denizen", call=CALL, requester="operator", status="pending", created_at=""
)


class Silence:
    """A line whose clock is moved by hand, and what it wrote."""

    def __init__(self, *, shows_text: bool = True) -> None:
        self.now_s = 0.0
        self.line = WaitingLine(shows_text=shows_text, clock=lambda: self.now_s)

    def lasts(self, seconds: float) -> None:
        self.now_s += seconds
        self.line.draw()


def test_a_silence_is_told_after_a_while_and_what_comes_takes_the_place_of_its_line() -> None:
    silence = Silence()
    with redirect_stderr(io.StringIO()) as screen, silence.line.watch():
        silence.lasts(2)
        assert screen.getvalue() == ""
        silence.lasts(2)
        assert screen.getvalue() == SHOWN
        silence.line.take(TOOL)
        assert screen.getvalue() == SHOWN + TAKEN_AWAY
        silence.lasts(2)
        assert screen.getvalue() == SHOWN + TAKEN_AWAY, "it begins anew"
        silence.lasts(2)
        silence.line.give_way(screen.writelines)(["loading\n"])
        assert screen.getvalue() == 2 * (SHOWN + TAKEN_AWAY) + "loading\n"
        silence.lasts(4)
    silence.lasts(60)
    assert screen.getvalue() == f"{2 * (SHOWN + TAKEN_AWAY)}loading\n{SHOWN}{TAKEN_AWAY}"


@pytest.mark.parametrize("event", [TextAddedEvent("Once"), TurnFinishedEvent("turn_1", "done", "Once")])
def test_text_that_grows_or_has_ended_is_not_written_over(event: ChatEvent) -> None:
    silence = Silence()
    with redirect_stderr(io.StringIO()) as screen, silence.line.watch():
        silence.line.take(event)
        silence.lasts(60)
    assert screen.getvalue() == ""


def test_text_that_is_not_shown_is_silence() -> None:
    silence = Silence(shows_text=False)
    with redirect_stderr(io.StringIO()) as screen, silence.line.watch():
        silence.lasts(2)
        silence.line.take(TextAddedEvent("Once"))
        silence.lasts(2)
        assert screen.getvalue() == SHOWN


def test_no_line_comes_while_somebody_is_asked() -> None:
    silence = Silence()
    with redirect_stderr(io.StringIO()) as screen, silence.line.watch():
        silence.line.take(OPENED)
        silence.line.take(ApprovalRequestedEvent(WAITS))
        silence.line.take(TOOL)
        silence.lasts(60)
        assert screen.getvalue() == ""
        silence.line.take(ApprovalDecidedEvent(WAITS))
        silence.lasts(4)
        assert screen.getvalue() == SHOWN
