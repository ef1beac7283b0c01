"""What the store keeps of receiving and delivering on a platform. Part of a unit of work.

Inbox: which message was taken by which turn, and how far each room was read. Outbox: what an agent owes or sent. Both
together make a reply happen exactly once (promise 1).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from denizen.domain.delivery import Delivery
from denizen.domain.ids import AgentName, TurnId


@dataclass(frozen=True, slots=True)
class MessageClaim:
    """A message that was decided about: a turn answers it, or `refusal` says why none does (a code)."""

    agent: AgentName
    platform: str
    post_id: str
    turn_id: TurnId | None = None
    refusal: str = ""


class AllowedKind(StrEnum):
    USER = "user"
    ROLE = "role"


class InboxRepository(Protocol):
    """Decisions and positions, per agent."""

    async def claim(self, claims: Sequence[MessageClaim], *, now: datetime) -> Sequence[MessageClaim]:
        """Adds those whose message nobody claimed for that agent yet, and returns these."""
        ...

    async def find_claims(
        self, agent: AgentName, platform: str, post_ids: Collection[str]
    ) -> Mapping[str, MessageClaim]:
        """By post id; those without a claim are missing."""
        ...

    async def list_cursors(self, agent: AgentName, platform: str) -> Mapping[str, str]:
        """Room id to the newest post that was decided about."""
        ...

    async def put_cursors(self, agent: AgentName, platform: str, positions: Mapping[str, str]) -> None:
        """A position never goes back."""
        ...

    async def follow(self, agent: AgentName, platform: str, thread: str, *, now: datetime) -> None: ...

    async def unfollow(self, agent: AgentName, platform: str, thread: str) -> None: ...

    async def list_followed(self, agent: AgentName, platform: str) -> frozenset[str]: ...

    async def allow(
        self, agent: AgentName, platform: str, kind: AllowedKind, key: str, *, by: str, now: datetime
    ) -> None: ...

    async def disallow(self, agent: AgentName, platform: str, kind: AllowedKind, key: str) -> bool:
        """False when it was not there."""
        ...

    async def list_allowed(self, agent: AgentName, platform: str, kind: AllowedKind) -> frozenset[str]: ...

    async def take_bot_reply(self, platform: str, room: str, *, limit: int | None = None) -> bool:
        """Counts one more message of agents in a row there; False, and nothing counted, when `limit` are counted."""
        ...

    async def give_back_bot_reply(self, platform: str, room: str) -> None:
        """The reply did not come about; never below 0."""
        ...

    async def reset_bot_replies(self, platform: str, room: str) -> None: ...

    async def count_bot_replies(self, platform: str, room: str) -> int: ...


class OutboxRepository(Protocol):
    """Deliveries. Files are stored until the delivery is final, and are then dropped."""

    async def add(self, deliveries: Sequence[Delivery]) -> None:
        """Those whose id exists are left as they are."""
        ...

    async def update(self, delivery: Delivery) -> None:
        """Writes state, platform id, attempts, failure and content. A final state drops the files' bytes."""
        ...

    async def get(self, delivery_id: str) -> Delivery:
        """Raises NotFound."""
        ...

    async def list_due(self, agent: AgentName, platform: str, *, limit: int = 100) -> Sequence[Delivery]:
        """PENDING and SENDING ones, previews left out, in the order in which they were added."""
        ...

    async def list_for_turn(self, turn_id: TurnId) -> Sequence[Delivery]:
        """By kind and position."""
        ...

    async def list_open_previews(self, agent: AgentName, platform: str) -> Sequence[Delivery]:
        """Previews that were begun and are neither WITHDRAWN nor FAILED."""
        ...

    async def find_by_platform_id(self, platform: str, platform_id: str) -> Delivery | None:
        """Which delivery became this message."""
        ...
