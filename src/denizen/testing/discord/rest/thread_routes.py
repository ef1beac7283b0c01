"""Routes of threads and forum posts: creating, members, lists of archived and active ones."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from denizen.testing.discord.actions.channels import ThreadPlan
from denizen.testing.discord.payloads.channels import channel_payload, thread_member_payload
from denizen.testing.discord.payloads.messages import message_payload
from denizen.testing.discord.payloads.people import Payload
from denizen.testing.discord.rest.call import CreatedResponse, Form, RestCall, RestRoute
from denizen.testing.discord.rest.message_routes import read_draft
from denizen.testing.discord.state.access import can_see
from denizen.testing.discord.state.channels import FORUMS, ChannelKind, SimChannel
from denizen.testing.discord.state.errors import unknown
from denizen.testing.discord.state.permissions import P

_CHANNEL = "/channels/{channel_id}"
_MEMBERS = f"{_CHANNEL}/thread-members"
_DURATIONS = (60, 1440, 4320, 10080)


def _plan(form: Form) -> ThreadPlan:
    name = form.text("name", 100, required=True) or ""
    duration = form.integer("auto_archive_duration")
    if duration is not None and duration not in _DURATIONS:
        form.fault("auto_archive_duration", "BASE_TYPE_CHOICES", "Value must be one of (60, 1440, 4320, 10080).")
    kind = form.integer("type", 10, 12)
    plan = ThreadPlan(
        name=name,
        private=kind in (None, 12),
        auto_archive_min=duration,
        slowmode_s=form.integer("rate_limit_per_user", 0, 21600) or 0,
        invitable=form.flag("invitable", default=True),
        tags=tuple(form.snowflakes("applied_tags")),
    )
    form.check()
    return plan


def from_message(call: RestCall) -> object:
    channel = call.channel()
    message = call.message(channel)
    thread = call.acts.threads.from_message(call.bot, channel, message, _plan(call.form))
    return CreatedResponse(channel_payload(thread, call.bot))


def create(call: RestCall) -> object:
    """Opens a thread. In a forum the body has the first message, and the answer carries it."""
    channel = call.channel()
    form = call.form
    plan = _plan(form)
    if channel.kind not in FORUMS:
        return CreatedResponse(channel_payload(call.acts.threads.bare(call.bot, channel, plan), call.bot))
    if not form.given("message"):
        form.fault("message", "BASE_TYPE_REQUIRED", "This field is required")
        form.check()
    draft = read_draft(form.fields["message"], call.files, channel, call.store.rules.content_length)
    thread, message = call.acts.threads.post(call.bot, channel, plan, draft)
    shown = message_payload(call.store, message, call.application, call.application.intents)
    return CreatedResponse(channel_payload(thread, call.bot) | {"message": shown})


def join(call: RestCall) -> object:
    call.acts.threads.join(call.bot, call.channel())
    return None


def add(call: RestCall) -> object:
    thread = call.channel()
    call.acts.threads.add_member(call.bot, thread, call.store.get_user(call.id("user_id")))
    return None


def leave(call: RestCall) -> object:
    call.acts.threads.remove_member(call.bot, call.channel(), call.bot)
    return None


def remove(call: RestCall) -> object:
    thread = call.channel()
    call.acts.threads.remove_member(call.bot, thread, call.store.get_user(call.id("user_id")))
    return None


def list_members(call: RestCall) -> object:
    thread = call.channel()
    if thread.thread is None:
        raise unknown("Channel")
    wants = call.switch("with_member")
    members = thread.thread.members.values()
    return [thread_member_payload(call.store, thread, each.user, with_member=wants) for each in members]


def read_member(call: RestCall) -> object:
    thread = call.channel()
    member = thread.thread.members.get(call.id("user_id")) if thread.thread else None
    if member is None:
        raise unknown("Member")
    return thread_member_payload(call.store, thread, member.user)


def list_active(call: RestCall) -> object:
    guild = call.guild()
    seen = [each for each in guild.threads.values() if each.thread and can_see(call.store, call.bot, each)]
    return _threads(call, [each for each in seen if each.thread and not each.thread.archived])


def list_public(call: RestCall) -> object:
    return _archived(
        call, call.channel(P.READ_MESSAGE_HISTORY), {ChannelKind.PUBLIC_THREAD, ChannelKind.ANNOUNCEMENT_THREAD}
    )


def list_private(call: RestCall) -> object:
    channel = call.channel(P.READ_MESSAGE_HISTORY, P.MANAGE_THREADS)
    return _archived(call, channel, {ChannelKind.PRIVATE_THREAD})


def list_joined_private(call: RestCall) -> object:
    return _archived(call, call.channel(P.READ_MESSAGE_HISTORY), {ChannelKind.PRIVATE_THREAD}, joined=True)


def _archived(call: RestCall, parent: SimChannel, kinds: set[ChannelKind], *, joined: bool = False) -> Payload:
    """Returns archived threads, the newest archived first; `before` is the time of archiving, for joined private
    threads an id.
    """
    guild = call.store.require_guild(parent)
    before, limit = call.query.get("before"), call.number("limit", 50, 1, 100)
    found = [
        (each.thread.archive_at, each)
        for each in guild.threads.values()
        if each.parent is parent
        and each.kind in kinds
        and each.thread
        and each.thread.archived
        and (not joined or call.bot.id in each.thread.members)
    ]
    if before is not None and before.isdigit():
        found = [(at, each) for at, each in found if each.id < int(before)]
    elif before is not None:
        found = [(at, each) for at, each in found if at < datetime.fromisoformat(before)]
    found.sort(key=lambda pair: pair[0], reverse=True)
    return _threads(call, [each for _, each in found[:limit]], has_more=len(found) > limit)


def _threads(call: RestCall, threads: Iterable[SimChannel], *, has_more: bool = False) -> Payload:
    found = list(threads)
    own = [each for each in found if each.thread and call.bot.id in each.thread.members]
    return {
        "threads": [channel_payload(each, call.bot) for each in found],
        "members": [thread_member_payload(call.store, each, call.bot) for each in own],
        "has_more": has_more,
    }


ROUTES = (
    RestRoute("POST", f"{_CHANNEL}/messages/{{message_id}}/threads", from_message),
    RestRoute("POST", f"{_CHANNEL}/threads", create),
    RestRoute("PUT", f"{_MEMBERS}/@me", join),
    RestRoute("DELETE", f"{_MEMBERS}/@me", leave),
    RestRoute("PUT", f"{_MEMBERS}/{{user_id}}", add),
    RestRoute("DELETE", f"{_MEMBERS}/{{user_id}}", remove),
    RestRoute("GET", f"{_MEMBERS}/{{user_id}}", read_member),
    RestRoute("GET", _MEMBERS, list_members),
    RestRoute("GET", "/guilds/{guild_id}/threads/active", list_active),
    RestRoute("GET", f"{_CHANNEL}/threads/archived/public", list_public),
    RestRoute("GET", f"{_CHANNEL}/threads/archived/private", list_private),
    RestRoute("GET", f"{_CHANNEL}/users/@me/threads/archived/private", list_joined_private),
)
