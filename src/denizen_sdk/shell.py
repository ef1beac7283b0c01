"""The read-only shell over what an agent knows: calls, and the tools `bash` and `bash_batch` for other agents.

    tools = ShellTools(client, on_tool_call=show)
    agent = Agent(model, tools=[tools.bash, tools.bash_batch])

A model reads the docstrings of the tools. `frameworks` wraps them as other agent frameworks want them.
"""

from __future__ import annotations

import inspect
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from denizen_sdk.calls import ClientCalls
from denizen_sdk.errors import ApiError, ClientError
from denizen_sdk.records import record

MAX_COMMANDS = 10
MAX_COMMAND_CHARS = 2000
SHELL_S = 150.0
"""Longer than the 120 s after which the server ends a call, so that its answer says so."""


@record
class CommandOutput:
    """The output of one command. A stream of more than 50 000 characters is cut, and ends with a note of its length.
    `command` is empty in the answer to a single command.
    """

    stdout: str
    stderr: str
    exit_code: int
    command: str = ""

    def to_wire(self) -> dict[str, Any]:
        named = {"command": self.command} if self.command else {}
        return {**named, "stdout": self.stdout, "stderr": self.stderr, "exitCode": self.exit_code}


@record
class ShellAnswer:
    """The answer of the shell. `session_id` begins with `sess_`; a call with it continues the same session."""

    session_id: str
    results: tuple[CommandOutput, ...]

    def to_wire(self, *, is_single: bool) -> dict[str, Any]:
        """Returns the answer in camel case. The streams of a single command stand beside the session, those of a batch
        in `results`.
        """
        if is_single:
            return {"sessionId": self.session_id, **self.results[0].to_wire()}
        return {"sessionId": self.session_id, "results": [each.to_wire() for each in self.results]}


def parse_shell_answer(row: Mapping[str, Any]) -> ShellAnswer:
    """Returns the answer that `ShellAnswer.to_wire` wrote."""
    rows: list[Mapping[str, Any]] = row.get("results", [row])
    outputs = tuple(
        CommandOutput(each["stdout"], each["stderr"], each["exitCode"], each.get("command", "")) for each in rows
    )
    return ShellAnswer(row["sessionId"], outputs)


class ShellCalls(ClientCalls):
    """The calls of `/api/sandbox/shell`."""

    session_id: str
    """The shell's session, which the next call continues; set from each answer. Programs may set it too."""

    async def bash(self, command: str, *, agent: str = "") -> CommandOutput:
        """Runs one command in the read-only shell of the default agent, or another. Raises NetworkError, and ApiError:
        400 for a command that is not allowed, with a list of those that are.
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


ActivityState = Literal["loading", "done", "error"]


@record
class ToolActivity:
    """The state of one tool call. Reported twice with the same `id`: when the call begins, and when it ends.

    `duration_ms` and the `results`, one for each command, are set at the end; `error` says why there are none.
    """

    id: str
    tool: str
    args: dict[str, Any]
    state: ActivityState
    duration_ms: int | None = None
    results: tuple[CommandOutput, ...] = ()
    error: str = ""

    @property
    def success(self) -> bool:
        return self.state == "done"


OnToolCall = Callable[[ToolActivity], Awaitable[None] | None]
"""A callback for every tool call, which may be asynchronous. An exception from it ends the call."""


class ShellTools:
    """The tools `bash` and `bash_batch` on one client, whose session they share.

    They search the knowledge of `agent`; empty for the default one. `clock` returns seconds, by which a call's duration
    is measured.
    """

    def __init__(
        self,
        client: ShellCalls,
        on_tool_call: OnToolCall | None = None,
        *,
        agent: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._on_tool_call = on_tool_call
        self._agent = agent
        self._clock = clock

    async def bash(self, command: str) -> str:
        """Looks into the knowledge files, read-only: grep, find, ls, cat, head, tail, wc, sort, uniq, cut, sed, awk,
        jq, xargs, for with | && ; and 2>/dev/null. Paths are relative. Example: grep -rin "opening hours" . | head -20

        Args:
            command: Lines of shell, of at most 2000 characters together.

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
        """Returns the text for the model. It may correct a refused command; every other failure is raised."""
        activity = ToolActivity(f"call_{secrets.token_hex(8)}", tool, args, "loading")
        await self._report(activity)
        started_s = self._clock()
        try:
            results = await run()
        except ClientError as error:
            await self._report(
                replace(activity, state="error", duration_ms=self._elapsed_ms(started_s), error=str(error))
            )
            if isinstance(error, ApiError) and error.status == 400:
                return "\n".join(filter(None, (error.problem.message, error.problem.why, error.problem.fix)))
            raise
        await self._report(replace(activity, state="done", duration_ms=self._elapsed_ms(started_s), results=results))
        return describe_outputs(results)

    def _elapsed_ms(self, started_s: float) -> int:
        return round((self._clock() - started_s) * 1000)

    async def _report(self, activity: ToolActivity) -> None:
        if self._on_tool_call is None:
            return
        result = self._on_tool_call(activity)
        if inspect.isawaitable(result):
            await result


def describe_outputs(results: Sequence[CommandOutput]) -> str:
    """Returns the results as text; of several, each follows its command."""
    texts: list[str] = []
    for output in results:
        lines = [f"$ {output.command}"] if output.command else []
        lines += [each.rstrip("\n") for each in (output.stdout, output.stderr) if each] or ["(no output)"]
        lines += [f"[exit code {output.exit_code}]"] if output.exit_code else []
        texts.append("\n".join(lines))
    return "\n\n".join(filter(None, texts))
