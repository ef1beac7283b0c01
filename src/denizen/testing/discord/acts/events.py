"""Planning, changing and cancelling events of a guild."""

from __future__ import annotations

from denizen.testing.discord.state.access import demand, demand_in_guild
from denizen.testing.discord.state.changes import EventChanged
from denizen.testing.discord.state.channels import Channel
from denizen.testing.discord.state.events import EventStatus, ScheduledEvent
from denizen.testing.discord.state.guilds import Guild
from denizen.testing.discord.state.people import User
from denizen.testing.discord.state.permissions import P
from denizen.testing.discord.state.realm import Realm
from denizen.testing.discord.state.refusals import bad, missing_permissions

_NEXT = {
    EventStatus.SCHEDULED: (EventStatus.ACTIVE, EventStatus.CANCELED),
    EventStatus.ACTIVE: (EventStatus.COMPLETED,),
}


class Events:
    """The acts on events of one realm. Who made one may change it without the right to manage all."""

    def __init__(self, realm: Realm) -> None:
        self._realm = realm

    def create(self, actor: User, guild: Guild, event: ScheduledEvent) -> ScheduledEvent:
        self._demand(actor, guild, event.channel, P.CREATE_EVENTS)
        guild.events[event.id] = event
        self._realm.tell(EventChanged(guild, event, "created"))
        return event

    def set_status(self, actor: User, guild: Guild, event: ScheduledEvent, status: EventStatus) -> None:
        self._demand_own(actor, guild, event)
        if status not in _NEXT.get(event.status, ()):
            raise bad(180000, "Cannot update a finished event")
        event.status = status
        if status in (EventStatus.COMPLETED, EventStatus.CANCELED):
            del guild.events[event.id]
        self._realm.tell(EventChanged(guild, event, "updated"))

    def delete(self, actor: User, guild: Guild, event: ScheduledEvent) -> None:
        self._demand_own(actor, guild, event)
        del guild.events[event.id]
        self._realm.tell(EventChanged(guild, event, "deleted"))

    def _demand_own(self, actor: User, guild: Guild, event: ScheduledEvent) -> None:
        needed = P.CREATE_EVENTS if event.creator is actor else P.MANAGE_EVENTS
        self._demand(actor, guild, event.channel, needed)

    def _demand(self, actor: User, guild: Guild, channel: Channel | None, needed: P) -> None:
        if channel is None:
            demand_in_guild(self._realm, actor, guild, needed)
            return
        if channel.guild_id != guild.id:
            raise missing_permissions()
        demand(self._realm, actor, channel, needed, P.CONNECT)
