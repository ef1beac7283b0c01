"""A project as one JSON object, to keep it, or to make it anew elsewhere: its tasks with comments, and its documents.

What is made anew belongs to whoever makes it. Who wrote a comment, and when, stands above its text, if that has
room for it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import Literal

import anyio

from denizen.domain.errors import DenizenError
from denizen.domain.json import JsonObject
from denizen.domain.project import (
    MAX_FOUND,
    MAX_TEXT_CHARS,
    Project,
    ProjectDraft,
    ProjectStatus,
    TaskDraft,
    TaskQuery,
    TaskStatus,
)
from denizen.domain.record import record
from denizen.engine.projects.board import ProjectBoard


@record(kw_only=True)
class ExportedComment:
    """A comment of a task. `at` is an ISO time in UTC."""

    by: str
    at: str
    text: str


@record(kw_only=True)
class ExportedTask:
    """A task with its comments, the oldest first."""

    title: str
    description: str = ""
    status: TaskStatus = TaskStatus.BACKLOG
    tags: tuple[str, ...] = ()
    assignee: str = ""
    due_on: str = ""
    comments: tuple[ExportedComment, ...] = ()


@record(kw_only=True)
class ExportedDocument:
    """A document with its text in Markdown."""

    name: str
    text: str


@record(kw_only=True)
class ExportedProject:
    """A project with everything in it, the oldest tasks first."""

    format: Literal["denizen-project-1"] = "denizen-project-1"
    name: str
    description: str = ""
    status: ProjectStatus = ProjectStatus.ACTIVE
    due_on: str = ""
    tasks: tuple[ExportedTask, ...] = ()
    documents: tuple[ExportedDocument, ...] = ()

    def to_json(self) -> JsonObject:
        return asdict(self)


async def export_project(board: ProjectBoard, wanted: str) -> ExportedProject:
    """Returns the project with that id or name. Raises as `ProjectBoard.get_project`."""
    project = await board.get_project(wanted)
    tasks: list[ExportedTask] = []
    query = TaskQuery(statuses=frozenset(TaskStatus), project_id=project.id, limit=MAX_FOUND)
    found = list(await board.find_tasks(query))
    while len(found) % MAX_FOUND == 0 and (
        more := await board.find_tasks(
            TaskQuery(statuses=query.statuses, project_id=project.id, limit=MAX_FOUND, skip=len(found))
        )
    ):
        found += more
    for task in sorted(found, key=lambda each: (each.created_at, each.id)):
        details = await board.get_task(task.id)
        comments = [
            ExportedComment(by=each.made_by.author_name, at=each.created_at.isoformat(), text=each.text)
            for each in details.comments
        ]
        tasks.append(
            ExportedTask(
                title=task.title,
                description=task.description,
                status=task.status,
                tags=task.tags,
                assignee=task.assignee,
                due_on=task.due_on,
                comments=tuple(comments),
            )
        )
    documents = [await board.get_document(each.id, project.id) for each in await board.list_documents(project.id)]
    return ExportedProject(
        name=project.name,
        description=project.description,
        status=project.status,
        due_on=project.due_on,
        tasks=tuple(tasks),
        documents=tuple(ExportedDocument(name=each.name, text=each.text) for each in documents),
    )


async def import_project(
    board: ProjectBoard, exported: ExportedProject, *, name: str = "", for_everybody: bool = False
) -> Project:
    """Makes the project anew, under that name if one is given. Raises what making its parts raises; then nothing of it
    is left.
    """
    draft = ProjectDraft(
        name=name or exported.name, description=exported.description, status=exported.status, due_on=exported.due_on
    )
    project = await board.create_project(draft, for_everybody=for_everybody)
    try:
        for task in exported.tasks:
            made = await board.create_task(
                TaskDraft(
                    title=task.title,
                    description=task.description,
                    status=task.status,
                    tags=task.tags,
                    assignee=task.assignee,
                    due_on=task.due_on,
                ),
                project.id,
            )
            for comment in task.comments:
                told = f"*{comment.by}, {comment.at[:10]}*\n\n{comment.text}"
                await board.comment(made.id, told if len(told) <= MAX_TEXT_CHARS else comment.text)
        for document in exported.documents:
            await board.create_document(document.name, document.text, project.id)
    except BaseException:
        with anyio.CancelScope(shield=True), suppress(DenizenError):
            await board.delete_project(project.id)
        raise
    return project
