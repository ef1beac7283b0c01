"""The read-only shell: commands over a folder of documents, which can look and do nothing else.

`adapters/sandbox` implements it; the skill `shell` and `denizen shell` call it. All callers share one sandbox and one
policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from denizen.domain.record import record

MAX_COMMANDS = 10
MAX_COMMAND_CHARS = 2000
MAX_STREAM_CHARS = 50_000
REFUSED_EXIT_CODE = 126
"""The exit code of a line that was not run: what a shell uses for a command that it cannot execute, and none of the
programs does.
"""
TIMED_OUT_EXIT_CODE, CAPPED_EXIT_CODE = 124, 137


@record
class ShellView:
    """The folders that a shell sees, by name, below the top folder. A single folder with an empty name is the top
    itself.
    """

    folders: tuple[tuple[str, Path], ...]


@record
class ShellResult:
    """The result of one command. Each stream has at most `MAX_STREAM_CHARS` characters, and then a note of its full
    length.

    `refused` means that the policy did not allow it; `stderr` says why, and what is allowed. `read` are the files that
    its programs were given to read, as paths below the top folder, and folders (with a `/` at the end; the top is `/`)
    of which any file may have been.
    """

    command: str
    stdout: str
    stderr: str
    exit_code: int
    refused: bool
    duration_ms: int
    read: tuple[str, ...] = ()


@record
class ShellReply:
    """The results of a call. `session_id` names the session for the next call; it begins with `sess_`."""

    session_id: str
    results: tuple[ShellResult, ...]


class Sandbox(Protocol):
    """Runs commands. Open for the life of the process."""

    async def run(self, commands: Sequence[str], view: ShellView, *, owner: str, session_id: str = "") -> ShellReply:
        """Runs 1 to 10 commands, one after another, each from the top folder of the view.

        A session belongs to its `owner` and keeps the view that it began with. A session that is unknown, over or
        somebody else's is begun anew. Raises InvalidInput for a wrong number of commands, Unavailable (`sandbox_off`)
        where the system offers no isolation.
        """
        ...

    async def forget(self) -> None:
        """Ends all sessions and removes copied folders: from now on every caller sees the view that it passes then."""
        ...

    async def check(self) -> str:
        """Returns how programs are isolated, found out by running one. Raises Unavailable (`sandbox_off`)."""
        ...
