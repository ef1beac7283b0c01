"""Runs programs of this machine: for configured commands, for custom tools and for skills.

No program gets a shell or input, and only a custom tool gets secrets: those of its own `env`. `run_program` runs one
within bounds of time and output. `CommandToolset` and `CustomToolset` offer programs as tools, so that the gate decides
about each call; `ProgramRunner` is what skills call. The composition root makes them for each generation of the
configuration.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path, PurePath

import anyio
from anyio.abc import ByteReceiveStream, Process

from denizen.domain.custom_command import INPUT, MAX_INPUT_CHARS, CustomCommand, fill_argv
from denizen.domain.custom_tool import CustomTool
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.json import Json
from denizen.domain.tool import DataFlow, Taint, Tier, ToolCall, ToolResult, ToolSpec
from denizen.ports.toolset import CallScope
from denizen.skill.services import NO_VARIABLES, ProgramResult

__all__ = ["CommandToolset", "CustomToolset", "ProgramRunner", "run_program"]


READ_BYTES = 1_000_000
"""How much of a program's output is read; a program that prints more is stopped."""

_REAP_S = 5.0


async def run_program(argv: Sequence[str], *, cwd: Path, environ: Mapping[str, str], timeout_s: float) -> ProgramResult:
    """Runs a program without a shell and without input. Raises OSError when it cannot be started.

    The whole process group is killed at the end, whatever ended the wait: the program itself, its time limit, too much
    output, or a caller that went away.
    """
    process = await anyio.open_process(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        # One pipe for both streams keeps the order in which they were written.
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env=dict(environ),
        # A group of its own, so that everything the program starts can be killed with it.
        start_new_session=True,
    )
    output = _Output()
    try:
        with anyio.move_on_after(timeout_s) as timer:
            await _follow(process, output)
    finally:
        await _end(process)
    stopped = timer.cancelled_caught or output.is_cut
    return ProgramResult(output.text, None if stopped else process.returncode, output.is_cut)


class _Output:
    """The output that was read so far, within the limit."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.is_cut = False

    @property
    def text(self) -> str:
        return self._data.decode("utf-8", "replace")

    async def read(self, stream: ByteReceiveStream) -> None:
        """Reads until the stream ends or the limit is reached."""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while not self.is_cut:
                self._data += await stream.receive()
                if len(self._data) > READ_BYTES:
                    # Reading stops here; the caller then kills the program.
                    del self._data[READ_BYTES:]
                    self.is_cut = True


async def _follow(process: Process, output: _Output) -> None:
    """Waits until the program has ended and all of its output is read."""
    stdout = process.stdout
    assert stdout is not None
    async with anyio.create_task_group() as group:
        group.start_soon(_end_children_after, process)
        await output.read(stdout)
        if output.is_cut:
            group.cancel_scope.cancel()


async def _end_children_after(process: Process) -> None:
    """Kills what the program left running, which would hold its output open."""
    await process.wait()
    _kill_group(process.pid)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


async def _end(process: Process) -> None:
    _kill_group(process.pid)
    # Shielded: a cancelled call must reap its process too, or it stays as a zombie.
    with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _REAP_S):
        await process.aclose()


PASSED_VARIABLES = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "", "LANG": "C.UTF-8"}
"""The whole environment that a program sees, with the value that is used when a variable is not set. An empty HOME
becomes the home folder.
"""

GRACE_S = 10.0
"""The gate waits this much longer than the command's own time limit, whose error says more about what happened."""

_INTERPRETERS = frozenset(
    {
        "sh",
        "bash",
        "dash",
        "zsh",
        "ksh",
        "fish",
        "python",
        "python3",
        "perl",
        "ruby",
        "node",
        "deno",
        "bun",
        "php",
        "lua",
    }
)
_CODE_FLAGS = ("-c", "-e", "-lc", "-ec", "-p", "-r", "--eval", "--command")


class CommandToolset:
    """The programs of configured commands as tools. No agent has them: only people give commands.

    `cwd` is the home folder. Raises InvalidInput for a command whose input would be read as code.
    """

    def __init__(self, commands: Sequence[CustomCommand], *, cwd: Path, environ: Mapping[str, str]) -> None:
        self._commands = {command.tool: command for command in commands if command.shell}
        for command in self._commands.values():
            refuse_input_in_code(f"The command '{command.name}'", command.shell, INPUT)
        self._cwd = cwd
        self._environ = clean_environment(environ, cwd)

    @property
    def name(self) -> str:
        return "commands"

    async def list_tools(self) -> Sequence[ToolSpec]:
        return [_command_spec(command) for command in self._commands.values()]

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        """Runs the program. `data` has its `exit_code` unless it was stopped."""
        command = self._commands.get(call.tool)
        if command is None:
            return ToolResult(f"There is no command '{call.tool}'.", is_error=True)
        argv = fill_argv(command.shell, str(call.args.get("input", "")))
        try:
            ended = await run_program(argv, cwd=self._cwd, environ=self._environ, timeout_s=command.timeout_s)
        except OSError as error:
            return ToolResult(program_missing(argv[0], error).explain(), is_error=True)
        return to_tool_result(ended, command.timeout_s)

    async def aclose(self) -> None:
        """Nothing is open between calls."""


