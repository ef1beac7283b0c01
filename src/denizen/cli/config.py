"""`denizen config`: what is in effect, and whether it can be used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from denizen.cli.exit_codes import DONE, INVALID
from denizen.domain.errors import InvalidInput

if TYPE_CHECKING:
    from denizen.app.settings import Settings


@click.group()
def command() -> None:
    """Show or check the configuration (`denizen.yaml` in the home folder)."""


@command.command()
@click.pass_obj
def show(home: Path) -> None:
    """The configuration in effect, with defaults; secrets appear as references only."""
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import load_settings
    from denizen.app.settings.effective import render_settings
    from denizen.builtin_skills import BUILTIN

    click.echo(render_settings(load_settings(home, read_environment(), known_tools=BUILTIN)), nl=False)


@command.command()
@click.pass_obj
def check(home: Path) -> int:
    """Lists every problem with file, line and fix; exit code 2 when there is one."""
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import CONFIG_FILE, load_settings
    from denizen.app.settings import find_config_problems as find_problems
    from denizen.builtin_skills import BUILTIN

    problems = find_problems(home, read_environment(), known_tools=BUILTIN)
    for problem in problems:
        click.echo(f"error: {problem}\nfix: {problem.fix}", err=True)
    if problems:
        return INVALID
    settings = load_settings(home, read_environment(), known_tools=BUILTIN)
    if refused := _refused_by_skills(settings):
        for name, error in refused:
            click.echo(f"error: {home / CONFIG_FILE}: tools.{name}: {error.message}\nfix: {error.fix}", err=True)
        return INVALID
    for warning in settings.warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo("The configuration can be used.")
    return DONE


def _refused_by_skills(settings: Settings) -> list[tuple[str, InvalidInput]]:
    """Sections of `tools` that their skill would not take; those of skills that are switched off do not matter."""
    from denizen.builtin_skills import load_builtin

    refused: list[tuple[str, InvalidInput]] = []
    for name, section in settings.config.tools.items():
        if section.enabled is not False:
            try:
                load_builtin(name).read_settings(section.options)
            except InvalidInput as error:
                refused.append((name, error))
    return refused
