"""`denizen config`: what is in effect, and whether it can be used."""

from __future__ import annotations

from pathlib import Path

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.exit_codes import DONE, INVALID
from denizen.cli.home import load_home_settings


@click.group(cls=CommandGroup)
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
    from denizen.app.settings import find_config_problems
    from denizen.app.settings.problem import format_path
    from denizen.app.tool_checks import (
        FIX,
        check_agent_tools,
        find_gate_problems,
        find_missing_workflow_tools,
        find_skill_problems,
        find_source_problems,
        find_unmatched,
        survey_tools,
    )
    from denizen.builtin_skills import BUILTIN

    problems = list(find_config_problems(home, read_environment(), known_tools=BUILTIN))
    warnings: list[str] = []
    if not problems:
        settings = load_home_settings(home)
        known = survey_tools(settings)
        agents = check_agent_tools(settings, known)
        problems = [*find_skill_problems(settings), *agents.problems, *find_gate_problems(settings, known)]
        told = (
            *settings.warnings,
            *agents.notices,
            *find_source_problems(settings, known),
            *find_missing_workflow_tools(settings, known),
        )
        warnings = [f"{each}\nfix: {each.fix}" for each in told]
        unmatched = [] if known.may_miss else find_unmatched(settings, known.names)
        warnings += [f"{format_path(each.path)}: no tool matches '{each.pattern}'\nfix: {FIX}" for each in unmatched]
    for problem in problems:
        click.echo(f"error: {problem}\nfix: {problem.fix}", err=True)
    if problems:
        return INVALID
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo("The configuration can be used.")
    return DONE
