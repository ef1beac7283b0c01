"""`denizen projects`: projects and their documents, for the operator."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import anyio
import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import with_denizen
from denizen.cli.terminal import echo, printable_json
from denizen.domain.project import ProjectDraft, ProjectStatus, describe_readers

if TYPE_CHECKING:
    from denizen.app.build import Denizen
    from denizen.domain.project import Project
    from denizen.engine.projects.board import ProjectBoard

P = ParamSpec("P")
R = TypeVar("R")

_status = click.option("--status", type=click.Choice([each.value for each in ProjectStatus]), help="How far it is.")
_description = click.option("--description", default=None, help="What it is about, in Markdown.")
_due = click.option("--due", default=None, metavar="DAY", help="Until when, such as 2026-12-24; empty: no day.")


_LISTS = {
    "project_not_found": "`denizen projects list` shows them.",
    "task_not_found": "`denizen tasks list` shows them.",
    "document_not_found": "`denizen projects show PROJECT` shows them.",
}
"""The command that lists what was not found, by the code of the error."""


def with_board(act: Callable[Concatenate[ProjectBoard, P], Awaitable[R]]) -> Callable[P, R]:
    """Makes the function of a command from a coroutine, whose first argument becomes the operator's board. Errors name
    the command that shows what there is.
    """

    @with_denizen
    @wraps(act)
    async def command(denizen: Denizen, *args: P.args, **kwargs: P.kwargs) -> R:
        from denizen.domain.errors import NotFound

        try:
            return await act(denizen.projects.open_for(denizen.operator), *args, **kwargs)
        except NotFound as error:
            fix = _LISTS.get(error.code, error.fix)
            raise NotFound(error.message, code=error.code, why=error.why, fix=fix) from error

    return command


@click.group(cls=CommandGroup)
def command() -> None:
    """Projects, which hold tasks and documents. Everything here may be used while Denizen runs."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each project, a line each.")
@with_board
async def list_command(board: ProjectBoard, *, as_json: bool) -> None:
    """List projects with who may read them, oldest first."""
    from denizen.web.api.projects import project_to_wire

    found = await board.list_projects()
    for project in found:
        echo(printable_json(asdict(project_to_wire(project))) if as_json else _format(project))
    if not found and not as_json:
        echo("There is no project yet.")


@command.command()
@click.argument("name")
@click.option("--everybody", is_flag=True, help="For everybody, not only for owners and admins. This stays so.")
@_description
@_due
@with_board
async def add(board: ProjectBoard, name: str, description: str | None, due: str | None, *, everybody: bool) -> None:
    """Add a project."""
    draft = ProjectDraft(name=name, description=description, due_on=due)
    echo(_format(await board.create_project(draft, for_everybody=everybody)))


@command.command()
@click.argument("project")
@click.option("--name", default=None, help="Its new name.")
@_status
@_description
@_due
@with_board
async def update(
    board: ProjectBoard, project: str, *, name: str | None, status: str | None, description: str | None, due: str | None
) -> None:
    """Change a PROJECT, by its name or id. What is not given stays as it is."""
    draft = ProjectDraft(
        name=name, description=description, status=ProjectStatus(status) if status else None, due_on=due
    )
    echo(_format(await board.change_project(project, draft)))


@command.command()
@click.argument("project")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_board
async def delete(board: ProjectBoard, project: str, *, yes: bool) -> None:
    """Delete a PROJECT with all its tasks and documents."""
    found = await board.get_project(project)
    if yes or click.confirm(f"Delete {found.name} with all its tasks and documents?"):
        await board.delete_project(found.id)
        echo(f"Deleted {found.id}.")


@command.command("delete-document")
@click.argument("project")
@click.argument("document")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_board
async def delete_document(board: ProjectBoard, project: str, document: str, *, yes: bool) -> None:
    """Delete a DOCUMENT of a PROJECT."""
    found = await board.get_project(project)
    named = await board.get_document(document, found.id)
    if yes or click.confirm(f"Delete {named.name} of {found.name}?"):
        await board.delete_document(named.id, found.id)
        echo(f"Deleted {named.id}.")


@command.command()
@click.argument("project")
@click.argument("document", default="")
@with_board
async def show(board: ProjectBoard, project: str, document: str) -> None:
    """Show a PROJECT with the names of its documents, or the text of one DOCUMENT."""
    found = await board.get_project(project)
    if document:
        echo((await board.get_document(document, found.id)).text)
        return
    echo(_format(found))
    if found.description:
        echo(found.description)
    for each in await board.list_documents(found.id):
        echo(f"{each.id}  {each.name}  {each.updated_at:%Y-%m-%d}")


@command.command()
@click.argument("project")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--name", default="", help="Its name.  [default: that of the file]")
@with_board
async def write(board: ProjectBoard, project: str, file: Path, name: str) -> None:
    """Write a Markdown FILE into a PROJECT, over the document of that name."""
    from denizen.domain.errors import InvalidInput, NotFound

    found, name = await board.get_project(project), name or file.stem
    try:
        text = await anyio.Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        fix = f"Save it as UTF-8, such as with `iconv -f latin1 -t utf-8 {file.name}`."
        raise InvalidInput(f"{file} is no text in UTF-8.", code="document_not_text", fix=fix) from None
    try:
        document = await board.change_document(name, found.id, text=text)
    except NotFound:
        document = await board.create_document(name, text, found.id)
    echo(f"Wrote {document.name} ({document.id}).")


@command.command()
@click.argument("project")
@click.option("--to", "file", type=click.Path(dir_okay=False, path_type=Path), help="The file.  [default: show it]")
@with_board
async def export(board: ProjectBoard, project: str, file: Path | None) -> None:
    """Write a PROJECT with its tasks, comments and documents as JSON."""
    from denizen.domain.errors import Conflict
    from denizen.engine.projects.transfer import export_project

    text = json.dumps((await export_project(board, project)).to_json(), ensure_ascii=False, indent=2)
    if file is None:
        echo(text)
        return
    try:
        async with await anyio.open_file(file, "x", encoding="utf-8") as stream:
            await stream.write(f"{text}\n")
    except FileExistsError:
        raise Conflict(f"{file} is there already.", code="export_exists", fix="Give another name.") from None
    echo(f"Wrote {file}.")


@command.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--name", default="", help="Another name for it.  [default: that in the file]")
@click.option("--everybody", is_flag=True, help="For everybody, not only for owners and admins. This stays so.")
@with_board
async def import_(board: ProjectBoard, file: Path, name: str, *, everybody: bool) -> None:
    """Make the project in FILE, which `export` has written, with all that is in it. It comes whole or not at all."""
    from pydantic import TypeAdapter, ValidationError

    from denizen.domain.errors import InvalidInput
    from denizen.engine.projects.transfer import ExportedProject, import_project

    try:
        exported = TypeAdapter(ExportedProject).validate_json(await anyio.Path(file).read_bytes())
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidInput(
            f"{file} is no project that was exported.",
            code="import_format",
            why=f"{where}: {first['msg']}" if where else first["msg"],
            fix="`denizen projects export PROJECT --to FILE` writes such a file.",
        ) from None
    project = await import_project(board, exported, name=name, for_everybody=everybody)
    echo(f"{_format(project)}\n{len(exported.tasks)} tasks, {len(exported.documents)} documents")


def _format(project: Project) -> str:
    due = f"  due {project.due_on}" if project.due_on else ""
    return f"{project.id}  {project.status.value}  {project.name}{due}  (read by {describe_readers(project.audience)})"
