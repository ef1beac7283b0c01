"""Nothing that a model, a tool or a page says can command the operator's terminal."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from denizen.app.build import LOCAL, OpenOptions, open_denizen
from denizen.cli.ask import AnswerPrinter
from denizen.cli.chat import TurnView
from denizen.cli.main import run
from denizen.cli.terminal import printable, printable_json
from denizen.cli.trace import command as trace
from denizen.domain.conversation import Place
from denizen.domain.errors import Unavailable
from denizen.domain.ids import AgentName, CallId, MessageId, TurnId
from denizen.domain.message import Author, Message, Role, TextPart
from denizen.domain.tool import Tier, ToolCall, ToolResult
from denizen.domain.turn import CallRecord, Step, Turn, TurnResult, TurnStatus
from denizen.domain.usage import Usage
from denizen.domain.verdict import CallOutcome, Decision, Verdict
from denizen_sdk.errors import ProblemDetails
from denizen_sdk.turns import (
    ChatEvent,
    NoticeEvent,
    TextAddedEvent,
    TextRetractedEvent,
    ToolFinishedEvent,
    ToolStartedEvent,
    TurnFailedEvent,
    TurnFinishedEvent,
)

TITLE = "\x1b]0;owned\x07"
CLEAR = "\x9b2J"
NASTY = f"a{TITLE}b{CLEAR}c\rd\x08\x7fe\n\tf"
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
CALL = CallId("c")
DONE = TurnFinishedEvent("t", "done", NASTY)
FAILED = TurnFailedEvent("t", ProblemDetails("x", NASTY, 503, fix=NASTY))
EVENTS: list[ChatEvent] = [
    TextAddedEvent(NASTY),
    ToolStartedEvent(CALL, "look", {"q": NASTY}),
    ToolFinishedEvent(CALL, "look", NASTY, is_error=True, duration_ms=1),
    NoticeEvent(NASTY),
]


def is_harmless(text: str) -> bool:
    return all(char in "\n\t" or char.isprintable() for char in text.replace("\ufffd", "?"))


def test_control_characters_leave_a_mark_and_carriage_returns_vanish() -> None:
    assert printable(NASTY) == "a\ufffd]0;owned\ufffdb\ufffd2Jcd\ufffd\ufffde\n\tf"
    assert printable("Grüße 👋🏽\u200d, עברית\r\n") == "Grüße 👋🏽\u200d, עברית\n"
    assert printable("half \ud83d pair").encode() == "half \ufffd pair".encode()


def test_json_for_a_terminal_reads_back_as_it_was() -> None:
    written = printable_json({"answer": NASTY + "ü\ud83d"})
    assert is_harmless(written)
    assert "ü" in written
    assert json.loads(written) == {"answer": NASTY + "ü\ud83d"}


@pytest.mark.parametrize("end", [DONE, FAILED])
@pytest.mark.parametrize(("live", "as_json"), [(True, False), (False, False), (False, True)])
def test_ask_prints_no_control_sequences(
    capsys: pytest.CaptureFixture[str], end: TurnFinishedEvent | TurnFailedEvent, live: bool, as_json: bool
) -> None:
    printer = AnswerPrinter(live=live, as_json=as_json)
    for event in EVENTS:
        printer.show(event)
    printer.finish(end)
    out, err = capsys.readouterr()
    assert is_harmless(out)
    assert is_harmless(err)
    assert "owned" in out + err


def test_an_answer_that_was_changed_by_checking_it_is_shown_once_more(capsys: pytest.CaptureFixture[str]) -> None:
    for text, again in (("So it is [docs/a.md:1].", True), ("So it is.", False)):
        printer = AnswerPrinter(live=True, as_json=False)
        printer.show(TextAddedEvent("Let me look."))
        printer.show(TextRetractedEvent())
        printer.show(TextAddedEvent(text))
        printer.finish(replace(DONE, reply="So it is."))
        assert ("in the end:\nSo it is.\n" in capsys.readouterr().out) is again


@pytest.mark.parametrize("end", [DONE, FAILED])
def test_chat_prints_no_control_sequences(end: TurnFinishedEvent | TurnFailedEvent) -> None:
    screen = io.StringIO()
    view = TurnView(Console(file=screen, force_terminal=False, width=200))
    for event in (*EVENTS, end):
        view.show(event)
    assert is_harmless(screen.getvalue())
    assert "owned" in screen.getvalue()


async def fill(home: Path) -> None:
    """A turn in which a model made up a tool."""
    async with open_denizen(home, OpenOptions(durable=False)) as denizen, denizen.services.store.work() as work:
        conversation = await work.conversations.put(Place("terminal", "x"), now=NOW)
        session = await work.sessions.current(conversation.id, AgentName("denizen"), now=NOW)
        trigger = Message(
            id=MessageId("m"),
            conversation_id=conversation.id,
            role=Role.USER,
            author=Author("", ""),
            parts=(TextPart("?"),),
            created_at=NOW,
            session_id=session.id,
        )
        turn = Turn(
            id=TurnId("t"),
            conversation_id=conversation.id,
            session_id=session.id,
            agent=AgentName("denizen"),
            principal=LOCAL,
            trigger_id=trigger.id,
            status=TurnStatus.DONE,
            opened_at=NOW,
            result=TurnResult(reply=NASTY),
        )
        await work.turns.open(turn)
        await work.turns.add_step(
            Step(
                turn_id=turn.id,
                number=1,
                model=NASTY,
                purpose="act",
                finish_reason="stop",
                usage=Usage(),
                duration_ms=1,
                created_at=NOW,
            )
        )
        denied = Verdict(Decision.DENY, Tier.HARMLESS, NASTY, "arguments")
        await work.turns.add_call(
            CallRecord(
                turn_id=turn.id,
                step=1,
                position=0,
                tool_call=ToolCall(CALL, f"look\n  step 9 {TITLE}", {"q": NASTY}),
                outcome=CallOutcome(denied, ToolResult(NASTY, is_error=True), duration_ms=1),
                cached=False,
                created_at=NOW,
            )
        )


def test_a_trace_shows_what_a_model_made_up_without_obeying_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    anyio.run(fill, home)
    shown = CliRunner().invoke(trace, ["t"], obj=home)
    assert shown.exit_code == 0, shown.output
    assert is_harmless(shown.output)
    assert "look step 9" in shown.output


def test_an_error_from_outside_is_explained_without_its_control_sequences(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command()
    def failing() -> None:
        raise Unavailable("No answer.", why=NASTY)

    monkeypatch.setattr("denizen.cli.agents.command", failing)
    assert run(["agents"]) == 4
    assert is_harmless(capsys.readouterr().err)
