"""`denizen config`: what is in effect, and whether it can be used."""

from __future__ import annotations

from pathlib import Path

import click

from denizen.cli.exit_codes import DONE, INVALID
from denizen.cli.home import load_home_settings
from denizen.domain.errors import InvalidInput


@click.group()
def command() -> None:
    """Show or check the configuration (`denizen.yaml` in the home folder)."""


@command.command()
@click.pass_obj
def show(home: Path) -> None:
    """Show the configuration in effect, with defaults; secrets appear as references only."""
    from denizen.app.settings.effective import render_settings

    click.echo(render_settings(load_home_settings(home)), nl=False)


@command.command()
@click.pass_obj
def check(home: Path) -> int:
    """List every problem with file, line and fix; exit code 2 when there is one."""
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import CONFIG_FILE, find_config_problems
    from denizen.builtin_skills import BUILTIN, load_builtin

    problems = find_config_problems(home, read_environment(), known_tools=BUILTIN)
    for problem in problems:
        click.echo(f"error: {problem}\nfix: {problem.fix}", err=True)
    if problems:
        return INVALID
    settings = load_home_settings(home)
    is_refused = False
    for name, section in settings.config.tools.items():
        if section.enabled is not False:  # the options of skills that are switched off do not matter
            try:
                load_builtin(name).read_settings(section.options)
            except InvalidInput as error:
                is_refused = True
                click.echo(f"error: {home / CONFIG_FILE}: tools.{name}: {error.message}\nfix: {error.fix}", err=True)
    if is_refused:
        return INVALID
    for warning in settings.warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo("The configuration can be used.")
    return DONE
