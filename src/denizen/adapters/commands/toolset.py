"""The programs of configured commands as a source of tools. It is none of an agent's: only people give commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path, PurePath

from denizen.adapters.commands.process import READ_BYTES, Ended, run_program
from denizen.domain.custom_command import INPUT, MAX_INPUT_CHARS, CustomCommand, fill_argv
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.ports.toolset import CallScope

PASSED_ON = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "", "LANG": "C.UTF-8"}
"""All of the environment that a program sees, with what is taken when it is not set; HOME then is the home folder."""

GRACE_S = 10.0
"""The gate's time limit is so much longer than the command's, which tells more about what happened."""

_INTERPRETERS = frozenset({
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "perl", "ruby", "node", "deno", "bun", "php",
    "lua",
})  # fmt: skip
_CODE_FLAGS = ("-c", "-e", "-lc", "-ec", "-p", "-r", "--eval", "--command")


class CommandToolset:
    """`cwd` is the home folder. Raises InvalidInput for a command whose input would be read as code."""

    def __init__(self, commands: Sequence[CustomCommand], *, cwd: Path, environ: Mapping[str, str]) -> None:
        self._commands = {command.tool: command for command in commands if command.shell}
        for command in self._commands.values():
            check_no_code(f"The command '{command.name}'", command.shell, INPUT)
        self._cwd = cwd
        self._environ = clean_environment(environ, cwd)

    @property
    def name(self) -> str:
        return "commands"

    async def list_tools(self) -> Sequence[ToolSpec]:
        return [_spec(command) for command in self._commands.values()]

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        """Runs the program. `data` has its `exit_code` when it ended by itself."""
        command = self._commands.get(call.tool)
        if command is None:
            return ToolResult(f"There is no command '{call.tool}'.", is_error=True)
        argv = fill_argv(command.shell, str(call.args.get("input", "")))
        try:
            ended = await run_program(argv, cwd=self._cwd, environ=self._environ, timeout_s=command.timeout_s)
        except OSError as error:
            why = error.strerror or type(error).__name__
            return ToolResult(f"The program `{command.shell[0]}` could not be started: {why}.", is_error=True)
        return tell_end(ended, command.timeout_s)

    async def aclose(self) -> None:
        """Nothing is open between calls."""


def clean_environment(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """What a program sees of this one: nothing that could be a secret."""
    return {name: environ.get(name) or usual or str(home) for name, usual in PASSED_ON.items()}


def tell_end(ended: Ended, timeout_s: float) -> ToolResult:
    """What a program printed, and how it ended when that was not well."""
    text = ended.text.strip("\n")
    if ended.is_cut:
        return ToolResult(f"{text}\n[stopped: it printed more than {READ_BYTES:,} bytes]", is_error=True)
    if ended.exit_code is None:
        return ToolResult(f"{text}\n[stopped: it was not done within {timeout_s:g} s]".lstrip("\n"), is_error=True)
    data: dict[str, Json] = {"exit_code": ended.exit_code}
    if ended.exit_code != 0:
        return ToolResult(f"{text}\n[exit code {ended.exit_code}]".lstrip("\n"), is_error=True, data=data)
    return ToolResult(text, data=data)


def _spec(command: CustomCommand) -> ToolSpec:
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


def check_no_code(whose: str, argv: Sequence[str], place: str) -> None:
    """An input inside of code is code. Only the plain case is seen here, to spare its author a surprise.

    Raises InvalidInput.
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
