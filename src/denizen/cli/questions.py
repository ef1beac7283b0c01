"""`denizen questions`: what agents asked the owner, and answers, which a running server passes on."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import with_denizen
from denizen.cli.terminal import echo, printable_json
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.question import QuestionStatus, describe_question

if TYPE_CHECKING:
    from denizen.app.build import Denizen


@click.group(cls=CommandGroup)
def command() -> None:
    """List and answer what agents asked the owner. The agent hears of an answer from the running server."""


@command.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that are answered or dismissed.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, as GET /api/questions gives them.")
@with_denizen
async def list_command(denizen: Denizen, *, everything: bool, as_json: bool) -> None:
    """List the questions that wait, the newest first."""
    from denizen.web.api.questions import question_to_wire

    found = await denizen.services.questions.list_questions(status=None if everything else QuestionStatus.OPEN)
    if as_json:
        for question in found:
            click.echo(printable_json(asdict(question_to_wire(question))))
        return
    if not found:
        echo("No agent has asked anything yet." if everything else "No question waits.")
    for question in found:
        echo("\n".join(describe_question(question)))


@command.command()
@click.argument("question")
@click.argument("answer")
@with_denizen
async def answer(denizen: Denizen, question: str, answer: str) -> None:
    """Answer a question. QUESTION is an id or its beginning."""
    key = await _find(denizen, question)
    done = await denizen.services.questions.answer(key, denizen.operator, answer)
    echo(f"Answered. {done.agent} hears of it from the running server.")


@command.command()
@click.argument("question")
@with_denizen
async def dismiss(denizen: Denizen, question: str) -> None:
    """End a question without an answer, of which the agent hears nothing."""
    await denizen.services.questions.dismiss(await _find(denizen, question), denizen.operator)
    echo("Dismissed.")


async def _find(denizen: Denizen, name: str) -> str:
    """Returns the id that begins so; those that wait go first. Raises NotFound, and InvalidInput for the beginning of
    several.
    """
    known = [each for each in await denizen.services.questions.list_questions(limit=1000) if each.id.startswith(name)]
    found = [each.id for each in known if each.status is QuestionStatus.OPEN] or [each.id for each in known]
    if len(found) > 1:
        raise InvalidInput(f"'{name}' begins {len(found)} questions.", fix="Write more of the id.")
    if not found:
        raise NotFound(
            f"There is no question '{name}'.", code="question_not_found", fix="`denizen questions list` shows them."
        )
    return found[0]
