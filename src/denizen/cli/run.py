"""`denizen run`: everything, until it is told to stop."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.domain.record import record

if TYPE_CHECKING:
    from denizen.app.settings import Simulation


@click.command()
@click.option("--host", default=None, help="Address to listen on.  [default: server.host, 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), default=None, help="Port; 0 takes a free one.  [default: 8650]")
@click.option("--simulate", is_flag=True, help="With a Discord server to try, unless accounts are configured.")
@click.option(
    "--role",
    type=click.Choice(["all", "gateway", "worker", "web"]),
    default="all",
    show_default=True,
    help="What this process does, in a fleet on one Postgres.",
)
@click.option("--name", default="", help="Name of this process in the fleet.  [default: host and process id]")
@click.pass_obj
def command(
    home: Path,
    host: str | None,
    port: int | None,
    simulate: bool,  # noqa: FBT001 - click's way
    role: str,
    name: str,
) -> None:
    """Start everything: agents, the chat page, the OpenAI-compatible API. Stop with Ctrl-C.

    Agents with an account under channels.discord log in there. Without one, --simulate starts a small Discord server
    on this machine, in which they live: its page, whose address is printed, lets you play the people. With --simulate
    it takes a free port when the default one is taken; a port that you chose must be free.

    With --role, several processes on one Postgres share the work: gateways hold the accounts, workers run turns, web
    serves pages and APIs. See docs/how-to/run-as-a-fleet.md, and `denizen fleet status`.

    The configuration is watched: a change takes effect at once, or the old one stays and the log says why.
    """
    from denizen.app.malloc import share_heap
    from denizen.cli.terminal import show_waiting

    share_heap()
    with ExitStack() as starting:
        starting.enter_context(show_waiting("starting"))
        wishes = _RunOptions(home, host, port, simulate=simulate, role=role, name=name)
        restart = anyio.run(_run, wishes, starting, backend_options={"use_uvloop": True})
    if restart:
        click.echo("Restarting.", err=True)
        logging.shutdown()  # which else happens at the end of the process only
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this very command once more


@record
class _RunOptions:
    home: Path
    host: str | None
    port: int | None
    simulate: bool
    role: str
    name: str


async def _run(wishes: _RunOptions, starting: ExitStack) -> bool:
    """Whether everything is to begin anew. `starting` is closed when it is ready."""
    from denizen.adapters.log_files import LogFiles
    from denizen.app.build import FleetMember, OpenOptions, open_denizen
    from denizen.app.logging import configure_logging
    from denizen.app.serve import serve
    from denizen.app.settings.checks import BUILTIN
    from denizen.cli.log import choose_level
    from denizen.cli.terminal import show_weights_progress
    from denizen.domain.fleet import FleetRole

    if wishes.role == FleetRole.ALL:
        _tell_if_another_runs(wishes.home)
    async with AsyncExitStack() as stack:
        simulation = await _simulate(wishes.home, stack) if wishes.simulate else None
        member = FleetMember(FleetRole(wishes.role), wishes.name)
        opening = OpenOptions(rescue=True, report=show_weights_progress, simulation=simulation, fleet=member)
        denizen = await stack.enter_async_context(open_denizen(wishes.home, opening))
        settings = denizen.settings
        configure_logging(
            level=choose_level(settings.logging.level),
            style=settings.logging.format,
            mask=denizen.mask,
            file=settings.log_file,
            keep=LogFiles(settings.logs_folder),
        )
        for warning in settings.warnings:
            click.echo(f"warning: {warning}\nfix: {warning.fix}", err=True)

        port = settings.server.port if wishes.port is None else wishes.port
        is_side = not denizen.role.serves_pages  # its port is for its health, and for webhooks of its accounts
        may_move = (wishes.simulate or is_side) and wishes.port is None
        may_move = may_move and (is_side or "port" not in settings.server.model_fields_set)

        def tell(url: str) -> None:
            starting.close()
            moved = f" (port {port} is taken)" if may_move and not url.endswith(f":{port}") else ""
            click.echo(f"Denizen is ready: {url}{moved}", err=True)
            has_accounts = bool(settings.channels.discord.accounts)
            if settings.channels.web.enabled and not has_accounts and set(settings.models.providers) <= {BUILTIN}:
                click.echo(f"First steps, in the browser: {url}/admin/setup", err=True)
            if simulation is not None:
                click.echo(f"A Discord server to try: {simulation.page}", err=True)

        def tell_link(url: str) -> None:
            click.echo(f"Make the first account, the owner's, within a week: {url}", err=True)

        await serve(
            denizen,
            host=settings.server.host if wishes.host is None else wishes.host,
            port=port,
            on_ready=tell,
            on_link=tell_link,
            may_move=may_move,
        )
    click.echo("Stopped.", err=True)
    return denizen.restart.wanted.is_set()


def _tell_if_another_runs(home: Path) -> None:
    """Two may run on one home folder, as when one takes over from the other; most often it is a mistake."""
    from denizen.app.terminal_socket import find_server_process

    process = find_server_process(home)
    if process is None:
        return
    click.echo(
        f"warning: Another Denizen runs on {home} already{f' (process {process})' if process else ''}.\n"
        "why: Both answer, each message once. `denizen ask` and `denizen chat` stay with the first.\n"
        f"fix: If only one is to run, stop the other{f': kill {process}' if process else '.'}",
        err=True,
    )


async def _simulate(home: Path, stack: AsyncExitStack) -> Simulation | None:
    """None when there are real accounts."""
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import load_settings
    from denizen.builtin_skills import BUILTIN
    from denizen.cli.simulator import open_simulator

    settings = load_settings(home, read_environment(), known_tools=BUILTIN)
    if settings.discord_accounts:
        agents = ", ".join(login.agent for login in settings.discord_accounts)
        click.echo(f"--simulate is not needed: there are Discord accounts ({agents}), and they are used.", err=True)
        return None
    return await stack.enter_async_context(open_simulator(home, settings))
