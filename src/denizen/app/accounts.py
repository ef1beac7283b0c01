"""The agents' platform accounts, each connected and kept connected, under one supervisor.

An account that cannot work (a refused token, a missing intent) is left off with the fix in the log; the others go on
(inventory CW10). Accounts follow the configuration while Denizen runs: new ones start, removed ones stop.
"""

from __future__ import annotations

import gc
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from denizen.app.settings.discord import DiscordLogin
from denizen.domain.errors import DenizenError, NeedsAttention, Unavailable
from denizen.domain.ids import AgentName
from denizen.engine.commands.table import COMMANDS
from denizen.engine.resident.errands import keep_up, run_errand
from denizen.engine.resident.exchanges import Exchanges
from denizen.engine.resident.receiver import Desk
from denizen.engine.resident.resident import Resident

if TYPE_CHECKING:
    from denizen.adapters.discord.account import DiscordAccount
    from denizen.app.build import Denizen

RETRY_S = 5.0
MAX_RETRY_S = 300.0
SIMULATED_PAUSE_S = 0.2
"""Between logins to the simulator, which does not count them as Discord does."""

_log = logging.getLogger("denizen.accounts")


@dataclass(slots=True)
class _Running:
    login: DiscordLogin
    scope: anyio.CancelScope
    account: DiscordAccount


@dataclass(slots=True)
class Accounts:
    """`states` says of each account whether it runs, or why not: for `denizen doctor` and the page."""

    denizen: Denizen
    states: dict[AgentName, str] = field(default_factory=dict[AgentName, str])
    _running: dict[AgentName, _Running] = field(default_factory=dict[AgentName, _Running])
    _changed: anyio.Event = field(default_factory=anyio.Event)

    async def run(self) -> None:
        """Keeps the configured accounts connected until it is cancelled."""
        exchanges = Exchanges(self.denizen.services.store)
        async with anyio.create_task_group() as group:
            keeps_archive = False
            while True:
                self._changed = anyio.Event()
                self._stop_unwanted()
                if self.denizen.settings.discord_accounts and not keeps_archive:
                    keeps_archive = True
                    retention = self.denizen.community.retention
                    group.start_soon(keep_up, "retention", partial(retention.run, ["discord"]))
                    group.start_soon(run_errand, "warming the model", self._warm)
                for login in self.denizen.settings.discord_accounts:
                    if login.agent not in self._running:
                        self._start(group, login, exchanges)
                await self._changed.wait()

    async def _warm(self) -> None:
        """People in a server wait for the first answer together: what it needs is loaded beforehand. The collector then
        leaves that alone, since looking through it all would hold everything up.
        """
        await self.denizen.runtime.current.models.warm()
        gc.freeze()

    async def follow(self) -> None:
        """The configuration has changed."""
        self._changed.set()
        for running in list(self._running.values()):
            if running.account.is_connected:
                try:
                    await running.account.sync_commands()
                except DenizenError as error:
                    _log.warning("commands not registered", extra={"agent": running.login.agent, "code": error.code})

    def _stop_unwanted(self) -> None:
        wanted = {login.agent: login for login in self.denizen.settings.discord_accounts}
        for agent, running in list(self._running.items()):
            login = wanted.get(agent)
            if login is None or _differs(login, running.login):
                running.scope.cancel()
                del self._running[agent]
                self.states.pop(agent, None)

    def _start(self, group: TaskGroup, login: DiscordLogin, exchanges: Exchanges) -> None:
        from denizen.adapters.discord.account import DiscordAccount
        from denizen.adapters.discord.settings import IDENTIFY_PAUSE_S, AccountSettings

        denizen = self.denizen
        settings = AccountSettings(
            login.agent, login.token, denizen.settings.discord_endpoints, commands_guild=login.commands_guild,
            owned_commands=frozenset(COMMANDS),
            identify_pause_s=SIMULATED_PAUSE_S if denizen.simulation else IDENTIFY_PAUSE_S,
        )  # fmt: skip
        account = DiscordAccount(settings, denizen.services.clock)
        desk = Desk(
            account, denizen.runtime, denizen.services.store, denizen.services.clock, denizen.turns,
            denizen.community.outbox, exchanges,
        )  # fmt: skip
        running = _Running(login, anyio.CancelScope(), account)
        self._running[login.agent] = running
        group.start_soon(self._keep, running, desk)

    async def _keep(self, running: _Running, desk: Desk) -> None:
        """Comes back after what passes; gives up on what needs the operator."""
        agent, pause_s = running.login.agent, RETRY_S
        with running.scope:
            while True:
                self.states[agent] = "connected or connecting"
                began_s = desk.clock.monotonic_s()
                error = await self._live(running, desk)
                if desk.clock.monotonic_s() - began_s > MAX_RETRY_S:
                    pause_s = RETRY_S
                self.states[agent] = error.explain()
                if isinstance(error, NeedsAttention):
                    _log.error(
                        "account left off: %s", error.message,
                        extra={"agent": agent, "code": error.code, "why": error.why, "fix": error.fix},
                    )  # fmt: skip
                    await anyio.sleep_forever()
                _log.warning("account comes back", extra={"agent": agent, "code": error.code, "wait_s": pause_s})
                await anyio.sleep(pause_s)
                pause_s = min(2 * pause_s, MAX_RETRY_S)

    async def _live(self, running: _Running, desk: Desk) -> DenizenError:
        """One connection from login to its end; why it ended. A fault ends this account's connection only."""
        resident = Resident(desk, self.denizen.community.household)
        try:
            async with anyio.create_task_group() as group:
                await group.start(resident.run)
                try:
                    await running.account.run(resident)
                except DenizenError as error:
                    group.cancel_scope.cancel()
                    return error
        except Exception:  # noqa: BLE001 - the boundary of an account
            _log.exception("account fault", extra={"agent": running.login.agent})
        return Unavailable("The account ended because of a fault.", code="account_fault", fix="See the log.")


def _differs(new: DiscordLogin, old: DiscordLogin) -> bool:
    """Manners change without a new login."""
    return (new.token, new.commands_guild) != (old.token, old.commands_guild)
