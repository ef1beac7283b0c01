"""Events that a guild has planned: at a place in words, or in a voice or stage channel."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from denizen.testing.discord.state.channels import Channel
from denizen.testing.discord.state.people import User


class EventStatus(IntEnum):
    SCHEDULED = 1
    ACTIVE = 2
    COMPLETED = 3
    CANCELED = 4


@dataclass(slots=True, eq=False)
class ScheduledEvent:
    """`channel` is None for one at `location`, which has an end."""

    id: int
    guild_id: int
    name: str
    starts_at: datetime
    creator: User
    ends_at: datetime | None = None
    description: str | None = None
    channel: Channel | None = None
    location: str = ""
    status: EventStatus = EventStatus.SCHEDULED
