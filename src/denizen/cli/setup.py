"""`denizen setup`: the home folder, a model, the proof that it answers, and a Discord account."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from denizen.app.model_choice import KINDS, ModelChoice
from denizen.cli.exit_codes import DONE, exit_code
from denizen.cli.options import model_options
from denizen.cli.terminal import echo
from denizen.domain.errors import DenizenError, InvalidInput

if TYPE_CHECKING:
    from denizen.app.settings.setup import SetupAnswers

_DISCORD_STEPS = """\
An agent needs a bot of its own on Discord:
  1  At https://discord.com/developers/applications make a New Application.
  2  Under Bot: Reset Token, and copy the token. It is shown only once.
  3  Under Bot, Privileged Gateway Intents: switch on Message Content Intent (without it the agent reads mentions only)
     and Server Members Intent (with it, it knows whom an @Name means).
Afterwards `denizen doctor` shows the link that invites it, and what it is still lacking."""


@dataclass(frozen=True, slots=True)
class _SetupOptions:
    """The options about the model, and the variable of a Discord token; empty where none is given."""

    choice: ModelChoice
    discord_token_env: str


def _given_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of a model and --discord-token-env; the command receives them as `given`."""

    @click.option(
        "--discord-token-env",
        default="",
        metavar="VAR",
        help="Environment variable that holds the token of a Discord bot; the default agent logs in with it.",
    )
    @model_options
    @functools.wraps(command)
    def with_given(*args: object, choice: ModelChoice, discord_token_env: str, **kwargs: object) -> object:
        return command(*args, given=_SetupOptions(choice, discord_token_env), **kwargs)

    return with_given


@click.command()
@click.option("--non-interactive", is_flag=True, help="Ask nothing: take the options, or the built-in model.")
@click.option("--if-missing", is_flag=True, help="Do nothing when there is a configuration already.")
@click.option("--force", is_flag=True, help="Write fresh files; the old denizen.yaml is kept as denizen.yaml.bak.")
@click.option("--no-verify", is_flag=True, help="Do not ask the model for a completion.")
@_given_options
@click.pass_obj
def command(
    home: Path, given: _SetupOptions, *, non_interactive: bool, if_missing: bool, force: bool, no_verify: bool
) -> int:
    """Create the home folder and connect a model; the model is asked for a real completion before this is done.

    \b
    denizen setup                                     asks
    denizen setup --non-interactive                   the built-in model
    denizen setup --non-interactive --provider anthropic --model claude-haiku-4-5 --api-key-env ANTHROPIC_API_KEY
    denizen setup --non-interactive --discord-token-env DISCORD_TOKEN_DENIZEN
    """
    from denizen.app.settings import CONFIG_FILE

    if if_missing and (home / CONFIG_FILE).exists():
        return DONE
    if non_interactive or given.choice.is_provider:
        answers = _answers(given.choice)
    elif sys.stdin.isatty():
        answers = _ask_model()
        answers = answers if given.discord_token_env else _ask_discord(answers)
    else:
        raise InvalidInput(
            "There is nobody to ask: standard input is no terminal.",
            fix="Add --non-interactive, with --provider and --model.",
        )
    if given.discord_token_env:
        answers = replace(answers, discord_token_env=given.discord_token_env)
    _write(home, answers, force=force)
    if no_verify:
        return DONE
    return anyio.run(_verify, home)


def _answers(choice: ModelChoice) -> SetupAnswers:
    from denizen.app.settings.setup import SetupAnswers

    if not choice.is_provider:
        return SetupAnswers()
    answers = SetupAnswers(model=choice.model, base_url=choice.base_url, api_key_env=choice.api_key_env)
    return replace(answers, kind=choice.kind)


def _ask_model() -> SetupAnswers:
    from denizen.adapters.models.providers import PROVIDERS
    from denizen.app.settings.setup import SetupAnswers

    click.echo("Where shall answers come from?")
    kinds = ["embedded", *(kind for kind in KINDS if kind != "embedded")]
    for number, kind in enumerate(kinds, 1):
        click.echo(f"  {number:>2}  {kind:<18} {PROVIDERS[kind].label}")
    kind = kinds[click.prompt("Number", type=click.IntRange(1, len(kinds)), default=1) - 1]
    if kind == "embedded":
        return SetupAnswers()
    base_url = ""
    if kind in ("openai-compatible", "ollama"):
        base_url = click.prompt("Address", default="http://127.0.0.1:11434/v1")
    model = click.prompt("Model (the provider's own name for it)")
    key = ""
    if PROVIDERS[kind].needs_key:
        key = click.prompt(
            f"API key (empty: read {PROVIDERS[kind].key_variable} from the environment)", default="", hide_input=True
        )
    return replace(SetupAnswers(model=model, base_url=base_url, api_key=key), kind=kind)


def _ask_discord(answers: SetupAnswers) -> SetupAnswers:
    if not click.confirm("Shall the agent live on Discord too?", default=False):
        return answers
    click.echo(_DISCORD_STEPS)
    token = click.prompt("Token (empty: without Discord for now)", default="", show_default=False, hide_input=True)
    return replace(answers, discord_token=token.strip())


def _write(home: Path, answers: SetupAnswers, *, force: bool) -> None:
    from denizen.app.build import make_home
    from denizen.app.home.environment import read_environment
    from denizen.app.settings.setup import write_setup
    from denizen.builtin_skills import BUILTIN

    make_home(home)
    done = write_setup(home, answers, environment=read_environment(), force=force, known_tools=BUILTIN)
    for file in done.written:
        click.echo(f"wrote {file}", err=True)
    for file in done.kept:
        click.echo(f"kept  {file}", err=True)
    for name in done.unset:
        click.echo(f"warning: {name} is not set; add it to {home / 'secrets.env'} or the environment", err=True)


async def _verify(home: Path) -> int:
    """The files stay when the model does not answer: what is wrong is said, and can be put right there."""
    from denizen.app.build import OpenOptions, open_denizen
    from denizen.app.models import verify_model
    from denizen.cli.terminal import show_weights_progress

    try:
        async with open_denizen(home, OpenOptions(durable=False, report=show_weights_progress)) as denizen:
            agent = denizen.queries.get_agent("")
            answered = await verify_model(denizen.runtime.current.models, agent.model)
    except DenizenError as error:
        echo(f"The files are written, but the model does not answer.\nerror: {error.explain()}", err=True)
        return exit_code(error.family)
    echo(f"{answered.model} answers ({answered.duration_s:.1f} s).", err=True)
    click.echo("Next: denizen chat, or denizen run for the page and the API.", err=True)
    return DONE
