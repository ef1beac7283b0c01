"""`denizen simulate`: platforms to try, without an account anywhere."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.terminal import echo

if TYPE_CHECKING:
    from denizen.testing.discord import DiscordServer
    from denizen.testing.discord.world.small_world import SmallWorld

PORT = 8643
"""Beside that of `denizen run`."""

_TEXT = """\
A Discord server to try: {page}

"{guild}" has a few channels, {owner} (who owns it), Ben and Cleo, whom you play on the page, and a bot for each agent:
{agents}. `denizen run --simulate` does what follows by itself. To do it by hand, write into denizen.yaml

{account}
and start Denizen in another terminal with

{variables}
  denizen run

Ctrl-C ends this, and what was said here is gone then."""


@click.group(cls=CommandGroup)
def command() -> None:
    """Platforms to try on this machine, without an account anywhere."""


@command.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=None,
    help=f"Port of page and API; 0 takes a free one.  [default: {PORT}, or a free one]",
)
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="NAME",
    help="A bot for this agent; may be repeated.  [default: one for each configured agent]",
)
@click.option("--guild", default="Harbour", show_default=True, help="Name of the server.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON for programs: addresses and tokens.")
@click.option("--until-stdin-closes", is_flag=True, hidden=True, help="End when standard input does.")
@click.pass_obj
def discord(
    home: Path,
    port: int | None,
    agents: tuple[str, ...],
    guild: str,
    as_json: bool,  # noqa: FBT001 - click passes options so
    until_stdin_closes: bool,  # noqa: FBT001
) -> None:
    """A Discord server on this machine, with a page on which you play the people.

    It speaks Discord's API and gateway, so Denizen (or any other bot) lives in it as in the real one: channels,
    threads, a forum, direct messages, slash commands, buttons. It listens on 127.0.0.1 only and keeps nothing.

    \b
    denizen run --simulate      Denizen with such a server, in one go
    denizen simulate discord    the server alone; says how to point Denizen at it
    denizen simulate discord --agent ada --agent ben --guild Workshop
    """
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import load_settings

    names = list(dict.fromkeys(agents or load_settings(home, read_environment()).agents))

    async def serve() -> None:
        from denizen.testing.discord.world.small_world import build_small_world

        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with _open(port) as server, anyio.create_task_group() as group:
                small = build_small_world(server.world, names, guild)
                tokens = {agent: each.token for agent, each in zip(names, small.applications, strict=True)}
                (_print_json if as_json else _print_text)(server, small, tokens)
                if until_stdin_closes:
                    group.start_soon(_cancel_when_input_ends, group.cancel_scope)
                async for _ in signals:
                    group.cancel_scope.cancel()

    anyio.run(serve)
    if not as_json:
        click.echo("Stopped.", err=True)


async def _cancel_when_input_ends(scope: anyio.CancelScope) -> None:
    """Cancels when whoever started this ends: that process holds the other end of standard input."""
    while await anyio.to_thread.run_sync(os.read, 0, 4096, abandon_on_cancel=True):
        pass
    scope.cancel()


@asynccontextmanager
async def _open(port: int | None) -> AsyncGenerator[DiscordServer]:
    """On the port that was asked for, else on the usual one or a free one."""
    from denizen.domain.errors import NeedsAttention
    from denizen.testing.discord import open_discord

    async with AsyncExitStack() as stack:
        try:
            server = await stack.enter_async_context(open_discord(PORT if port is None else port))
        except OSError as error:
            if port is not None:
                raise NeedsAttention(
                    f"The simulator cannot listen on port {port}.",
                    code="port_unusable",
                    why=error.strerror or type(error).__name__,
                    fix="Stop what uses the port, or leave --port out.",
                ) from error
            server = await stack.enter_async_context(open_discord(0))
        yield server


def _print_json(server: DiscordServer, small: SmallWorld, tokens: Mapping[str, str]) -> None:
    addresses = {"page": f"{server.url}/", "api_url": server.api_url, "gateway_url": server.gateway_url}
    click.echo(json.dumps(addresses | {"tokens": dict(tokens), "owner_id": str(small.owner.id)}))


def _print_text(server: DiscordServer, small: SmallWorld, tokens: Mapping[str, str]) -> None:
    from denizen.app.home.environment import DISCORD_API_VARIABLE, DISCORD_GATEWAY_VARIABLE
    from denizen.app.settings.discord import discord_variable

    variables = {
        DISCORD_API_VARIABLE: server.api_url,
        DISCORD_GATEWAY_VARIABLE: server.gateway_url,
        **{discord_variable(agent): token for agent, token in tokens.items()},
    }
    account = ["channels:", "  discord:", f'    owners: ["{small.owner.id}"]', "    accounts:"]
    account += [f"      {agent}: ${{{discord_variable(agent)}}}" for agent in tokens]
    echo(
        _TEXT.format(
            page=f"{server.url}/",
            guild=small.guild.name,
            owner=small.owner.display_name,
            agents=", ".join(tokens),
            account="".join(f"  {line}\n" for line in account),
            variables="\n".join(f"  export {name}={value}" for name, value in variables.items()),
        )
    )
