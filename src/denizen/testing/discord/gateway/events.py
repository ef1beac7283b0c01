"""The gateway events that follow from a change: their names, intents, audience, and the body for each receiver.

Pure: `gateway.sessions` sends them. Some changes concern no bot. Bots learn little of channels that are hidden from
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from denizen.testing.discord.payloads.channels import channel_payload, gateway_channel_payload, thread_member_payload
from denizen.testing.discord.payloads.guilds import (
    emoji_payload,
    guild_create_payload,
    guild_payload,
    role_payload,
    scheduled_event_payload,
    sticker_payload,
    voice_state_payload,
)
from denizen.testing.discord.payloads.messages import emoji_part, gateway_message_payload, with_nonce
from denizen.testing.discord.payloads.people import Payload, member_payload, presence_payload, user_payload
from denizen.testing.discord.state import changes
from denizen.testing.discord.state.access import can_see, has_permission
from denizen.testing.discord.state.changes import SimChange
from denizen.testing.discord.state.channels import SimChannel
from denizen.testing.discord.state.clock import format_optional_timestamp
from denizen.testing.discord.state.guilds import SimGuild
from denizen.testing.discord.state.messages import SimMessage
from denizen.testing.discord.state.people import GatewayIntent, SimApplication
from denizen.testing.discord.state.permissions import DiscordPermission
from denizen.testing.discord.state.store import SimStore

ALWAYS = GatewayIntent(0)


@dataclass(frozen=True, slots=True)
class EventReceiver:
    """A receiver of events: an application with the intents of its session."""

    application: SimApplication
    intents: GatewayIntent


@dataclass(frozen=True, slots=True)
class GatewayEvent:
    """One event. It goes to sessions with one of `intents` (0: any) that `reaches` accepts. Events of a guild go to the
    guild's shard only, the others to shard 0.
    """

    name: str
    intents: GatewayIntent
    guild_id: int | None
    reaches: Callable[[EventReceiver], bool]
    body: Callable[[EventReceiver], Payload]


def in_channel(store: SimStore, channel: SimChannel) -> Callable[[EventReceiver], bool]:
    return lambda receiver: can_see(store, receiver.application.user, channel)


def in_guild(guild: SimGuild) -> Callable[[EventReceiver], bool]:
    return lambda receiver: receiver.application.id in guild.members


def either(channel: SimChannel, in_guild: GatewayIntent, direct: GatewayIntent) -> GatewayIntent:
    return direct if channel.is_dm else in_guild


def place(channel: SimChannel) -> Payload:
    """Returns `channel_id`, and `guild_id` in a guild."""
    place: Payload = {"channel_id": str(channel.id)}
    return place if channel.guild_id is None else place | {"guild_id": str(channel.guild_id)}


def member_part(store: SimStore, channel: SimChannel, user_id: int) -> Payload:
    guild = store.get_guild_for(channel)
    member = guild.members.get(user_id) if guild else None
    return {"member": member_payload(member)} if member else {}


_VERBS = {"created": "CREATE", "updated": "UPDATE", "deleted": "DELETE"}


def channel_changed(change: changes.ChannelChanged, store: SimStore) -> Iterable[GatewayEvent]:
    """Every bot of the guild is told; those that do not see the channel learn little of it."""
    channel = change.channel
    guild = store.get_guild_for(channel)
    if guild is None:
        return

    def body(receiver: EventReceiver) -> Payload:
        return gateway_channel_payload(store, channel, receiver.application.user)

    yield GatewayEvent(f"CHANNEL_{_VERBS[change.how]}", GatewayIntent.GUILDS, guild.id, in_guild(guild), body)


def thread_changed(change: changes.ThreadChanged, store: SimStore) -> Iterable[GatewayEvent]:
    thread = change.channel
    parent = thread.parent or thread

    def body(receiver: EventReceiver) -> Payload:
        payload = channel_payload(thread, receiver.application.user)
        if change.how == "deleted":
            return {key: payload[key] for key in ("id", "guild_id", "parent_id", "type")}
        return payload | {"newly_created": True} if change.how == "created" else payload

    seen = in_channel(store, parent if change.how == "deleted" else thread)
    yield GatewayEvent(f"THREAD_{_VERBS[change.how]}", GatewayIntent.GUILDS, thread.guild_id, seen, body)


def thread_members_changed(change: changes.ThreadMembersChanged, store: SimStore) -> Iterable[GatewayEvent]:
    thread = change.channel
    concerned = {each.id for each in (*change.added, *change.removed)}
    body: Payload = {
        "id": str(thread.id),
        "guild_id": str(thread.guild_id),
        "member_count": min(50, len(thread.thread.members) if thread.thread else 0),
        "added_members": [thread_member_payload(store, thread, each, with_member=True) for each in change.added],
        "removed_member_ids": [str(each.id) for each in change.removed],
    }

    def itself(receiver: EventReceiver) -> bool:
        return receiver.application.id in concerned

    def others(receiver: EventReceiver) -> bool:
        return (
            not itself(receiver)
            and bool(receiver.intents & GatewayIntent.GUILD_MEMBERS)
            and can_see(store, receiver.application.user, thread)
        )

    owner = thread.thread.owner.id if thread.thread else 0
    for user in change.added:
        if user.id != owner:
            yield GatewayEvent(
                "THREAD_CREATE",
                GatewayIntent.GUILDS,
                thread.guild_id,
                lambda receiver, new=user.id: receiver.application.id == new,
                lambda receiver: channel_payload(thread, receiver.application.user),
            )
    yield GatewayEvent(
        "THREAD_MEMBERS_UPDATE",
        GatewayIntent.GUILDS,
        thread.guild_id,
        lambda receiver: itself(receiver) or others(receiver),
        lambda _: body,
    )


def invite_changed(change: changes.InviteChanged, store: SimStore) -> Iterable[GatewayEvent]:
    channel = change.channel
    name = "INVITE_CREATE" if change.how == "created" else "INVITE_DELETE"
    body = change.invite | place(channel)
    yield GatewayEvent(name, GatewayIntent.GUILD_INVITES, channel.guild_id, managed_by(store, channel), lambda _: body)


def webhooks_changed(change: changes.WebhooksChanged, store: SimStore) -> Iterable[GatewayEvent]:
    channel = change.channel
    yield GatewayEvent(
        "WEBHOOKS_UPDATE",
        GatewayIntent.GUILD_WEBHOOKS,
        channel.guild_id,
        in_channel(store, channel),
        lambda _: place(channel),
    )


def managed_by(store: SimStore, channel: SimChannel) -> Callable[[EventReceiver], bool]:
    """Selects the bots that manage the channel, which are told of its invitations."""
    return lambda receiver: has_permission(store, receiver.application.user, channel, DiscordPermission.MANAGE_CHANNELS)


def guild_changed(change: changes.GuildChanged, _: SimStore) -> Iterable[GatewayEvent]:
    guild = change.guild
    yield GatewayEvent("GUILD_UPDATE", GatewayIntent.GUILDS, guild.id, in_guild(guild), lambda _: guild_payload(guild))


def guild_availability(change: changes.GuildAvailability, store: SimStore) -> Iterable[GatewayEvent]:
    guild = change.guild
    if guild.available:
        yield whole_guild(store, guild, in_guild(guild))
    else:
        gone = {"id": str(guild.id), "unavailable": True}
        yield GatewayEvent("GUILD_DELETE", GatewayIntent.GUILDS, guild.id, in_guild(guild), lambda _: gone)


def member_changed(change: changes.MemberChanged, store: SimStore) -> Iterable[GatewayEvent]:
    guild, member = change.guild, change.member
    own_guild = in_guild(guild)
    own = member.user.id
    if change.how == "joined":
        yield whole_guild(store, guild, lambda receiver: receiver.application.id == own)
        body = member_payload(member) | {"guild_id": str(guild.id)}
        yield GatewayEvent(
            "GUILD_MEMBER_ADD",
            GatewayIntent.GUILD_MEMBERS,
            guild.id,
            lambda receiver: receiver.application.id != own and own_guild(receiver),
            lambda _: body,
        )
    elif change.how == "updated":
        body = member_payload(member) | {"guild_id": str(guild.id)}

        def concerned(receiver: EventReceiver) -> bool:
            return own_guild(receiver) and (
                receiver.application.id == own or bool(receiver.intents & GatewayIntent.GUILD_MEMBERS)
            )

        yield GatewayEvent("GUILD_MEMBER_UPDATE", ALWAYS, guild.id, concerned, lambda _: body)
    else:
        gone = {"id": str(guild.id)}
        yield GatewayEvent(
            "GUILD_DELETE",
            GatewayIntent.GUILDS,
            guild.id,
            lambda receiver: receiver.application.id == own,
            lambda _: gone,
        )
        left = {"guild_id": str(guild.id), "user": user_payload(member.user)}
        yield GatewayEvent("GUILD_MEMBER_REMOVE", GatewayIntent.GUILD_MEMBERS, guild.id, own_guild, lambda _: left)


def ban_changed(change: changes.BanChanged, _: SimStore) -> Iterable[GatewayEvent]:
    guild = change.guild
    body = {"guild_id": str(guild.id), "user": user_payload(change.user)}
    name = "GUILD_BAN_ADD" if change.banned else "GUILD_BAN_REMOVE"
    yield GatewayEvent(name, GatewayIntent.GUILD_MODERATION, guild.id, in_guild(guild), lambda _: body)


def role_changed(change: changes.RoleChanged, _: SimStore) -> Iterable[GatewayEvent]:
    guild, role = change.guild, change.role
    body: Payload = {"guild_id": str(guild.id)}
    body |= {"role_id": str(role.id)} if change.how == "deleted" else {"role": role_payload(role)}
    verb = {"created": "CREATE", "updated": "UPDATE", "deleted": "DELETE"}[change.how]
    yield GatewayEvent(f"GUILD_ROLE_{verb}", GatewayIntent.GUILDS, guild.id, in_guild(guild), lambda _: body)


def expressions_changed(change: changes.ExpressionsChanged, _: SimStore) -> Iterable[GatewayEvent]:
    guild = change.guild
    body: Payload = {"guild_id": str(guild.id)}
    if change.what == "emojis":
        body["emojis"] = [emoji_payload(each) for each in guild.expressions.emojis.values()]
    else:
        body["stickers"] = [sticker_payload(each) for each in guild.expressions.stickers.values()]
    name = f"GUILD_{change.what.upper()}_UPDATE"
    yield GatewayEvent(name, GatewayIntent.GUILD_EXPRESSIONS, guild.id, in_guild(guild), lambda _: body)


def event_changed(change: changes.EventChanged, _: SimStore) -> Iterable[GatewayEvent]:
    guild, body = change.guild, scheduled_event_payload(change.event)
    name = {"created": "CREATE", "updated": "UPDATE", "deleted": "DELETE"}[change.how]
    intent = GatewayIntent.GUILD_SCHEDULED_EVENTS
    yield GatewayEvent(f"GUILD_SCHEDULED_EVENT_{name}", intent, guild.id, in_guild(guild), lambda _: body)


def presence_changed(change: changes.PresenceChanged, store: SimStore) -> Iterable[GatewayEvent]:
    """Tells every guild that the user is in, but not the user."""
    user = change.user
    for guild in [each for each in store.guilds.values() if user.id in each.members]:
        body = presence_payload(user, guild.id)
        reaches = in_guild(guild)
        yield GatewayEvent(
            "PRESENCE_UPDATE",
            GatewayIntent.GUILD_PRESENCES,
            guild.id,
            lambda receiver, ok=reaches: ok(receiver) and receiver.application.user is not user,
            lambda _, body=body: body,
        )


def voice_state_changed(change: changes.VoiceStateChanged, _: SimStore) -> Iterable[GatewayEvent]:
    guild = change.guild
    body = voice_state_payload(guild, change.state)
    yield GatewayEvent(
        "VOICE_STATE_UPDATE", GatewayIntent.GUILD_VOICE_STATES, guild.id, in_guild(guild), lambda _: body
    )


def interacted(change: changes.InteractionSent, _: SimStore) -> Iterable[GatewayEvent]:
    own = change.application_id
    yield GatewayEvent(
        "INTERACTION_CREATE",
        ALWAYS,
        change.guild_id,
        lambda receiver: receiver.application.id == own,
        lambda _: change.payload,
    )


def whole_guild(store: SimStore, guild: SimGuild, reaches: Callable[[EventReceiver], bool]) -> GatewayEvent:
    """Returns GUILD_CREATE, for newcomers and after an outage."""

    def body(receiver: EventReceiver) -> Payload:
        return guild_create_payload(store, guild, receiver.application, receiver.intents)

    return GatewayEvent("GUILD_CREATE", GatewayIntent.GUILDS, guild.id, reaches, body)


def _make_message_event(store: SimStore, name: str, channel: SimChannel, message: SimMessage) -> GatewayEvent:
    def body(receiver: EventReceiver) -> Payload:
        payload = gateway_message_payload(store, message, receiver.application, receiver.intents)
        return with_nonce(message, payload) if name == "MESSAGE_CREATE" else payload

    if message.ephemeral:
        own = message.origin.application_id
        return GatewayEvent(
            name, GatewayIntent.DIRECT_MESSAGES, None, lambda receiver: receiver.application.id == own, body
        )
    intents = either(channel, GatewayIntent.GUILD_MESSAGES, GatewayIntent.DIRECT_MESSAGES)
    return GatewayEvent(name, intents, channel.guild_id, in_channel(store, channel), body)


def message_sent(change: changes.MessageSent, store: SimStore) -> Iterable[GatewayEvent]:
    channel = change.channel
    yield _make_message_event(store, "MESSAGE_CREATE", channel, change.message)


def message_edited(change: changes.MessageEdited, store: SimStore) -> Iterable[GatewayEvent]:
    yield _make_message_event(store, "MESSAGE_UPDATE", change.channel, change.message)


def messages_deleted(change: changes.MessagesDeleted, store: SimStore) -> Iterable[GatewayEvent]:
    channel = change.channel
    intents = either(channel, GatewayIntent.GUILD_MESSAGES, GatewayIntent.DIRECT_MESSAGES)
    ids = [str(each.id) for each in change.messages]
    if change.bulk:
        yield GatewayEvent(
            "MESSAGE_DELETE_BULK",
            intents,
            channel.guild_id,
            in_channel(store, channel),
            lambda _: {"ids": ids} | place(channel),
        )
        return
    for message in change.messages:
        gone = {"id": str(message.id)} | place(channel)
        if message.ephemeral:
            continue
        yield GatewayEvent(
            "MESSAGE_DELETE", intents, channel.guild_id, in_channel(store, channel), lambda _, body=gone: body
        )


def reacted(change: changes.ReactionsChanged, store: SimStore) -> Iterable[GatewayEvent]:
    channel, message = change.channel, change.message
    body: Payload = {
        "user_id": str(change.user.id),
        "message_id": str(message.id),
        "emoji": emoji_part(change.emoji),
        "burst": False,
        "type": 0,
        **place(channel),
    }
    if change.added:
        body |= {"message_author_id": str(message.author.id), **member_part(store, channel, change.user.id)}
    name = "MESSAGE_REACTION_ADD" if change.added else "MESSAGE_REACTION_REMOVE"
    intents = either(channel, GatewayIntent.GUILD_MESSAGE_REACTIONS, GatewayIntent.DIRECT_MESSAGE_REACTIONS)
    yield GatewayEvent(name, intents, channel.guild_id, in_channel(store, channel), lambda _: body)


def reactions_cleared(change: changes.ReactionsCleared, store: SimStore) -> Iterable[GatewayEvent]:
    channel = change.channel
    body = {"message_id": str(change.message.id)} | place(channel)
    name = "MESSAGE_REACTION_REMOVE_ALL"
    if change.emoji is not None:
        name, body["emoji"] = "MESSAGE_REACTION_REMOVE_EMOJI", emoji_part(change.emoji)
    intents = either(channel, GatewayIntent.GUILD_MESSAGE_REACTIONS, GatewayIntent.DIRECT_MESSAGE_REACTIONS)
    yield GatewayEvent(name, intents, channel.guild_id, in_channel(store, channel), lambda _: body)


def voted(change: changes.VoteChanged, store: SimStore) -> Iterable[GatewayEvent]:
    channel = change.channel
    ids = {"user_id": str(change.user.id), "message_id": str(change.message.id), "answer_id": change.answer_id}
    name = "MESSAGE_POLL_VOTE_ADD" if change.added else "MESSAGE_POLL_VOTE_REMOVE"
    intents = either(channel, GatewayIntent.GUILD_MESSAGE_POLLS, GatewayIntent.DIRECT_MESSAGE_POLLS)
    yield GatewayEvent(name, intents, channel.guild_id, in_channel(store, channel), lambda _: ids | place(channel))


def pins_changed(change: changes.PinsChanged, store: SimStore) -> Iterable[GatewayEvent]:
    channel = change.channel
    intents = either(channel, GatewayIntent.GUILDS, GatewayIntent.DIRECT_MESSAGES)
    body = place(channel) | {"last_pin_timestamp": format_optional_timestamp(channel.history.last_pin_at)}
    yield GatewayEvent("CHANNEL_PINS_UPDATE", intents, channel.guild_id, in_channel(store, channel), lambda _: body)


def typing(change: changes.TypingStarted, store: SimStore) -> Iterable[GatewayEvent]:
    channel = change.channel
    body: Payload = {
        "user_id": str(change.user.id),
        "timestamp": int(change.at.timestamp()),
        **place(channel),
        **member_part(store, channel, change.user.id),
    }
    intents = either(channel, GatewayIntent.GUILD_MESSAGE_TYPING, GatewayIntent.DIRECT_MESSAGE_TYPING)
    yield GatewayEvent("TYPING_START", intents, channel.guild_id, in_channel(store, channel), lambda _: body)


_Teller = Callable[[Any, SimStore], Iterable[GatewayEvent]]
_TELLERS: Mapping[type[Any], _Teller] = MappingProxyType(
    {
        changes.MessageSent: message_sent,
        changes.MessageEdited: message_edited,
        changes.MessagesDeleted: messages_deleted,
        changes.ReactionsChanged: reacted,
        changes.ReactionsCleared: reactions_cleared,
        changes.VoteChanged: voted,
        changes.PinsChanged: pins_changed,
        changes.TypingStarted: typing,
        changes.ChannelChanged: channel_changed,
        changes.ThreadChanged: thread_changed,
        changes.ThreadMembersChanged: thread_members_changed,
        changes.InviteChanged: invite_changed,
        changes.WebhooksChanged: webhooks_changed,
        changes.GuildChanged: guild_changed,
        changes.GuildAvailability: guild_availability,
        changes.MemberChanged: member_changed,
        changes.BanChanged: ban_changed,
        changes.RoleChanged: role_changed,
        changes.ExpressionsChanged: expressions_changed,
        changes.EventChanged: event_changed,
        changes.PresenceChanged: presence_changed,
        changes.VoiceStateChanged: voice_state_changed,
        changes.InteractionSent: interacted,
    }
)


def list_gateway_events(change: SimChange, store: SimStore) -> Iterable[GatewayEvent]:
    """Returns the events that follow from a change, in order."""
    teller = _TELLERS.get(type(change))
    return () if teller is None else teller(change, store)
