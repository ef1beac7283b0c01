"""`denizen prompt`: the requests that a question would make, in full; none of them is sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.app.model_choice import ModelChoice
from denizen.app.terminal_messages import TerminalMessage
from denizen.cli.ask import plan_message, read_question
from denizen.cli.options import model_options
from denizen.cli.terminal import echo, printable_json
from denizen.domain.ids import ConversationId
from denizen.domain.json import JsonObject
from denizen.domain.message import TextPart, parts_to_json
from denizen.domain.prompt import PromptMessage, estimate_tokens

if TYPE_CHECKING:
    from denizen.engine.inspection.replay import PlannedRequest


@click.command()
@click.argument("text", nargs=-1)
@click.option("-a", "--agent", default="", help="The agent that would answer.  [default: the configured one]")
@click.option("-s", "--session", default="", help="Ask in this session of `denizen ask`.")
@click.option("--conversation", default="", help="Ask in this conversation, by its id, which `denizen trace` shows.")
@click.option("--json", "as_json", is_flag=True, help="The requests as JSON.")
@model_options
@click.pass_obj
def command(
    home: Path,
    text: tuple[str, ...],
    agent: str,
    session: str,
    choice: ModelChoice,
    *,
    conversation: str,
    as_json: bool,
) -> None:
    """Show what would be sent to the model for a question: system prompt, tools and messages. Nothing is sent.

    If the model plans its tool calls, both the request for a plan and the one for an answer without tools are shown. If
    a router chooses the model, its request comes first.

    \b
    denizen prompt "What time is it in Tokyo?"
    """
    message = plan_message(read_question(text), agent, session)
    anyio.run(_show, home, choice, message, conversation, as_json)


async def _show(
    home: Path,
    choice: ModelChoice,
    message: TerminalMessage,
    conversation: str,
    as_json: bool,  # noqa: FBT001 - from `run`
) -> None:
    from denizen.app.build import OpenOptions, open_denizen
    from denizen.app.terminal import TerminalService
    from denizen.engine.inspection.replay import plan_requests

    async with open_denizen(home, OpenOptions(choice, durable=False)) as denizen:
        place = ConversationId(conversation) if conversation else None
        request = TerminalService(denizen).plan_turn(message)
        unsent = await plan_requests(denizen.runtime, denizen.services, request, place)
    if as_json:
        click.echo(printable_json([_as_json(each) for each in unsent]))
        return
    for each in unsent:
        for line in _lines(each):
            echo(line)


def _lines(unsent: PlannedRequest) -> Iterator[str]:
    request = unsent.request
    yield f"To {unsent.model}, at most {request.max_output_tokens:,} tokens back; not sent"
    for segment in request.segments:
        tokens = estimate_tokens(segment.text)
        yield f"system: {segment.name}, {segment.stability.name.lower()}, about {tokens:,} tokens"
        yield _indented(segment.text)
    for spec in request.tools:
        yield f"tool: {spec.name} {printable_json(dict(spec.parameters))}"
        yield _indented(spec.description)
    for message in request.messages:
        yield f"{message.role}: {message.kind}"
        yield _indented(_text(message))


def _text(message: PromptMessage) -> str:
    rows = zip(message.parts, parts_to_json(message.parts), strict=True)
    return "\n".join(part.text if isinstance(part, TextPart) else printable_json(row) for part, row in rows)


def _indented(text: str) -> str:
    return "\n".join(f"  | {line}" for line in text.splitlines())


def _as_json(unsent: PlannedRequest) -> JsonObject:
    request = unsent.request
    return {
        "model": unsent.model,
        "segments": [{"name": s.name, "stability": s.stability.name.lower(), "text": s.text} for s in request.segments],
        "tools": [
            {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
            for spec in request.tools
        ],
        "messages": [
            {"role": str(message.role), "kind": message.kind, "parts": parts_to_json(message.parts)}
            for message in request.messages
        ],
        "max_output_tokens": request.max_output_tokens,
        "output_schema": request.output_schema,
    }
