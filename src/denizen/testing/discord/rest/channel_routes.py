"""Routes of channels, their overwrites, invites and webhooks."""

from __future__ import annotations

import secrets
from typing import cast

from denizen.testing.discord.payloads.channels import channel_payload, invite_payload
from denizen.testing.discord.payloads.people import webhook_payload
from denizen.testing.discord.rest.call import CreatedResponse, Form, RestCall, RestRoute
from denizen.testing.discord.state.access import can_see, is_shown, require_guild_permission, require_permission
from denizen.testing.discord.state.changes import InviteChanged, WebhooksChanged
from denizen.testing.discord.state.channels import (
    ChannelKind,
    SimChannel,
    SimForumTag,
    SimOverwrite,
    SimThreadState,
    normalize_channel_name,
)
from denizen.testing.discord.state.errors import unknown
from denizen.testing.discord.state.guilds import ChannelOptions, SimGuild
from denizen.testing.discord.state.permissions import NONE, P
from denizen.testing.discord.state.store import SimInvite, SimStore, SimWebhook

_CHANNEL = "/channels/{channel_id}"
_OVERWRITE = f"{_CHANNEL}/permissions/{{target_id}}"
_MAX_SLOWMODE_S = 21600
_MAX_TOPIC = {ChannelKind.FORUM: 4096, ChannelKind.MEDIA: 4096}


def read(call: RestCall) -> object:
    return channel_payload(call.channel(), call.bot)


def modify(call: RestCall) -> object:
    channel = call.channel()
    if channel.is_thread:
        _modify_thread(call, channel)
    else:
        _modify_channel(call, channel)
    return channel_payload(channel, call.bot)


def delete(call: RestCall) -> object:
    channel = call.channel()
    payload = channel_payload(channel, call.bot)
    call.acts.channels.delete(call.bot, channel)
    return payload


def _modify_channel(call: RestCall, channel: SimChannel) -> None:
    form = call.form
    guild = call.store.get_guild_for(channel)
    name = form.text("name", 100)
    topic = form.text("topic", _MAX_TOPIC.get(channel.kind, 1024))
    slowmode_s = form.integer("rate_limit_per_user", 0, _MAX_SLOWMODE_S)
    position = form.integer("position")
    overwrites = _read_overwrites(form)
    parent = _category(form, guild)
    tags = [_read_tag(call.store, each) for each in form.forms("available_tags", 20)]
    form.check()

    def change(target: SimChannel) -> None:
        target.name = normalize_channel_name(target.kind, name) if name else target.name
        target.settings.topic = topic if form.has("topic") else target.settings.topic
        target.settings.slowmode_s = slowmode_s if slowmode_s is not None else target.settings.slowmode_s
        target.position = position if position is not None else target.position
        target.settings.nsfw = form.flag("nsfw", default=target.settings.nsfw)
        target.parent = parent if form.has("parent_id") else target.parent
        if form.given("permission_overwrites"):
            target.overwrites = {each.id: each for each in overwrites}
        if form.given("available_tags"):
            target.settings.tags = tags
        target.settings.default_auto_archive_min = (
            form.integer("default_auto_archive_duration") or target.settings.default_auto_archive_min
        )

    call.acts.channels.modify(call.bot, channel, change)


def _modify_thread(call: RestCall, thread: SimChannel) -> None:
    form = call.form
    name = form.text("name", 100)
    slowmode_s = form.integer("rate_limit_per_user", 0, _MAX_SLOWMODE_S)
    duration = form.integer("auto_archive_duration", 60, 10080)
    tags = form.snowflakes("applied_tags")
    form.check()

    def change(target: SimChannel, state: SimThreadState) -> None:
        target.name = name or target.name
        target.settings.slowmode_s = slowmode_s if slowmode_s is not None else target.settings.slowmode_s
        state.archived = form.flag("archived", default=state.archived)
        state.locked = form.flag("locked", default=state.locked)
        state.invitable = form.flag("invitable", default=state.invitable)
        state.auto_archive_min = duration or state.auto_archive_min
        state.tags = tags if form.given("applied_tags") else state.tags

    call.acts.threads.modify(call.bot, thread, change)


