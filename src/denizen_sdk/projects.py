"""Projects with their tasks, comments and documents, as far as the caller may read them. For everybody.

Times are ISO 8601 in UTC, days such as 2026-12-24; an empty day is none.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from denizen_sdk.calls import ClientCalls, idempotency_headers, quote_segment
from denizen_sdk.records import from_json, record


@record(kw_only=True)
class ProjectInfo:
    """A project. `readers` says in words who may read it, and `is_default` that it holds the tasks of these readers
    that name no project. `status` is active, completed or archived.
    """

    id: str
    name: str
    description: str
    status: str
    due_on: str
    readers: str
    is_default: bool
    author: str
    author_name: str
    created_at: str
    updated_at: str


@record(kw_only=True)
class TaskInfo:
    """A task. `status` is backlog, in_progress, blocked, in_review, done or archived."""

    id: str
    project_id: str
    title: str
    description: str
    status: str
    tags: tuple[str, ...]
    assignee: str
    due_on: str
    author: str
    author_name: str
    created_at: str
    updated_at: str


@record(kw_only=True)
class TaskCommentInfo:
    """Something that somebody said about a task."""

    id: str
    task_id: str
    text: str
    author: str
    author_name: str
    created_at: str


@record
class TaskDetailsInfo:
    """A task with its project and what was said about it, oldest first. `link` is the address of the issue that it
    mirrors, or empty.
    """

    task: TaskInfo
    project: ProjectInfo
    comments: tuple[TaskCommentInfo, ...]
    link: str = ""


@record(kw_only=True)
class ProjectDocumentInfo:
    """A Markdown text of a project. Its name is unique there."""

    id: str
    project_id: str
    name: str
    text: str
    author: str
    author_name: str
    created_at: str
    updated_at: str


@record(kw_only=True)
class ProjectDocumentEntryInfo:
    """A document in a list: without its text, but with the number of its characters."""

    id: str
    project_id: str
    name: str
    size_chars: int
    author: str
    author_name: str
    created_at: str
    updated_at: str


@record
class BoardChanged:
    """Something of some project may have changed: look again. `version` differs after each change."""

    version: str


class ProjectCalls(ClientCalls):
    """The calls of `/api/projects` and `/api/tasks`. All raise NetworkError and ApiError: 404 for what does not exist
    or may not be read, 403 for what only its author or an admin may do, 422 for wrong values.
    """

    async def list_projects(self) -> list[ProjectInfo]:
        """Returns the projects that the caller may read, oldest first."""
        return await self._list(ProjectInfo, "/api/projects")

    async def create_project(
        self, name: str, *, description: str = "", due_on: str = "", for_everybody: bool = False, key: str = ""
    ) -> ProjectInfo:
        """Makes a project: of owners and admins for each other, of others for themselves; `for_everybody` is for owners
        and admins. With the same `key` it is made once.
        """
        body = {"name": name, "description": description, "due_on": due_on, "for_everybody": for_everybody}
        return from_json(ProjectInfo, await self._send("POST", "/api/projects", body, key=key))

    async def get_project(self, project: str) -> ProjectInfo:
        """Returns a project by id or name."""
        return await self._get(ProjectInfo, f"/api/projects/{quote_segment(project)}")

    async def change_project(self, project: str, **changes: str) -> ProjectInfo:
        """Changes `name`, `description`, `status` or `due_on`."""
        return from_json(ProjectInfo, await self._send("PATCH", f"/api/projects/{quote_segment(project)}", changes))

    async def delete_project(self, project: str) -> None:
        """Deletes a project with everything in it."""
        await self._send("DELETE", f"/api/projects/{quote_segment(project)}")

    async def find_tasks(
        self,
        *,
        status: str = "",
        author: str = "",
        tags: Sequence[str] = (),
        updated_after: str = "",
        search: str = "",
        project: str = "",
        limit: int = 20,
    ) -> list[TaskInfo]:
        """Returns tasks with any of the tags, the one that changed last first. Without `status`, archived ones are left
        out.
        """
        return await self._list(
            TaskInfo,
            "/api/tasks",
            status=status,
            author=author,
            tags=",".join(tags),
            updated_after=updated_after,
            search=search,
            project=project,
            limit=limit,
        )

    async def create_task(self, title: str, *, key: str = "", **fields: str | Sequence[str]) -> TaskInfo:
        """Makes a task; `fields` are `project`, `description`, `status`, `tags`, `assignee` and `due_on`. With the same
        `key` it is made once.
        """
        return from_json(TaskInfo, await self._send("POST", "/api/tasks", {"title": title, **fields}, key=key))

    async def get_task(self, task: str) -> TaskDetailsInfo:
        return await self._get(TaskDetailsInfo, f"/api/tasks/{quote_segment(task)}")

    async def change_task(self, task: str, **changes: str | Sequence[str]) -> TaskInfo:
        """Changes what is given, of the fields that `create_task` has; `project` moves it to another one of the same
        readers.
        """
        return from_json(TaskInfo, await self._send("PATCH", f"/api/tasks/{quote_segment(task)}", changes))

    async def delete_task(self, task: str) -> None:
        """Deletes a task with its comments."""
        await self._send("DELETE", f"/api/tasks/{quote_segment(task)}")

    async def comment_on_task(self, task: str, text: str, *, key: str = "") -> TaskCommentInfo:
        """Says something about a task. With the same `key` it is said once."""
        path = f"/api/tasks/{quote_segment(task)}/comments"
        return from_json(TaskCommentInfo, await self._send("POST", path, {"text": text}, key=key))

    async def change_comment(self, task: str, comment: str, text: str) -> TaskCommentInfo:
        """Writes a comment anew, for its author and admins."""
        return from_json(TaskCommentInfo, await self._send("PATCH", _comment_path(task, comment), {"text": text}))

    async def delete_comment(self, task: str, comment: str) -> None:
        await self._send("DELETE", _comment_path(task, comment))

    async def list_project_documents(self, project: str) -> list[ProjectDocumentEntryInfo]:
        """Returns the documents of a project by name, without their texts."""
        return await self._list(ProjectDocumentEntryInfo, f"/api/projects/{quote_segment(project)}/documents")

    async def create_document(self, project: str, name: str, text: str, *, key: str = "") -> ProjectDocumentInfo:
        """Writes a document. Raises ApiError (409) for a name that is taken. With the same `key` it is written once."""
        path = f"/api/projects/{quote_segment(project)}/documents"
        return from_json(ProjectDocumentInfo, await self._send("POST", path, {"name": name, "text": text}, key=key))

    async def get_document(self, project: str, document: str) -> ProjectDocumentInfo:
        """Returns a document by id or name."""
        return await self._get(ProjectDocumentInfo, _document_path(project, document))

    async def change_document(self, project: str, document: str, **changes: str) -> ProjectDocumentInfo:
        """Changes `name` or `text`."""
        return from_json(ProjectDocumentInfo, await self._send("PATCH", _document_path(project, document), changes))

    async def delete_document(self, project: str, document: str) -> None:
        await self._send("DELETE", _document_path(project, document))

    async def watch_board(self) -> AsyncGenerator[BoardChanged]:
        """Yields a sign at once, and whenever something of projects may have changed. Does not end by itself."""
        async with self._connection.stream("GET", "/api/projects/events") as source:
            async for event in source:
                if event.event == "changed":
                    row: Any = event.json()
                    yield from_json(BoardChanged, row)

    async def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, key: str = "") -> Any:  # noqa: ANN401 - any JSON value
        return await self._connection.request(method, path, body=body, headers=idempotency_headers(key))


def _document_path(project: str, document: str) -> str:
    return f"/api/projects/{quote_segment(project)}/documents/{quote_segment(document)}"


def _comment_path(task: str, comment: str) -> str:
    return f"/api/tasks/{quote_segment(task)}/comments/{quote_segment(comment)}"
