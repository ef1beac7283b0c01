"""`denizen ask`: one turn, the answer on standard output, everything else on standard error.

Where `denizen run` runs on the home folder, it answers; else this process opens the folder for the question. The way to
a server is to be quick, so what it does not need is imported elsewhere.
"""

from __future__ import annotations

import json
import os
import select
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from denizen.app.model_choice import ModelChoice
from denizen.app.terminal_messages import TerminalMessage
from denizen.cli.exit_codes import DONE, INTERRUPTED, exit_code
from denizen.cli.options import model_options
from denizen.cli.terminal import (
    IN_THE_END,
    SKIPPED,
    can_prompt,
    describe_picture,
    echo,
    printable,
    printable_json,
    show_decision,
    show_waiting_call,
    stop_on_interrupt,
)
from denizen.cli.terminal_client import TerminalClient, find_server
from denizen.cli.waiting_line import WaitingLine, open_waiting_line
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import fresh
from denizen.web.http.problems import read_problem
from denizen_sdk.records import Json
from denizen_sdk.turns import (
    ApprovalDecidedEvent,
    ApprovalRequestedEvent,
    ChatEvent,
    NoticeEvent,
    ReasoningAddedEvent,
    TextAddedEvent,
    TextRetractedEvent,
    ToolFinishedEvent,
    ToolStartedEvent,
    TurnFailedEvent,
    TurnFinishedEvent,
)

if TYPE_CHECKING:
    from denizen.app.terminal import TerminalService
    from denizen.cli.server_terminal import ServerTerminal

STOPPED = "Stopped."

PIPE_GRACE_S = 1.0
"""So long a pipe may be empty: a program that starts this one may have left it its own, in which nobody writes."""


@click.command()
@click.argument("text", nargs=-1)
@click.option("-a", "--agent", default="", help="Which agent answers.  [default: the configured one]")
@click.option("-s", "--session", default="", help="Continue this session; without it each question stands alone.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object with answer, usage and turn id.")
@click.option(
    "--wait", is_flag=True, help="Where nobody sits at a terminal, let calls wait for `denizen approvals`, too."
)
@click.option("--stream/--no-stream", default=None, help="Print the answer as it comes.  [default: on a terminal]")
@model_options
@click.pass_obj
def command(  # noqa: PLR0913 - one for each option
    home: Path,
    text: tuple[str, ...],
    agent: str,
    session: str,
    choice: ModelChoice,
    *,
    as_json: bool,
    wait: bool,
    stream: bool | None,
) -> int:
    """Ask one question. A `denizen run` of this home answers, if there is one and no model is named.

    What is piped in, or a file as standard input, goes behind the words of TEXT. A pipe through which nothing comes
    within a second is left alone: '-' as a word, or no words, wait for it. In a loop that reads from a pipe itself, add
    `</dev/null`.

    \b
    denizen ask "What time is it in Tokyo?"
    git diff | denizen ask "Summarise this change"
    curl -s https://example.org/slow | denizen ask "Summarise this page" -
    denizen ask --base-url http://127.0.0.1:9100/v1 --model tiny "hello"
    """
    message = plan_message(read_question(text), agent, session, waits=wait)
    live = False if as_json else sys.stdout.isatty() if stream is None else stream
    server = find_server(home) if choice == ModelChoice() else None
    with open_waiting_line(shows_text=live) as line, line.watch():
        printer = AnswerPrinter(live=live, as_json=as_json, line=line)
        if server is not None:
            return _ask_server(server, message, printer)

        import anyio

        # Without uvloop: one turn is not worth importing it.
        return anyio.run(_ask_here, home, choice, message, printer)


def read_question(words: tuple[str, ...]) -> str:
    """The words of the command line, and what standard input has for them. Raises InvalidInput for none."""
    parts = [" ".join(word for word in words if word != "-")]
    wants_input = not words or "-" in words
    if not sys.stdin.isatty() if wants_input else _has_input():
        parts.append(sys.stdin.read())
    question = "\n\n".join(part.strip() for part in parts if part.strip())
    if not question:
        raise InvalidInput("There is no question.", fix='Write it behind the command: denizen ask "..."')
    return question


def _has_input() -> bool:
    """Whether standard input is a pipe or a file for this question. A file that was begun is somebody else's, such as
    the loop's that this command stands in.
    """
    descriptor = sys.stdin.fileno()
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.lseek(descriptor, 0, os.SEEK_CUR) == 0
    if not stat.S_ISFIFO(mode):
        return False
    if select.select([descriptor], [], [], PIPE_GRACE_S)[0]:
        return True
    waited = f"Nothing came through the pipe within {PIPE_GRACE_S:.0f} s"
    echo(f"[{waited}: the question goes without it. With - as a word it is waited for.]", err=True)
    return False


def plan_message(question: str, agent: str, session: str, *, waits: bool = False) -> TerminalMessage:
    """Returns the question as a message. Without a session it stands alone."""
    return TerminalMessage(
        key=fresh("ask"),
        command="ask",
        session=session or fresh("once"),
        text=question,
        agent=agent,
        can_prompt=can_prompt(),
        waits=waits,
    )


