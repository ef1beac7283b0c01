"""The services that a tool can use beyond its own call, as protocols and records.

Programs, downloads, a model, the read-only shell, documents, the archive of messages, memory, the log of past tool
calls, reminders, actions on the platform, the owner's skills, and Denizen itself. Each is None in a context where the
skill has no permission for it, or where there is none. The composition root passes in what implements them.

What a tool gets is limited to what the asker and everybody who reads the answer may see, at the moment of the call. A
thing that may not be seen and a thing that does not exist raise the same NotFound.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Literal, Protocol

from denizen.domain.json import Json, JsonObject
from denizen.ports.documents import IndexedPassage
from denizen.ports.fetch import DownloadedFile
from denizen.ports.sandbox import ShellResult


class Download(Protocol):
    """The way to the web for files (`ports/fetch`): private addresses are out of reach."""

    async def __call__(self, url: str, *, timeout_s: float = 60.0, max_bytes: int = 25_000_000) -> DownloadedFile:
        """Raises NotAllowed, InvalidInput or Unavailable; left alone, they become the tool's error result."""
        ...


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """What a program printed, both streams as they came. `exit_code` is None when it was stopped: its time was over, or
    with `is_cut` it printed too much.
    """

    text: str
    exit_code: int | None
    is_cut: bool = False


class RunProgram(Protocol):
    """Runs a program without a shell, without input, with none of Denizen's secrets in its environment; it and all that
    it started end with the call. What it prints is bounded to 1 MB.
    """

    async def __call__(self, argv: Sequence[str], *, cwd: Path | None = None, timeout_s: float = 30.0) -> ProgramResult:
        """`cwd` is the home folder unless given. Raises NotFound for a program that cannot be started."""
        ...


class AskModel(Protocol):
    """One request to the agent's model, paid by the budgets of who asked. No tools, no history."""

    async def __call__(self, instructions: str, text: str, *, max_output_tokens: int = 4000) -> str:
        """Raises Exhausted when a budget is used up, and Unavailable when there is no answer."""
        ...


class RunShell(Protocol):
    """The read-only shell over what this agent may look into (`ports/sandbox`)."""

    async def __call__(self, commands: Sequence[str]) -> tuple[ShellResult, ...]:
        """1 to 10 commands, one after another. Raises Unavailable where the system offers no isolation."""
        ...


class SearchDocuments(Protocol):
    """What was read of the sources of knowledge, searched by words and by meaning."""

    async def __call__(
        self, question: str, *, sources: Collection[str] = (), limit: int = 6
    ) -> Sequence[IndexedPassage]:
        """The best first; empty when nothing was read. Raises NotFound for a source that is not there."""
        ...


@dataclass(frozen=True, slots=True)
class SkillInfo:
    """One skill of the owner's folder. `state` is one of enabled, disabled, changed, failed, missing; `why` says what
    is wrong with it, if anything.
    """

    name: str
    kind: str
    state: str
    description: str
    why: str = ""


class SkillEditor(Protocol):
    """The skills in the home's `skills/` folder. Whatever is written is disabled until the owner enables it. Raises
    NotFound for a skill or file that is not there, InvalidInput for a name or content that cannot be.
    """

    async def list_skills(self) -> Sequence[SkillInfo]: ...

    async def read(self, name: str) -> Mapping[str, str]:
        """Its files by path; bytes that are no text are told by their size only."""
        ...

    async def create(self, name: str, files: Mapping[str, str]) -> Sequence[str]:
        """Raises Conflict for a name that is taken. Returns what the check found; none of its code runs."""
        ...

    async def edit(self, name: str, file: str, text: str) -> Sequence[str]:
        """Writes one file. Returns as `create`."""
        ...

    async def delete(self, name: str) -> None: ...

    def guide(self) -> str:
        """How a skill is written, with a whole example: for people and models who write one."""
        ...


@dataclass(frozen=True, slots=True)
class SpendingSummary:
    """Money of today and of this month (UTC), with the number of requests."""

    day_usd: Decimal
    month_usd: Decimal
    day_requests: int
    month_requests: int


@dataclass(frozen=True, slots=True)
class CacheUsage:
    """Input tokens of the last so many days, and how many of them the provider read from or wrote to its cache."""

    days: int
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


class InstanceControl(Protocol):
    """Denizen itself."""

    async def spent(self) -> SpendingSummary: ...

    async def cache_usage(self) -> CacheUsage: ...

    def restart(self) -> None:
        """Ends this process gracefully and begins it anew with the same command line. Raises NotAllowed where nothing
        runs for long: for one question in a terminal.
        """
        ...


ArchiveKey = Literal["room", "author", "day"]


