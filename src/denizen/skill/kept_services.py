"""The services for what agents keep for people: memory, past calls, reminders, questions, feeds, schedules, projects.

They are as `services` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from denizen.domain.project import (
    Project,
    ProjectDocument,
    ProjectDocumentEntry,
    ProjectDraft,
    Task,
    TaskComment,
    TaskDetails,
    TaskDraft,
    TaskQuery,
)
from denizen.domain.record import record


@record
class MemoryItem:
    """One memory. `core` memories are the agent's own, not the user's. Times are aware and UTC."""

    id: str
    text: str
    at: datetime
    core: bool = False


class MemoryAccess(Protocol):
    """The memory of one agent as one call may see and change it. Memories are of the user whose turn it is or core:
    of the agent, whoever speaks. Owners and admins write core memories.
    """

    async def remember(self, text: str, *, core: bool = False) -> MemoryItem:
        """Adds a memory; a text that is remembered already is returned as it is. An older one that tells of the same
        thing, such as another home, becomes history, which nobody is told.

        Raises InvalidInput for a text that is empty or too long, LimitExceeded when memory is full, NotAllowed for a
        core memory that this user may not write, or not in this place.
        """
        ...

    async def recall(self, words: str, *, limit: int = 8) -> Sequence[MemoryItem]:
        """Returns memories that match the words or their meaning, the best first."""
        ...

    async def list(self, *, limit: int = 50) -> Sequence[MemoryItem]:
        """Returns memories, newest first."""
        ...

    async def update(self, memory_id: str, text: str) -> MemoryItem:
        """Adds a memory instead of another one, which becomes history. Raises NotFound, NotAllowed and InvalidInput."""
        ...

    async def forget(self, memory_id: str) -> MemoryItem:
        """Removes a memory with its history and returns what it was. Raises NotFound and NotAllowed."""
        ...


@record
class PastToolCall:
    """One tool call of an earlier turn. `outcome` is one of done, failed, denied."""

    tool: str
    at: datetime
    outcome: str
    duration_ms: int
    turn_id: str


class ToolCallLog(Protocol):
    """The tool calls that the agent made, in rooms that everybody who reads the answer may see."""

    async def search(self, words: str = "", *, limit: int = 20) -> Sequence[PastToolCall]:
        """Returns calls newest first; with words, calls whose tool name or outcome contains them all."""
        ...


@record
class PlannedReminder:
    """A pending reminder. `due_at` is an aware time in the zone that was asked for; `is_here` is whether it was
    asked for in this very place.
    """

    id: str
    text: str
    due_at: datetime
    is_here: bool = True


class OwnerQuestions(Protocol):
    """The inbox of questions to the owner, as one call may use it."""

    async def ask(self, text: str) -> str:
        """Leaves a question, which is sent to the owner, and returns its id. Nothing waits: the answer comes as a
        message in the same conversation.

        Raises InvalidInput for a text that is empty or too long, LimitExceeded when too many wait or the owner was
        asked too often.
        """
        ...


class ReminderAccess(Protocol):
    """The pending reminders of one person, as one call may see and change them.

    `zone` is the IANA name of the zone for times without an offset; empty for the agent's own (`timestamps.zone`).
    """

    async def add(self, when: str, text: str, *, zone: str = "") -> PlannedReminder:
        """Adds a reminder, which is delivered where the call was made.

        Raises NotAllowed where nothing can be delivered (off platforms), InvalidInput for a time that is not
        understood, past or too far ahead, and for a text that is empty or too long, LimitExceeded when the person has
        too many already.
        """
        ...

    async def list(self, *, zone: str = "") -> Sequence[PlannedReminder]:
        """Returns all of them, the next one first, wherever they were asked for. Mind that others may read what is
        shown in a room.
        """
        ...

    async def cancel(self, reminder_id: str) -> None:
        """Removes a reminder. Raises NotFound."""
        ...


@record
class FollowedFeed:
    """A feed whose new items are posted in a channel. `problem` says why it could not be read the last time."""

    id: str
    title: str
    url: str
    channel: str
    format: str
    problem: str = ""


class FeedAccess(Protocol):
    """The feeds of this server at places where the asker may write. Titles and addresses come from strangers."""

    async def subscribe(self, url: str, *, channel: str = "", format: str = "embed") -> FollowedFeed:  # noqa: A002
        """Follows a feed in a channel, or here. Items that it has now are not posted.

        Raises NotAllowed where the asker or the account may not write, NotFound for a channel, Conflict where it is
        followed already, LimitExceeded, InvalidInput for what is no feed, and what `Fetch` raises.
        """
        ...

    async def list(self) -> Sequence[FollowedFeed]: ...

    async def unsubscribe(self, feed: str) -> None:
        """Ends a subscription by its id. Raises NotFound."""
        ...


@record(kw_only=True)
class OwnSchedule:
    """A schedule of the asker. `when` says its times, in the words of the asker and as they are meant. `next_at` is
    None while `pause` is off or over; `last_outcome` is empty before its first run.
    """

    name: str
    when: str
    zone: str
    prompt: str
    next_at: datetime | None = None
    pause: str = ""
    last_outcome: str = ""


class ScheduleAccess(Protocol):
    """The schedules of one person, as one call may see and change them. Names of others' raise NotFound."""

    async def add(self, name: str, when: str, prompt: str, *, zone: str = "") -> OwnSchedule:
        """Adds a schedule, which is answered where the call was made. `when` is words, such as `every Monday at 9` or
        `in 3 hours`, or a cron expression.

        Raises NotAllowed where nobody would read that, InvalidInput for a time that is none, Conflict for a name that
        is taken, LimitExceeded when it would run too often or the person has too many.
        """
        ...

    async def list(self) -> Sequence[OwnSchedule]: ...

    async def remove(self, name: str) -> None: ...

    async def switch(self, name: str, *, is_on: bool) -> OwnSchedule: ...

    async def run(self, name: str) -> None:
        """Asks for a run now. Raises Conflict while one has not ended."""
        ...


