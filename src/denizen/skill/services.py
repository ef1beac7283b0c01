"""What a tool can ask of Denizen beyond its own call: programs, files from the web, a model, the skills of the owner,
and Denizen itself. Each is None in a context where the skill has no permission for it, or where there is none.

Protocols and records only; the composition root hands in what implements them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Protocol

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
