"""The services that a tool can use beyond its own call, as protocols and records.

Programs, downloads, a model, the read-only shell, documents, the archive of messages, memory, the log of past tool
calls, reminders, feeds, actions on the platform, the owner's skills, and Denizen itself. Each is None in a context
where the skill has no permission for it, or where there is none. The composition root passes in what implements them.

What a tool gets is limited to what the asker and everybody who reads the answer may see, at the moment of the call. A
thing that may not be seen and a thing that does not exist raise the same NotFound.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, tzinfo
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol

from denizen.domain.json import Json, JsonObject
from denizen.domain.log import LogEntry, LogFilter, LogStatistics
from denizen.domain.principal import Principal
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
from denizen.ports.documents import IndexedPassage
from denizen.ports.fetch import DownloadedFile, FetchedPage, WebRequest
from denizen.ports.sandbox import ShellResult
from denizen.ports.sql import SqlRows


class Download(Protocol):
    """Downloads a file (`ports/fetch`): private addresses are out of reach."""

    async def __call__(self, url: str, *, timeout_s: float = 60.0, max_bytes: int = 25_000_000) -> DownloadedFile:
        """Returns the file. Raises NotAllowed, InvalidInput, NotFound or Unavailable; a tool that does not catch them
        returns them as its error.
        """
        ...


class SendRequest(Protocol):
    """Sends one request of any method to an API (`ports/fetch`): private addresses are out of reach."""

    async def __call__(self, request: WebRequest, *, timeout_s: float = 30.0, max_bytes: int = 500_000) -> FetchedPage:
        """Returns the answer; redirects are not followed. Raises as `Fetch` does."""
        ...


@record
class ProgramResult:
    """The output of a program, both streams in the order in which they came. `exit_code` is None when the program
    was stopped: on its time limit or, with `is_cut`, because it printed too much.
    """

    text: str
    exit_code: int | None
    is_cut: bool = False


NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


class RunProgram(Protocol):
    """Runs a program without a shell, without input and without Denizen's secrets in its environment. The program
    and all that it started end with the call. Its output is limited to 1 MB.
    """

    async def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        timeout_s: float = 30.0,
        env: Mapping[str, str] = NO_VARIABLES,
    ) -> ProgramResult:
        """Runs the program in `cwd`, or else in the home folder; `env` is what it sees besides PATH, HOME and LANG.
        Raises NotFound for a program that cannot be started.
        """
        ...


class AskModel(Protocol):
    """Sends one request to the agent's model, without tools or history. The budgets of who asked pay for it."""

    async def __call__(self, instructions: str, text: str, *, max_output_tokens: int = 4000) -> str:
        """Returns the answer. Raises LimitExceeded when a budget is used up, and Unavailable when there is no
        answer.
        """
        ...


class RunShell(Protocol):
    """Runs commands in the read-only shell over what this agent may look into (`ports/sandbox`)."""

    async def __call__(self, commands: Sequence[str]) -> tuple[ShellResult, ...]:
        """Runs 1 to 10 commands, one after another. Raises Unavailable where the system offers no isolation."""
        ...


class SearchDocuments(Protocol):
    """Searches the sources of knowledge by words and by embeddings."""

    async def __call__(
        self, question: str, *, sources: Collection[str] = (), limit: int = 6
    ) -> Sequence[IndexedPassage]:
        """Returns the best passages first; none when nothing was read. Raises NotFound for a source that does not
        exist.
        """
        ...


@record
class SkillInfo:
    """One skill of the owner's folder. `state` is one of enabled, disabled, changed, failed, missing; `why` says
    what is wrong with it, if anything.
    """

    name: str
    kind: str
    state: str
    description: str
    why: str = ""


class SkillEditor(Protocol):
    """Edits the skills in the home's `skills/` folder. Whatever is written is disabled until the owner enables it.

    Raises NotFound for a skill or file that does not exist, InvalidInput for a name or content that is not allowed.
    """

    async def list_skills(self) -> Sequence[SkillInfo]: ...

    async def read(self, name: str) -> Mapping[str, str]:
        """Returns its files by path; of a binary file only the size."""
        ...

    async def create(self, name: str, files: Mapping[str, str], *, by: str) -> Sequence[str]:
        """Writes a new skill; `by` tells its owner who did. Returns what the check found; none of the skill's code
        runs. Raises Conflict for a name that is taken.
        """
        ...

    async def edit(self, name: str, file: str, text: str, *, by: str) -> Sequence[str]:
        """Writes one file. Returns what the check found, as `create` does."""
        ...

    async def delete(self, name: str) -> None: ...

    def guide(self) -> str:
        """Returns how a skill is written, with a whole example: for people and models who write one."""
        ...


@record
class SpendingSummary:
    """The money spent today and this month (UTC), with the number of requests."""

    day_usd: Decimal
    month_usd: Decimal
    day_requests: int
    month_requests: int


