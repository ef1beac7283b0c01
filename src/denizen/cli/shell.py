"""`denizen shell`: commands in the read-only shell, by the same rules as for agents."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import click
from anyio import to_thread

from denizen.cli.exit_codes import DONE, exit_code
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound
from denizen.domain.record import record

if TYPE_CHECKING:
    from denizen.adapters.sandbox.pool import SandboxPool
    from denizen.ports.sandbox import ShellResult, ShellView

OWNER = "terminal"
_NO_REQUEST = 'refused: this line is no request. Write {"cmd": "ls"}.\n'
_INVALID = 2


@click.command()
@click.argument("command_line", metavar="[COMMAND]", default="")
@click.option("--root", type=click.Path(path_type=Path), default=None, help="Any folder to look into.")
@click.option("-a", "--agent", default="", help="The agent whose knowledge folder is added to the shared one.")
@click.option("--guild", default="", metavar="ID", help="Also show what is for talk in this Discord server alone.")
@click.option(
    "--jsonl",
    is_flag=True,
    help='Read {"cmd": ...} lines, write {"stdout", "stderr", "exit_code", "refused"} lines; an "id" is returned.',
)
@click.pass_obj
def command(home: Path, command_line: str, root: Path | None, agent: str, guild: str, *, jsonl: bool) -> int:
    """Run read-only commands as agents can: over the knowledge folders, or over any folder with --root. Without
    COMMAND, lines of standard input are run one by one.

    The exit code is that of the command, and 3 when it was refused; lines of --jsonl have 126 for that, 124 for one
    that took too long and 137 for one that printed too much.
    """
    if jsonl and command_line:
        raise InvalidInput("--jsonl reads commands from standard input.", fix='Write {"cmd": ...} lines there.')
    return anyio.run(_main, home, _ShellRequest(command_line, root, agent, guild, jsonl))


@record
class _ShellRequest:
    command: str
    root: Path | None
    agent: str
    guild: str
    jsonl: bool


async def _main(home: Path, wish: _ShellRequest) -> int:
    async with _open(home, wish) as (sandbox, view):

        async def run(line: str) -> ShellResult:
            return (await sandbox.run([line], view, owner=OWNER)).results[0]

        if wish.command:
            return _show(await run(wish.command))
        await sandbox.check()
        is_terminal = sys.stdin.isatty()
        code = DONE
        while line := await to_thread.run_sync(_read(prompt=is_terminal and not wish.jsonl)):
            if wish.jsonl:
                click.echo(await _answer(line, run))
            elif line.strip():
                code = _show(await run(line.rstrip("\n")))
        return DONE if wish.jsonl or is_terminal else code


@asynccontextmanager
async def _open(home: Path, wish: _ShellRequest) -> AsyncGenerator[tuple[SandboxPool, ShellView]]:
    """Without store and models: a shell needs none."""
    from denizen.app.home.environment import read_environment
    from denizen.app.knowledge import build_sandbox, find_shell_view, open_library
    from denizen.app.settings import load_settings
    from denizen.builtin_skills import BUILTIN
    from denizen.domain.clock import SystemClock
    from denizen.domain.ids import AgentName
    from denizen.ports.sandbox import ShellView

    settings = load_settings(home, read_environment(), known_tools=BUILTIN)
    if wish.root is not None:
        if not wish.root.is_dir():
            raise NotFound(f"There is no folder {wish.root}.", code="folder_missing", fix="Name one that exists.")
        view = ShellView((("", wish.root.resolve()),))
    else:
        agent = AgentName(wish.agent or settings.default_agent)
        if agent not in settings.agents:
            raise NotFound(f"There is no agent {agent}.", code="agent_unknown", fix="`denizen agents` lists them.")
        found = find_shell_view(settings.folders, agent, open_library(home, SystemClock()).list_folders(wish.guild))
        if found is None:
            raise NotFound(
                f"There is no folder {settings.folders.knowledge} yet.",
                code="knowledge_none",
                fix="Put files there, or name a folder with --root.",
            )
        view = found
    async with build_sandbox(settings.sandbox, SystemClock()) as sandbox:
        yield sandbox, view


def _read(*, prompt: bool) -> Callable[[], str]:
    def read() -> str:
        if prompt:
            click.echo("> ", nl=False, err=True)
        return sys.stdin.readline()

    return read


async def _answer(line: str, run: Any) -> str:  # noqa: ANN401 - a coroutine function of one line
    try:
        request = json.loads(line)
    except ValueError:
        request = None
    fields = cast("dict[str, Any]", request) if isinstance(request, dict) else {}
    own = {"id": fields["id"]} if "id" in fields else {}
    wanted = fields.get("cmd")
    if not isinstance(wanted, str):
        return json.dumps({**own, "stdout": "", "stderr": _NO_REQUEST, "exit_code": _INVALID, "refused": True})
    result = await run(wanted)
    answer = {key: getattr(result, key) for key in ("stdout", "stderr", "exit_code", "refused")}
    return json.dumps({**own, **answer})


def _show(result: ShellResult) -> int:
    click.echo(result.stdout, nl=False)
    click.echo(result.stderr, nl=False, err=True)
    return exit_code(NotAllowed.__name__) if result.refused else result.exit_code