def list_guild_channels(call: RestCall) -> object:
    """Returns the channels that the bot sees, and their categories."""
    shown = [each for each in call.guild().channels.values() if is_shown(call.store, call.bot, each)]
    return [channel_payload(each, call.bot) for each in shown]


def create(call: RestCall) -> object:
    guild, form = call.guild(), call.form
    name = form.text("name", 100, required=True) or ""
    kind = ChannelKind(form.integer("type") or 0)
    options: ChannelOptions = {
        "kind": kind.name.lower(),
        "category": _category(form, guild),
        "overwrites": _read_overwrites(form),
        "slowmode_s": form.integer("rate_limit_per_user", 0, _MAX_SLOWMODE_S) or 0,
        "nsfw": form.flag("nsfw"),
        "tags": [str(each.text("name", 20)) for each in form.forms("available_tags", 20)],
    }
    topic = form.text("topic", _MAX_TOPIC.get(kind, 1024))
    if topic is not None:
        options["topic"] = topic
    form.check()
    return CreatedResponse(channel_payload(call.acts.channels.create(call.bot, guild, name, **options), call.bot))


def move_many(call: RestCall) -> object:
    guild = call.guild()
    require_guild_permission(call.store, call.bot, guild, P.MANAGE_CHANNELS)
    bodies = cast("list[object]", call.body) if isinstance(call.body, list) else []
    forms = [Form(each, str(index)) for index, each in enumerate(bodies)]
    for form in forms:
        channel = guild.channels.get(form.snowflake("id", required=True) or 0)
        if channel is None:
            raise unknown("Channel")
        position = form.integer("position")
        form.check()

        def change(target: SimChannel, position: int | None = position) -> None:
            target.position = target.position if position is None else position

        call.acts.channels.modify(call.bot, channel, change)
    return None


def set_overwrite(call: RestCall) -> object:
    channel, form = call.channel(), call.form
    allow, deny = form.permissions("allow") or NONE, form.permissions("deny") or NONE
    kind = form.integer("type", 0, 1)
    form.check()
    overwrite = SimOverwrite(call.id("target_id"), kind or 0, allow, deny)
    call.acts.channels.set_overwrite(call.bot, channel, overwrite)
    return None


def delete_overwrite(call: RestCall) -> object:
    call.acts.channels.delete_overwrite(call.bot, call.channel(), call.id("target_id"))
    return None


def create_invite(call: RestCall) -> object:
    channel, form = call.channel(P.CREATE_INSTANT_INVITE), call.form
    age = form.integer("max_age", 0, 604800)
    uses = form.integer("max_uses", 0, 100) or 0
    temporary = form.flag("temporary")
    form.check()
    wanted = (channel, call.bot, 86400 if age is None else age, uses, temporary)
    for each in () if form.flag("unique") else call.store.invites.values():
        if (each.channel, each.inviter, each.max_age_s, each.max_uses, each.temporary) == wanted:
            return invite_payload(call.store, each)
    code = secrets.token_urlsafe(6)
    invite = SimInvite(
        code=code,
        channel=channel,
        inviter=call.bot,
        max_age_s=86400 if age is None else age,
        max_uses=uses,
        temporary=temporary,
        created=call.store.ids.fresh(),
    )
    call.store.invites[code] = invite
    shown = invite_payload(call.store, invite)
    told = ("code", "created_at", "inviter", "max_age", "max_uses", "temporary", "uses")
    call.store.tell(InviteChanged(channel, {key: shown[key] for key in told}, "created"))
    return shown


def list_invites(call: RestCall) -> object:
    channel = call.channel(P.MANAGE_CHANNELS)
    return [invite_payload(call.store, each) for each in call.store.invites.values() if each.channel is channel]


def list_guild_invites(call: RestCall) -> object:
    guild = call.guild()
    require_guild_permission(call.store, call.bot, guild, P.MANAGE_GUILD)
    invites = [each for each in call.store.invites.values() if each.channel.guild_id == guild.id]
    return [invite_payload(call.store, each) for each in invites]


def read_invite(call: RestCall) -> object:
    return invite_payload(call.store, _invite(call))


def delete_invite(call: RestCall) -> object:
    invite = _invite(call)
    require_permission(call.store, call.bot, invite.channel, P.MANAGE_CHANNELS)
    shown = invite_payload(call.store, invite)
    del call.store.invites[invite.code]
    call.store.tell(InviteChanged(invite.channel, {"code": invite.code}, "deleted"))
    return shown