@record
class CacheUsage:
    """The input tokens of the last days, and how many of them the provider read from or wrote to its cache."""

    days: int
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


class InstanceControl(Protocol):
    """The running instance of Denizen: its spending, its cache, and a restart."""

    async def spent(self) -> SpendingSummary: ...

    async def cache_usage(self) -> CacheUsage: ...

    def restart(self) -> None:
        """Ends this process gracefully and starts it again with the same command line. Raises NotAllowed where
        nothing runs for long, such as for one question in a terminal.
        """
        ...


UserOrder = Literal["messages", "tokens", "recent"]
ErrorGrouping = Literal["path", "error"]


class AdministrationAccess(Protocol):
    """The records of this server as owners and admins may read them, and its configuration.

    Nothing of it tells secrets, or what other people wrote. Tools that use it are declared with `administration`, so
    that the gate lets nobody else reach them.
    """

    async def sum_usage(self, days: int) -> JsonObject:
        """Returns the usage of the last days: totals, the same before, by day, hour, model, source and user."""
        ...

    async def list_users(self, *, order: UserOrder, limit: int) -> SqlRows: ...

    async def list_sources(self) -> SqlRows: ...

    async def list_chats(self, *, user: str = "", limit: int) -> SqlRows:
        """Returns the newest chats of the web, without their titles; `user` is a principal's key, or a name."""
        ...

    async def list_agent_settings(self) -> Sequence[JsonObject]:
        """Returns the settings of each agent as they hold now."""
        ...

    async def run_sql(self, query: str) -> SqlRows:
        """Runs one SELECT over views that hold no secrets. Raises InvalidInput, LimitExceeded or Unavailable."""
        ...

    def describe_views(self) -> str: ...

    async def search_log(self, wanted: LogFilter, *, limit: int) -> Sequence[LogEntry]:
        """Returns the newest entries first. Raises NotFound where no log is kept."""
        ...

    async def sum_log(self, wanted: LogFilter) -> LogStatistics: ...

    async def read_configuration(self, section: str) -> str:
        """Returns a section of the configuration in effect as YAML, without secrets; the names of the sections for an
        empty one. Raises NotFound.
        """
        ...

    async def change_configuration(self, by: Principal, path: str, value: Json) -> None:
        """Sets one value of `denizen.yaml`, which holds at once. Raises NotAllowed for a key that is not on the list of
        those that may be changed from a chat, InvalidInput for a value that it cannot have; nothing is written then.
        """
        ...

    async def create_agent(self, by: Principal, name: str, *, description: str, model: str) -> None:
        """Adds an agent without tools. Raises Conflict for a name that is taken, InvalidInput."""
        ...


ArchiveKey = Literal["room", "author", "day"]


@record
class ArchivedPost:
    """One message. Times are aware and UTC.

    `room` is a name, for a thread with its channel's (`general > plans`); `link` and `reply_to` may be empty;
    `attachments` are file names. `text` is the beginning or, in a search, the part around the words.
    """

    id: str
    room: str
    room_id: str
    author: str
    author_id: str
    at: datetime
    text: str
    link: str = ""
    reply_to: str = ""
    edited_at: datetime | None = None
    deleted_at: datetime | None = None
    attachments: tuple[str, ...] = ()


@record
class ArchivedEdits:
    """A message with its earlier texts, oldest first, each with the time at which it was written."""

    post: ArchivedPost
    earlier: tuple[tuple[datetime, str], ...]


@record
class ArchiveCount:
    """A number of posts. `name` is a room's or author's name, or a UTC day such as 2026-11-21."""

    name: str
    posts: int


@record
class ArchivedTalk:
    """Messages that belong together, oldest first. `found` are the ids of those that a search found; the others stand
    before or after one of them in its room, or are what it replies to.
    """

    posts: tuple[ArchivedPost, ...]
    found: frozenset[str]


@record(kw_only=True)
class TalkFilters:
    """The limits of a search that the words of its question set. `author` and `room` are names."""

    author: str = ""
    room: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.author or self.room or self.since or self.until)


@record(kw_only=True)
class FoundTalk:
    """The result of a search, the best talk first. `words` are those of the question that were searched for.
    `is_widened`: as `filters` say there was nothing, so this was found without them.
    """

    talk: Sequence[ArchivedTalk]
    words: str
    filters: TalkFilters
    is_widened: bool = False


