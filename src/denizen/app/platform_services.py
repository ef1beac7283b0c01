"""The services that all platform accounts of a process share: archive, outbox, the accounts that are connected."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from denizen.adapters.feeds import WebFeedReader
from denizen.app.embeddings import build_embedder
from denizen.app.knowledge import KnowledgeSystem
from denizen.domain.archiving import ArchivePolicy
from denizen.domain.prompt_messages import agent_timezone
from denizen.domain.record import record
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.archive.backfill import Backfiller
from denizen.engine.archive.browser import ArchiveBrowser
from denizen.engine.archive.lookup import ArchiveLookups, ArchiveSearch
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.archive.post_embedding import PostEmbedder
from denizen.engine.archive.removal import ArchiveRemoval, ArchiveRetention
from denizen.engine.commands.command import CommandCatalogs
from denizen.engine.commands.personal_data import StoredUserData
from denizen.engine.configuration.generation import Runtime
from denizen.engine.events.signal import Signal
from denizen.engine.feeds.catalog import FeedCatalog
from denizen.engine.feeds.poller import FeedPoller
from denizen.engine.listener.listener import SharedServices
from denizen.engine.listener.proposals import ProposalReactions
from denizen.engine.loop.services import EngineServices
from denizen.engine.outbox.outbox import DeliveryOutbox
from denizen.engine.outbox.reminders import ReminderService
from denizen.ports.fetch import VersionFetcher


@record(kw_only=True)
class PlatformServices:
    """The services of all accounts. They are built before the first generation of the configuration, so what the
    archive keeps is asked of the current generation each time.
    """

    channels: ConnectedAccounts
    outbox: DeliveryOutbox
    mirror: ArchiveMirror
    backfiller: Backfiller
    retention: ArchiveRetention
    post_embedder: PostEmbedder
    lookup: ArchiveLookups
    browser: ArchiveBrowser
    privacy: ArchiveRemoval
    shared_services: SharedServices
    reminders: ReminderService
    feeds: FeedCatalog
    feed_poller: FeedPoller


def build_platform_services(
    runtime: Runtime,
    services: EngineServices,
    channels: ConnectedAccounts,
    mirror: ArchiveMirror,
    knowledge: KnowledgeSystem,
    fetcher: VersionFetcher,
    catalogs: CommandCatalogs,
) -> PlatformServices:
    """Builds the services of a process. What people delete leaves `knowledge` as well; `fetcher` is for feeds."""
    store, clock = services.store, services.clock

    def policy() -> ArchivePolicy:
        return runtime.current.archive

    backfiller = Backfiller(store, mirror, clock)
    privacy = ArchiveRemoval(mirror, clock, on_forgotten=knowledge.withdraw)
    embedder = build_embedder(runtime, store, clock)
    search = ArchiveSearch(store, mirror, embedder, lambda: runtime.current.knowledge.recall.similarity)
    lookup = ArchiveLookups(
        store,
        channels,
        mirror,
        search,
        clock=clock,
        members=services.members,
        zone_of=lambda agent: ZoneInfo(agent_timezone(runtime.current.agent(agent))),
    )
    reader, changed = WebFeedReader(fetcher), Signal(channels.added)
    return PlatformServices(
        channels=channels,
        outbox=services.outbox,
        mirror=mirror,
        backfiller=backfiller,
        retention=ArchiveRetention(store, policy, clock, guilds=services.guilds),
        post_embedder=PostEmbedder(store, embedder, policy, clock),
        lookup=lookup,
        browser=ArchiveBrowser(store, clock, lookup, services.members, privacy),
        privacy=privacy,
        shared_services=SharedServices(
            services=services,
            channels=channels,
            mirror=mirror,
            backfiller=backfiller,
            user_data=StoredUserData(store, mirror, privacy),
            catalogs=catalogs,
            proposals=ProposalReactions(mirror, on_withdrawn=knowledge.withdraw_learned),
        ),
        reminders=ReminderService(runtime, store, clock, channels, services.outbox),
        feeds=FeedCatalog(store, clock, reader, changed),
        feed_poller=FeedPoller(
            store=store, clock=clock, reader=reader, channels=channels, outbox=services.outbox, changed=changed
        ),
    )
