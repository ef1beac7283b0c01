"""The simulated Discord beside a running Denizen: a process of its own that never outlives it. Called by `run`."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process

from denizen.adapters.discord.client.settings import DiscordEndpoints
from denizen.app.settings import DiscordLogin, Settings, Simulation
from denizen.app.settings.discord import build_manners
from denizen.domain.errors import Unavailable

START_DEADLINE_S = 30.0
GRACE_S = 5.0

_log = logging.getLogger("denizen.simulator")


@asynccontextmanager
async def open_simulator(home: Path, settings: Settings) -> AsyncGenerator[Simulation]:
    """A simulation with a bot for each configured agent; who owns its server may do everything with them.

    When it ends by itself, that is told in the log, and nothing else happens. Raises Unavailable when it does not come
    up.
    """
    agents = [argument for agent in settings.agents for argument in ("--agent", agent)]
    process = await anyio.open_process(
        [
            sys.executable,
            "-m",
            "denizen",
            "--home",
            str(home),
            "simulate",
            "discord",
            "--json",
            "--until-stdin-closes",
            *agents,
        ],
        stdin=subprocess.PIPE,
        stderr=None,
        start_new_session=True,  # Ctrl-C is for the parent; the child ends when its standard input does
    )
    try:
        simulation = _read(settings, await _hear(process))
        async with anyio.create_task_group() as group:
            group.start_soon(_watch, process)
            yield simulation
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True, deadline=anyio.current_time() + GRACE_S):
            await process.aclose()  # closes stdin, waits, and kills when this scope runs out


async def _hear(process: Process) -> dict[str, Any]:
    """Its one line. Why it has none to give is on standard error, which is ours too."""
    assert process.stdout is not None
    said = b""
    with anyio.move_on_after(START_DEADLINE_S):
        try:
            while not said.endswith(b"\n"):
                said += await process.stdout.receive()
        except anyio.EndOfStream:
            code = await process.wait()
            raise _not_started(f"it ended with code {code}") from None
        return json.loads(said)
    raise _not_started(f"it said nothing for {START_DEADLINE_S:.0f} s")


def _not_started(why: str) -> Unavailable:
    return Unavailable(
        "The Discord simulator did not start.",
        code="simulator_not_started",
        why=why,
        fix="Try `denizen simulate discord`, or leave --simulate out.",
    )


def _read(settings: Settings, said: dict[str, Any]) -> Simulation:
    discord = settings.channels.discord
    accounts: list[DiscordLogin] = []
    for agent in settings.agents:
        account_policy = build_manners(discord.accounts.get(agent, discord))
        staff = replace(account_policy.staff, owners=account_policy.staff.owners | {said["owner_id"]})
        account_policy = replace(account_policy, staff=staff)
        accounts.append(DiscordLogin(agent, said["tokens"][agent], account_policy))
    return Simulation(tuple(accounts), DiscordEndpoints(said["api_url"], said["gateway_url"]), said["page"])


async def _watch(process: Process) -> None:
    code = await process.wait()
    _log.warning("the Discord simulator has ended; start Denizen anew to have it again", extra={"exit_code": code})
