"""Sources that those who manage a community add for it alone, inside what the operator allows.

Whoever calls has checked that the person manages the community (`engine/users/managed_guilds`). The id of such a
source begins with the community's, so that it collides with nobody's; it reads what is public on the web, or channels
of the community, and never anything of this machine. Each change is in the audit log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import count

import anyio

from denizen.domain.audit import AuditEvent, AuditKind
from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput, LimitExceeded, NotFound
from denizen.domain.json import Json
from denizen.domain.location import SourceKind, is_on_this_machine, read_location
from denizen.domain.principal import Principal
from denizen.domain.rate_limit import HOUR_S, RateLimit
from denizen.domain.record import record
from denizen.domain.room import RoomKind
from denizen.domain.source import GuildSourceLimits, Source, SourceChange, name_source
from denizen.engine.configuration.guild_settings import name_guild
from denizen.engine.intake.rate_limiter import RateLimiter, rate_error
from denizen.engine.knowledge.sources import SourceCatalog, SourceListing
from denizen.engine.knowledge.sync import KnowledgeSync
from denizen.ports.channel import Membership
from denizen.ports.source import ReadingProgress
from denizen.ports.store import Store

KINDS = (SourceKind.SITEMAP, SourceKind.GIT, SourceKind.ARCHIVE)
CHANGES = RateLimit(20, HOUR_S)
"""How often sources of one community may be added and removed: each change makes a new snapshot."""
READ_AGAIN = timedelta(minutes=1)
KNOWN_RUNS = 20


@record
class GuildSource:
    """A source that is for one community. `progress` tells how far it is while it is read."""

    listing: SourceListing
    progress: ReadingProgress | None = None

    @property
    def source(self) -> Source:
        return self.listing.source

    @property
    def size_bytes(self) -> int:
        state = self.listing.state
        return state.taken.size_bytes if state and state.taken else 0


class GuildSources:
    """One for a process. `limits` is asked each time."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        catalog: SourceCatalog,
        sync: KnowledgeSync,
        limits: Callable[[], GuildSourceLimits],
        *,
        platform: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._catalog = catalog
        self._sync = sync
        self._limits = limits
        self._platform = platform
        self._rates = RateLimiter(store, clock)
        self._adding = anyio.Lock()

    @property
    def limits(self) -> GuildSourceLimits:
        return self._limits()

    async def list_for(self, guild: str) -> Sequence[GuildSource]:
        """Returns the sources that are for this community alone, by id, whoever added them."""
        running: dict[str, ReadingProgress] = {}
        for run in await self._sync.list_runs(limit=KNOWN_RUNS):
            if run.ended_at is None:
                running.update(dict.fromkeys(run.sources, ReadingProgress("waiting")))
                running.update(self._sync.progress(run.id))
        return [
            GuildSource(each, running.get(each.source.id))
            for each in await self._catalog.list_known()
            if guild and each.source.guild == guild
        ]

    async def add(self, by: Principal, membership: Membership, wanted: SourceChange) -> Source:
        """Adds a source and starts reading it. Of `wanted`, the location, the kind, the label, the branch and the
        content path count.

        Raises LimitExceeded for one too many, InvalidInput for what cannot be a source of a community, and Conflict for
        a folder that is taken.
        """
        kind, location = read_location(wanted.location or "", wanted.kind)
        await self._check_place(kind, location, membership)
        guild = membership.community
        async with self._adding:
            listed = [each.source for each in await self.list_for(guild)]
            most = self.limits.sources
            if sum(each.is_made_by_guild for each in listed) >= most:
                raise LimitExceeded(
                    f"This server may have {most} sources of its own." if most else "Servers add no sources here.",
                    code="guild_sources_full",
                    why="Whoever runs Denizen has set that.",
                    fix="Remove one first, or ask them." if most else "Ask whoever runs Denizen.",
                )
            await self._count_change(guild)
            name = _choose_name(location, guild, listed)
            given = SourceChange(
                kind=kind,
                label=wanted.label,
                branch=wanted.branch,
                content_path=wanted.content_path,
                output_path=name,
                guild=guild,
            )
            source = await self._catalog.add(location, given, source_id=f"{guild}-{name}", is_made_by_guild=True)
            await self._write_down(by, source, "add_source")
        await self._sync.ask(source.id)
        return source

    async def read(self, guild: str, source_id: str) -> None:
        """Starts reading a source. Raises NotFound, LimitExceeded within a minute after the last time."""
        found = await self._get(guild, source_id)
        state, now = found.listing.state, self._clock.now()
        if state is not None and state.tried_at is not None and now - state.tried_at < READ_AGAIN:
            raise LimitExceeded("It was read a moment ago.", code="source_read_often", fix="Wait a minute.")
        await self._sync.ask(source_id)

    async def remove(self, by: Principal, guild: str, source_id: str) -> None:
        """Removes a source with everything that was read of it. Raises NotFound."""
        found = await self._get(guild, source_id)
        await self._count_change(guild)
        await self._catalog.remove(found.source.id)
        await self._write_down(by, found.source, "remove_source")

    async def _get(self, guild: str, source_id: str) -> GuildSource:
        """Returns a source that the community has made itself."""
        for each in await self.list_for(guild):
            if each.source.id == source_id and each.source.is_made_by_guild:
                return each
        raise NotFound("This server has no such source of its own.", code="source_not_found", fix="Look at the list.")

    async def _check_place(self, kind: SourceKind, location: str, membership: Membership) -> None:
        if kind not in KINDS:
            raise _refuse("A server has no sources of this kind.", "Name a sitemap, a repository or a channel.")
        if kind is SourceKind.ARCHIVE:
            platform, _, room_id = location.partition(":")
            async with self._store.work(write=False) as work:
                room = await work.archive.find_room(platform, room_id)
            is_here = room is not None and (room.platform, room.guild) == (self._platform, membership.community)
            if room is None or not is_here or room.id not in membership.rooms or room.kind is RoomKind.THREAD:
                raise _refuse("There is no such channel of this server that you can read.", "Give the channel's link.")
        elif not location.startswith("https://") or is_on_this_machine(location):
            raise _refuse("Only public addresses with https:// are read for a server.", "Write such an address.")

    async def _count_change(self, guild: str) -> None:
        excess = await self._rates.take(f"guild sources\x00{self._platform}:{guild}", [CHANGES])
        if excess is not None:
            raise rate_error(excess)

    async def _write_down(self, by: Principal, source: Source, done: str) -> None:
        now, subject = self._clock.now(), name_guild(self._platform, source.guild)
        fields: list[Json] = ["sources"]
        details: dict[str, Json] = {
            "done": done,
            "fields": fields,
            "source": source.id,
            "kind": source.kind.value,
            "location": source.location,
        }
        async with self._store.work() as work:
            await work.audit.add([AuditEvent(AuditKind.SETTINGS, now, by.key, subject, details)])


def _choose_name(location: str, guild: str, listed: Sequence[Source]) -> str:
    """Returns the first name for which neither the id nor the folder is taken in the community."""
    ids, folders = {each.id for each in listed}, {each.folder.rpartition("/")[2] for each in listed}
    plain = name_source(location)
    names = (plain if number == 1 else f"{plain}-{number}" for number in count(1))
    return next(name for name in names if f"{guild}-{name}" not in ids and name not in folders)


def _refuse(message: str, fix: str) -> InvalidInput:
    return InvalidInput(message, code="source_invalid", fix=fix, key="location")
