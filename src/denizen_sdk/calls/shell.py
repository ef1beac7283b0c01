"""The read-only shell over what an agent knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from denizen_sdk.calls.calls import ClientCalls
from denizen_sdk.shell import CommandOutput, parse_shell_answer

SHELL_S = 150.0
"""The server ends a call of the shell after 120 s, and says so."""


class ShellCalls(ClientCalls):
    """`/api/sandbox/shell`."""

    session_id: str
    """The shell's session of the last answer; the next call goes on in it. It may be set."""

    async def bash(self, command: str, *, agent: str = "") -> CommandOutput:
        """Runs one command in the read-only shell, of the default agent or another. Raises ApiError (400 for one that
        is not allowed, with what is), NetworkError.
        """
        [output] = await self._run({"command": command}, agent)
        return output

    async def bash_batch(self, commands: Sequence[str], *, agent: str = "") -> tuple[CommandOutput, ...]:
        """Runs 1 to 10 commands, each by itself. Raises as `bash` does when one of them is not allowed."""
        return await self._run({"commands": [*commands]}, agent)

    async def _run(self, body: Mapping[str, Any], agent: str) -> tuple[CommandOutput, ...]:
        named = {"sessionId": self.session_id, "agent": agent}
        body = {**body, **{name: value for name, value in named.items() if value}}
        answer = parse_shell_answer(
            await self._connection.request("POST", "/api/sandbox/shell", body=body, at_least_s=SHELL_S)
        )
        self.session_id = answer.session_id
        return answer.results
