"""`denizen ask`: one turn, the answer on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import anyio
import click

from denizen.app.model_choice import ModelChoice
from denizen.cli.approval_prompt import ApprovalPrompt, can_prompt, prompt_for_approvals
from denizen.cli.exit_codes import DONE, INTERRUPTED, exit_code
from denizen.cli.options import model_options
from denizen.cli.terminal import IN_THE_END, describe_picture, echo, printable, printable_json, stoppable
from denizen.domain.approval import AskerReach
from denizen.domain.conversation import Place
from denizen.domain.errors import InvalidInput
from denizen.domain.events import Notice, ReasoningAdded, TextAdded, ToolFinished, ToolStarted, TurnEvent, TurnFinished
from denizen.domain.ids import AgentName, fresh
from denizen.domain.json import JsonObject
from denizen.domain.message import Author, TextPart
from denizen.domain.principal import Principal
from denizen.domain.turn import Sender, TurnFailure, TurnRequest, TurnStatus


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
    """Ask one question. TEXT of '-' or none reads standard input.

    \b
    denizen ask "What time is it in Tokyo?"
    git diff | denizen ask "Summarise this change"
    denizen ask --base-url http://127.0.0.1:9100/v1 --model tiny "hello"
    """
    question = read_ask_request(text)
    live = False if as_json else sys.stdout.isatty() if stream is None else stream
    request = AskRequest(question, agent, session, choice, waits=wait)
    # Without uvloop: one turn is not worth importing it.
    return anyio.run(_ask, home, request, AnswerPrinter(live=live, as_json=as_json))


@dataclass(frozen=True, slots=True)
class AskRequest:
    """A question to an agent, and the model for it. `waits`: calls may wait for approval where nobody can be asked."""

    text: str
    agent: str
    session: str
    choice: ModelChoice
    waits: bool = False

    def turn_request(self, principal: Principal) -> TurnRequest:
        """As a message of the terminal."""
        return TurnRequest(
            agent=AgentName(self.agent),
            place=Place("terminal", "ask", self.session or fresh("once")),
            sender=Sender(
                Author(principal.id, principal.name),
                principal,
                AskerReach.WATCHER if can_prompt() else AskerReach.WAITS if self.waits else AskerReach.NOBODY,
            ),
            parts=(TextPart(self.text),),
            platform_id=fresh("ask"),
        )


def read_ask_request(words: tuple[str, ...]) -> str:
    """The words of the command line, and standard input where they ask for it. Raises InvalidInput for none."""
    parts = [" ".join(word for word in words if word != "-")]
    if not sys.stdin.isatty() and (not words or "-" in words):
        parts.append(sys.stdin.read())
    question = "\n\n".join(part.strip() for part in parts if part.strip())
    if not question:
        raise InvalidInput("There is no question.", fix='Write it behind the command: denizen ask "..."')
    return question


async def _ask(home: Path, question: AskRequest, printer: AnswerPrinter) -> int:
    from denizen.app.build import LOCAL, OpenOptions, open_denizen
    from denizen.cli.terminal import show_weights_progress

    async with open_denizen(home, OpenOptions(question.choice, report=show_weights_progress)) as denizen:
        denizen.require_terminal()
        asked = question.turn_request(LOCAL)
        turns = denizen.turns
        async with prompt_for_approvals(turns.approvals, LOCAL) as people:
            return await stoppable(
                lambda: _show(turns.stream(asked), printer, people), lambda: turns.cancel_message(asked)
            )


async def _show(events: AsyncGenerator[TurnEvent], printer: AnswerPrinter, people: ApprovalPrompt) -> int:
    async with aclosing(events):
        async for event in events:
            people.take(event)
            if isinstance(event, TurnFinished):
                return printer.finish(event)
            printer.show(event)
    return INTERRUPTED


class AnswerPrinter:
    """The answer to standard output, what the agent does to standard error.

    `live` prints text as it grows; words before a tool call are then printed too, on lines of their own.
    """

    def __init__(self, *, live: bool, as_json: bool) -> None:
        self._live = live
        self._as_json = as_json
        self._line_open = False
        self._reasons = False
        self._said = ""

    def show(self, event: TurnEvent) -> None:
        """One event, the last excepted."""
        match event:
            case TextAdded() if self._live and event.text:
                self._end_reasoning()
                echo(event.text, nl=False)
                self._said += event.text
                self._line_open = not event.text.endswith("\n")
            case TextAdded(retract=True):
                self._end_line()
                self._said = ""
            case ReasoningAdded() if self._live:
                click.secho(printable(event.text), nl=False, err=True, dim=True)
                self._reasons = True
            case ToolStarted():
                self._aside(f"{event.tool} {json.dumps(event.args, ensure_ascii=False)}")
            case ToolFinished() if event.is_error:
                self._aside(f"{event.tool} failed: {event.text}")
            case Notice():
                self._aside(event.text)
            case _:
                pass

    def finish(self, event: TurnFinished) -> int:
        """The end of the turn; returns the exit code."""
        self._end_reasoning()
        self._end_line()
        for image in event.images:
            self._aside(describe_picture(image).strip("[]"))
        if self._as_json:
            click.echo(printable_json(_as_json(event)))
        elif event.reply and not self._live:
            echo(event.reply)
        elif event.reply and self._said.strip() not in ("", event.reply):
            echo(f"\n{IN_THE_END}\n{event.reply}")
        if event.status is TurnStatus.DONE:
            return DONE
        failure = event.failure or TurnFailure("")
        if event.status is TurnStatus.CANCELLED:
            echo(failure.message, err=True)
            return INTERRUPTED
        echo(f"error: {failure.message}", err=True)
        if failure.fix:
            echo(f"fix: {failure.fix}", err=True)
        return exit_code(failure.family)

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


def _as_json(event: TurnFinished) -> JsonObject:
    usage = event.usage
    failure = event.failure
    return {
        "turn": event.turn_id,
        "status": event.status,
        "answer": event.reply,
        "images": list(event.images),
        "reasoning": event.reasoning,
        "error": {"code": failure.code, "message": failure.message, "fix": failure.fix} if failure else None,
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "cost_usd": None if usage.cost_usd is None else str(usage.cost_usd),
            "requests": usage.requests,
        },
    }
