"""Scheduled events."""

from __future__ import annotations

from denizen.testing.discord.payloads.channels import id_or_none
from denizen.testing.discord.payloads.people import Payload, user_payload
from denizen.testing.discord.state.channels import ChannelKind
from denizen.testing.discord.state.events import ScheduledEvent
from denizen.testing.discord.state.snowflakes import stamp, stamp_or_none

STAGE, VOICE, EXTERNAL = 1, 2, 3
"""Where events take place, as Discord numbers it."""


def event_payload(event: ScheduledEvent) -> Payload:
    kind = EXTERNAL
    if event.channel is not None:
        kind = STAGE if event.channel.kind is ChannelKind.STAGE else VOICE
    return {
        "id": str(event.id),
        "guild_id": str(event.guild_id),
        "name": event.name,
        "description": event.description,
        "channel_id": id_or_none(event.channel.id if event.channel else None),
        "creator_id": str(event.creator.id),
        "creator": user_payload(event.creator),
        "image": None,
        "scheduled_start_time": stamp(event.starts_at),
        "scheduled_end_time": stamp_or_none(event.ends_at),
        "status": int(event.status),
        "entity_type": kind,
        "entity_id": None,
        "recurrence_rule": None,
        "user_count": 0,
        "privacy_level": 2,
        "guild_scheduled_event_exceptions": [],
        "entity_metadata": {"location": event.location} if event.channel is None else None,
    }
