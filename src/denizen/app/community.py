"""What the accounts of one process share: the archive, the outbox, the accounts that are connected."""

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
from denizen.engine.commands.personal_data import StoredUserData
from denizen.engine.listener.listener import SharedServices
from denizen.engine.listener.proposals import ProposalReactions
from denizen.engine.outbox.outbox import Outbox
from denizen.engine.reminders import Reminders
from denizen.engine.runtime import Runtime
from denizen.engine.services import Services


@dataclass(frozen=True, slots=True)
class Community:
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
    shared_services: SharedServices
    proposals: ProposalReactions
    reminders: Reminders


def build_community(runtime: Runtime, services: Services, channels: Channels) -> Community:
    store, clock = services.store, services.clock

    def policy() -> ArchivePolicy:
        return runtime.current.archive

    mirror = Mirror(store, policy, clock)
    backfiller, privacy = Backfiller(store, mirror, clock), Privacy(mirror, clock)
    meaning = build_meaning(runtime, store, clock)
    search = ArchiveSearch(store, mirror, meaning, lambda: runtime.current.recall.similarity)
    outbox, proposals = Outbox(runtime, store, clock, channels), ProposalReactions(mirror)
    return Community(
        channels, outbox, mirror, backfiller, Retention(store, policy, clock),
        PostMeaning(store, meaning, policy, clock), Lookup(store, channels, mirror, search), privacy,
        SharedServices(
            services=services,
            channels=channels,
            mirror=mirror,
            backfiller=backfiller,
            user_data=StoredUserData(store, mirror, privacy),
            proposals=proposals,
        ),
        proposals,
        Reminders(runtime, store, clock, channels, outbox),
    )  # fmt: skip
