"""How many messages of agents stand in a row in a room (inventory C15, C16). Shared by all accounts of a process."""

from __future__ import annotations

from denizen.ports.store import Store


class BotReplyCounter:
    """Counted in the store. What is known to be zero is not written again with every message of a human."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._quiet: set[tuple[str, str]] = set()

    async def count(self, platform: str, room: str) -> int:
        async with self._store.work(write=False) as work:
            return await work.reception.count_exchanges(platform, room)

    async def take(self, platform: str, room: str, *, limit: int | None) -> bool:
        """One more reply of an agent; False when `limit` are counted."""
        async with self._store.work() as work:
            taken = await work.reception.take_exchange(platform, room, limit=limit)
        self._quiet.discard((platform, room))
        return taken

    async def give_back(self, platform: str, room: str) -> None:
        """The reply did not come about."""
        async with self._store.work() as work:
            await work.reception.give_back_exchange(platform, room)

    async def reset(self, platform: str, room: str) -> None:
        """A human has written."""
        if (platform, room) in self._quiet:
            return
        async with self._store.work() as work:
            await work.reception.reset_exchanges(platform, room)
        self._quiet.add((platform, room))
