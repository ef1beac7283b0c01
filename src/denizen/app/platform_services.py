"""The services that all platform accounts of a process share: archive, outbox, the accounts that are connected."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.app.embeddings import build_embedder
from denizen.domain.archiving import ArchivePolicy
from denizen.engine.archive.backfill import Backfiller
from denizen.engine.archive.lookup import Lookup
from denizen.engine.archive.meaning import PostMeaning
from denizen.engine.archive.mirror import Mirror
from denizen.engine.archive.privacy import Privacy
from denizen.engine.archive.retention import Retention
from denizen.engine.archive.search import ArchiveSearch
from denizen.engine.channels import Channels
from denizen.engine.outbox.outbox import Outbox
from denizen.engine.reminders import Reminders
from denizen.engine.resident.privacy import KeptWords
from denizen.engine.resident.proposing import Proposing
from denizen.engine.resident.resident import Household
from denizen.engine.runtime import Runtime
from denizen.engine.services import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformServices:
    """The services of all accounts. They are built before the first generation of the configuration, so what the
    archive keeps is asked of the current generation each time.
    """

    channels: Channels
    outbox: Outbox
    mirror: Mirror
    backfiller: Backfiller
    retention: Retention
    post_embedder: PostMeaning
    lookup: Lookup
    privacy: Privacy
    household: Household
    proposing: Proposing
    reminders: Reminders


def build_platform_services(runtime: Runtime, services: Services, channels: Channels) -> PlatformServices:
    """Builds the services of a process."""
    store, clock = services.store, services.clock

    def policy() -> ArchivePolicy:
        return runtime.current.archive

    mirror = Mirror(store, policy, clock)
    backfiller, privacy = Backfiller(store, mirror, clock), Privacy(mirror, clock)
    embedder = build_embedder(runtime, store, clock)
    search = ArchiveSearch(store, mirror, embedder, lambda: runtime.current.recall.similarity)
    outbox, proposing = Outbox(runtime, store, clock, channels), Proposing(mirror)
    return PlatformServices(
        channels=channels,
        outbox=outbox,
        mirror=mirror,
        backfiller=backfiller,
        retention=Retention(store, policy, clock),
        post_embedder=PostMeaning(store, embedder, policy, clock),
        lookup=Lookup(store, channels, mirror, search),
        privacy=privacy,
        household=Household(services, channels, mirror, backfiller, KeptWords(store, mirror, privacy), proposing),
        proposing=proposing,
        reminders=Reminders(runtime, store, clock, channels, outbox),
    )
