"""The agents' platform accounts, each connected and kept connected, under one supervisor.

An account that cannot work (a refused token, a missing intent) is left off with the fix in the log; the others go on.
Accounts follow the configuration while Denizen runs: new ones start, removed ones stop. `ConnectedRepositoryHosts`
delivers webhooks to the accounts that run.
"""

from __future__ import annotations

import gc
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import anyio
from anyio.abc import TaskGroup

from denizen.app.settings.discord import DiscordLogin
from denizen.app.settings.github import GitHubLogin
from denizen.app.speech import SpeechEngines, build_voice_services, has_voice
from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, NotAllowed, NotFound, Unavailable
from denizen.domain.ids import AgentName
from denizen.engine.accounts.connected_accounts import AccountState
from denizen.engine.commands.dispatch import COMMANDS
from denizen.engine.listener.background import run_forever, run_once
from denizen.engine.listener.context import AccountContext, BotReplyCounter
from denizen.engine.listener.listener import AccountListener
from denizen.ports.hosting import SIGNATURE_HEADER, HostedRepository, WebhookReceipt, is_signature, webhook_unknown

if TYPE_CHECKING:
    from denizen.adapters.discord.account import DiscordAccount
    from denizen.adapters.github.account import GitHubAccount
    from denizen.app.build import Denizen

RETRY_S = 5.0
MAX_RETRY_S = 30.0
PATIENCE_S = 60.0
"""How long a start waits for accounts before it says that it is ready without them."""
SIMULATED_PAUSE_S = 0.2
"""The pause between logins to the simulator, which does not limit them as Discord does."""

CONNECTING = "connected or connecting"
ELSEWHERE = "held by another process of the fleet"

_log = logging.getLogger("denizen.accounts")


AccountLogin = DiscordLogin | GitHubLogin
AccountKey = tuple[str, AgentName]
"""The platform and the agent."""


@dataclass(slots=True)
class _RunningAccount:
    login: AccountLogin
    scope: anyio.CancelScope
    account: DiscordAccount | GitHubAccount
    has_voice: bool = False
    """Whether it was started with a voice: another choice takes another login."""
    tried: anyio.Event = field(default_factory=anyio.Event)
    """Set once it hears what is said, or has failed to connect."""


