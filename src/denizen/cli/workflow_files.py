"""`denizen workflows draw`, `examples` and `add`: what is done with the files of workflows, without running any."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from denizen.cli.home import load_home_settings
from denizen.cli.terminal import echo
from denizen.domain.errors import InvalidInput

if TYPE_CHECKING:
    from denizen.app.settings import Settings
    from denizen.domain.workflow import Workflow


def load_workflow(home: Path, name: str) -> Workflow:
    """Raises NotFound, naming the nearest, and InvalidInput for one that cannot be used."""
    from denizen.app.settings.problem import config_error
    from denizen.domain.workflow import get_workflow

    settings = load_home_settings(home)
    if name in settings.broken_workflows:
        raise config_error(settings.broken_workflows[name])
    return get_workflow(settings.workflows, name)


def show_warnings(settings: Settings, file: Path | None = None) -> None:
    """Prints what the workflow in the file, or all, need and the configuration has not."""
    from denizen.app.settings.workflows import WORKFLOWS_FOLDER
    from denizen.app.tool_checks import find_missing_workflow_tools, survey_tools

    own = [each for each in settings.warnings if each.file.parent.name == WORKFLOWS_FOLDER]
    for each in (*own, *find_missing_workflow_tools(settings, survey_tools(settings))):
        if file in (None, each.file):
            echo(f"warning: {each}\nfix: {each.fix}", err=True)


@click.command()
@click.argument("name")
@click.option("--to", "file", type=click.Path(path_type=Path), help="The file to write.  [default: NAME.svg]")
@click.pass_obj
def draw(home: Path, name: str, file: Path | None) -> None:
    """Draw the graph of a workflow as SVG. Colours tell the groups of nodes apart, and names stand at branches."""
    from denizen.domain.workflow_picture import draw_workflow

    picture = draw_workflow(load_workflow(home, name))
    target = file or Path(f"{name}.svg")
    try:
        target.write_text(picture, encoding="utf-8")
    except OSError as error:
        fix = "Give a file in a folder that exists, with --to."
        raise InvalidInput(f"{target} cannot be written.", code="file", why=error.strerror or "", fix=fix) from error
    echo(f"Drawn: {target}")


@click.command()
@click.option("--show", metavar="NAME", help="Show the text of one.")
def examples(show: str | None) -> None:
    """List the workflows that ship with Denizen, to begin from: `add NAME --example EXAMPLE` takes one."""
    from denizen.app.workflow_configuration import find_example, list_examples

    if show:
        echo(find_example(show).text.rstrip())
        return
    for each in list_examples():
        echo(f"{each.name}  {each.description}")


@click.command()
@click.argument("name", required=False, default="")
@click.option("--example", help="Begin from this one of `denizen workflows examples`.")
@click.option("--file", "source", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Take this file.")
@click.pass_obj
def add(home: Path, name: str, example: str | None, source: Path | None) -> None:
    """Add a workflow from an example or a file. It is checked first, and what it needs besides is said. NAME is that of
    the example unless it is given.
    """
    from denizen.app.home.environment import read_environment
    from denizen.app.workflow_configuration import add_workflow_file, find_example

    if (example is None) == (source is None):
        raise click.UsageError("Give one of --example and --file.")
    text = find_example(example).text if example else (source or Path()).read_text(encoding="utf-8-sig")
    file = add_workflow_file(home, read_environment(), name or example or (source or Path()).stem, text)
    echo(f"Added {file.stem}: {file}")
    show_warnings(load_home_settings(home), file)
