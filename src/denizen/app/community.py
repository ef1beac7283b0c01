"""What residents of platforms share in one process: the archive, the outbox, the accounts that are connected."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.app.embeddings import build_meaning
from denizen.domain.archiving import ArchivePolicy
from denizen.engine.archive.backfill import Backfiller
from denizen.engine.archive.lookup import ArchiveLookups, ArchiveSearch
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.archive.post_embedding import PostEmbedder
from denizen.engine.archive.removal import ArchiveRemoval, ArchiveRetention
from denizen.engine.loop.services import EngineServices
from denizen.engine.outbox.outbox import DeliveryOutbox
from denizen.engine.outbox.reminders import ReminderService
from denizen.engine.resident.privacy import KeptWords
from denizen.engine.resident.proposing import Proposing
from denizen.engine.resident.resident import Household
from denizen.engine.runtime.connected_accounts import ConnectedAccounts
from denizen.engine.runtime.generation import Runtime


@dataclass(frozen=True, slots=True)
class Community:
    """Made before the first generation of the configuration is built; what the archive keeps is asked of the current
    generation each time.
    """

    channels: ConnectedAccounts
    outbox: DeliveryOutbox
    mirror: ArchiveMirror
    backfiller: Backfiller
    retention: ArchiveRetention
    meaning: PostEmbedder
    lookup: ArchiveLookups
    privacy: ArchiveRemoval
    household: Household
    proposing: Proposing
    reminders: ReminderService


def build_community(runtime: Runtime, services: EngineServices, channels: ConnectedAccounts) -> Community:
    store, clock = services.store, services.clock

    def policy() -> ArchivePolicy:
        return runtime.current.archive

    mirror = ArchiveMirror(store, policy, clock)
    backfiller, privacy = Backfiller(store, mirror, clock), ArchiveRemoval(mirror, clock)
    meaning = build_meaning(runtime, store, clock)
    search = ArchiveSearch(store, mirror, meaning, lambda: runtime.current.recall.similarity)
    outbox, proposing = DeliveryOutbox(runtime, store, clock, channels), Proposing(mirror)
    return Community(
        channels,
        outbox,
        mirror,
        backfiller,
        ArchiveRetention(store, policy, clock),
        PostEmbedder(store, meaning, policy, clock),
        ArchiveLookups(store, channels, mirror, search),
        privacy,
        Household(services, channels, mirror, backfiller, KeptWords(store, mirror, privacy), proposing),
        proposing,
        ReminderService(runtime, store, clock, channels, outbox),
    )
