"""The questions of `denizen agents create` in a terminal. They write nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import click

from denizen.cli.terminal import echo
from denizen.domain.agent_draft import AgentDraft, check_description, check_model, check_name, check_text, check_tools
from denizen.domain.errors import DenizenError
from denizen.domain.record import record

if TYPE_CHECKING:
    from collections.abc import Collection

T = TypeVar("T")


@record
class AgentChoices:
    """The agents, tools and models that there are."""

    agents: Collection[str]
    tools: Sequence[str]
    models: Sequence[str]


def ask_draft(before: AgentDraft, choices: AgentChoices) -> AgentDraft:
    """Asks one thing after another. What was answered `before` is offered again, and an answer that does not do is
    asked for again at once.
    """
    draft = replace(
        before,
        name=_ask("Name", before.name, lambda text: check_name(text, choices.agents)),
        description=_ask("What is it for, in one sentence?", before.description, check_description),
        identity=_ask("Who is it? (You are ...; empty for the usual character)", before.identity, check_text),
        instructions=_ask("What does it do, and what does it leave? (may be empty)", before.instructions, check_text),
    )
    echo("Tools that it can be given, none by default; * is all that do no great harm:")
    echo(textwrap.fill(", ".join(choices.tools), 118, initial_indent="  ", subsequent_indent="  "))
    tools = _ask(
        "Tools", " ".join(before.tools), lambda text: check_tools(text.replace(",", " ").split(), choices.tools)
    )
    echo(f"Models: {', '.join(choices.models)}")
    model = _ask("Model (empty for the usual one)", before.model, lambda text: check_model(text, choices.models))
    return replace(draft, tools=tools, model=model)


def _ask(question: str, before: str, check: Callable[[str], T]) -> T:
    while True:
        typed = str(click.prompt(question, default=before, show_default=bool(before)))
        try:
            return check("" if typed == "-" else typed)
        except DenizenError as error:
            echo(error.explain(), err=True)
