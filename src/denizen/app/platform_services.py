"""What residents of platforms share in one process: the archive, the outbox, the accounts that are connected."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.app.embeddings import build_meaning
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


@dataclass(frozen=True, slots=True)
class PlatformServices:
    """Made before the first generation of the configuration is built; what the archive keeps is asked of the current
    generation each time.
    """

    channels: Channels
    outbox: Outbox
    mirror: Mirror
    backfiller: Backfiller
    retention: Retention
    meaning: PostMeaning
    lookup: Lookup
    privacy: Privacy
    household: Household
    proposing: Proposing
    reminders: Reminders


def build_platform_services(runtime: Runtime, services: Services, channels: Channels) -> PlatformServices:
    store, clock = services.store, services.clock

    def policy() -> ArchivePolicy:
        return runtime.current.archive

    mirror = Mirror(store, policy, clock)
    backfiller, privacy = Backfiller(store, mirror, clock), Privacy(mirror, clock)
    meaning = build_meaning(runtime, store, clock)
    search = ArchiveSearch(store, mirror, meaning, lambda: runtime.current.recall.similarity)
    outbox, proposing = Outbox(runtime, store, clock, channels), Proposing(mirror)
    return PlatformServices(
        channels, outbox, mirror, backfiller, Retention(store, policy, clock),
        PostMeaning(store, meaning, policy, clock), Lookup(store, channels, mirror, search), privacy,
        Household(services, channels, mirror, backfiller, KeptWords(store, mirror, privacy), proposing),
        proposing,
        Reminders(runtime, store, clock, channels, outbox),
    )  # fmt: skip
