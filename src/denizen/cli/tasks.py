"""`denizen tasks`: the tasks of all projects, for the operator."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.projects import with_board
from denizen.cli.terminal import echo, printable_json
from denizen.domain.project import FOUND_TASKS, MAX_FOUND, TaskDraft, TaskQuery, TaskStatus, describe_readers

if TYPE_CHECKING:
    from denizen.domain.project import Task
    from denizen.engine.projects.board import ProjectBoard

_status = click.Choice([each.value for each in TaskStatus])
_description = click.option("--description", default=None, help="What is to be done, in Markdown.")
_tag = click.option("--tag", "tags", multiple=True, help="A tag; may be given several times.")
_assignee = click.option("--assignee", default=None, help="Who does it.")
_due = click.option("--due", default=None, metavar="DAY", help="Until when, such as 2026-12-24; empty: no day.")


@click.group(cls=CommandGroup)
def command() -> None:
    """Tasks of projects, as on the page /projects. Everything here may be used while Denizen runs."""


@command.command("list")
@click.option("--status", type=_status, multiple=True, help="Only these; without it all but archived ones.")
@click.option("--author", default="", help="Only of this person, by name or key.")
@_tag
@click.option("--project", default="", help="Only of this project, by name or id.")
@click.option("--search", default="", metavar="WORDS", help="Only with these words in title or description.")
@click.option("--limit", default=FOUND_TASKS, type=click.IntRange(1, MAX_FOUND), show_default=True, help="How many.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each task, a line each.")
@with_board
async def list_command(  # noqa: PLR0913 - the options of the command
    board: ProjectBoard,
    *,
    status: tuple[str, ...],
    author: str,
    tags: tuple[str, ...],
    project: str,
    search: str,
    limit: int,
    as_json: bool,
) -> None:
    """List tasks, the one that changed last first."""
    wanted = TaskQuery(
        statuses=frozenset(map(TaskStatus, status)),
        author=author,
        tags=tuple(tag.lower() for tag in tags),
        text=search,
        project_id=project,
        limit=limit,
    )
    found = await board.find_tasks(wanted)
    projects = await board.list_projects()
    taken = Counter(each.name.casefold() for each in projects)
    names = {
        each.id: each.name
        if taken[each.name.casefold()] == 1
        else f"{each.name} {each.id}, for {describe_readers(each.audience)}"
        for each in projects
    }
    for task in found:
        echo(_to_json(task) if as_json else f"{_format(task)}  ({names.get(task.project_id, '')})")
    if not found and not as_json:
        echo("No task fits.")


@command.command()
@click.argument("task_id", metavar="ID")
@with_board
async def show(board: ProjectBoard, task_id: str) -> None:
    """Show a task with what was said about it."""
    found = await board.get_task(task_id)
    task = found.task
    echo(_format(task))
    echo(f"project {found.project.name} ({found.project.id}), by {task.made_by.author_name or task.made_by.author}")
    if task.description:
        echo(task.description)
    for each in found.comments:
        echo(f"--- {each.made_by.author_name or each.made_by.author}, {each.created_at:%Y-%m-%d %H:%M}  ({each.id})")
        echo(each.text)


@command.command()
@click.argument("title")
@click.option("--project", default="", help="Its project, by name or id; without it the default one of owners.")
@click.option("--status", type=_status, default=TaskStatus.BACKLOG.value, show_default=True, help="How far it is.")
@_description
@_tag
@_assignee
@_due
@with_board
async def add(  # noqa: PLR0913 - the options of the command
    board: ProjectBoard,
    title: str,
    *,
    project: str,
    status: str,
    description: str | None,
    tags: tuple[str, ...],
    assignee: str | None,
    due: str | None,
) -> None:
    """Add a task."""
    draft = TaskDraft(
        title=title, description=description, status=TaskStatus(status), tags=tags, assignee=assignee, due_on=due
    )
    echo(_format(await board.create_task(draft, project)))


@command.command()
@click.argument("task_id", metavar="ID")
@click.option("--title", default=None, help="Its new title.")
@click.option("--status", type=_status, default=None, help="How far it is now.")
@click.option("--project", default="", help="Move it to this project of the same readers.")
@_description
@_tag
@_assignee
@_due
@with_board
async def update(  # noqa: PLR0913 - the options of the command
    board: ProjectBoard,
    task_id: str,
    *,
    title: str | None,
    status: str | None,
    project: str,
    description: str | None,
    tags: tuple[str, ...],
    assignee: str | None,
    due: str | None,
) -> None:
    """Change a task. What is not given stays as it is; tags replace those that it has."""
    if not (project or tags) and {title, status, description, assignee, due} == {None}:
        raise click.UsageError("Say what is to change, such as --status done.")
    draft = TaskDraft(
        title=title,
        description=description,
        status=TaskStatus(status) if status else None,
        tags=tags or None,
        assignee=assignee,
        due_on=due,
    )
    echo(_format(await board.change_task(task_id, draft, project)))


@command.command()
@click.argument("task_id", metavar="ID")
@click.argument("text")
@with_board
async def comment(board: ProjectBoard, task_id: str, text: str) -> None:
    """Say something about a task."""
    said = await board.comment(task_id, text)
    echo(f"Commented on {said.task_id}.")


@command.command("change-comment")
@click.argument("task_id", metavar="ID")
@click.argument("comment_id", metavar="COMMENT")
@click.argument("text")
@with_board
async def change_comment(board: ProjectBoard, task_id: str, comment_id: str, text: str) -> None:
    """Write a comment anew. `denizen tasks show` has its id."""
    echo(f"Changed {(await board.change_comment(task_id, comment_id, text)).id}.")


@command.command("delete-comment")
@click.argument("task_id", metavar="ID")
@click.argument("comment_id", metavar="COMMENT")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_board
async def delete_comment(board: ProjectBoard, task_id: str, comment_id: str, *, yes: bool) -> None:
    """Delete a comment. `denizen tasks show` has its id."""
    if yes or click.confirm("Delete this comment?"):
        echo(f"Deleted {(await board.delete_comment(task_id, comment_id)).id}.")


@command.command()
@click.argument("task_id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_board
async def delete(board: ProjectBoard, task_id: str, *, yes: bool) -> None:
    """Delete a task with its comments."""
    task = (await board.get_task(task_id)).task
    if yes or click.confirm(f"Delete {task.title} with its comments?"):
        echo(f"Deleted {(await board.delete_task(task.id)).id}.")


def _format(task: Task) -> str:
    tags = "".join(f" #{tag}" for tag in task.tags)
    more = [f"for {task.assignee}" if task.assignee else "", f"due {task.due_on}" if task.due_on else ""]
    return "  ".join(filter(None, [task.id, task.status.value, f"{task.title}{tags}", *more]))


def _to_json(task: Task) -> str:
    from denizen.web.api.projects import task_to_wire

    return printable_json(asdict(task_to_wire(task)))
