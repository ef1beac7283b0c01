"""The parts that keep events and act on them, in one record."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.adapters.event_sources import WebResourceReader, WebSocketConnector
from denizen.adapters.fetch import WebFetcher
from denizen.domain.record import record
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.configuration.generation import Runtime
from denizen.engine.event_bus.bus import EventBus
from denizen.engine.event_bus.log import EventLog
from denizen.engine.event_bus.polls import ResourcePoller
from denizen.engine.event_bus.sockets import SocketListener
from denizen.engine.event_bus.webhooks import WebhookIntake
from denizen.engine.listener.community_events import CommunityEvents
from denizen.engine.loop.services import EngineServices
from denizen.engine.turn import TurnRunner


@record(kw_only=True)
class EventSystem:
    """The bus with its log, and what brings events: webhooks, what happens on platforms, WebSockets and polls."""

    bus: EventBus
    log: EventLog
    webhooks: WebhookIntake
    community: CommunityEvents
    sockets: SocketListener
    poller: ResourcePoller


def build_event_system(
    runtime: Runtime, services: EngineServices, turns: TurnRunner, channels: ConnectedAccounts, mirror: ArchiveMirror
) -> EventSystem:
    store, clock = services.store, services.clock
    bus = EventBus(runtime, services, turns, channels)
    return EventSystem(
        bus=bus,
        log=EventLog(runtime, store, clock, bus),
        webhooks=WebhookIntake(runtime, clock, bus),
        community=CommunityEvents(bus, clock, mirror, channels),
        sockets=SocketListener(runtime, store, clock, bus, WebSocketConnector(_open_fetcher)),
        poller=ResourcePoller(runtime, store, clock, bus, WebResourceReader(_open_fetcher)),
    )


def _open_fetcher(private_hosts: Sequence[str]) -> WebFetcher:
    return WebFetcher(allow_private=private_hosts)