def clean_environment(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """Returns the environment of a program: nothing of this process's that could be a secret."""
    # An allow list: a deny list would pass on the secret that nobody thought of.
    return {name: environ.get(name) or usual or str(home) for name, usual in PASSED_VARIABLES.items()}


def to_tool_result(ended: ProgramResult, timeout_s: float) -> ToolResult:
    """Returns what a program printed, and how it ended when it failed."""
    text = ended.text.strip("\n")
    if ended.is_cut:
        return ToolResult(f"{text}\n[stopped: it printed more than {READ_BYTES:,} bytes]", is_error=True)
    if ended.exit_code is None:
        return ToolResult(f"{text}\n[stopped: it was not done within {timeout_s:g} s]".lstrip("\n"), is_error=True)
    data: dict[str, Json] = {"exit_code": ended.exit_code}
    if ended.exit_code != 0:
        return ToolResult(f"{text}\n[exit code {ended.exit_code}]".lstrip("\n"), is_error=True, data=data)
    return ToolResult(text, data=data)


def _command_spec(command: CustomCommand) -> ToolSpec:
    properties: dict[str, Json] = {}
    if command.shell_takes_input:
        properties["input"] = {"type": "string", "maxLength": MAX_INPUT_CHARS}
    return ToolSpec(
        command.tool,
        command.description,
        {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False},
        tier=Tier.SENSITIVE,
        timeout_s=command.timeout_s + GRACE_S,
    )


def refuse_input_in_code(whose: str, argv: Sequence[str], place: str) -> None:
    """Raises InvalidInput when the placeholder for input stands inside of code, where the input would be code too.

    Only plain cases are found. That is a help for the author of the command, not a guard.
    """
    program = PurePath(argv[0]).name
    for flag, argument in pairwise(argv[1:]):
        if program in _INTERPRETERS and flag in _CODE_FLAGS and place in argument:
            raise InvalidInput(
                f"{whose} would run what its user writes as code.",
                code="command_input_code",
                why=f"{place} stands in the code for `{program} {flag}`.",
                fix='Give it as an argument of its own: ["sh", "-c", "echo \\"$1\\"", "sh", "{{input}}"].',
            )


class ProgramRunner:
    """Runs programs for skills (`denizen.skill.RunProgram`). `home` is their working folder unless another is given."""

    def __init__(self, *, home: Path, environ: Mapping[str, str]) -> None:
        self._home = home
        self._environ = clean_environment(environ, home)

    async def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        timeout_s: float = 30.0,
        env: Mapping[str, str] = NO_VARIABLES,
    ) -> ProgramResult:
        """Raises NotFound for a program that cannot be started."""
        environ = {**self._environ, **env}
        try:
            return await run_program(argv, cwd=cwd or self._home, environ=environ, timeout_s=timeout_s)
        except OSError as error:
            raise program_missing(argv[0], error) from error


class CustomToolset:
    """Custom tools of the configuration: programs whose arguments the model fills in.

    Raises InvalidInput for a tool whose argument its program would read as code.
    """

    def __init__(self, tools: Sequence[CustomTool], *, cwd: Path, environ: Mapping[str, str]) -> None:
        for tool in tools:
            refuse_input_in_code(f"The tool '{tool.name}'", tool.argv, "{{")
        self._tools = {tool.name: tool for tool in tools}
        self._cwd = cwd
        self._environ = clean_environment(environ, cwd)

    @property
    def name(self) -> str:
        return "custom"

    async def list_tools(self) -> Sequence[ToolSpec]:
        return [_custom_tool_spec(tool) for tool in self._tools.values()]

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        """Runs the program. `data` has its `exit_code` unless it was stopped."""
        tool = self._tools[call.tool]
        argv, environ = tool.fill(call.args), {**self._environ, **tool.env}
        try:
            ended = await run_program(argv, cwd=self._cwd, environ=environ, timeout_s=tool.timeout_s)
        except OSError as error:
            return ToolResult(program_missing(argv[0], error).explain(), is_error=True)
        return to_tool_result(ended, tool.timeout_s)

    async def aclose(self) -> None:
        """Nothing is open between calls."""


def program_missing(program: str, error: OSError) -> NotFound:
    why = error.strerror or type(error).__name__
    return NotFound(f"The program `{program}` could not be started: {why}.", code="program_missing")


def _custom_tool_spec(tool: CustomTool) -> ToolSpec:
    required: list[Json] = list(tool.parameters)
    properties: dict[str, Json] = {name: dict(schema) for name, schema in tool.parameters.items()}
    return ToolSpec(
        tool.name,
        tool.description,
        {"type": "object", "properties": properties, "required": required, "additionalProperties": False},
        tier=tool.tier,
        timeout_s=tool.timeout_s + GRACE_S,
        destructive=tool.destructive,
        flow=DataFlow(reads=frozenset({Taint.TOOL})),
    )
