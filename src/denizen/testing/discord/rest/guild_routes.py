"""Routes of guilds: the guild itself, members, roles, bans, emojis, stickers, scheduled events."""

from __future__ import annotations

import re
from datetime import timedelta

from denizen.testing.discord.payloads.guilds import (
    EXTERNAL,
    STAGE,
    VOICE,
    ban_payload,
    emoji_payload,
    guild_payload,
    role_payload,
    scheduled_event_payload,
    sticker_payload,
)
from denizen.testing.discord.payloads.people import member_payload
from denizen.testing.discord.rest.call import CreatedResponse, Form, RestCall, RestRoute
from denizen.testing.discord.state.access import can_see, require_guild_permission
from denizen.testing.discord.state.channels import ChannelKind, EventStatus, SimChannel, SimScheduledEvent
from denizen.testing.discord.state.errors import missing_access, unknown
from denizen.testing.discord.state.guilds import RoleOptions, SimGuild, SimRole, find_members
from denizen.testing.discord.state.messages import SimEmoji
from denizen.testing.discord.state.people import GatewayIntent
from denizen.testing.discord.state.permissions import P

_GUILD = "/guilds/{guild_id}"
_MEMBERS = f"{_GUILD}/members"
_ROLES = f"{_GUILD}/roles"
_MAX_DELETED_S = 7 * 86400


def read(call: RestCall) -> object:
    guild = call.guild()
    counts = {"approximate_member_count": len(guild.members), "approximate_presence_count": len(guild.members)}
    wants = call.switch("with_counts")
    return guild_payload(guild) | (counts if wants else {})


def modify(call: RestCall) -> object:
    guild, form = call.guild(), call.form
    name = form.text("name", 100)
    form.check()
    call.acts.guilds.rename(call.bot, guild, name or guild.name)
    return guild_payload(guild)


def read_member(call: RestCall) -> object:
    return member_payload(call.store.get_member(call.guild(), call.id("user_id")))


def list_members(call: RestCall) -> object:
    """Lists members by id, only for applications with the members intent enabled (50001)."""
    guild = call.guild()
    if not call.application.intents & GatewayIntent.GUILD_MEMBERS:
        raise missing_access()
    limit, after = call.number("limit", 1, 1, 1000), call.snowflake("after") or 0
    found = sorted((each for each in guild.members.values() if each.user.id > after), key=lambda each: each.user.id)
    return [member_payload(each) for each in found[:limit]]


def search_members(call: RestCall) -> object:
    limit = call.number("limit", 1, 1, 1000)
    return [member_payload(each) for each in find_members(call.guild(), call.query.get("query", ""), limit)]


def modify_member(call: RestCall) -> object:
    guild, form = call.guild(), call.form
    member = call.store.get_member(guild, call.id("user_id"))
    nick, until = form.text("nick", 32), form.moment("communication_disabled_until")
    roles = form.snowflakes("roles")
    form.check()
    if form.has("nick"):
        call.acts.guilds.rename_member(call.bot, guild, member, nick)
    if form.has("communication_disabled_until"):
        call.acts.guilds.time_out(call.bot, guild, member, until)
    if form.given("roles"):
        removable = [each for each in member.roles if not guild.roles[each].managed]
        for role_id in [each for each in removable if each not in roles]:
            call.acts.guilds.give_role(call.bot, guild, member, guild.roles[role_id], given=False)
        for role_id in [each for each in roles if each not in member.roles]:
            call.acts.guilds.give_role(call.bot, guild, member, _role(guild, role_id), given=True)
    return member_payload(member)


def modify_me(call: RestCall) -> object:
    guild, form = call.guild(), call.form
    nick = form.text("nick", 32)
    form.check()
    member = guild.members[call.bot.id]
    if form.has("nick"):
        call.acts.guilds.rename_member(call.bot, guild, member, nick)
    return member_payload(member)


def kick(call: RestCall) -> object:
    guild = call.guild()
    call.acts.guilds.kick(call.bot, guild, call.store.get_member(guild, call.id("user_id")))
    return None


def give_role(call: RestCall) -> object:
    return _give(call, given=True)


def take_role(call: RestCall) -> object:
    return _give(call, given=False)


def _give(call: RestCall, *, given: bool) -> None:
    guild = call.guild()
    member = call.store.get_member(guild, call.id("user_id"))
    call.acts.guilds.give_role(call.bot, guild, member, _role(guild, call.id("role_id")), given=given)


def _role(guild: SimGuild, role_id: int) -> SimRole:
    role = guild.roles.get(role_id)
    if role is None:
        raise unknown("Role")
    return role


def list_roles(call: RestCall) -> object:
    return [role_payload(each) for each in call.guild().roles.values()]


def read_role(call: RestCall) -> object:
    return role_payload(_role(call.guild(), call.id("role_id")))


def create_role(call: RestCall) -> object:
    guild, form = call.guild(), call.form
    name, options = form.text("name", 100), _role_options(form)
    form.check()
    return role_payload(call.acts.guilds.create_role(call.bot, guild, name or "new role", **options))


