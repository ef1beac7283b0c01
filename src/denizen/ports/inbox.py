"""The ports of the inbox and the outbox: received messages, read cursors, allowlists and deliveries. Part of a unit of
work.

The inbox records which turn took which message and how far each room was read; the outbox records what an agent owes or
has sent. Together they make sure that each reply happens exactly once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from denizen.domain.delivery import Delivery
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.record import record

COMMAND = "command"
"""The refusal of a message that was a command: it was run, and its reply is no turn."""


@record
class MessageClaim:
    """A decision about a message: a turn answers it, or `refusal` is the code that says why none does."""

    agent: AgentName
    platform: str
    post_id: str
    turn_id: TurnId | None = None
    refusal: str = ""


class AllowedKind(StrEnum):
    """The kinds of entries in an allowlist."""

    USER = "user"
    ROLE = "role"


class InboxRepository(Protocol):
    """The decisions, read cursors, followed threads, allowlists and bot-reply counters of agents."""

    async def claim(self, claims: Sequence[MessageClaim], *, now: datetime) -> Sequence[MessageClaim]:
        """Adds the claims whose message nobody has claimed for that agent yet, and returns these."""
        ...

    async def find_claims(
        self, agent: AgentName, platform: str, post_ids: Collection[str]
    ) -> Mapping[str, MessageClaim]:
        """Returns claims by post id; posts without a claim are missing."""
        ...

    async def list_cursors(self, agent: AgentName, platform: str) -> Mapping[str, str]:
        """Returns, for each room id, the newest post that was decided about."""
        ...

    async def put_cursors(self, agent: AgentName, platform: str, positions: Mapping[str, str]) -> None:
        """Moves the cursors of rooms. A cursor never goes back."""
        ...

    async def follow(self, agent: AgentName, platform: str, thread: str, *, now: datetime) -> None: ...

    async def unfollow(self, agent: AgentName, platform: str, thread: str) -> None: ...

    async def list_followed(self, agent: AgentName, platform: str) -> frozenset[str]: ...

    async def allow(
        self, agent: AgentName, platform: str, kind: AllowedKind, key: str, *, by: str, now: datetime
    ) -> None: ...

    async def disallow(self, agent: AgentName, platform: str, kind: AllowedKind, key: str) -> bool:
        """Removes the entry. False when it was not there."""
        ...

    async def list_allowed(self, agent: AgentName, platform: str, kind: AllowedKind) -> frozenset[str]: ...

    async def take_bot_reply(self, platform: str, room: str, *, limit: int | None = None) -> bool:
        """Counts one more bot message in a row. False, and nothing is counted, when `limit` is reached."""
        ...

    async def give_back_bot_reply(self, platform: str, room: str) -> None:
        """Takes one off the count, since the reply did not come about. Never below 0."""
        ...

    async def reset_bot_replies(self, platform: str, room: str) -> None: ...

    async def count_bot_replies(self, platform: str, room: str) -> int: ...


class OutboxRepository(Protocol):
    """The deliveries. Their files are stored until the delivery is final, and are then dropped."""

    async def add(self, deliveries: Sequence[Delivery]) -> None:
        """Adds the deliveries. An id that exists is left as it is."""
        ...

    async def update(self, delivery: Delivery) -> None:
        """Writes state, platform id, attempts, failure and content. A final state drops the files."""
        ...

    async def get(self, delivery_id: str) -> Delivery:
        """Returns the delivery. Raises NotFound."""
        ...

    async def list_due(self, agent: AgentName, platform: str, *, limit: int = 100) -> Sequence[Delivery]:
        """Returns PENDING and SENDING deliveries in the order in which they were added, without previews; reactions
        come after all messages.
        """
        ...

    async def list_for_turn(self, turn_id: TurnId) -> Sequence[Delivery]:
        """Returns the deliveries of a turn, by kind and position."""
        ...

    async def list_open_previews(self, agent: AgentName, platform: str) -> Sequence[Delivery]:
        """Returns previews that were begun and are neither WITHDRAWN nor FAILED."""
        ...

    async def find_by_platform_id(self, platform: str, platform_id: str) -> Delivery | None:
        """Returns the delivery that became this message."""
        ...

    async def find_sent(self, platform: str, post_ids: Collection[str]) -> frozenset[str]:
        """Returns those of these messages that a delivery became."""
        ...