def create_webhook(call: RestCall) -> object:
    channel, form = call.channel(P.MANAGE_WEBHOOKS), call.form
    name = form.text("name", 80, required=True) or ""
    form.check()
    hook = SimWebhook(
        id=call.store.ids.fresh(),
        token=secrets.token_urlsafe(48),
        name=name,
        channel=channel,
        creator=call.bot,
        application_id=call.application.id,
    )
    call.store.webhooks[hook.id] = hook
    call.store.tell(WebhooksChanged(channel))
    return webhook_payload(hook)


def list_webhooks(call: RestCall) -> object:
    channel = call.channel(P.MANAGE_WEBHOOKS)
    return [webhook_payload(each) for each in call.store.webhooks.values() if each.channel is channel]


def list_guild_webhooks(call: RestCall) -> object:
    guild = call.guild()
    require_guild_permission(call.store, call.bot, guild, P.MANAGE_WEBHOOKS)
    return [webhook_payload(each) for each in call.store.webhooks.values() if each.channel.guild_id == guild.id]


def read_webhook(call: RestCall) -> object:
    return webhook_payload(_webhook(call))


def delete_webhook(call: RestCall) -> object:
    hook = _webhook(call)
    del call.store.webhooks[hook.id]
    call.store.tell(WebhooksChanged(hook.channel))
    return None


def _webhook(call: RestCall) -> SimWebhook:
    hook = call.store.webhooks.get(call.id("webhook_id"))
    if hook is None:
        raise unknown("Webhook")
    require_permission(call.store, call.bot, hook.channel, P.MANAGE_WEBHOOKS)
    return hook


def _invite(call: RestCall) -> SimInvite:
    invite = call.store.invites.get(call.path["code"])
    if invite is None or not can_see(call.store, call.bot, invite.channel):
        raise unknown("Invite")
    return invite


def _category(form: Form, guild: SimGuild | None) -> SimChannel | None:
    number = form.snowflake("parent_id")
    if number is None:
        return None
    parent = guild.channels.get(number) if guild else None
    if parent is None or parent.kind is not ChannelKind.CATEGORY:
        form.fault("parent_id", "CHANNEL_PARENT_INVALID", "Category does not exist")
    return parent


def _read_overwrites(form: Form) -> list[SimOverwrite]:
    return [
        SimOverwrite(
            each.snowflake("id", required=True) or 0,
            each.integer("type", 0, 1) or 0,
            each.permissions("allow") or NONE,
            each.permissions("deny") or NONE,
        )
        for each in form.forms("permission_overwrites", 100)
    ]


def _read_tag(store: SimStore, form: Form) -> SimForumTag:
    number = form.snowflake("id") or store.ids.fresh()
    return SimForumTag(number, form.text("name", 20, required=True) or "", form.flag("moderated"))


ROUTES = (
    RestRoute("GET", _CHANNEL, read),
    RestRoute("PATCH", _CHANNEL, modify),
    RestRoute("DELETE", _CHANNEL, delete),
    RestRoute("GET", "/guilds/{guild_id}/channels", list_guild_channels),
    RestRoute("POST", "/guilds/{guild_id}/channels", create),
    RestRoute("PATCH", "/guilds/{guild_id}/channels", move_many),
    RestRoute("PUT", _OVERWRITE, set_overwrite),
    RestRoute("DELETE", _OVERWRITE, delete_overwrite),
    RestRoute("POST", f"{_CHANNEL}/invites", create_invite),
    RestRoute("GET", f"{_CHANNEL}/invites", list_invites),
    RestRoute("GET", "/guilds/{guild_id}/invites", list_guild_invites),
    RestRoute("GET", "/invites/{code}", read_invite),
    RestRoute("DELETE", "/invites/{code}", delete_invite),
    RestRoute("POST", f"{_CHANNEL}/webhooks", create_webhook),
    RestRoute("GET", f"{_CHANNEL}/webhooks", list_webhooks),
    RestRoute("GET", "/guilds/{guild_id}/webhooks", list_guild_webhooks),
    RestRoute("GET", "/webhooks/{webhook_id}", read_webhook),
    RestRoute("DELETE", "/webhooks/{webhook_id}", delete_webhook),
)
