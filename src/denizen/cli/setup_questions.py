"""The questions of `denizen setup` in a terminal. They write nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.adapters.models.failures import KEY_REFUSED, UNREACHABLE
from denizen.adapters.models.providers import PROVIDERS, ProviderSpec
from denizen.app.home.secrets import SECRETS_FILE
from denizen.app.model_choice import KINDS
from denizen.app.settings import CONFIG_FILE
from denizen.app.settings.checks import BUILTIN
from denizen.cli.terminal import echo
from denizen.domain.errors import DenizenError
from denizen.domain.record import record

if TYPE_CHECKING:
    from denizen.app.settings.setup import SetupAnswers

_SHOWN_MODELS = 20

_DISCORD_STEPS = """\
An agent needs a bot of its own on Discord:
  1  At https://discord.com/developers/applications make a New Application.
  2  Under Bot: Reset Token, and copy the token. It is shown only once.
  3  Under Bot, Privileged Gateway Intents: switch on Message Content Intent (without it the agent reads mentions only)
     and Server Members Intent (with it, it knows whom an @Name means).
Afterwards `denizen doctor` shows the link that invites it, and what it is still lacking."""


@record
class KnownKeys:
    """The keys that may be there already: in the environment of this terminal, and in `secrets.env` for all."""

    home: Path
    environment: dict[str, str]
    stored: dict[str, str]

    @property
    def file(self) -> Path:
        return self.home / SECRETS_FILE

    def find(self, variable: str) -> str:
        """Returns the value that counts; empty for none."""
        return self.environment.get(variable) or self.stored.get(variable) or ""

    def lack(self, answers: SetupAnswers) -> bool:
        """Whether the provider of the answers needs a key that is nowhere yet."""
        return bool(answers.variable) and not answers.api_key and not self.find(answers.variable)


def ask_model(before: SetupAnswers, keys: KnownKeys) -> SetupAnswers:
    """Asks for provider, address, key and model. What was answered `before` is offered again."""
    click.echo("Where shall answers come from?")
    kinds = ["embedded", *(kind for kind in KINDS if kind != "embedded")]
    for number, kind in enumerate(kinds, 1):
        click.echo(f"  {number:>2}  {kind:<18} {PROVIDERS[kind].label}")
    kind = ""
    while not kind:
        kind = find_kind(click.prompt("Number or name", default=str(kinds.index(before.kind) + 1)), kinds)
    if kind == "embedded":
        name = BUILTIN if (keys.home / CONFIG_FILE).exists() else ""  # what is there may name another provider
        return replace(before, kind=kind, name=name, model="", base_url="", api_key="")
    again = before if before.kind == kind else replace(before, model="", base_url="", api_key="")
    answers = replace(again, kind=kind, name="")
    if kind in ("openai-compatible", "ollama"):
        answers = _ask_address(answers, keys)
    answers, names = _ask_key(answers, keys)
    return replace(answers, model=_ask_model_name(names, again.model))


def ask_discord(answers: SetupAnswers) -> SetupAnswers:
    """Asks for the token of a bot."""
    if not click.confirm("Shall the agent live on Discord too?", default=False):
        return answers
    click.echo(_DISCORD_STEPS)
    token = click.prompt("Token (empty: without Discord for now)", default="", show_default=False, hide_input=True)
    return replace(answers, discord_token=token.strip())


def find_kind(text: str, kinds: Sequence[str]) -> str:
    """Returns the provider that a number, its name, or a word of its description means; empty for none."""
    wanted = text.strip().lower()
    if wanted.isdecimal() and 1 <= int(wanted) <= len(kinds):
        return kinds[int(wanted) - 1]
    if wanted in kinds:
        return wanted
    words = {kind: [kind, *PROVIDERS[kind].label.lower().replace(":", "").split()] for kind in kinds}
    return next((kind for kind in kinds if wanted in words[kind]), "")


def narrow_names(text: str, shown: Sequence[str], names: Sequence[str]) -> list[str]:
    """Returns the models that a number among those shown, a name or a part of one may mean. Whatever no model has is
    taken as a name, since lists need not be complete; so is a part that is given twice.
    """
    if text.isdecimal() and 1 <= int(text) <= len(shown):
        return [shown[int(text) - 1]]
    found = [name for name in names if text.lower() in name.lower()]
    return [text] if text in names or not found or found == list(shown) else found


def _ask_model_name(names: Sequence[str], before: str) -> str:
    shown = list(names)
    while True:
        for number, name in enumerate(shown[:_SHOWN_MODELS], 1):
            echo(f"  {number:>2}  {name}")
        if len(shown) > _SHOWN_MODELS:
            click.echo(f"      and {len(shown) - _SHOWN_MODELS} more: type a part of a name to see those that have it")
        ask = "Model (number or name)" if shown else "Model (the provider's own name for it)"
        shown = narrow_names(click.prompt(ask, default=before or None).strip(), shown, names)
        if len(shown) == 1:
            return shown[0]


def _ask_address(answers: SetupAnswers, keys: KnownKeys) -> SetupAnswers:
    """Asks until something answers there, or the same is given again."""
    tried = ""
    while True:
        address = click.prompt("Address", default=answers.base_url or "http://127.0.0.1:11434/v1").strip()
        answers = replace(answers, base_url=address)
        try:
            _list_models(answers, keys)
        except DenizenError as error:
            if error.code == UNREACHABLE and address != tried:
                echo(f"{error.message} ({error.why})\nCorrect the address, or keep it with Enter.", err=True)
                tried = address
                continue
        return answers


def _ask_key(answers: SetupAnswers, keys: KnownKeys) -> tuple[SetupAnswers, list[str]]:
    """Asks until the provider takes the key, or the same is given again; returns the models that it lists, too."""
    tried: SetupAnswers | None = None
    while True:
        if answers.kind != "ollama":
            answers = replace(answers, api_key=_ask_for_key(answers.kind, answers.api_key, keys))
        if answers == tried:
            return answers, []
        tried = answers
        if keys.lack(answers):
            later = f"or Enter once more, to set {answers.variable} later"
            echo(f"The provider '{answers.provider}' needs a key. Type it, {later}.", err=True)
            continue
        try:
            return answers, _list_models(answers, keys)
        except DenizenError as error:
            if error.code != UNREACHABLE or not answers.base_url:  # of which the question for the address told
                echo(f"{error.message} ({error.why})", err=True)
            if error.code != KEY_REFUSED:
                return answers, []
            echo("Correct the key, or keep it with Enter.", err=True)


def _ask_for_key(kind: str, before: str, keys: KnownKeys) -> str:
    """Returns the key that is to be stored; empty where there is none, or it stays in the environment."""
    variable = PROVIDERS[kind].key_variable
    known = keys.find(variable)
    if before:
        empty = "the one that you typed"
    elif not variable:
        empty = "the server needs none"
    else:
        empty = f"the one in {variable}" if known else f"read {variable} from the environment later"
    ask = f"API key, kept in {keys.file} for you alone (empty: {empty})"
    typed = click.prompt(ask, default=before, show_default=False, hide_input=True).strip()
    only_here = known and keys.stored.get(variable) != known
    if typed or not only_here:
        return typed
    keep = f"{variable} is set in this terminal only. Keep it in {keys.file}, so that others have it too?"
    return known if click.confirm(keep, default=True) else ""


def _list_models(answers: SetupAnswers, keys: KnownKeys) -> list[str]:
    """Returns the models that the provider lists. Raises as `list_served_models` does."""
    from denizen.adapters.models.listing import list_served_models

    key = answers.api_key or keys.find(answers.variable)
    spec = ProviderSpec(name=answers.provider, kind=answers.kind, base_url=answers.base_url, api_key=lambda: key)
    return anyio.run(list_served_models, spec)
