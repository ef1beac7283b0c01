"""What `POST /api/sandbox/shell` answers, on the wire in camel case as other programs expect it (inventory S20).

Plain dataclasses: the server encodes with `to_wire`, the client decodes with `parse_shell_answer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_COMMANDS = 10
MAX_COMMAND_CHARS = 2000


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """What one command printed. Each stream has at most 50 000 characters, and then a note of its full length.
    `command` is empty in the answer to a single one.
    """

    stdout: str
    stderr: str
    exit_code: int
    command: str = ""

    def to_wire(self) -> dict[str, Any]:
        named = {"command": self.command} if self.command else {}
        return {**named, "stdout": self.stdout, "stderr": self.stderr, "exitCode": self.exit_code}


@dataclass(frozen=True, slots=True)
class ShellAnswer:
    """`session_id` begins with `sess_`; with it the next call goes on in the same session."""

    session_id: str
    results: tuple[CommandOutput, ...]

    def to_wire(self, *, is_single: bool) -> dict[str, Any]:
        """A single command's streams stand beside the session, those of a batch in `results`."""
        if is_single:
            return {"sessionId": self.session_id, **self.results[0].to_wire()}
        return {"sessionId": self.session_id, "results": [each.to_wire() for each in self.results]}


def parse_shell_answer(row: Mapping[str, Any]) -> ShellAnswer:
    """The inverse of `ShellAnswer.to_wire`."""
    rows: list[Mapping[str, Any]] = row.get("results", [row])
    outputs = tuple(
        CommandOutput(each["stdout"], each["stderr"], each["exitCode"], each.get("command", "")) for each in rows
    )
    return ShellAnswer(row["sessionId"], outputs)
