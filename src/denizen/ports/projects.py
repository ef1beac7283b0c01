"""The projects in the store: records of `domain.project`, and the changes that the task watcher has to look at."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from denizen.domain.project import (
    AudienceFilter,
    Project,
    ProjectDocument,
    ProjectDocumentEntry,
    Task,
    TaskChange,
    TaskComment,
    TaskQuery,
)


class ProjectRepository(Protocol):
    """Projects, their tasks with comments, and their documents. Nothing here asks who may read them, but what takes an
    `AudienceFilter`.
    """

    async def add(self, project: Project) -> bool:
        """Adds the project. False, and nothing changes, when its id exists."""
        ...

    async def find(self, project_id: str) -> Project | None: ...

    async def list_projects(self, readers: AudienceFilter, *, limit: int = 200) -> Sequence[Project]:
        """Returns the projects that those readers may read, oldest first."""
        ...

    async def count(self, audience: str) -> int:
        """Returns how many projects the audience has."""
        ...

    async def count_made(self, author: str) -> int:
        """Returns how many projects this principal key has made, without default ones."""
        ...

    async def measure(self, project_id: str) -> int:
        """Returns how many characters the texts of a project have: those of tasks, comments and documents."""
        ...

    async def replace(self, project: Project) -> bool:
        """Writes a changed project. False when it is not there."""
        ...

    async def remove(self, project_id: str) -> bool:
        """Removes the project with everything in it. False when it is not there."""
        ...

    async def add_task(self, task: Task) -> bool:
        """Adds the task. False, and nothing changes, when its id exists."""
        ...

    async def find_task(self, task_id: str) -> Task | None: ...

    async def search_tasks(self, wanted: TaskQuery, projects: Collection[str]) -> Sequence[Task]:
        """Returns the tasks of these projects that were searched for, the one that changed last first."""
        ...

    async def count_tasks(self, project_id: str) -> int: ...

    async def replace_task(self, task: Task) -> bool:
        """Writes a changed task. False when it is not there."""
        ...

    async def remove_task(self, task_id: str) -> bool:
        """Removes the task with its comments and what the watcher would look at. False when it is not there."""
        ...

    async def add_comment(self, comment: TaskComment) -> bool:
        """Adds the comment. False, and nothing changes, when its id exists."""
        ...

    async def count_comments(self, task_id: str) -> int: ...

    async def list_comments(self, task_id: str) -> Sequence[TaskComment]:
        """Returns the comments of a task, oldest first."""
        ...

    async def replace_comment(self, comment: TaskComment) -> bool:
        """Writes a changed comment. False when it is not there."""
        ...

    async def remove_comment(self, comment_id: str) -> bool:
        """Removes the comment. False when it is not there."""
        ...

    async def put_document(self, document: ProjectDocument) -> None:
        """Adds the document, or writes it anew."""
        ...

    async def list_documents(self, project_id: str) -> Sequence[ProjectDocumentEntry]:
        """Returns the documents of a project by name, without their texts."""
        ...

    async def find_document(self, document_id: str) -> ProjectDocument | None: ...

    async def remove_document(self, document_id: str) -> bool:
        """Removes the document. False when it is not there."""
        ...

    async def forget_author(self, author: str) -> None:
        """Removes the projects that only this principal key may read, and takes its name out of all others."""
        ...

    async def load_version(self, readers: AudienceFilter) -> str:
        """Returns a text that differs after each change of what those readers may read, for those who look for what
        other processes do.
        """
        ...


class TaskChangeRepository(Protocol):
    """The changes of tasks that the task watcher has not looked at yet."""

    async def note(self, change: TaskChange, *, now: datetime) -> None:
        """Adds the change. One of the same task that waits takes its place, if it is not due yet or has the same maker:
        it is due when the new one is, stays a creation if it was one, and keeps its maker.
        """
        ...

    async def find_next(self) -> TaskChange | None:
        """Returns the change that is started, or else the one that is due first; None where none waits."""
        ...

    async def list_due(self, *, now: datetime) -> Sequence[TaskChange]:
        """Returns of each maker the change that has been due the longest and is not started, the earliest first."""
        ...

    async def start(self, change_id: str, *, now: datetime) -> bool:
        """Marks the change as started. False when it is not there, not due yet, or another one is started."""
        ...

    async def finish(self, change_id: str) -> bool:
        """Removes the change. False when it is not there."""
        ...
