"""`denizen setup`: a model, the proof that it answers, and then the files of the home folder."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from denizen.app.model_choice import ModelChoice
from denizen.cli.exit_codes import DONE, INTERRUPTED
from denizen.cli.options import model_options
from denizen.cli.terminal import echo
from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.record import record

if TYPE_CHECKING:
    from denizen.app.settings.setup import SetupAnswers
    from denizen.ports.setup import DiscordChecklist


@record
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
@click.option(
    "--force", is_flag=True, help="Write fresh files; denizen.yaml and persona files as they were are kept as NAME.bak."
)
@click.option("--no-verify", is_flag=True, help="Write the files without asking the model, or Discord, first.")
@click.option("--store-key", is_flag=True, help="Keep the key's value in secrets.env, which other terminals read too.")
@_given_options
@click.pass_obj
def command(
    home: Path,
    given: _SetupOptions,
    *,
    non_interactive: bool,
    if_missing: bool,
    force: bool,
    no_verify: bool,
    store_key: bool,
) -> int:
    """Create the home folder and connect a model. The model is asked for a real completion, and Discord about a token,
    before anything is written. While `denizen run` is running, the same steps are in the browser: /admin/setup.

    \b
    denizen setup                                     asks
    denizen setup --non-interactive                   the built-in model
    denizen setup --non-interactive --provider anthropic \\
        --model claude-haiku-4-5 --api-key-env ANTHROPIC_API_KEY
    denizen setup --non-interactive --discord-token-env DISCORD_TOKEN_DENIZEN
    """
    from denizen.app.settings import CONFIG_FILE, SetupAnswers

    if if_missing and (home / CONFIG_FILE).exists():
        return DONE
    token = given.discord_token_env
    if non_interactive or given.choice.is_provider:
        answers = replace(_answers(home, given.choice, store_key=store_key), discord_token_env=token)
        if not no_verify:
            _require_answer(home, answers, force=force)
            _require_token(home, answers, force=force)
    elif sys.stdin.isatty():
        asked = _ask(home, SetupAnswers(discord_token_env=token), force=force, no_verify=no_verify)
        if asked is None:
            click.echo("Nothing was written.", err=True)
            return INTERRUPTED
        answers = asked
    else:
        raise InvalidInput(
            "There is nobody to ask: standard input is no terminal.",
            fix="Add --non-interactive, with --provider and --model.",
        )
    _write(home, answers, force=force)
    click.echo("Next: denizen chat, or denizen run for the page and the API.", err=True)
    return DONE


def _answers(home: Path, choice: ModelChoice, *, store_key: bool) -> SetupAnswers:
    from denizen.app.settings import SetupAnswers

    if not choice.is_provider:
        return SetupAnswers()
    answers = SetupAnswers(model=choice.model, base_url=choice.base_url, api_key_env=choice.api_key_env)
    answers = replace(answers, kind=choice.kind)
    if not store_key:
        return answers
    from denizen.app.home.environment import read_environment
    from denizen.app.setup_steps import load_known_keys

    key = load_known_keys(home, read_environment()).find(answers.variable)
    if not key:
        raise InvalidInput(
            "There is no key to store.",
            why=f"{answers.variable} is not set." if answers.variable else "No variable is named.",
            fix="Set it in the environment and name it with --api-key-env.",
        )
    return replace(answers, api_key=key)


def _require_answer(home: Path, answers: SetupAnswers, *, force: bool) -> None:
    try:
        anyio.run(_verify, home, answers, force)
    except DenizenError:
        click.echo("Nothing is written. (--no-verify writes the files all the same.)", err=True)
        raise


def _ask(home: Path, answers: SetupAnswers, *, force: bool, no_verify: bool) -> SetupAnswers | None:
    """Asks until the model answers, or until what was typed is to be written all the same; None to give up. A model
    whose key is to be set later is not asked.
    """
    from denizen.app.home.environment import read_environment
    from denizen.app.setup_steps import fixing_answers, load_known_keys
    from denizen.cli.setup_questions import ask_discord, ask_model

    keys = load_known_keys(home, read_environment())
    answers = ask_model(answers, keys)
    check = None if no_verify else functools.partial(_check_token, home, force=force)
    answers = answers if answers.discord_token_env else ask_discord(answers, check)
    while not no_verify and not keys.lack(answers):
        try:
            with fixing_answers():
                anyio.run(_verify, home, answers, force)
        except DenizenError as error:
            echo(f"error: {error.explain()}", err=True)
        else:
            break
        click.echo("Nothing is written yet.")
        ask = "Correct the answers, write them all the same, or quit?"
        wanted = click.prompt(ask, type=click.Choice(["correct", "write", "quit"]), default="correct")
        if wanted == "quit":
            return None
        if wanted == "write":
            break
        answers = ask_model(answers, keys)
    return answers


def _check_token(home: Path, token: str, *, force: bool) -> DiscordChecklist:
    """Asks Discord about a token for the default agent of the home folder as it is."""
    from denizen.adapters.discord.check import check_account
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import SetupAnswers, preview_setup
    from denizen.app.setup_steps import check_discord
    from denizen.builtin_skills import BUILTIN
    from denizen.cli.terminal import show_waiting

    settings = preview_setup(home, SetupAnswers(), environment=read_environment(), force=force, known_tools=BUILTIN)
    with show_waiting("asking Discord about the token"):
        return anyio.run(check_discord, token, settings.default_agent, settings.discord_endpoints, check_account)


def _require_token(home: Path, answers: SetupAnswers, *, force: bool) -> None:
    """Raises InvalidInput for a token that Discord refuses. What else it lacks is said, and keeps nothing from being
    written; a token that is to be set later is not asked about.
    """
    from denizen.app.home.environment import read_environment
    from denizen.app.setup_steps import clean_token, load_known_keys
    from denizen.cli.setup_questions import show_checklist
    from denizen.ports.setup import TokenState

    token = load_known_keys(home, read_environment()).find(answers.discord_token_env)
    if not token:
        return
    checklist = _check_token(home, clean_token(token), force=force)
    problem = checklist.find_problem()
    if problem is not None and checklist.token is TokenState.REFUSED:
        click.echo("Nothing is written. (--no-verify writes the files all the same.)", err=True)
        raise problem
    show_checklist(checklist)


async def _verify(home: Path, answers: SetupAnswers, force: bool) -> None:  # noqa: FBT001 - anyio.run passes positions only
    """Raises what the model raises, or what would keep the files from being written."""
    from denizen.app.home.environment import read_environment
    from denizen.app.models import verify_settings
    from denizen.app.settings import preview_setup
    from denizen.app.setup_steps import plan_model_name
    from denizen.builtin_skills import BUILTIN
    from denizen.cli.terminal import show_waiting, show_weights_progress

    environment = read_environment()
    settings = preview_setup(home, answers, environment=environment, force=force, known_tools=BUILTIN)
    name = plan_model_name(answers, settings)
    with show_waiting("waiting for the model's first answer"):
        answered = await verify_settings(settings, name, environment, show_weights_progress)
    echo(f"{answered.model} answers ({answered.duration_s:.1f} s).", err=True)


def _write(home: Path, answers: SetupAnswers, *, force: bool) -> None:
    from denizen.app.build import make_home
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import write_setup
    from denizen.builtin_skills import BUILTIN

    make_home(home)
    done = write_setup(home, answers, environment=read_environment(), force=force, known_tools=BUILTIN)
    for file in done.written:
        click.echo(f"wrote {file}", err=True)
    for file in done.kept:
        click.echo(f"kept  {file}", err=True)
    for name in done.unset:
        click.echo(f"warning: {name} is not set; add it to {home / 'secrets.env'} or the environment", err=True)