@dataclass(slots=True)
class AccountSupervisor:
    """Keeps all configured accounts connected. `states` says of each one whether it runs, or why not."""

    denizen: Denizen
    states: dict[AccountKey, str] = field(default_factory=dict[AccountKey, str])
    _elsewhere: set[AccountKey] = field(default_factory=set[AccountKey])
    """Accounts that another process of the fleet has."""
    _running: dict[AccountKey, _RunningAccount] = field(default_factory=dict[AccountKey, _RunningAccount])
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _begun: anyio.Event = field(default_factory=anyio.Event)
    _speech: SpeechEngines = field(default_factory=SpeechEngines)

    async def run(self) -> None:
        """Keeps the configured accounts connected until it is cancelled. May be called again after a fault."""
        self._running.clear()
        self.states.clear()
        bot_replies = BotReplyCounter(self.denizen.services.store)
        async with anyio.create_task_group() as group:
            keeps_archive = False
            while True:
                self._changed = anyio.Event()
                self._stop_removed()
                if self._list_logins() and not keeps_archive:
                    keeps_archive = True
                    retention = self.denizen.platforms.retention
                    group.start_soon(run_forever, "retention", partial(retention.run, ["discord", "github"]))
                    group.start_soon(run_once, "warming the model", self._warm)
                for key, login in self._list_logins().items():
                    if key not in self._running:
                        self._start(group, key, login, bot_replies)
                self._begun.set()
                await self._changed.wait()

    async def _warm(self) -> None:
        """Loads what the first answer needs, since a whole server would wait for it. Then freezes it for the garbage
        collector: a pass over all of it would hold up every account.
        """
        await self.denizen.runtime.current.models.warm()
        gc.freeze()

    async def follow(self) -> None:
        """Applies a changed configuration: starts and stops accounts, and registers commands anew."""
        self._changed.set()
        for running in list(self._running.values()):
            if running.account.is_connected:
                try:
                    await running.account.sync_commands()
                except DenizenError as error:
                    _log.warning("commands not registered", extra={"agent": running.login.agent, **error.fields})

    async def wait_until_tried(self) -> None:
        """Waits until each configured account hears what is said, or has failed to connect once: then `states` says
        why. A platform that does not even refuse is not waited for longer than `PATIENCE_S`.
        """
        with anyio.move_on_after(PATIENCE_S):
            await self._begun.wait()
            for each in list(self._running.values()):
                await each.tried.wait()

    def list_states(self) -> Sequence[AccountState]:
        """Returns how each configured account stands."""
        return list(map(self._find_state, self._list_logins()))

    def _find_state(self, key: AccountKey) -> AccountState:
        running, told = self._running.get(key), self.states.get(key, CONNECTING)
        fleet = self.denizen.fleet
        if fleet is not None and (running is None or key in self._elsewhere):
            holder = fleet.find_holder(key)
            return AccountState(*key, bool(holder), f"connected at {holder}" if holder else "held by no process now")
        if running is None:
            return AccountState(*key, is_listening=False, told=told)
        return AccountState(*key, running.account.is_listening, told, running.account.shards)

    async def check(self) -> None:
        """Raises Unavailable that names the accounts which hear nothing now, and why."""
        states = [each for each in self.list_states() if not each.is_listening]
        silent = [f"{each.platform} account of {each.agent}: {each.told}" for each in states]
        if silent:
            raise Unavailable("Accounts are not connected.", code="accounts_not_connected", why="; ".join(silent))

    def find_github(self) -> list[GitHubAccount]:
        """Returns the GitHub accounts that run, connected or not."""
        from denizen.adapters.github.account import GitHubAccount

        return [each.account for each in self._running.values() if isinstance(each.account, GitHubAccount)]

    def _list_logins(self) -> dict[AccountKey, AccountLogin]:
        settings = self.denizen.settings
        on_discord: dict[AccountKey, AccountLogin] = {
            ("discord", login.agent): login for login in settings.discord_accounts
        }
        return on_discord | {("github", login.agent): login for login in settings.github_accounts}

    def _stop_removed(self) -> None:
        logins = self._list_logins()
        for key, running in list(self._running.items()):
            login = logins.get(key)
            has_other_voice = key[0] == "discord" and running.has_voice != has_voice(self.denizen.settings)
            if login is None or has_other_voice or _differs(login, running.login):
                running.scope.cancel()
                del self._running[key]
                self.states.pop(key, None)

    def _start(self, group: TaskGroup, key: AccountKey, login: AccountLogin, bot_replies: BotReplyCounter) -> None:
        denizen = self.denizen
        account = self._open_github(login) if isinstance(login, GitHubLogin) else self._open_discord(login)
        context = AccountContext(
            channel=account,
            runtime=denizen.runtime,
            store=denizen.services.store,
            clock=denizen.services.clock,
            turns=denizen.turns,
            outbox=denizen.platforms.outbox,
            bot_replies=bot_replies,
            handovers=denizen.services.handovers,
            guilds=denizen.services.guilds,
            events=denizen.events.community,
        )
        running = _RunningAccount(login, anyio.CancelScope(), account, has_voice(denizen.settings))
        self._running[key] = running
        group.start_soon(self._keep, key, running, context)

    def _open_discord(self, login: DiscordLogin) -> DiscordAccount:
        from denizen.adapters.discord.account import DiscordAccount
        from denizen.adapters.discord.client.settings import IDENTIFY_PAUSE_S, DiscordAccountSettings
        from denizen.adapters.documents.pdf import read_pdf

        denizen = self.denizen
        settings = DiscordAccountSettings(
            login.agent,
            login.token,
            denizen.settings.discord_endpoints,
            commands_guild=login.commands_guild,
            owned_commands=frozenset(COMMANDS),
            identify_pause_s=SIMULATED_PAUSE_S if denizen.simulation else IDENTIFY_PAUSE_S,
        )
        clock = denizen.services.clock
        voice = build_voice_services(lambda: denizen.settings, self._speech, denizen.platforms.mirror, clock)
        return DiscordAccount(settings, clock, read_pdf, voice)

    def _open_github(self, login: GitHubLogin) -> GitHubAccount:
        from denizen.adapters.github.account import GitHubAccount

        return GitHubAccount(login.account, self.denizen.services.clock)

    async def _keep(self, key: AccountKey, running: _RunningAccount, desk: AccountContext) -> None:
        """Connects again after passing failures, with growing pauses; gives up on what needs the operator."""
        (platform, agent), pause_s = key, RETRY_S
        with running.scope:
            while True:
                self.states[key] = CONNECTING
                began_s = desk.clock.monotonic_s()
                error = await self._run_held(key, running, desk)
                if desk.clock.monotonic_s() - began_s > MAX_RETRY_S:
                    pause_s = RETRY_S
                self.states[key] = error.explain()
                running.tried.set()
                if isinstance(error, NeedsAttention):
                    about = {"agent": agent, "platform": platform, **error.fields}
                    _log.error("account left off: %s", error.message, extra=about)
                    await anyio.sleep_forever()
                _log.warning("account reconnects", extra={"agent": agent, **error.fields, "wait_s": pause_s})
                await anyio.sleep(pause_s)
                pause_s = min(2 * pause_s, MAX_RETRY_S)

    async def _run_held(self, key: AccountKey, running: _RunningAccount, desk: AccountContext) -> DenizenError:
        """In a fleet, waits until no other process has the account, and gives it up when it may be taken."""
        fleet = self.denizen.fleet
        if fleet is None:
            return await self._run_once(running, desk)

        def wait_for(holder: str) -> None:
            del holder  # a session, which tells people nothing
            self._elsewhere.add(key)
            self.states[key] = ELSEWHERE
            running.tried.set()

        async def work() -> DenizenError:
            self._elsewhere.discard(key)
            self.states[key] = CONNECTING
            return await self._run_once(running, desk)

        ended = await fleet.hold_account(self.denizen.platforms.channels, key, work, wait_for)
        return ended or Unavailable("Another process of the fleet may have the account.", code="fleet_lost")

    async def _run_once(self, running: _RunningAccount, desk: AccountContext) -> DenizenError:
        """Runs one connection from login to its end, and returns why it ended. A fault ends this connection only."""
        listener = AccountListener(desk, self.denizen.platforms.shared_services)
        try:
            async with anyio.create_task_group() as group:
                await group.start(listener.run)
                group.start_soon(_note_connected, listener, running)
                try:
                    await running.account.run(listener)
                except DenizenError as error:
                    group.cancel_scope.cancel()
                    return error
        except Exception:  # noqa: BLE001 - the boundary of an account
            _log.exception("account fault", extra={"agent": running.login.agent})
        return Unavailable("The account ended because of a fault.", code="account_fault", fix="See the log.")


