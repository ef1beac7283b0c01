"""The questions of `denizen agents create` in a terminal. They write nothing."""

from __future__ import annotations

import textwrap

import click

from denizen.cli.terminal import echo
from denizen.domain.agent_draft import QUESTIONS, AgentChoices, AgentDraft, check_answer, to_draft
from denizen.domain.errors import DenizenError


def ask_draft(before: AgentDraft, choices: AgentChoices) -> AgentDraft:
    """Asks one thing after another. What was answered `before` is offered again, and an answer that does not do is
    asked for again at once.
    """
    answers: dict[str, str] = {}
    for step in QUESTIONS:
        if step == "tools":
            echo("Tools that it can be given:")
            echo(textwrap.fill(", ".join(choices.tools), 118, initial_indent="  ", subsequent_indent="  "))
        elif step == "model":
            echo(f"Models: {', '.join(choices.models)}")
        given = " ".join(before.tools) if step == "tools" else str(getattr(before, step))
        answers[step] = _ask(step, given, choices)
    return to_draft(answers)


def _ask(step: str, before: str, choices: AgentChoices) -> str:
    while True:
        typed = str(click.prompt(QUESTIONS[step], default=before, show_default=bool(before)))
        try:
            return check_answer(step, "" if typed == "-" else typed, choices)
        except DenizenError as error:
            echo(error.explain(), err=True)
