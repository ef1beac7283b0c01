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
from denizen.app.settings.github import GitHubLogin
from denizen.domain.errors import DenizenError, NeedsAttention, Unavailable
from denizen.domain.ids import AgentName
from denizen.engine.commands.dispatch import COMMANDS
from denizen.engine.listener.background import run_forever, run_once
from denizen.engine.listener.context import AccountContext, BotReplyCounter
from denizen.engine.listener.listener import AccountListener

if TYPE_CHECKING:
    from denizen.adapters.discord.account import DiscordAccount
    from denizen.adapters.github.account import GitHubAccount
    from denizen.app.build import Denizen

RETRY_S = 5.0
MAX_RETRY_S = 300.0
SIMULATED_PAUSE_S = 0.2
"""Between logins to the simulator, which does not count them as Discord does."""

_log = logging.getLogger("denizen.accounts")


Login = DiscordLogin | GitHubLogin
Key = tuple[str, AgentName]
"""Platform and agent."""


@dataclass(slots=True)
class _Running:
    login: Login
    scope: anyio.CancelScope
    account: DiscordAccount | GitHubAccount


@dataclass(slots=True)
class Accounts:
    """`states` says of each account whether it runs, or why not: for `denizen doctor` and the page."""

    denizen: Denizen
    states: dict[Key, str] = field(default_factory=dict[Key, str])
    _running: dict[Key, _Running] = field(default_factory=dict[Key, _Running])
    _changed: anyio.Event = field(default_factory=anyio.Event)

    async def run(self) -> None:
        """Keeps the configured accounts connected until it is cancelled."""
        bot_replies = BotReplyCounter(self.denizen.services.store)
        async with anyio.create_task_group() as group:
            keeps_archive = False
            while True:
                self._changed = anyio.Event()
                self._stop_unwanted()
                if self._wanted() and not keeps_archive:
                    keeps_archive = True
                    retention = self.denizen.community.retention
                    group.start_soon(run_forever, "retention", partial(retention.run, ["discord", "github"]))
                    group.start_soon(run_once, "warming the model", self._warm)
                for key, login in self._wanted().items():
                    if key not in self._running:
                        self._start(group, key, login, bot_replies)
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

    def find_github(self) -> list[GitHubAccount]:
        """Those that run, connected or not."""
        from denizen.adapters.github.account import GitHubAccount

        return [each.account for each in self._running.values() if isinstance(each.account, GitHubAccount)]

    def _wanted(self) -> dict[Key, Login]:
        settings = self.denizen.settings
        on_discord: dict[Key, Login] = {("discord", login.agent): login for login in settings.discord_accounts}
        return on_discord | {("github", login.agent): login for login in settings.github_accounts}

    def _stop_unwanted(self) -> None:
        wanted = self._wanted()
        for key, running in list(self._running.items()):
            login = wanted.get(key)
            if login is None or _differs(login, running.login):
                running.scope.cancel()
                del self._running[key]
                self.states.pop(key, None)

    def _start(self, group: TaskGroup, key: Key, login: Login, bot_replies: BotReplyCounter) -> None:
        denizen = self.denizen
        account = self._open_github(login) if isinstance(login, GitHubLogin) else self._open_discord(login)
        context = AccountContext(
            channel=account,
            runtime=denizen.runtime,
            store=denizen.services.store,
            clock=denizen.services.clock,
            turns=denizen.turns,
            outbox=denizen.community.outbox,
            bot_replies=bot_replies,
        )
        running = _Running(login, anyio.CancelScope(), account)
        self._running[key] = running
        group.start_soon(self._keep, key, running, context)

    def _open_discord(self, login: DiscordLogin) -> DiscordAccount:
        from denizen.adapters.discord.account import DiscordAccount
        from denizen.adapters.discord.settings import IDENTIFY_PAUSE_S, AccountSettings

        denizen = self.denizen
        settings = AccountSettings(
            login.agent, login.token, denizen.settings.discord_endpoints, commands_guild=login.commands_guild,
            owned_commands=frozenset(COMMANDS),
            identify_pause_s=SIMULATED_PAUSE_S if denizen.simulation else IDENTIFY_PAUSE_S,
        )  # fmt: skip
        return DiscordAccount(settings, denizen.services.clock)

    def _open_github(self, login: GitHubLogin) -> GitHubAccount:
        from denizen.adapters.github.account import GitHubAccount

        return GitHubAccount(login.account, self.denizen.services.clock)

    async def _keep(self, key: Key, running: _Running, context: AccountContext) -> None:
        """Comes back after what passes; gives up on what needs the operator."""
        (platform, agent), pause_s = key, RETRY_S
        with running.scope:
            while True:
                self.states[key] = "connected or connecting"
                began_s = context.clock.monotonic_s()
                error = await self._live(running, context)
                if context.clock.monotonic_s() - began_s > MAX_RETRY_S:
                    pause_s = RETRY_S
                self.states[key] = error.explain()
                if isinstance(error, NeedsAttention):
                    _log.error(
                        "account left off: %s", error.message,
                        extra={
                            "agent": agent, "platform": platform, "code": error.code, "why": error.why,
                            "fix": error.fix,
                        },
                    )  # fmt: skip
                    await anyio.sleep_forever()
                _log.warning("account comes back", extra={"agent": agent, "code": error.code, "wait_s": pause_s})
                await anyio.sleep(pause_s)
                pause_s = min(2 * pause_s, MAX_RETRY_S)

    async def _live(self, running: _Running, context: AccountContext) -> DenizenError:
        """One connection from login to its end; why it ended. A fault ends this account's connection only."""
        listener = AccountListener(context, self.denizen.community.shared_services)
        try:
            async with anyio.create_task_group() as group:
                await group.start(listener.run)
                try:
                    await running.account.run(listener)
                except DenizenError as error:
                    group.cancel_scope.cancel()
                    return error
        except Exception:  # noqa: BLE001 - the boundary of an account
            _log.exception("account fault", extra={"agent": running.login.agent})
        return Unavailable("The account ended because of a fault.", code="account_fault", fix="See the log.")


def _differs(new: Login, old: Login) -> bool:
    """Whether the account has to log in anew. A change of its policy alone needs no new login."""
    if isinstance(new, GitHubLogin) or isinstance(old, GitHubLogin):
        return not (isinstance(new, GitHubLogin) and isinstance(old, GitHubLogin) and new.account == old.account)
    return (new.token, new.commands_guild) != (old.token, old.commands_guild)