@dataclass(frozen=True, slots=True)
class ArchivedPost:
    """One message. `room` is a name, with its channel's for a thread (`general > plans`); `link` and `reply_to` may be
    empty; `attachments` are file names. In a search `text` is the part around the words, else the
    beginning. Times are aware and UTC.
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


@dataclass(frozen=True, slots=True)
class ArchivedEdits:
    """A message with its earlier texts, oldest first, each with the time at which it was written."""

    post: ArchivedPost
    earlier: tuple[tuple[datetime, str], ...]


@dataclass(frozen=True, slots=True)
class ArchiveCount:
    """`name` is a room's or author's name, or a UTC day such as 2026-11-21."""

    name: str
    posts: int


class ArchiveLookup(Protocol):
    """The archive as one call may see it.

    `room` is a name or an id, empty for every room that may be seen (in `history`: the room of the call); `author` is a
    name or an id. Raises NotFound for what is not there or may not be seen, and where nothing is archived; InvalidInput
    for a name that means several; Unavailable when the platform had to be asked and does not answer.
    """

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
        """Messages that contain all the words, in any case, and with an embedder those that mean something like them;
        the best first. By words alone the newest first.
        """
        ...

    async def history(
        self, room: str = "", *, before: str = "", after: str = "", limit: int = 50
    ) -> Sequence[ArchivedPost]:
        """Oldest first: the newest `limit`, before the message `before`; or the oldest `limit` after `after`."""
        ...

    async def around(self, post_id: str, *, each_side: int = 5) -> Sequence[ArchivedPost]:
        """The message with those before and after it in its room, oldest first."""
        ...

    async def edits(self, post_id: str) -> ArchivedEdits:
        """Also of a deleted message. For its author and those who moderate the room; NotAllowed for others, to whom a
        deleted message does not exist.
        """
        ...

    async def stats(
        self, by: ArchiveKey, *, room: str = "", since: datetime | None = None, limit: int = 20
    ) -> Sequence[ArchiveCount]:
        """Most first; by day newest first."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """One memory. `core`: the agent's own, not the user's. Times are aware and UTC."""

    id: str
    text: str
    at: datetime
    core: bool = False


class MemoryAccess(Protocol):
    """The memory of one agent as one call may see and change it. Core memories are written by owners and admins."""

    async def remember(self, text: str, *, core: bool = False) -> MemoryItem:
        """What is remembered already is given back. Raises InvalidInput for a text that is empty or too long, Exhausted
        when there is no room, NotAllowed for a core memory that may not be written by this user or in this place.
        """
        ...

    async def recall(self, words: str, *, limit: int = 8) -> Sequence[MemoryItem]:
        """What fits the words, by the words themselves and by meaning; the best first."""
        ...

    async def list(self, *, limit: int = 50) -> Sequence[MemoryItem]:
        """Newest first."""
        ...

    async def update(self, memory_id: str, text: str) -> MemoryItem:
        """Raises NotFound, NotAllowed and InvalidInput."""
        ...

    async def forget(self, memory_id: str) -> MemoryItem:
        """Gives what it was. Raises NotFound and NotAllowed."""
        ...


@dataclass(frozen=True, slots=True)
class PastToolCall:
    """One tool call of an earlier turn. `outcome` is one of done, failed, denied."""

    tool: str
    at: datetime
    outcome: str
    duration_ms: int
    turn_id: str


class ToolCallLog(Protocol):
    """What the agent did, in rooms that everybody who reads the answer may see."""

    async def search(self, words: str = "", *, limit: int = 20) -> Sequence[PastToolCall]:
        """Newest first; with words, those of which the tool's name or the outcome has them all."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedReminder:
    """`due_at` is an aware time in the zone that was asked for; `is_here`: it was asked for in this very place."""

    id: str
    text: str
    due_at: datetime
    is_here: bool = True


class ReminderAccess(Protocol):
    """The pending reminders of one person, as one call may see and change them. `zone` is the IANA name of the zone
    that is meant where a time has no offset; empty for the agent's own (`timestamps.zone`).
    """

    async def add(self, when: str, text: str, *, zone: str = "") -> PlannedReminder:
        """Delivered where the call was made. Raises NotAllowed where nothing can be delivered (outside of platforms),
        InvalidInput for a time that cannot be understood, is over or too far ahead, and for a text that is empty or too
        long, Exhausted when the person has too many already.
        """
        ...

    async def list(self, *, zone: str = "") -> Sequence[PlannedReminder]:
        """The next one first. All of them, wherever they were asked for: others may read what is shown in a room."""
        ...

    async def cancel(self, reminder_id: str) -> None:
        """Raises NotFound."""
        ...


class PlatformActions(Protocol):
    """Actions of the agent's account, each within what the asker and the account may both do at that moment."""

    async def act(self, action: str, /, **details: Json) -> JsonObject:
        """Does it, and returns what came of it. Which actions there are, and their details, is the platform's business.

        Raises NotAllowed for what the asker or the account may not do, and off platforms; NotFound for a person, room
        or message that is not there; InvalidInput for details that cannot be; Unavailable when the platform does not
        answer. Left alone, they become the tool's error result.
        """
        ...
