"""Membership in a fleet of processes: who this one is, whom it knows, and what it tells the others.

`open_fleet` joins before anything else is opened; `Fleet.run` goes on for as long as the server runs. A process that
is alone has no fleet.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

import anyio

from denizen import __version__
from denizen.adapters.durable.durable import DbosExecution
from denizen.adapters.fleet.bus import FleetBus
from denizen.adapters.fleet.nodes import BEAT_S, FleetNodes, FleetTables, LeaseTable, find_living
from denizen.adapters.fleet.relay import FleetRelay
from denizen.adapters.fleet.remote_channel import ChannelHost, RemoteChannel
from denizen.domain.errors import Conflict, InvalidInput, NeedsAttention, Unavailable
from denizen.domain.fleet import FleetNode, FleetRole, HeldAccount
from denizen.domain.ids import AgentName, TurnId, fresh
from denizen.domain.record import record
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.events.live_events import LiveEvents
from denizen.engine.events.signal import Signal
from denizen.engine.outbox.outbox import DeliveryOutbox

Result = TypeVar("Result")
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
MAX_NAME_CHARS = 60

_log = logging.getLogger("denizen.fleet")


def check_name(name: str) -> str:
    """Returns the name of a process, or one of its own when it is empty. Raises InvalidInput."""
    if not name:
        return f"{socket.gethostname()}-{os.getpid()}"[-MAX_NAME_CHARS:]
    if len(name) > MAX_NAME_CHARS or not _NAME.issuperset(name):
        raise InvalidInput(
            f"'{name[:MAX_NAME_CHARS]}' is no name for a process.",
            code="fleet_name",
            fix=f"Use up to {MAX_NAME_CHARS} letters, digits, dots, dashes and underscores, such as worker-1.",
        )
    return name


def require_postgres(store_url: str, what: str) -> None:
    """Raises InvalidInput for a store that processes on several machines cannot share."""
    if store_url.startswith("sqlite"):
        raise InvalidInput(
            f"{what} needs Postgres.",
            code="fleet_sqlite",
            why="Processes with different roles share one database, and SQLite is a file of one machine.",
            fix="Set store.url to postgresql://..., or run without --role: one process does everything.",
        )


async def refuse_beside_fleet(
    store_url: str, *, fix: str = "Give this one a --role, or stop the others first."
) -> None:
    """Raises Conflict where a fleet works on that Postgres: a process that does everything would not know of it."""
    if living := await find_living(FleetTables(store_url)):
        raise Conflict(
            "A fleet works on this database, and a process without a role does not belong to it.",
            code="fleet_alive",
            why=f"These processes were heard of a moment ago: {', '.join(living)}.",
            fix=fix,
        )


async def refuse_turns_beside_fleet(store_url: str) -> None:
    """Raises Conflict where a fleet works on that Postgres, for a command that would run a turn by itself: the turn
    would not wait for others in its conversation.
    """
    await refuse_beside_fleet(
        store_url,
        fix="Ask on a machine where a process of the fleet runs, without choosing a model, or on the page or API of a "
        "process with --role web.",
    )


class LonePresence:
    """Tells fleets that a process which does everything works on their Postgres, so that none begins beside it."""

    def __init__(self, store_url: str) -> None:
        self._url = store_url
        self._tables = FleetTables(store_url)
        session = fresh("alone")  # its name, too: one that was killed keeps nobody from starting again
        self._nodes = FleetNodes(self._tables, session, FleetRole.ALL, __version__, session)

    async def create(self) -> None:
        """Makes the tables of fleets, if they are not there. Raises what keeps the database from being used."""
        await self._tables.create()

    async def check(self) -> None:
        """Tells once. Raises Conflict beside a fleet."""
        await self._nodes.beat()
        await refuse_beside_fleet(self._url)

    async def run(self) -> None:
        """Tells until it is cancelled."""
        is_warned = False
        while True:
            with suppress(Unavailable, NeedsAttention):  # the store says that the database is away
                await self._nodes.beat()
                living = await find_living(self._tables)
                if living and not is_warned:
                    _log.error(
                        "a fleet works on the database of this process, which has no role: stop one of them",
                        extra={"processes": ", ".join(living)},
                    )
                is_warned = bool(living)
            await anyio.sleep(BEAT_S)

    async def leave(self) -> None:
        await self._nodes.leave()


@asynccontextmanager
async def open_presence(store_url: str) -> AsyncGenerator[LonePresence]:
    """Tells of a process that does everything, until the end of the block. Raises Conflict beside a fleet."""
    await refuse_beside_fleet(store_url)
    presence = LonePresence(store_url)
    await presence.create()
    try:
        await presence.check()  # a fleet may have begun at the same moment
        yield presence
    finally:
        with anyio.CancelScope(shield=True):
            await presence.leave()


@record(kw_only=True)
class FleetParts:
    """The parts of this process that others reach: they are told what those say. Each of `signals` is sent in all
    processes when it is sent in one.
    """

    channels: ConnectedAccounts
    live: LiveEvents
    outbox: DeliveryOutbox
    cancel: Callable[[TurnId], object]
    signals: Mapping[str, Signal]


@dataclass(kw_only=True)
class Fleet:
    """The fleet as this process, `name`, sees it."""

    name: str
    role: FleetRole
    bus: FleetBus
    nodes: FleetNodes
    leases: LeaseTable
    relay: FleetRelay
    _held: set[tuple[str, AgentName]] = field(default_factory=set[tuple[str, AgentName]])
    """Accounts that this process has, connected or not."""
    _shared: Mapping[str, Signal] = field(default_factory=dict[str, Signal])
    _echoes: set[str] = field(default_factory=set[str])
    """Signals that were sent because another process said so."""

    stop_claiming: Callable[[], None] = lambda: None
    """Takes up no more turns, since the process is about to end."""

    def bind(self, durable: DbosExecution) -> None:
        """Takes up what other processes hand in to `durable`, and tells them what is handed in here."""
        self.nodes.count_runs = durable.count_runs
        self.stop_claiming = durable.stop_claiming
        durable.on_hand_in = lambda: self.bus.send("run", {})
        self.bus.hear("run", lambda _sender, _body: durable.look())

    async def hold_account(
        self,
        channels: ConnectedAccounts,
        key: tuple[str, AgentName],
        job: Callable[[], Awaitable[Result]],
        on_wait: Callable[[str], None],
    ) -> Result | None:
        """Does the job while no other process has the account; see `FleetLeases.hold`."""

        async def work() -> Result:
            self._held.add(key)
            remote = channels.find(*key)
            if isinstance(remote, RemoteChannel):
                channels.remove(remote)
            return await job()

        try:
            return await self.leases.hold("account:" + ":".join(key), work, on_wait=on_wait)
        finally:
            self._held.discard(key)

    async def hold_upkeep(self, job: Callable[[], Awaitable[None]]) -> None:
        """Does the job while no other process does it, again and again."""
        while True:
            await self.leases.hold("upkeep", job, on_wait=lambda _holder: None)

    def find_holder(self, key: tuple[str, AgentName]) -> str:
        """Returns the process where the account is connected; empty when there is none."""
        return next((node.name for node in self.nodes.nodes for held in node.accounts if _key(held) == key), "")

    async def run(self, parts: FleetParts) -> None:
        """Hears and tells until it is cancelled."""
        channels = parts.channels
        self.relay.on_sign = parts.live.tell
        self.relay.on_cancel = parts.cancel
        self.relay.on_wake = parts.outbox.wake_here
        self.nodes.list_accounts = lambda: _list_own(channels)
        self.nodes.on_change = lambda nodes: self._follow(channels, nodes)
        self.bus.hear("node", lambda _sender, _body: self.nodes.beat_now())
        self.bus.hear("nudge", lambda _sender, body: self._take_nudge(str(body["signal"])))
        ChannelHost(self.bus, channels.find, lambda place: parts.outbox.rooms.enter(place, TurnId("")))
        self._shared = parts.signals
        async with anyio.create_task_group() as group:
            group.start_soon(self.bus.run)
            group.start_soon(self.nodes.run)
            group.start_soon(self.relay.run)
            group.start_soon(self._tell_accounts, channels)
            for name, signal in self._shared.items():
                group.start_soon(self._share, name, signal)

    def _follow(self, channels: ConnectedAccounts, nodes: Sequence[FleetNode]) -> None:
        """Takes up the accounts that other processes hold now, and drops those that they held."""
        elsewhere = {
            _key(held): (node.name, held)
            for node in nodes
            if node.name != self.name
            for held in node.accounts
            if _key(held) not in self._held
        }
        for channel in channels.list_all():
            if isinstance(channel, RemoteChannel) and elsewhere.get(_key(channel.held)) != (channel.node, channel.held):
                channels.remove(channel)
        for key, (node, held) in elsewhere.items():
            if channels.find(*key) is None:
                channels.add(RemoteChannel(self.bus, node, held))

    async def _tell_accounts(self, channels: ConnectedAccounts) -> None:
        told: Sequence[HeldAccount] = ()
        while True:
            added = channels.added.next
            if (own := _list_own(channels)) != told:
                told = own
                self.nodes.beat_now()
                self.bus.send("node", {})
            await added.wait()

    async def _share(self, name: str, signal: Signal) -> None:
        while True:
            await signal.next.wait()
            if name in self._echoes:
                self._echoes.discard(name)
            else:
                self.bus.send("nudge", {"signal": name})

    def _take_nudge(self, name: str) -> None:
        signal = self._shared.get(name)
        if signal is not None:
            self._echoes.add(name)
            signal.send()


def _key(held: HeldAccount) -> tuple[str, AgentName]:
    return held.platform, held.agent


def _list_own(channels: ConnectedAccounts) -> list[HeldAccount]:
    own = [each for each in channels.list_all() if not isinstance(each, RemoteChannel)]
    return [HeldAccount(each.platform, each.agent, each.user_id) for each in own]


@asynccontextmanager
async def open_fleet(url: str, role: FleetRole, name: str) -> AsyncGenerator[Fleet]:
    """Joins the fleet on that Postgres, and leaves it at the end. Raises Conflict for a name that another process has
    and beside a process that does everything, and what keeps the database from being used.
    """
    tables, session = FleetTables(url), fresh("node")
    nodes = FleetNodes(tables, name, role, __version__, session)
    await nodes.join()
    await nodes.refuse_beside_lone()
    bus = FleetBus(url, name, await tables.load_key())
    try:
        yield Fleet(
            name=name, role=role, bus=bus, nodes=nodes, leases=LeaseTable(tables, session), relay=FleetRelay(bus, role)
        )
    finally:
        with anyio.CancelScope(shield=True):
            await nodes.leave()