def modify_role(call: RestCall) -> object:
    guild, form = call.guild(), call.form
    name, options = form.text("name", 100), _role_options(form)
    form.check()
    role = _role(guild, call.id("role_id"))
    return role_payload(call.acts.guilds.edit_role(call.bot, guild, role, name, **options))


def delete_role(call: RestCall) -> object:
    guild = call.guild()
    call.acts.guilds.delete_role(call.bot, guild, _role(guild, call.id("role_id")))
    return None


def _role_options(form: Form) -> RoleOptions:
    options: RoleOptions = {}
    permissions, color = form.permissions("permissions"), form.integer("color", 0, 0xFFFFFF)
    colors = form.inner("colors")
    if color is None and colors is not None:
        color = colors.integer("primary_color", 0, 0xFFFFFF)
    if permissions is not None:
        options["permissions"] = permissions
    if color is not None:
        options["color"] = color
    if form.given("hoist"):
        options["hoist"] = form.flag("hoist")
    if form.given("mentionable"):
        options["mentionable"] = form.flag("mentionable")
    return options


def list_bans(call: RestCall) -> object:
    guild = call.guild()
    require_guild_permission(call.store, call.bot, guild, P.BAN_MEMBERS)
    limit, after, before = call.number("limit", 1000, 1, 1000), call.snowflake("after") or 0, call.snowflake("before")
    found = sorted((each for each in guild.bans.values() if each.user.id > after), key=lambda each: each.user.id)
    if before is not None:
        found = [each for each in found if each.user.id < before][-limit:]
    return [ban_payload(each.user, each.reason) for each in found[:limit]]


def read_ban(call: RestCall) -> object:
    guild = call.guild()
    require_guild_permission(call.store, call.bot, guild, P.BAN_MEMBERS)
    ban = guild.bans.get(call.id("user_id"))
    if ban is None:
        raise unknown("Ban")
    return ban_payload(ban.user, ban.reason)


def ban(call: RestCall) -> object:
    """Bans a member. How much to delete comes in the body, or as discord.py sends it, in the query."""
    form = call.form
    seconds = form.integer("delete_message_seconds", 0, _MAX_DELETED_S)
    form.check()
    seconds = call.number("delete_message_seconds", seconds or 0, 0, _MAX_DELETED_S)
    user = call.store.get_user(call.id("user_id"))
    call.acts.guilds.ban(call.bot, call.guild(), user, call.reason, timedelta(seconds=seconds))
    return None


def unban(call: RestCall) -> object:
    call.acts.guilds.unban(call.bot, call.guild(), call.id("user_id"))
    return None


def list_stickers(call: RestCall) -> object:
    return [sticker_payload(each) for each in call.guild().expressions.stickers.values()]


def read_sticker(call: RestCall) -> object:
    for guild in call.store.guilds.values():
        if sticker := guild.expressions.stickers.get(call.id("sticker_id")):
            return sticker_payload(sticker)
    raise unknown("Sticker")


GUILD_ROUTES = (
    RestRoute("GET", _GUILD, read),
    RestRoute("PATCH", _GUILD, modify),
    RestRoute("GET", f"{_MEMBERS}/search", search_members),
    RestRoute("PATCH", f"{_MEMBERS}/@me", modify_me),
    RestRoute("GET", _MEMBERS, list_members),
    RestRoute("GET", f"{_MEMBERS}/{{user_id}}", read_member),
    RestRoute("PATCH", f"{_MEMBERS}/{{user_id}}", modify_member),
    RestRoute("DELETE", f"{_MEMBERS}/{{user_id}}", kick),
    RestRoute("PUT", f"{_MEMBERS}/{{user_id}}/roles/{{role_id}}", give_role),
    RestRoute("DELETE", f"{_MEMBERS}/{{user_id}}/roles/{{role_id}}", take_role),
    RestRoute("GET", _ROLES, list_roles),
    RestRoute("POST", _ROLES, create_role),
    RestRoute("GET", f"{_ROLES}/{{role_id}}", read_role),
    RestRoute("PATCH", f"{_ROLES}/{{role_id}}", modify_role),
    RestRoute("DELETE", f"{_ROLES}/{{role_id}}", delete_role),
    RestRoute("GET", f"{_GUILD}/bans", list_bans),
    RestRoute("GET", f"{_GUILD}/bans/{{user_id}}", read_ban),
    RestRoute("PUT", f"{_GUILD}/bans/{{user_id}}", ban),
    RestRoute("DELETE", f"{_GUILD}/bans/{{user_id}}", unban),
    RestRoute("GET", f"{_GUILD}/stickers", list_stickers),
    RestRoute("GET", "/stickers/{sticker_id}", read_sticker),
)


_EVENTS = "/guilds/{guild_id}/scheduled-events"
_EVENT = f"{_EVENTS}/{{event_id}}"
_KINDS = {VOICE: ChannelKind.VOICE, STAGE: ChannelKind.STAGE}