def _ask_server(server: TerminalClient, message: TerminalMessage, printer: AnswerPrinter) -> int:
    """Without an event loop, until somebody is asked about a call."""
    stream = server.stream(message)
    events = iter(stream)
    with stop_on_interrupt(lambda: server.cancel(message)):
        for event in events:
            printer.line.take(event)
            match event:
                case ApprovalRequestedEvent() if can_prompt():
                    events = chain([event], events)
                    break
                case ApprovalRequestedEvent():
                    show_waiting_call(event.approval)
                case ApprovalDecidedEvent():
                    show_decision(event.approval)
                case TurnFinishedEvent() | TurnFailedEvent():
                    return printer.finish(event)
                case _:
                    printer.show(event)

    import anyio

    from denizen.cli.server_terminal import ServerTerminal, follow

    return anyio.run(lambda: _show(follow(events, stream.close), ServerTerminal(server), message, printer))


async def _ask_here(home: Path, choice: ModelChoice, message: TerminalMessage, printer: AnswerPrinter) -> int:
    from denizen.app.build import OpenOptions, open_denizen
    from denizen.app.terminal import TerminalService
    from denizen.cli.log import leave_to_command
    from denizen.cli.terminal import show_weights_progress

    leave_to_command("denizen.turn")

    opening = OpenOptions(choice, report=printer.line.give_way(show_weights_progress), asks=True)
    async with open_denizen(home, opening) as denizen:
        terminal = TerminalService(denizen)
        terminal.check()
        code = await _show(terminal.stream(message), terminal, message, printer)
        await terminal.finish()
        return code


async def _show(
    events: AsyncGenerator[ChatEvent],
    terminal: TerminalService | ServerTerminal,
    message: TerminalMessage,
    printer: AnswerPrinter,
) -> int:
    from denizen.cli.approval_prompt import prompt_for_approvals
    from denizen.cli.terminal import stoppable

    async def show() -> int:
        async with aclosing(events):
            async for event in events:
                printer.line.take(event)
                people.take(event)
                if isinstance(event, TurnFinishedEvent | TurnFailedEvent):
                    return printer.finish(event)
                printer.show(event)
        return INTERRUPTED

    async with prompt_for_approvals(terminal.decide) as people:
        return await stoppable(show, lambda: terminal.cancel(message))


class AnswerPrinter:
    """The answer to standard output, what the agent does to standard error.

    `live` prints text as it grows; words before a tool call are then printed too, on lines of their own. `line` is to
    be told of an event before it is shown.
    """

    def __init__(self, *, live: bool, as_json: bool, line: WaitingLine | None = None) -> None:
        self.line = line or WaitingLine()
        self._live = live
        self._as_json = as_json
        self._line_open = False
        self._reasons = False
        self._said = ""

    def show(self, event: ChatEvent) -> None:
        """One event, the last excepted."""
        match event:
            case TextAddedEvent() if self._live:
                self._end_reasoning()
                echo(event.text, nl=False)
                self._said += event.text
                self._line_open = not event.text.endswith("\n")
            case TextRetractedEvent():
                self._end_line()
                self._said = ""
            case ReasoningAddedEvent() if self._live:
                click.secho(printable(event.text), nl=False, err=True, dim=True)
                self._reasons = True
            case ToolStartedEvent():
                self._aside(f"{event.tool} {json.dumps(event.args, ensure_ascii=False)}")
            case ToolFinishedEvent() if event.is_error:
                self._aside(f"{event.tool} failed: {event.text}")
            case NoticeEvent():
                self._aside(event.text)
            case _:
                pass

    def finish(self, event: TurnFinishedEvent | TurnFailedEvent) -> int:
        """The end of the turn; returns the exit code."""
        self._end_reasoning()
        self._end_line()
        if isinstance(event, TurnFinishedEvent):
            for image in event.images:
                self._aside(describe_picture(image).strip("[]"))
        if self._as_json:
            click.echo(printable_json(_as_json(event)))
        elif isinstance(event, TurnFinishedEvent) and event.reply:
            if not self._live:
                echo(event.reply)
            elif self._said.strip() not in ("", event.reply):
                echo(f"\n{IN_THE_END}\n{event.reply}")
        if isinstance(event, TurnFinishedEvent) and event.cards and not self._as_json:
            echo(f"\n{event.cards}")
        if isinstance(event, TurnFailedEvent):
            error = read_problem(event.error)
            echo(f"error: {error.message}", err=True)
            if error.fix:
                echo(f"fix: {error.fix}", err=True)
            return exit_code(error.family)
        if event.skipped:
            echo(SKIPPED, err=True)
            return DONE
        if event.status == "done":
            return DONE
        echo(STOPPED, err=True)
        return INTERRUPTED

    def _end_reasoning(self) -> None:
        if self._reasons:
            click.echo(err=True)
            self._reasons = False

    def _aside(self, text: str) -> None:
        self._end_reasoning()
        self._end_line()
        echo(f"[{text}]", err=True)

    def _end_line(self) -> None:
        if self._line_open:
            click.echo()
            self._line_open = False


def _as_json(event: TurnFinishedEvent | TurnFailedEvent) -> Json:
    answered = event if isinstance(event, TurnFinishedEvent) else TurnFinishedEvent(event.turn_id, event.status, "")
    error: Json | None = None
    if isinstance(event, TurnFailedEvent):
        error = {"code": event.error.code, "message": event.error.message, "fix": event.error.fix}
    elif event.status == "cancelled":
        error = {"code": "", "message": STOPPED, "fix": ""}
    return {
        "turn": event.turn_id,
        "status": event.status,
        "answer": answered.reply,
        "images": list(answered.images),
        "cards": answered.cards,
        "reasoning": event.reasoning,
        "error": error,
        "usage": {
            "input_tokens": event.usage.input_tokens,
            "output_tokens": event.usage.output_tokens,
            "cache_read_tokens": event.usage.cached_tokens,
            "cost_usd": event.usage.cost_usd,
            "requests": event.usage.requests,
        },
    }
