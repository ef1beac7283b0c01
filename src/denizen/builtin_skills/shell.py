"""A read-only shell over the knowledge folders: searching documents as one searches code.

The sandbox alone decides what may run (`ports/sandbox`); it is the same for everybody. Output is quoted as data. The
reason for a refusal, and what to write instead, is passed on unquoted.
"""

from __future__ import annotations

from typing import Annotated

from denizen.skill import (
    DocumentRef,
    Json,
    Param,
    ShellResult,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    ToolResult,
    describe_reading,
    quote_untrusted,
)

MAX_COMMANDS = 10
MAX_COMMAND_CHARS = 2000
TIMEOUT_S = 120.0
"""Longer than the sandbox's own limit, which stops commands and says so."""

skill = Skill("shell", description="A read-only shell over the knowledge folders.")

Command = Annotated[str, Param(min_length=1, max_length=MAX_COMMAND_CHARS)]


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.DOCUMENT}, timeout_s=TIMEOUT_S)
async def bash(context: ToolContext, command: Command) -> ToolResult:
    """Looks into your knowledge files, read-only: grep, find, ls, cat, head, tail, wc, sort, uniq, cut, sed, awk, jq,
    xargs, for with | && ; and 2>/dev/null. Paths are relative. Example: grep -rin "opening hours" . | head -20
    """
    return _told(await _run(context, [command]))


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.DOCUMENT}, timeout_s=TIMEOUT_S)
async def bash_batch(
    context: ToolContext, commands: Annotated[list[Command], Param(min_length=1, max_length=MAX_COMMANDS)]
) -> ToolResult:
    """Several commands of `bash` at once, each by itself."""
    return _told(await _run(context, commands))


async def _run(context: ToolContext, commands: list[str]) -> tuple[ShellResult, ...]:
    if context.shell is None:
        raise ToolError("There are no knowledge files to look into.", is_own=True)
    return await context.shell(commands)


def _told(results: tuple[ShellResult, ...]) -> ToolResult:
    is_single = len(results) == 1
    texts = [_text(result, is_single=is_single) for result in results]
    rows: list[Json] = [
        {"command": each.command, "exit_code": each.exit_code, "refused": each.refused, "duration_ms": each.duration_ms}
        for each in results
    ]
    return ToolResult(
        "\n\n".join(texts),
        is_error=all(result.refused for result in results),
        data={"commands": rows, **describe_reading(DocumentRef(path) for result in results for path in result.read)},
        # A refusal may name files.
        is_own=not any(result.stdout or result.stderr for result in results),
    )


def _text(result: ShellResult, *, is_single: bool) -> str:
    # Only a refusal that is one line of ours is trusted; anything else may hold words of files. The sandbox puts
    # another line before a refusal of what was made from input.
    is_ours = result.stderr.startswith("refused: ") and result.stderr.count("\n") == 1
    if result.refused and not result.stdout and is_ours:  # else there are words of files in it
        said = result.stderr.strip()
    else:
        printed = "\n".join(filter(None, (result.stdout.rstrip("\n"), result.stderr.rstrip("\n"))))
        said = quote_untrusted(printed, source="knowledge files") if printed else "(no output)"
    code = "" if result.refused or not result.exit_code else f"\n[exit code {result.exit_code}]"
    return f"{said}{code}" if is_single else f"$ {result.command}\n{said}{code}"