class ProjectAccess(Protocol):
    """Projects, tasks, comments and documents as one call may see and change them.

    `project` is an id or a name; empty is the project of those who read along where the call is made. Raises NotFound
    for what does not exist or may not be read here, InvalidInput for texts that do not fit, NotAllowed for what only
    its author or an owner may do, and for words that others would read than those who read along.
    """

    async def list_projects(self) -> Sequence[Project]: ...

    async def get_project(self, wanted: str) -> Project: ...

    async def create_project(self, draft: ProjectDraft, *, for_everybody: bool = False) -> Project: ...

    async def change_project(self, wanted: str, draft: ProjectDraft) -> Project: ...

    async def delete_project(self, wanted: str) -> Project: ...

    async def find_tasks(self, wanted: TaskQuery) -> Sequence[Task]:
        """Returns the tasks that were searched for, the one that changed last first."""
        ...

    async def get_task(self, task_id: str) -> TaskDetails: ...

    async def create_task(self, draft: TaskDraft, project: str = "") -> Task: ...

    async def change_task(self, task_id: str, draft: TaskDraft, project: str = "") -> Task:
        """Changes a task; with `project` it moves there."""
        ...

    async def delete_task(self, task_id: str) -> Task: ...

    async def comment(self, task_id: str, text: str) -> TaskComment: ...

    async def list_documents(self, project: str = "") -> Sequence[ProjectDocumentEntry]:
        """Returns the documents by name, without their texts."""
        ...

    async def get_document(self, name: str, project: str = "") -> ProjectDocument: ...

    async def create_document(self, name: str, text: str, project: str = "") -> ProjectDocument: ...

    async def change_document(
        self, name: str, project: str = "", *, text: str | None = None, new_name: str = ""
    ) -> ProjectDocument: ...

    async def delete_document(self, name: str, project: str = "") -> ProjectDocument: ...
