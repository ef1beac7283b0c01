"""Projects, their tasks and documents: what is to be done, kept for those who read along.

The board decides who may read and change what, not this skill. What others wrote there counts as foreign text, and so
does a turn that has read it: the board lets it leave words only where all who read them could have read along. A
project that holds something is deleted by people, not by a tool.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC
from typing import Annotated, Literal

from denizen.skill import (
    Param,
    Project,
    ProjectAccess,
    ProjectDraft,
    ProjectStatus,
    Skill,
    Taint,
    Task,
    TaskDetails,
    TaskDraft,
    TaskQuery,
    TaskStatus,
    Tier,
    ToolContext,
    ToolError,
    ToolOutput,
    parse_period,
    quote_untrusted,
    truncate,
)

SHOWN_CHARS = 4000
"""How much of a description or a comment is shown."""
SHOWN_DOCUMENT_CHARS = 20_000
SHOWN_COMMENTS = 20
NONE = "none"
"""Takes away what a field holds; an empty one stays as it is."""

TaskStatusName = Literal["", "backlog", "in_progress", "blocked", "in_review", "done", "archived"]
ProjectStatusName = Literal["", "active", "completed", "archived"]
ProjectChoice = Annotated[str, Param("id or name; empty: that of this place", max_length=100)]
Day = Annotated[str, Param("2026-12-24, or none", max_length=20)]

skill = Skill("projects", description="Projects, tasks and documents of those who read along.")


@skill.tool(tier=Tier.LIMITED, idempotent=True, reads={Taint.OTHERS})
async def tasks(  # noqa: PLR0913 - the fields of a task
    context: ToolContext,
    action: Literal["create", "get", "update", "delete", "comment"],
    *,
    task: Annotated[str, Param("id", max_length=40)] = "",
    title: Annotated[str, Param(max_length=200)] = "",
    description: Annotated[str, Param(max_length=10_000)] = "",
    status: TaskStatusName = "",
    tags: list[str] | None = None,
    assignee: Annotated[str, Param(max_length=100)] = "",
    due: Day = "",
    project: ProjectChoice = "",
    comment: Annotated[str, Param(max_length=10_000)] = "",
) -> ToolOutput:
    """Works on tasks. What is left empty stays as it is."""
    board = _board(context)
    draft = TaskDraft(
        title=title or None,
        description=_read(description),
        status=TaskStatus(status) if status else None,
        tags=None if tags is None else tuple(tags),
        assignee=_read(assignee),
        due_on=_read(due),
    )
    match action:
        case "create":
            made = await board.create_task(draft, project)
            return _tell(f"Created {made.id}: {made.title} ({made.status.label}).")
        case "get":
            return ToolOutput(_describe(await board.get_task(_need("task", task))))
        case "update":
            changed = await board.change_task(_need("task", task), draft, project)
            return _tell(f"{changed.id} is {changed.status.label} now.")
        case "delete":
            return _tell(f"Deleted {(await board.delete_task(_need('task', task))).id}.")
        case "comment":
            said = await board.comment(_need("task", task), _need("comment", comment))
            return _tell(f"Commented on {said.task_id}.")


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def task_query(  # noqa: PLR0913 - the conditions of a search
    context: ToolContext,
    *,
    status: TaskStatusName = "",
    author: Annotated[str, Param(max_length=100)] = "",
    tags: Annotated[list[str] | None, "any of these"] = None,
    updated_after: Annotated[str, Param("2026-11-01, 3 days ago", max_length=60)] = "",
    search: Annotated[str, Param("words", max_length=200)] = "",
    project: Annotated[str, Param("id or name", max_length=100)] = "",
    limit: Annotated[int, Param(ge=1, le=100)] = 20,
) -> ToolOutput:
    """Finds tasks, the last changed first."""
    board = _board(context)
    now = context.clock.now()
    wanted = TaskQuery(
        statuses=frozenset({TaskStatus(status)} if status else ()),
        author=author.strip(),
        tags=tuple(tag.strip().lstrip("#").lower() for tag in tags or ()),
        updated_after=parse_period(updated_after, "", now=now, zone=UTC).since,
        text=search,
        project_id=project,
        limit=limit,
    )
    found = await board.find_tasks(wanted)
    if not found:
        return _tell("No task fits.")
    names = {each.id: each.name for each in await board.list_projects()}
    return _quote("tasks", (f"{_line(each)}, project {names.get(each.project_id, '')}" for each in found))


@skill.tool(tier=Tier.LIMITED, reads={Taint.OTHERS})
async def projects(
    context: ToolContext,
    action: Literal["list", "create", "get", "update", "delete"],
    *,
    project: Annotated[str, Param("id or name", max_length=100)] = "",
    name: Annotated[str, Param(max_length=100)] = "",
    description: Annotated[str, Param(max_length=10_000)] = "",
    status: ProjectStatusName = "",
    due: Day = "",
) -> ToolOutput:
    """Works on projects, which hold tasks and documents."""
    board = _board(context)
    draft = ProjectDraft(
        name=name or None,
        description=_read(description),
        status=ProjectStatus(status) if status else None,
        due_on=_read(due),
    )
    match action:
        case "list":
            found = await board.list_projects()
            return _quote("projects", map(_summary, found)) if found else _tell("There is no project yet.")
        case "create":
            made = await board.create_project(draft)
            return _tell(f"Created {made.id}: {made.name}.")
        case "get":
            one = await board.get_project(_need("project", project))
            listed = [each.name for each in await board.list_documents(one.id)]
            about = [_summary(one), truncate(one.description, SHOWN_CHARS), f"documents: {', '.join(listed)}"]
            return _quote("project", about)
        case "update":
            changed = await board.change_project(_need("project", project), draft)
            return _tell(f"{changed.id} is {changed.status} now.")
        case "delete":
            return _tell(f"Deleted {(await _delete_empty(board, _need('project', project))).id}.")


@skill.tool(tier=Tier.LIMITED, reads={Taint.OTHERS})
async def documents(
    context: ToolContext,
    action: Literal["list", "create", "get", "update", "delete"],
    *,
    name: Annotated[str, Param(max_length=100)] = "",
    text: Annotated[str, Param("Markdown", max_length=100_000)] = "",
    project: ProjectChoice = "",
    new_name: Annotated[str, Param(max_length=100)] = "",
) -> ToolOutput:
    """Works on Markdown documents of a project."""
    board = _board(context)
    match action:
        case "list":
            found = await board.list_documents(project)
            lines = (f"{each.name}: {each.size_chars} characters, {each.updated_at:%Y-%m-%d}" for each in found)
            return _quote("documents", lines) if found else _tell("There is no document yet.")
        case "create":
            made = await board.create_document(_need("name", name), text, project)
            return _tell(f"Wrote {made.name}.")
        case "get":
            document = await board.get_document(_need("name", name), project)
            return _quote(document.name, [truncate(document.text, SHOWN_DOCUMENT_CHARS)])
        case "update":
            changed = await board.change_document(_need("name", name), project, text=text or None, new_name=new_name)
            return _tell(f"Wrote {changed.name}.")
        case "delete":
            return _tell(f"Deleted {(await board.delete_document(_need('name', name), project)).name}.")


async def _delete_empty(board: ProjectAccess, wanted: str) -> Project:
    project = await board.get_project(wanted)
    everything = TaskQuery(statuses=frozenset(TaskStatus), project_id=project.id, limit=1)
    if await board.find_tasks(everything) or await board.list_documents(project.id):
        raise ToolError(
            "This project holds tasks or documents, so people delete it, not a tool.",
            fix="Set its status to archived, or let somebody delete it on the page of projects.",
            is_own=True,
        )
    return await board.delete_project(project.id)


def _board(context: ToolContext) -> ProjectAccess:
    if context.projects is None:
        raise ToolError("There are no projects here.", is_own=True)
    return context.projects


def _need(field: str, value: str) -> str:
    if not value.strip():
        raise ToolError(f"This action needs `{field}`.", is_own=True)
    return value


def _read(text: str) -> str | None:
    """Returns what a field is to hold; None to leave it as it is."""
    if text.strip().lower() == NONE:
        return ""
    return text or None


def _tell(text: str) -> ToolOutput:
    return ToolOutput(text, is_own=True)


def _quote(source: str, lines: Iterable[str]) -> ToolOutput:
    return ToolOutput(quote_untrusted("\n".join(lines), source=source))


def _line(task: Task) -> str:
    more = [
        f"tags {' '.join(task.tags)}" if task.tags else "",
        f"for {task.assignee}" if task.assignee else "",
        f"due {task.due_on}" if task.due_on else "",
        f"by {task.made_by.author_name}, changed {task.updated_at:%Y-%m-%d %H:%M}",
    ]
    return f"{task.id} [{task.status}] {task.title}: {', '.join(filter(None, more))}"


def _summary(project: Project) -> str:
    due = f", due {project.due_on}" if project.due_on else ""
    return f"{project.id} [{project.status}] {project.name}{due}"


def _describe(found: TaskDetails) -> str:
    lines = [_line(found.task), f"project {found.project.name}", truncate(found.task.description, SHOWN_CHARS)]
    lines += [
        f"{each.made_by.author_name}, {each.created_at:%Y-%m-%d %H:%M}: {truncate(each.text, SHOWN_CHARS)}"
        for each in found.comments[-SHOWN_COMMENTS:]
    ]
    return quote_untrusted("\n".join(filter(None, lines)), source=found.task.id)
