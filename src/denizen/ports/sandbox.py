"""The read-only shell: commands over a folder of documents, which can look and do nothing else.

Implemented by `adapters/sandbox`; called by the skill `shell` and by `denizen shell`. One sandbox and one validator for
all callers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

MAX_COMMANDS = 10
MAX_COMMAND_CHARS = 2000
MAX_STREAM_CHARS = 50_000
REFUSED_EXIT_CODE = 126
"""Of a line that was not run: like a shell's for what it cannot execute, and none that the programs use."""
TIMED_OUT_EXIT_CODE, CAPPED_EXIT_CODE = 124, 137


@dataclass(frozen=True, slots=True)
class ShellView:
    """What is seen: folders by name, below the top folder. A single one with an empty name is the top itself."""

    folders: tuple[tuple[str, Path], ...]


@dataclass(frozen=True, slots=True)
class ShellResult:
    """Of one command. Each stream has at most `MAX_STREAM_CHARS` characters, and then a note of its full length.
    `refused` means that policy did not allow it; why, and what is allowed, stands in `stderr`.
    """

    command: str
    stdout: str
    stderr: str
    exit_code: int
    refused: bool
    duration_ms: int


@dataclass(frozen=True, slots=True)
class ShellReply:
    """`session_id` names the session for the next call; it begins with `sess_`."""

    session_id: str
    results: tuple[ShellResult, ...]


class Sandbox(Protocol):
    """Open for the life of the process."""

    async def run(self, commands: Sequence[str], view: ShellView, *, owner: str, session_id: str = "") -> ShellReply:
        """1 to 10 commands, one after another, each from the top folder of the view. A session belongs to its `owner`
        and keeps the view that it began with; one that is unknown, over or somebody else's is begun anew. Raises
        InvalidInput for the number of commands, Unavailable (`sandbox_off`) where the system offers no isolation.
        """
        ...

    async def forget(self) -> None:
        """From now on everybody sees what they are given then, whatever session they name, and nothing that was copied
        for somebody stays.
        """
        ...

    async def check(self) -> str:
        """How programs are shut in here, by really running one. Raises Unavailable (`sandbox_off`)."""
        ...
