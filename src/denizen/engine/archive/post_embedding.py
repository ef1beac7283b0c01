"""Makes the embeddings of posts in the background, a few at a time.

It takes half of a processor at most, and forgets what nobody searches any more. `lookup` finds posts by them. The store
removes an embedding with its post, whoever changes or removes that.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from denizen.domain.archiving import ArchivePolicy, OptOuts
from denizen.domain.clock import Clock
from denizen.domain.record import record
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.ports.store import Store

EMBEDDED_AT_ONCE = 16
EMBEDDED_CHARS = 1500
REMOVED_AT_ONCE = 500

NOW_S = 0.05
"""At least between two batches, so that others get to write in between."""
SOON_S = 5.0
"""While nothing is missing."""
LATER_S = 60.0
"""While the embedder does not answer."""

_log = logging.getLogger("denizen.archive")

Sleep = Callable[[float], Awaitable[None]]


class PostEmbedder:
    """One for a process. `policy` is asked each time: it may change while Denizen runs."""

    def __init__(
        self,
        store: Store,
        embedder: BudgetedEmbedder,
        policy: Callable[[], ArchivePolicy],
        clock: Clock,
        *,
        sleep: Sleep = anyio.sleep,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._policy = policy
        self._clock = clock
        self._sleep = sleep
        self._tidy: str | None = None

    async def keep_up(self) -> None:
        """Until it is cancelled: makes the vectors that are missing, and rests as long as that took."""
        while True:
            began_s = self._clock.monotonic_s()
            rest_s = await self.do_some()
            await self._sleep(max(rest_s, self._clock.monotonic_s() - began_s))

    async def do_some(self) -> float:
        """One batch. In how many seconds there may be more to do."""
        policy, model = self._policy(), self._embedder.model
        if not policy.embeddings:
            return await self._tidy_up("")
        if not policy.enabled or not model:
            return SOON_S
        async with self._store.work(write=False) as work:
            missing = await work.post_embeddings.find_missing(model, limit=EMBEDDED_AT_ONCE)
        if missing.is_end:
            return await self._tidy_up(model)
        embedded = await self._embedder.embed_any_texts(
            # Half a surrogate pair cannot be sent anywhere.
            [post.text[:EMBEDDED_CHARS].encode(errors="replace").decode() for post in missing.posts]
        )
        if embedded is None:
            return LATER_S
        if embedded.model == model:  # it may have been replaced just now
            async with self._store.work() as work:
                await work.post_embeddings.put(missing, embedded.vectors)
        return NOW_S

    async def count(self) -> int:
        """Posts that are found by meaning now; 0 without an embedder."""
        model = self._embedder.model
        async with self._store.work(write=False) as work:
            return await work.post_embeddings.count(model) if model and self._policy().embeddings else 0

    async def _tidy_up(self, model: str) -> float:
        """Without those of other models, once for each model; an empty one is none."""
        if self._tidy == model:
            return SOON_S
        async with self._store.work() as work:
            gone = await work.post_embeddings.remove_others(model, limit=REMOVED_AT_ONCE)
        if not gone:
            self._tidy = model
            _log.debug("all posts are embedded" if model else "posts are not embedded")
        return NOW_S if gone else SOON_S


@record
class RoomStatus:
    """One room with what the backfill fetched of it."""

    name: str
    fetched: int
    is_complete: bool


@record
class ArchiveStatus:
    """`posts` does not count deleted ones; `embedded` are found by meaning too. `opt_outs` are those that people and
    operators stored.
    """

    is_enabled: bool
    posts: int
    embedded: int
    rooms: tuple[RoomStatus, ...]
    opt_outs: OptOuts


async def load_status(store: Store, mirror: ArchiveMirror, embedder: PostEmbedder, platform: str) -> ArchiveStatus:
    opt_outs, embedded = await mirror.load_opt_outs(platform), await embedder.count()
    async with store.work(write=False) as work:
        backfills = {row.room: row for row in await work.archive.list_backfills(platform)}
        rooms = tuple(
            RoomStatus(
                f"{room.parent_name} > {room.name}" if room.is_thread else room.name,
                backfills[room.id].fetched if room.id in backfills else 0,
                room.id in backfills and backfills[room.id].is_complete,
            )
            for room in await work.archive.list_rooms(platform)
        )
        total = await work.archive.total(platform)
    return ArchiveStatus(mirror.policy.enabled, total, embedded, rooms, opt_outs)