def list_events(call: RestCall) -> object:
    """Lists the events. Those in channels are shown only to bots that see the channel."""
    events = call.guild().events.values()
    return [scheduled_event_payload(e) for e in events if e.channel is None or can_see(call.store, call.bot, e.channel)]


def read_event(call: RestCall) -> object:
    return scheduled_event_payload(_event(call))


def create_event(call: RestCall) -> object:
    guild, form = call.guild(), call.form
    name, description = form.text("name", 100, required=True) or "", form.text("description", 1000)
    starts, ends = form.moment("scheduled_start_time"), form.moment("scheduled_end_time")
    channel, location = _where(form, guild)
    if starts is None or starts <= call.store.clock.now():
        form.fault("scheduled_start_time", "GUILD_SCHEDULED_EVENT_SCHEDULE_PAST", "Cannot schedule event in the past.")
    elif ends is not None and ends <= starts:
        form.fault("scheduled_end_time", "GUILD_SCHEDULED_EVENT_END_BEFORE_START", "Cannot end before it starts.")
    if channel is None and ends is None:
        form.fault("scheduled_end_time", "BASE_TYPE_REQUIRED", "This field is required")
    form.check()
    event = SimScheduledEvent(
        id=call.store.ids.fresh(),
        guild_id=guild.id,
        name=name,
        starts_at=starts or call.store.clock.now(),
        creator=call.bot,
        ends_at=ends,
        description=description,
        channel=channel,
        location=location,
    )
    return scheduled_event_payload(call.acts.events.create(call.bot, guild, event))


def modify_event(call: RestCall) -> object:
    """Changes only the status: cancelled, active, completed."""
    event, form = _event(call), call.form
    status = form.integer("status", 1, 4)
    form.check()
    if status is not None:
        call.acts.events.set_status(call.bot, call.guild(), event, EventStatus(status))
    return scheduled_event_payload(event)


def delete_event(call: RestCall) -> object:
    call.acts.events.delete(call.bot, call.guild(), _event(call))
    return None


def _where(form: Form, guild: SimGuild) -> tuple[SimChannel | None, str]:
    """Returns the channel, or the location as text."""
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


def _event(call: RestCall) -> SimScheduledEvent:
    event = call.guild().events.get(call.id("event_id"))
    if event is None or (event.channel is not None and not can_see(call.store, call.bot, event.channel)):
        raise unknown("Guild Scheduled Event")
    return event


EVENT_ROUTES = (
    RestRoute("GET", _EVENTS, list_events),
    RestRoute("POST", _EVENTS, create_event),
    RestRoute("GET", _EVENT, read_event),
    RestRoute("PATCH", _EVENT, modify_event),
    RestRoute("DELETE", _EVENT, delete_event),
)


_EMOJIS = "/guilds/{guild_id}/emojis"
_EMOJI = f"{_EMOJIS}/{{emoji_id}}"
_NAME = re.compile(r"\w{2,32}", re.ASCII)
_PICTURE = re.compile(r"data:image/(png|jpe?g|gif|webp);base64,[A-Za-z0-9+/]+=*")
_MAX_PICTURE_CHARS = 256 * 1024 * 4 // 3 + 64


def list_emojis(call: RestCall) -> object:
    return [emoji_payload(each) for each in call.guild().expressions.emojis.values()]


def read_emoji(call: RestCall) -> object:
    return emoji_payload(_emoji(call))


def create_emoji(call: RestCall) -> object:
    guild, form = call.guild(), call.form
    name, picture = form.text("name", 32, required=True) or "", form.text("image", required=True) or ""
    kind = _PICTURE.fullmatch(picture)
    if not _NAME.fullmatch(name):
        form.fault("name", "STRING_TYPE_REGEX", "String value did not match validation regex.")
    if kind is None:
        form.fault("image", "IMAGE_INVALID", "Invalid image data")
    if len(picture) > _MAX_PICTURE_CHARS:
        form.fault("image", "BINARY_TYPE_MAX_SIZE", "File cannot be larger than 256.0 kb.")
    form.check()
    animated = kind is not None and kind[1] == "gif"
    return CreatedResponse(emoji_payload(call.acts.guilds.create_emoji(call.bot, guild, name, animated=animated)))


def delete_emoji(call: RestCall) -> object:
    call.acts.guilds.delete_emoji(call.bot, call.guild(), _emoji(call))
    return None


def _emoji(call: RestCall) -> SimEmoji:
    emoji = call.guild().expressions.emojis.get(call.id("emoji_id"))
    if emoji is None:
        raise unknown("Emoji")
    return emoji


EMOJI_ROUTES = (
    RestRoute("GET", _EMOJIS, list_emojis),
    RestRoute("POST", _EMOJIS, create_emoji),
    RestRoute("GET", _EMOJI, read_emoji),
    RestRoute("DELETE", _EMOJI, delete_emoji),
)
