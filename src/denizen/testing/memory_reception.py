"""Decisions about messages of a platform, positions, follows, allow lists and exchanges in the memory store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from denizen.domain.ids import AgentName
from denizen.domain.room import is_newer
from denizen.ports.inbox import AllowedKind, MessageClaim
from denizen.testing.memory_unit import Unit


class MemoryReception:
    """`denizen.ports.inbox.InboxRepository`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def claim(self, claims: Sequence[MessageClaim], *, now: datetime) -> Sequence[MessageClaim]:
        del now  # a database keeps it for its operator, here and below
        self._unit.check_writes()
        rows, added = self._unit.tables.claims, list[MessageClaim]()
        for claim in claims:
            key = (claim.agent, claim.platform, claim.post_id)
            if key not in rows:
                self._unit.put(rows, key, claim)
                added.append(claim)
        return added

    async def find_claims(
        self, agent: AgentName, platform: str, post_ids: Collection[str]
    ) -> Mapping[str, MessageClaim]:
        rows = self._unit.tables.claims
        return {key: rows[agent, platform, key] for key in post_ids if (agent, platform, key) in rows}

    async def list_cursors(self, agent: AgentName, platform: str) -> Mapping[str, str]:
        rows = self._unit.tables.positions.items()
        return {room: post for (owner, where, room), post in rows if (owner, where) == (agent, platform)}

    async def put_cursors(self, agent: AgentName, platform: str, positions: Mapping[str, str]) -> None:
        self._unit.check_writes()
        rows = self._unit.tables.positions
        for room, post in positions.items():
            key = (agent, platform, room)
            if key not in rows or is_newer(post, rows[key]):
                self._unit.put(rows, key, post)

    async def follow(self, agent: AgentName, platform: str, thread: str, *, now: datetime) -> None:
        del now
        self._unit.check_writes()
        self._unit.put(self._unit.tables.follows, (agent, platform, thread), value=True)

    async def unfollow(self, agent: AgentName, platform: str, thread: str) -> None:
        self._unit.check_writes()
        self._unit.remove(self._unit.tables.follows, (agent, platform, thread))

    async def list_followed(self, agent: AgentName, platform: str) -> frozenset[str]:
        rows = self._unit.tables.follows
        return frozenset(thread for owner, where, thread in rows if (owner, where) == (agent, platform))

    async def allow(
        self, agent: AgentName, platform: str, kind: AllowedKind, key: str, *, by: str, now: datetime
    ) -> None:
        del now
        self._unit.check_writes()
        self._unit.put(self._unit.tables.allowed, (agent, platform, kind, key), by)

    async def disallow(self, agent: AgentName, platform: str, kind: AllowedKind, key: str) -> bool:
        self._unit.check_writes()
        return self._unit.remove(self._unit.tables.allowed, (agent, platform, kind, key))

    async def list_allowed(self, agent: AgentName, platform: str, kind: AllowedKind) -> frozenset[str]:
        rows, wanted = self._unit.tables.allowed, (agent, platform, kind)
        return frozenset(key for *which, key in rows if tuple(which) == wanted)

    async def take_bot_reply(self, platform: str, room: str, *, limit: int | None = None) -> bool:
        self._unit.check_writes()
        taken = self._unit.tables.exchanges.get((platform, room), 0)
        if limit is not None and taken >= limit:
            return False
        self._unit.put(self._unit.tables.exchanges, (platform, room), taken + 1)
        return True

    async def give_back_bot_reply(self, platform: str, room: str) -> None:
        self._unit.check_writes()
        taken = self._unit.tables.exchanges.get((platform, room), 0)
        self._unit.put(self._unit.tables.exchanges, (platform, room), max(taken - 1, 0))

    async def reset_bot_replies(self, platform: str, room: str) -> None:
        self._unit.check_writes()
        self._unit.remove(self._unit.tables.exchanges, (platform, room))

    async def count_bot_replies(self, platform: str, room: str) -> int:
        return self._unit.tables.exchanges.get((platform, room), 0)
