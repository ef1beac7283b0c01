"""`denizen config`: what is in effect, and whether it can be used."""

from __future__ import annotations

from pathlib import Path

import click

from denizen.cli.exit_codes import DONE, INVALID


@click.group()
def command() -> None:
    """Show or check the configuration (`denizen.yaml` in the home folder)."""


@command.command()
@click.pass_obj
def show(home: Path) -> None:
    """The configuration in effect, with defaults; secrets appear as references only."""
    from denizen.app.environment import read_environment
    from denizen.app.settings import load_settings
    from denizen.app.settings.render import render_settings
    from denizen.skills import BUILTIN

    click.echo(render_settings(load_settings(home, read_environment(), known_tools=BUILTIN)), nl=False)


@command.command()
@click.pass_obj
def check(home: Path) -> int:
    """Lists every problem with file, line and fix; exit code 2 when there is one."""
    from denizen.app.environment import read_environment
    from denizen.app.settings import check as find_problems
    from denizen.app.settings import load_settings
    from denizen.skills import BUILTIN

    problems = find_problems(home, read_environment(), known_tools=BUILTIN)
    for problem in problems:
        click.echo(f"error: {problem}\nfix: {problem.fix}", err=True)
    if problems:
        return INVALID
    for warning in load_settings(home, read_environment(), known_tools=BUILTIN).warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo("The configuration can be used.")
    return DONE
