"""`denizen simulate`: platforms to try, without an account anywhere."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import click

from denizen.cli.terminal import echo

if TYPE_CHECKING:
    from denizen.testing.discord import DiscordServer

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


@click.group()
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
    denizen run --simulate                        Denizen with such a server, in one go
    denizen simulate discord                      the server alone; prints how to point Denizen at it
    denizen simulate discord --agent ada --agent ben --guild Workshop
    """
    names = list(dict.fromkeys(agents or _configured(home)))
    plan = _SimulationPlan(port, names, guild, _say_json if as_json else _say_text)
    anyio.run(_serve, plan, until_stdin_closes)
    if not as_json:
        click.echo("Stopped.", err=True)


@dataclass(frozen=True, slots=True)
class SimulationInfo:
    """The addresses of a running simulation, as they are printed. `tokens` go by agent, `owner_id` is the id of who
    owns the guild.
    """

    page: str
    api_url: str
    gateway_url: str
    tokens: Mapping[str, str]
    guild: str
    owner: str
    owner_id: str


@dataclass(frozen=True, slots=True)
class _SimulationPlan:
    port: int | None
    agents: Sequence[str]
    guild: str
    tell: Callable[[SimulationInfo], None]


def _configured(home: Path) -> Sequence[str]:
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import load_settings

    return list(load_settings(home, read_environment()).agents)


async def _serve(plan: _SimulationPlan, until_stdin_closes: bool) -> None:  # noqa: FBT001 - anyio.run passes by position
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with _open(plan.port) as server, anyio.create_task_group() as group:
            plan.tell(_furnish(server, plan))
            if until_stdin_closes:
                group.start_soon(_cancel_at_the_end_of_input, group.cancel_scope)
            async for _ in signals:
                group.cancel_scope.cancel()


async def _cancel_at_the_end_of_input(scope: anyio.CancelScope) -> None:
    """Whoever started this holds the other end: the end of that process, however it comes, is the end of input."""
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


def _furnish(server: DiscordServer, plan: _SimulationPlan) -> SimulationInfo:
    from denizen.testing.discord.world.small_world import build_small_world

    small = build_small_world(server.world, plan.agents, plan.guild)
    tokens = {agent: each.token for agent, each in zip(plan.agents, small.applications, strict=True)}
    return SimulationInfo(
        f"{server.url}/",
        server.api_url,
        server.gateway_url,
        tokens,
        small.guild.name,
        small.owner.display_name,
        str(small.owner.id),
    )


def _say_json(opened: SimulationInfo) -> None:
    said = {
        "page": opened.page,
        "api_url": opened.api_url,
        "gateway_url": opened.gateway_url,
        "tokens": dict(opened.tokens),
        "owner_id": opened.owner_id,
    }
    click.echo(json.dumps(said))


def _say_text(opened: SimulationInfo) -> None:
    from denizen.app.home.environment import DISCORD_API_VARIABLE, DISCORD_GATEWAY_VARIABLE
    from denizen.app.settings.discord import discord_variable

    variables = {
        DISCORD_API_VARIABLE: opened.api_url,
        DISCORD_GATEWAY_VARIABLE: opened.gateway_url,
        **{discord_variable(agent): token for agent, token in opened.tokens.items()},
    }
    account = ["channels:", "  discord:", f'    owners: ["{opened.owner_id}"]', "    accounts:"]
    account += [f"      {agent}: ${{{discord_variable(agent)}}}" for agent in opened.tokens]
    echo(
        _TEXT.format(
            page=opened.page,
            guild=opened.guild,
            owner=opened.owner,
            agents=", ".join(opened.tokens),
            account="".join(f"  {line}\n" for line in account),
            variables="\n".join(f"  export {name}={value}" for name, value in variables.items()),
        )
    )
