"""Configured programs as tools of agents, and programs that skills run: no shell, no input, no secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from denizen.adapters.commands.process import run_program
from denizen.adapters.commands.toolset import GRACE_S, clean_environment, refuse_input_in_code, to_tool_result
from denizen.domain.custom_tool import CustomTool
from denizen.domain.errors import NotFound
from denizen.domain.json import Json
from denizen.domain.tool import Taint, ToolCall, ToolResult, ToolSpec
from denizen.ports.toolset import CallScope
from denizen.skill.services import ProgramResult


class ProgramRunner:
    """Runs programs for skills (`denizen.skill.RunProgram`). `home` is where they run unless another is given."""

    def __init__(self, *, home: Path, environ: Mapping[str, str]) -> None:
        self._home = home
        self._environ = clean_environment(environ, home)

    async def __call__(self, argv: Sequence[str], *, cwd: Path | None = None, timeout_s: float = 30.0) -> ProgramResult:
        """Raises NotFound for a program that cannot be started."""
        try:
            ended = await run_program(argv, cwd=cwd or self._home, environ=self._environ, timeout_s=timeout_s)
        except OSError as error:
            raise program_missing(argv[0], error) from error
        return ProgramResult(ended.text, ended.exit_code, ended.is_cut)


class CustomToolset:
    """Raises InvalidInput for a tool whose argument would be read as code by its program."""

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
        """Runs the program. `data` has its `exit_code` when it ended by itself."""
        tool = self._tools[call.tool]
        argv = tool.fill(call.args)
        try:
            ended = await run_program(argv, cwd=self._cwd, environ=self._environ, timeout_s=tool.timeout_s)
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
        reads=frozenset({Taint.TOOL}),
    )