class ArchiveLookup(Protocol):
    """The archive of messages as one call may see it.

    `room` is a name or an id, empty for every room that may be seen (in `history`: the room of the call); `author` is a
    name or an id. Raises NotFound for what does not exist or may not be seen, and where nothing is archived;
    InvalidInput for an ambiguous name; Unavailable when the platform had to be asked and does not answer.
    """

    @property
    def zone(self) -> tzinfo:
        """The time zone of days and times that people name there."""
        ...

    async def search(
        self,
        words: str,
        *,
        room: str = "",
        author: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
    ) -> Sequence[ArchivedPost]:
        """Returns messages that contain some of the words, in any case, and with an embedder also those of similar
        meaning. The best come first; of equals, the newest. Without words, the newest are returned.
        """
        ...

    async def find_talk(
        self,
        question: str,
        *,
        room: str = "",
        author: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
    ) -> FoundTalk:
        """Finds at most `limit` messages as `search` does, with those around them. Where the arguments leave it open,
        the words of the question say whose messages, of which room and time; without other words, the newest count.
        """
        ...

    async def list_absent(self, words: str) -> Sequence[str]:
        """Returns those of the words that no message has which may be seen, in any room."""
        ...

    async def history(
        self, room: str = "", *, before: str = "", after: str = "", limit: int = 50
    ) -> Sequence[ArchivedPost]:
        """Returns messages oldest first: the newest `limit`, those before the message `before`, or the first `limit`
        after `after`.
        """
        ...

    async def around(self, post_id: str, *, each_side: int = 5) -> Sequence[ArchivedPost]:
        """Returns the message with those before and after it in its room, oldest first."""
        ...

    async def edits(self, post_id: str) -> ArchivedEdits:
        """Returns the earlier texts of a message, also of a deleted one, for its author and those who moderate the
        room. Raises NotAllowed for others, and NotFound for a deleted message that they ask for.
        """
        ...

    async def stats(
        self, by: ArchiveKey, *, room: str = "", since: datetime | None = None, limit: int = 20
    ) -> Sequence[ArchiveCount]:
        """Returns counts, largest first; by day, newest first."""
        ...


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
    """A schedule of the asker. `next_at` is None while it is off; `last_outcome` is empty before its first run."""

    name: str
    cron: str
    zone: str
    prompt: str
    next_at: datetime | None = None
    last_outcome: str = ""


class ScheduleAccess(Protocol):
    """The schedules of one person, as one call may see and change them. Names of others' raise NotFound."""

    async def add(self, name: str, cron: str, prompt: str, *, zone: str = "") -> OwnSchedule:
        """Adds a schedule, which is answered where the call was made.

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


@record(kw_only=True)
class WorkflowSummary:
    """A workflow. `triggers` are the types of its triggers; `last_status` is empty before its first run."""

    name: str
    description: str
    enabled: bool
    triggers: Sequence[str] = ()
    last_status: str = ""


@record(kw_only=True)
class WorkflowRunSummary:
    """A run of a workflow. `reason` says why it went so; `ended_at` is None while it goes on."""

    id: str
    workflow: str
    status: str
    started_at: datetime
    ended_at: datetime | None = None
    reason: str = ""


@record(kw_only=True)
class WorkflowStep:
    """How one node of a run went."""

    node: str
    type: str
    status: str
    duration_s: float | None = None
    output: Json = None
    error: str = ""


class WorkflowAccess(Protocol):
    """The workflows of this home, as an owner sees and changes them. Names that do not exist raise NotFound."""

    async def list(self) -> Sequence[WorkflowSummary]: ...

    async def read(self, name: str) -> str:
        """Returns the text of a workflow."""
        ...

    async def create(self, name: str, text: str) -> None:
        """Adds a workflow. Raises Conflict for a name that is taken, and InvalidInput with all that is wrong."""
        ...

    async def change(self, name: str, old: str, new: str) -> None:
        """Replaces a part of the text, which has to be there exactly once. Raises InvalidInput."""
        ...

    async def delete(self, name: str) -> None: ...

    async def switch(self, name: str, *, is_on: bool) -> None: ...

    async def run(self, name: str, given: JsonObject) -> str:
        """Begins a run, also of a workflow that is off. Returns its id. Raises InvalidInput."""
        ...

    async def list_runs(self, name: str, *, limit: int) -> Sequence[WorkflowRunSummary]:
        """Returns the runs of a workflow, or of all, the newest first."""
        ...

    async def get_run(self, run: str) -> tuple[WorkflowRunSummary, Sequence[WorkflowStep]]:
        """Returns a run with its nodes, in the order in which they ran."""
        ...


class PlatformActions(Protocol):
    """Actions of the agent's account on the platform, each limited to what the asker and the account may both do at
    that moment.
    """

    async def act(self, action: str, /, **details: Json) -> JsonObject:
        """Runs an action and returns its result. The platform defines the actions and their details.

        Raises NotAllowed for what the asker or the account may not do, and off platforms; NotFound for a person, room
        or message that does not exist; InvalidInput for wrong details; Unavailable when the platform does not answer. A
        tool that does not catch them returns them as its error.
        """
        ...

    async def check(self, action: str, /, **details: Json) -> None:
        """Raises what `act` would raise before it changes anything. Changes nothing."""
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
