"""Routes of scheduled events."""

from __future__ import annotations

from denizen.testing.discord.payloads.events import EXTERNAL, STAGE, VOICE, event_payload
from denizen.testing.discord.rest.call import Call, Route
from denizen.testing.discord.rest.form import Form
from denizen.testing.discord.state.access import sees
from denizen.testing.discord.state.channels import Channel, ChannelKind
from denizen.testing.discord.state.events import EventStatus, ScheduledEvent
from denizen.testing.discord.state.guilds import Guild
from denizen.testing.discord.state.refusals import unknown

_EVENTS = "/guilds/{guild_id}/scheduled-events"
_EVENT = f"{_EVENTS}/{{event_id}}"
_KINDS = {VOICE: ChannelKind.VOICE, STAGE: ChannelKind.STAGE}


def list_events(call: Call) -> object:
    """Those in channels only to who sees them."""
    events = call.guild().events.values()
    return [event_payload(e) for e in events if e.channel is None or sees(call.realm, call.bot, e.channel)]


def read_event(call: Call) -> object:
    return event_payload(_event(call))


def create_event(call: Call) -> object:
    guild, form = call.guild(), call.form
    name, description = form.text("name", 100, required=True) or "", form.text("description", 1000)
    starts, ends = form.moment("scheduled_start_time"), form.moment("scheduled_end_time")
    channel, location = _where(form, guild)
    if starts is None or starts <= call.realm.clock.now():
        form.fault("scheduled_start_time", "GUILD_SCHEDULED_EVENT_SCHEDULE_PAST", "Cannot schedule event in the past.")
    elif ends is not None and ends <= starts:
        form.fault("scheduled_end_time", "GUILD_SCHEDULED_EVENT_END_BEFORE_START", "Cannot end before it starts.")
    if channel is None and ends is None:
        form.fault("scheduled_end_time", "BASE_TYPE_REQUIRED", "This field is required")
    form.check()
    event = ScheduledEvent(
        call.realm.ids.fresh(), guild.id, name, starts or call.realm.clock.now(), call.bot, ends, description,
        channel, location,
    )  # fmt: skip
    return event_payload(call.acts.events.create(call.bot, guild, event))


def modify_event(call: Call) -> object:
    """Only its status: cancelled, begun, ended."""
    event, form = _event(call), call.form
    status = form.integer("status", 1, 4)
    form.check()
    if status is not None:
        call.acts.events.set_status(call.bot, call.guild(), event, EventStatus(status))
    return event_payload(event)


def delete_event(call: Call) -> object:
    call.acts.events.delete(call.bot, call.guild(), _event(call))
    return None


def _where(form: Form, guild: Guild) -> tuple[Channel | None, str]:
    """The channel, or the place in words."""
    kind = form.integer("entity_type", 1, 3)
    if kind == EXTERNAL:
        inner = form.inner("entity_metadata")
        location = inner.text("location", 100, required=True) if inner else None
        if location is None:
            form.fault("entity_metadata", "BASE_TYPE_REQUIRED", "This field is required")
        return None, location or ""
    channel = guild.channels.get(form.snowflake("channel_id", required=True) or 0)
    if channel is None or channel.kind is not _KINDS.get(kind or 0):
        form.fault("channel_id", "CHANNEL_INVALID", "Invalid channel")
    return channel, ""


def _event(call: Call) -> ScheduledEvent:
    event = call.guild().events.get(call.id("event_id"))
    if event is None or (event.channel is not None and not sees(call.realm, call.bot, event.channel)):
        raise unknown("Guild Scheduled Event")
    return event


EVENT_ROUTES = (
    Route("GET", _EVENTS, list_events),
    Route("POST", _EVENTS, create_event),
    Route("GET", _EVENT, read_event),
    Route("PATCH", _EVENT, modify_event),
    Route("DELETE", _EVENT, delete_event),
)
