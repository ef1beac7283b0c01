"""`/tasks`: the tasks of those who read along where it is given, listed and added to."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.errors import NotFound
from denizen.domain.principal import PrincipalKind
from denizen.domain.project import Task, TaskDraft, TaskQuery, TaskStatus, read_task_status
from denizen.domain.room import RoomKind
from denizen.domain.words import truncate
from denizen.engine.commands.command import CommandContext, CommandDefinition
from denizen.engine.commands.text import rank_suggestions
from denizen.engine.projects.board import ProjectBoard
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec

LISTED = 20
_TITLE_CHARS = 100
_STATUSES = tuple(each.value for each in TaskStatus)


async def _tasks(context: CommandContext) -> CommandReply:
    return await (_add(context) if context.command.group == "add" else _list(context))


async def _list(context: CommandContext) -> CommandReply:
    board, status = _open_board(context), context.option("status")
    wanted = TaskQuery(
        statuses=frozenset({read_task_status(status)} if status else ()),
        project_id=context.option("project"),
        limit=LISTED + 1,
    )
    found = await board.find_tasks(wanted)
    if not found:
        return CommandReply("No task fits. /tasks add title: TITLE adds one.")
    lines = [_line(task) for task in found[:LISTED]]
    if len(found) > LISTED:
        lines.append("… and more; give a status or a project.")
    while sum(len(line) + 1 for line in lines) > context.message_limit:
        lines[-2:] = ["… and more; give a status or a project."]
    return CommandReply("\n".join(lines))


async def _add(context: CommandContext) -> CommandReply:
    status = context.option("status")
    draft = TaskDraft(title=context.option("title"), status=read_task_status(status) if status else None)
    return CommandReply(f"Added {_describe(await _open_board(context).create_task(draft, context.option('project')))}")


async def _suggest_project(context: CommandContext, typed: str) -> Sequence[str]:
    return rank_suggestions(typed, [each.name for each in await _open_board(context).list_projects()])


def _open_board(context: CommandContext) -> ProjectBoard:
    """Opens the board of everybody who reads the reply, which is in the room."""
    boards, caller, room = context.services.projects, context.caller, context.command.room
    if boards is None:
        raise NotFound("There are no projects here.", code="projects_missing")
    if caller.principal.kind is not PrincipalKind.PLATFORM_USER:
        return boards.open_for(caller.principal, key=context.command.id)
    is_alone = room.kind is RoomKind.DIRECT
    return boards.open_as(
        lambda: boards.readers.find_room(caller.principal, room.place, caller.account, is_alone=is_alone),
        key=context.command.id,
    )


def _line(task: Task) -> str:
    return f"- {_describe(task)}"


def _describe(task: Task) -> str:
    due = f", due {task.due_on}" if task.due_on else ""
    return f"`{task.id}` {task.status.label}: {truncate(task.title, _TITLE_CHARS)}{due}"


_STATUS = CommandOption("status", "How far it is.", choices=_STATUSES)
_PROJECT = CommandOption("project", "The name of a project.", suggests=True)

TASKS = CommandDefinition(
    CommandSpec(
        "tasks",
        "See the tasks of this place, or add one.",
        groups=(
            CommandSpec("list", "See tasks, the last changed first.", (_STATUS, _PROJECT)),
            CommandSpec(
                "add", "Add a task.", (CommandOption("title", "What is to be done.", required=True), _STATUS, _PROJECT)
            ),
        ),
    ),
    _tasks,
    {"project": _suggest_project},
)
