"""What agents owe and sent, in the memory store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from denizen.domain.delivery import Content, Delivery, DeliveryKind, DeliveryState
from denizen.domain.ids import AgentName, TurnId
from denizen.testing.memory_unit import Unit, get_row, in_utc

_DUE = frozenset({DeliveryState.PENDING, DeliveryState.SENDING})
_GONE = frozenset({DeliveryState.WITHDRAWN, DeliveryState.FAILED})


class MemoryOutbox:
    """`denizen.ports.inbox.Outbox`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add(self, deliveries: Sequence[Delivery]) -> None:
        self._unit.check_writes()
        rows = self._unit.tables.deliveries
        for delivery in deliveries:
            if delivery.id not in rows:
                stored = replace(delivery, created_at=in_utc(delivery.created_at), content=_kept(delivery))
                self._unit.put(rows, delivery.id, stored)

    async def update(self, delivery: Delivery) -> None:
        self._unit.check_writes()
        changed = replace(
            await self.get(delivery.id),
            state=delivery.state,
            platform_id=delivery.platform_id,
            attempts=delivery.attempts,
            failure=delivery.failure,
            content=_kept(delivery),
        )
        self._unit.put(self._unit.tables.deliveries, delivery.id, changed)

    async def get(self, delivery_id: str) -> Delivery:
        return get_row(self._unit.tables.deliveries, delivery_id, "delivery")

    async def list_due(self, agent: AgentName, platform: str, *, limit: int = 100) -> Sequence[Delivery]:
        rows = self._list(
            lambda row: (
                (row.agent, row.place.platform) == (agent, platform)
                and row.state in _DUE
                and row.kind is not DeliveryKind.PREVIEW
            )
        )
        return rows[: max(limit, 0)]

    async def list_for_turn(self, turn_id: TurnId) -> Sequence[Delivery]:
        return sorted(self._list(lambda row: row.turn_id == turn_id), key=lambda row: (row.kind, row.position))

    async def list_open_previews(self, agent: AgentName, platform: str) -> Sequence[Delivery]:
        return self._list(
            lambda row: (
                (row.agent, row.place.platform) == (agent, platform)
                and row.kind is DeliveryKind.PREVIEW
                and row.state not in _GONE
            )
        )

    async def find_by_platform_id(self, platform: str, platform_id: str) -> Delivery | None:
        rows = self._list(lambda row: (row.place.platform, row.platform_id) == (platform, platform_id))
        return rows[-1] if rows and platform_id else None

    def _list(self, which: Callable[[Delivery], bool]) -> list[Delivery]:
        return [row for row in self._unit.tables.deliveries.values() if which(row)]


def _kept(delivery: Delivery) -> Content:
    """The content as it is stored; a final delivery needs no files any more."""
    return delivery.content if delivery.state in _DUE else replace(delivery.content, files=())
