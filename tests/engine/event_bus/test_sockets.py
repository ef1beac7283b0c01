"""WebSockets in memory: connected again when they break, and each message with an id is one event."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import anyio
import pytest

from denizen.domain.errors import Unavailable
from denizen.domain.event_listener import ActionKind, EventAction, EventListener
from denizen.domain.event_source import EventSourceStatus, SourceMapping, WebSocketSource, plan_reconnect_s
from denizen.domain.json import Json
from denizen.engine.event_bus.log import EventLog
from denizen.engine.event_bus.sockets import SocketListener
from denizen.ports.events import EventSearch, EventSettings
from tests.engine.platform_fixture import ADA, PlatformFixture, open_platform
from tests.timing import poll

pytestmark = pytest.mark.anyio

KEEP = EventListener(
    name="keep", on=("websocket.market*", "source.connected"), action=EventAction(kind=ActionKind.LOG, agent=ADA)
)
MARKET = WebSocketSource(name="market", url="wss://a.b/", mapping=SourceMapping(id="id"))
LOST = Unavailable("The websocket was closed.", code="websocket_lost")


@dataclass
class SocketServer:
    """One WebSocket in memory. Each connection sends what is there for it, and then is lost or stays."""

    connections: list[list[Json] | Unavailable] = field(default_factory=list[list[Json] | Unavailable])
    opened: list[str] = field(default_factory=list[str])
    closed: list[str] = field(default_factory=list[str])

    @asynccontextmanager
    async def connect(self, source: WebSocketSource) -> AsyncGenerator[AsyncIterator[Json]]:
        sent = self.connections.pop(0) if self.connections else None
        if isinstance(sent, Unavailable):
            raise sent
        self.opened.append(source.url)
        try:
            yield self._read(sent)
        finally:
            self.closed.append(source.url)

    async def _read(self, sent: list[Json] | None) -> AsyncIterator[Json]:
        for each in sent or ():
            yield each
        if sent is None:
            await anyio.sleep_forever()
        raise LOST


@asynccontextmanager
async def listen(server: PlatformFixture, sockets: SocketServer) -> AsyncGenerator[None]:
    listener = SocketListener(
        server.runtime, server.store, server.world.clock, server.bus, sockets, chance=lambda: -1.0
    )
    async with anyio.create_task_group() as group:
        group.start_soon(listener.run)
        yield
        group.cancel_scope.cancel()


async def list_events(server: PlatformFixture) -> Sequence[tuple[str, Json]]:
    async with server.store.work(write=False) as work:
        return [(each.event.type, each.event.data) for each in await work.events.search(EventSearch())][::-1]


async def configure(server: PlatformFixture, *sources: WebSocketSource) -> None:
    current = server.runtime.current
    settings = EventSettings(listeners=current.events.listeners, websockets={each.name: each for each in sources})
    await server.runtime.swap(replace(current, number=current.number + 1, events=settings))


async def test_a_connection_that_breaks_is_made_again_and_what_was_sent_twice_is_one_event() -> None:
    sockets = SocketServer([Unavailable("Away."), [{"id": 1}, "plain"], [{"id": 1}, {"id": 2}], LOST])
    async with open_platform(events=[KEEP], sources=[MARKET]) as server:
        log = EventLog(server.runtime, server.store, server.world.clock, server.bus)
        async with listen(server, sockets):

            async def is_settled() -> bool:
                connected = [kind for kind, _ in await list_events(server)].count("source.connected")
                return connected == 3 and (await log.list_sources())[0].status is EventSourceStatus.WORKING

            await poll(is_settled)
            assert [data for kind, data in await list_events(server) if kind == "websocket.market"] == [
                {"id": 1},
                {"value": "plain"},
                {"id": 2},
            ]
            assert len(sockets.opened) == 3
        server.world.clock.advance(minutes=4)
        assert (await log.list_sources())[0].status is EventSourceStatus.WAITING


async def test_a_change_of_the_configuration_touches_only_the_connections_that_it_is_about() -> None:
    sockets = SocketServer()
    other = replace(MARKET, name="other", url="wss://c.d/")
    async with open_platform(events=[KEEP]) as server, listen(server, sockets):

        async def count_states() -> int:
            async with server.store.work(write=False) as work:
                return len(await work.event_sources.list_states())

        async def until(states: int, opened: int) -> None:
            async def is_so() -> bool:
                return len(sockets.opened) == opened and await count_states() == states

            await poll(is_so)

        await configure(server, MARKET, other)
        await until(2, 2)
        await configure(server, MARKET, replace(other, url="wss://e.f/"))
        await until(2, 3)
        await configure(server, MARKET)
        await until(1, 3)
        assert (sockets.opened[-1], sockets.closed) == ("wss://e.f/", ["wss://c.d/", "wss://e.f/"])


async def test_a_failure_is_told_until_it_is_over() -> None:
    sockets = SocketServer([Unavailable("Away.", why="it answered 503")] * 100)
    async with open_platform(events=[KEEP], sources=[MARKET]) as server, listen(server, sockets):
        log = EventLog(server.runtime, server.store, server.world.clock, server.bus)

        async def is_failing() -> bool:
            [report] = await log.list_sources()
            return report.status is EventSourceStatus.FAILING

        await poll(is_failing)
        [report] = await log.list_sources()
        assert report.state is not None and "it answered 503" in report.state.failure


async def test_a_server_that_sends_without_end_is_disconnected_also_where_nobody_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("denizen.engine.event_bus.sockets.MAX_SENT_PER_MINUTE", 20)

    def stay_away(_failures: int, _chance: float) -> float:
        return math.inf

    monkeypatch.setattr("denizen.engine.event_bus.sockets.plan_reconnect_s", stay_away)
    sockets = SocketServer([[{"id": n} for n in range(21)]])
    events = [replace(KEEP, on=("websocket.other",))]
    async with open_platform(events=events, sources=[MARKET]) as server, listen(server, sockets):
        log = EventLog(server.runtime, server.store, server.world.clock, server.bus)

        async def is_failing() -> bool:
            [report] = await log.list_sources()
            return report.state is not None and "more than 20 messages" in report.state.failure

        await poll(is_failing)
        assert sockets.closed == [MARKET.url] and await list_events(server) == []


def test_tries_become_rarer_and_are_spread() -> None:
    assert [plan_reconnect_s(n, 1.0) for n in (1, 2, 4, 6, 99)] == [1.0, 2.0, 15.0, 300.0, 300.0]
    assert plan_reconnect_s(1, 0.0) == 0.5
