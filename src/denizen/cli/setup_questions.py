"""The questions of `denizen setup` in a terminal. They write nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import click

from denizen.adapters.models.failures import KEY_REFUSED, UNREACHABLE
from denizen.adapters.models.providers import PROVIDERS
from denizen.app.settings import CONFIG_FILE
from denizen.app.settings.checks import BUILTIN
from denizen.app.setup_steps import KINDS, USUAL_ADDRESS, asks_for_address, clean_token, list_models
from denizen.cli.doctor import MARKS
from denizen.cli.terminal import echo
from denizen.domain.errors import DenizenError, InvalidInput
from denizen.ports.setup import DISCORD_STEPS, TokenState

if TYPE_CHECKING:
    from denizen.app.settings.setup import SetupAnswers
    from denizen.app.setup_steps import KnownKeys
    from denizen.ports.setup import DiscordChecklist

_SHOWN_MODELS = 20


def ask_model(before: SetupAnswers, keys: KnownKeys) -> SetupAnswers:
    """Asks for provider, address, key and model. What was answered `before` is offered again."""
    click.echo("Where shall answers come from?")
    for number, kind in enumerate(KINDS, 1):
        click.echo(f"  {number:>2}  {kind:<18} {PROVIDERS[kind].label}")
    kind = ""
    while not kind:
        typed = click.prompt("Number or name", default=str(KINDS.index(before.kind) + 1))
        kind = find_kind(typed, KINDS)
        if not kind:
            echo(
                f"There is no provider '{typed}'. Type a number from 1 to {len(KINDS)}, or a name from the list.",
                err=True,
            )
    if kind == "embedded":
        name = BUILTIN if (keys.home / CONFIG_FILE).exists() else ""  # what is there may name another provider
        return replace(before, kind=kind, name=name, model="", base_url="", api_key="")
    again = before if before.kind == kind else replace(before, model="", base_url="", api_key="")
    answers = replace(again, kind=kind, name="")
    if asks_for_address(kind):
        answers = _ask_address(answers, keys)
    answers, names = _ask_key(answers, keys)
    return replace(answers, model=_ask_model_name(names, again.model))


def ask_discord(answers: SetupAnswers, check: Callable[[str], DiscordChecklist] | None) -> SetupAnswers:
    """Asks for the token of a bot, until Discord has nothing against it or it is to be used all the same. Without
    `check`, and where Discord cannot be asked, it is taken as it is.
    """
    if not click.confirm("Shall the agent live on Discord too?", default=False):
        return answers
    click.echo("An agent needs a bot of its own on Discord:")
    for number, step in enumerate(DISCORD_STEPS, 1):
        click.echo(textwrap.fill(step, 118, initial_indent=f"  {number}  ", subsequent_indent="     "))
    token = ""
    while True:
        token = token or _ask_token()
        if not token or check is None:
            return replace(answers, discord_token=token)
        checklist = check(token)
        show_checklist(checklist)
        if checklist.is_complete or checklist.token is TokenState.UNKNOWN:
            return replace(answers, discord_token=token)
        if checklist.token is TokenState.REFUSED:
            token = ""
            continue
        ask = "Look again, once that is done; connect it all the same; or leave Discord out for now?"
        wanted = click.prompt(ask, type=click.Choice(["look", "connect", "leave"]), default="look")
        if wanted == "connect":
            return replace(answers, discord_token=token)
        if wanted == "leave":
            return answers


def show_checklist(checklist: DiscordChecklist) -> None:
    """Says what Discord says about a token, which itself is not shown."""
    for each in checklist.findings:
        echo(f"{MARKS[each.severity]:<5} {each.what}", err=True)
        if each.fix:
            echo(f"      fix: {each.fix}", err=True)
    if checklist.invite_url:
        echo(f"The link that invites it into a server: {checklist.invite_url}", err=True)


def _ask_token() -> str:
    """Returns a token that may be one; empty for none."""
    while True:
        ask = "Token (empty: without Discord for now)"
        typed = click.prompt(ask, default="", show_default=False, hide_input=True).strip()
        try:
            return clean_token(typed) if typed else ""
        except InvalidInput as error:
            echo(f"{error.message} ({error.why})", err=True)


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
        address = click.prompt("Address", default=answers.base_url or USUAL_ADDRESS).strip()
        answers = replace(answers, base_url=address)
        try:
            anyio.run(list_models, answers, keys)
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
            return answers, anyio.run(list_models, answers, keys)
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
