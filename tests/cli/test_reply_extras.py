"""What comes besides the text of an answer, in the terminal: reasoning dimmed, pictures told."""

from __future__ import annotations

import io
import json
from base64 import b64encode

import pytest
from rich.console import Console

from denizen.cli.ask import AnswerPrinter
from denizen.cli.chat import TurnView
from denizen_sdk.turns import ReasoningAddedEvent, TextAddedEvent, TurnFinishedEvent

PNG = "data:image/png;base64," + b64encode(bytes(3000)).decode()
END = TurnFinishedEvent("t", "done", "A rose.", images=(PNG,), reasoning="Ana asks.")


@pytest.mark.proves("C25-reasoning", "C25")
def test_a_chat_shows_reasoning_dimmed_on_lines_of_its_own_and_tells_of_pictures() -> None:
    out = io.StringIO()
    view = TurnView(Console(file=out, force_terminal=True, highlight=False, width=80))
    for event in (ReasoningAddedEvent("Ana "), ReasoningAddedEvent("asks.\x1b[2J"), TextAddedEvent("A rose."), END):
        view.show(event)
    text = out.getvalue()
    assert "\x1b[2mAna \x1b[0m" in text and "\x1b[2J" not in text
    assert text.index("asks.") < text.index("\nA rose.") < text.index("[a picture: image/png, 3 KiB]")


@pytest.mark.proves("L9")
def test_ask_prints_cards_below_the_answer_and_tells_of_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    end = TurnFinishedEvent("t", "done", "Here.", images=(PNG, "https://a.example/1.png"), cards="**Menu**")
    assert AnswerPrinter(live=False, as_json=False).finish(end) == 0
    told = capsys.readouterr()
    assert told.out == "Here.\n\n**Menu**\n"
    assert "a picture: image/png" in told.err and "a picture: https://a.example/1.png" in told.err
    assert AnswerPrinter(live=False, as_json=True).finish(end) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["images"], answer["cards"]) == ([PNG, "https://a.example/1.png"], "**Menu**")


@pytest.mark.proves("C25-reasoning")
def test_ask_prints_reasoning_beside_the_answer_never_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    printer = AnswerPrinter(live=True, as_json=False)
    for event in (ReasoningAddedEvent("Ana asks."), TextAddedEvent("A rose.")):
        printer.show(event)
    assert printer.finish(END) == 0
    told = capsys.readouterr()
    assert told.out == "A rose.\n"
    assert "Ana asks." in told.err and "a picture: image/png" in told.err