async def _note_connected(listener: AccountListener, running: _RunningAccount) -> None:
    await listener.connected.wait()
    running.tried.set()


def _differs(new: AccountLogin, old: AccountLogin) -> bool:
    """Returns whether a new login is needed. Changes of the policy apply without one."""
    if isinstance(new, GitHubLogin) or isinstance(old, GitHubLogin):
        return not (isinstance(new, GitHubLogin) and isinstance(old, GitHubLogin) and new.account == old.account)
    return (new.token, new.commands_guild) != (old.token, old.commands_guild)


if TYPE_CHECKING:
    from denizen.adapters.github.account import GitHubAccount

GITHUB = "github"
ISSUE_EVENTS = frozenset({"issues", "issue_comment"})


class ConnectedRepositoryHosts:
    """Delivers webhooks and lists repositories (`denizen.ports.hosting.RepositoryHosts`). `accounts` returns the GitHub
    accounts that run; `tell` is told the repository of each genuine webhook about issues.
    """

    def __init__(
        self, accounts: Callable[[], Sequence[GitHubAccount]], tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self._accounts = accounts
        self._tell = tell

    def check_headers(self, platform: str, headers: Mapping[str, str]) -> None:
        if platform != GITHUB:
            raise webhook_unknown(platform)
        if not self._list_hooked():
            raise NotFound(
                "Webhooks of GitHub are switched off.",
                code="webhook_off",
                why="no account has a webhook secret, and without one anybody could send them",
                fix="Set channels.github.accounts.NAME.webhook_secret, and the same secret on GitHub.",
            )
        signature = headers.get(SIGNATURE_HEADER, "")
        if not signature:
            raise NotAllowed(
                "This webhook is not signed.",
                code="signature_missing",
                fix="Enter the secret of channels.github.accounts.NAME.webhook_secret in the webhook's settings.",
            )
        if not is_signature(signature):
            raise _wrong_signature()

    async def take_webhook(self, platform: str, headers: Mapping[str, str], body: bytes) -> WebhookReceipt:
        """Passes the webhook to each account whose secret signed it. An App gets its own webhooks only."""
        from denizen.adapters.github.events import is_signed

        self.check_headers(platform, headers)
        signature = headers.get(SIGNATURE_HEADER, "")
        signed = [each for each in self._list_hooked() if is_signed(each.settings.webhook_secret, body, signature)]
        if not signed:
            raise _wrong_signature()
        event = headers.get("x-github-event", "")
        if event == "ping":
            return WebhookReceipt.PONG
        payload = _read(headers, body)
        repository = payload.get("repository")
        if event in ISSUE_EVENTS and isinstance(repository, dict):
            self._tell(str(cast("Mapping[str, Any]", repository).get("full_name", "")))
        taken = [await account.take(event, payload) for account in signed if _is_target(account, headers)]
        return WebhookReceipt.TAKEN if any(taken) else WebhookReceipt.IGNORED

    async def list_repositories(self, platform: str) -> Sequence[HostedRepository]:
        accounts = [each for each in self._accounts() if each.is_connected] if platform == GITHUB else []
        found = {each.name: each for account in accounts for each in await account.list_repositories()}
        return [found[name] for name in sorted(found, key=str.lower)]

    def _list_hooked(self) -> list[GitHubAccount]:
        """Returns the accounts that have a secret for webhooks."""
        return [each for each in self._accounts() if each.settings.webhook_secret]


def _wrong_signature() -> NotAllowed:
    return NotAllowed(
        "The signature of this webhook does not match.",
        code="signature_wrong",
        fix="Enter the same secret on GitHub and in channels.github.accounts.NAME.webhook_secret.",
    )


def _is_target(account: GitHubAccount, headers: Mapping[str, str]) -> bool:
    if headers.get("x-github-hook-installation-target-type") != "integration":
        return True
    return not account.settings.is_app or (
        headers.get("x-github-hook-installation-target-id", account.settings.app_id) == account.settings.app_id
    )


def _read(headers: Mapping[str, str], body: bytes) -> Mapping[str, Any]:
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        payload = json.loads(body) if media_type == "application/json" else None
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise InvalidInput(
            "This webhook is not a JSON object.",
            code="json_invalid",
            fix="Choose the content type application/json in the webhook's settings on GitHub.",
        )
    return cast("Mapping[str, Any]", payload)
