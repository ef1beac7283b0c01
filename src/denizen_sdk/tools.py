"""The shell as tools for other agents: `bash` and `bash_batch`, plain asynchronous functions (inventory S22, 2.10).

    tools = ShellTools(client, on_tool_call=show)
    agent = Agent(model, tools=[tools.bash, tools.bash_batch])

Their docstrings are what a model reads. `for_pydantic_ai`, `for_openai_agents` and `for_langchain` wrap them as these
frameworks want them.
"""

from __future__ import annotations

import inspect
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from denizen_sdk.client import DenizenClient
from denizen_sdk.errors import ApiError, ClientError
from denizen_sdk.shell import CommandOutput

State = Literal["loading", "done", "error"]


@dataclass(frozen=True, slots=True)
class ToolActivity:
    """One tool call as it is now. The same `id` is told twice: while it runs, and when it ended.

    `duration_ms` and `results`, one for each command, are there at the end; `error` says why there are none.
    """

    id: str
    tool: str
    args: dict[str, Any]
    state: State
    duration_ms: int | None = None
    results: tuple[CommandOutput, ...] = ()
    error: str = ""

    @property
    def success(self) -> bool:
        return self.state == "done"


OnToolCall = Callable[[ToolActivity], Awaitable[None] | None]
"""Hears of every call; it may be asynchronous. What it raises ends the call."""


class ShellTools:
    """Both tools on one client, whose session they share. An empty `agent`, whose knowledge it is, is the default."""

    def __init__(self, client: DenizenClient, on_tool_call: OnToolCall | None = None, *, agent: str = "") -> None:
        self._client = client
        self._on_tool_call = on_tool_call
        self._agent = agent

    async def bash(self, command: str) -> str:
        """Looks into the knowledge files, read-only: grep, find, ls, cat, head, tail, wc, sort, uniq, diff, sed -n,
        xargs with | && ; and 2>/dev/null. Paths are relative. Example: grep -rin "opening hours" . | head -20

        Args:
            command: One line of shell, of at most 2000 characters.

        """

        async def run() -> tuple[CommandOutput, ...]:
            return (await self._client.bash(command, agent=self._agent),)

        return await self._call("bash", {"command": command}, run)

    async def bash_batch(self, commands: list[str]) -> str:
        """Runs several commands of `bash`, each by itself, and gives all their results.

        Args:
            commands: 1 to 10 lines of shell.

        """

        async def run() -> tuple[CommandOutput, ...]:
            return await self._client.bash_batch(commands, agent=self._agent)

        return await self._call("bash_batch", {"commands": list(commands)}, run)

    async def _call(
        self, tool: str, args: dict[str, Any], run: Callable[[], Awaitable[tuple[CommandOutput, ...]]]
    ) -> str:
        """What the model reads. A refused command is for it to correct; every other failure is raised."""
        activity = ToolActivity(f"call_{secrets.token_hex(8)}", tool, args, "loading")
        await self._tell(activity)
        started = time.monotonic()
        try:
            results = await run()
        except ClientError as error:
            await self._tell(replace(activity, state="error", duration_ms=_since_ms(started), error=str(error)))
            if isinstance(error, ApiError) and error.status == 400:
                return "\n".join(filter(None, (error.problem.message, error.problem.why, error.problem.fix)))
            raise
        await self._tell(replace(activity, state="done", duration_ms=_since_ms(started), results=results))
        return describe_outputs(results)

    async def _tell(self, activity: ToolActivity) -> None:
        if self._on_tool_call is None:
            return
        heard = self._on_tool_call(activity)
        if inspect.isawaitable(heard):
            await heard


def describe_outputs(results: Sequence[CommandOutput]) -> str:
    """The results as text: of several, each behind its command."""
    return "\n\n".join(filter(None, (_describe(each) for each in results)))


def _describe(output: CommandOutput) -> str:
    parts = [f"$ {output.command}"] if output.command else []
    parts += [each.rstrip("\n") for each in (output.stdout, output.stderr) if each] or ["(no output)"]
    parts += [f"[exit code {output.exit_code}]"] if output.exit_code else []
    return "\n".join(parts)


def _since_ms(started_s: float) -> int:
    return round((time.monotonic() - started_s) * 1000)
