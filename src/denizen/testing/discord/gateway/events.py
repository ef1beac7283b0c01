"""One event for bots: its name, the intents that let it through, who may know of it, and its body for each of them.

Pure: the modules beside this one look at the realm and say what there is to send; `gateway.sessions` sends it.
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
)
from denizen.testing.discord.payloads.messages import emoji_part, gateway_message_payload, with_nonce
from denizen.testing.discord.payloads.people import (
    Payload,
    member_payload,
    presence_payload,
    user_payload,
)
from denizen.testing.discord.state import changes
from denizen.testing.discord.state.access import may, sees
from denizen.testing.discord.state.changes import Change
from denizen.testing.discord.state.channels import Channel
from denizen.testing.discord.state.clock import stamp_or_none
from denizen.testing.discord.state.guilds import Guild
from denizen.testing.discord.state.messages import Message
from denizen.testing.discord.state.people import Application, Intent
from denizen.testing.discord.state.permissions import Permission
from denizen.testing.discord.state.realm import Realm

ALWAYS = Intent(0)


@dataclass(frozen=True, slots=True)
class Ear:
    """One who listens: an application with the intents of its session."""

    application: Application
    intents: Intent


@dataclass(frozen=True, slots=True)
class News:
    """One event. It goes to sessions with one of `intents` (none needed when 0) whose ear `reaches` accepts; those of
    a guild only to the shard of that guild, the rest to shard 0.
    """

    name: str
    intents: Intent
    guild_id: int | None
    reaches: Callable[[Ear], bool]
    body: Callable[[Ear], Payload]


def in_channel(realm: Realm, channel: Channel) -> Callable[[Ear], bool]:
    return lambda ear: sees(realm, ear.application.user, channel)


def in_guild(guild: Guild) -> Callable[[Ear], bool]:
    return lambda ear: ear.application.id in guild.members


def either(channel: Channel, in_guild: Intent, direct: Intent) -> Intent:
    return direct if channel.is_dm else in_guild


def place(channel: Channel) -> Payload:
    """`channel_id`, and `guild_id` in a guild."""
    place: Payload = {"channel_id": str(channel.id)}
    return place if channel.guild_id is None else place | {"guild_id": str(channel.guild_id)}


def member_part(realm: Realm, channel: Channel, user_id: int) -> Payload:
    guild = realm.guild_of(channel)
    member = guild.members.get(user_id) if guild else None
    return {"member": member_payload(member)} if member else {}


_VERBS = {"created": "CREATE", "updated": "UPDATE", "deleted": "DELETE"}


def channel_changed(change: changes.ChannelChanged, realm: Realm) -> Iterable[News]:
    """Told to every bot of the guild; those that do not see the channel learn little of it."""
    channel = change.channel
    guild = realm.guild_of(channel)
    if guild is None:
        return

    def body(ear: Ear) -> Payload:
        return gateway_channel_payload(realm, channel, ear.application.user)

    yield News(f"CHANNEL_{_VERBS[change.how]}", Intent.GUILDS, guild.id, in_guild(guild), body)


def thread_changed(change: changes.ThreadChanged, realm: Realm) -> Iterable[News]:
    thread = change.channel
    parent = thread.parent or thread

    def body(ear: Ear) -> Payload:
        payload = channel_payload(thread, ear.application.user)
        if change.how == "deleted":
            return {key: payload[key] for key in ("id", "guild_id", "parent_id", "type")}
        return payload | {"newly_created": True} if change.how == "created" else payload

    seen = in_channel(realm, parent if change.how == "deleted" else thread)
    yield News(f"THREAD_{_VERBS[change.how]}", Intent.GUILDS, thread.guild_id, seen, body)


def thread_members_changed(change: changes.ThreadMembersChanged, realm: Realm) -> Iterable[News]:
    thread = change.channel
    concerned = {each.id for each in (*change.added, *change.removed)}
    body: Payload = {
        "id": str(thread.id),
        "guild_id": str(thread.guild_id),
        "member_count": min(50, len(thread.thread.members) if thread.thread else 0),
        "added_members": [thread_member_payload(realm, thread, each, with_member=True) for each in change.added],
        "removed_member_ids": [str(each.id) for each in change.removed],
    }

    def itself(ear: Ear) -> bool:
        return ear.application.id in concerned

    def others(ear: Ear) -> bool:
        return (
            not itself(ear) and bool(ear.intents & Intent.GUILD_MEMBERS) and sees(realm, ear.application.user, thread)
        )

    owner = thread.thread.owner.id if thread.thread else 0
    for user in change.added:
        if user.id != owner:
            yield News(
                "THREAD_CREATE",
                Intent.GUILDS,
                thread.guild_id,
                lambda ear, new=user.id: ear.application.id == new,
                lambda ear: channel_payload(thread, ear.application.user),
            )
    yield News(
        "THREAD_MEMBERS_UPDATE", Intent.GUILDS, thread.guild_id, lambda ear: itself(ear) or others(ear), lambda _: body
    )


def invite_changed(change: changes.InviteChanged, realm: Realm) -> Iterable[News]:
    channel = change.channel
    name = "INVITE_CREATE" if change.how == "created" else "INVITE_DELETE"
    body = change.invite | place(channel)
    yield News(name, Intent.GUILD_INVITES, channel.guild_id, managed_by(realm, channel), lambda _: body)


def webhooks_changed(change: changes.WebhooksChanged, realm: Realm) -> Iterable[News]:
    channel = change.channel
    yield News(
        "WEBHOOKS_UPDATE", Intent.GUILD_WEBHOOKS, channel.guild_id, in_channel(realm, channel), lambda _: place(channel)
    )


def managed_by(realm: Realm, channel: Channel) -> Callable[[Ear], bool]:
    """Invitations are told to those who manage the channel."""
    return lambda ear: may(realm, ear.application.user, channel, Permission.MANAGE_CHANNELS)


def guild_changed(change: changes.GuildChanged, _: Realm) -> Iterable[News]:
    guild = change.guild
    yield News("GUILD_UPDATE", Intent.GUILDS, guild.id, in_guild(guild), lambda _: guild_payload(guild))


def guild_availability(change: changes.GuildAvailability, realm: Realm) -> Iterable[News]:
    guild = change.guild
    if guild.available:
        yield whole_guild(realm, guild, in_guild(guild))
    else:
        gone = {"id": str(guild.id), "unavailable": True}
        yield News("GUILD_DELETE", Intent.GUILDS, guild.id, in_guild(guild), lambda _: gone)


def member_changed(change: changes.MemberChanged, realm: Realm) -> Iterable[News]:
    guild, member = change.guild, change.member
    own_guild = in_guild(guild)
    own = member.user.id
    if change.how == "joined":
        yield whole_guild(realm, guild, lambda ear: ear.application.id == own)
        body = member_payload(member) | {"guild_id": str(guild.id)}
        yield News(
            "GUILD_MEMBER_ADD",
            Intent.GUILD_MEMBERS,
            guild.id,
            lambda ear: ear.application.id != own and own_guild(ear),
            lambda _: body,
        )
    elif change.how == "updated":
        body = member_payload(member) | {"guild_id": str(guild.id)}

        def concerned(ear: Ear) -> bool:
            return own_guild(ear) and (ear.application.id == own or bool(ear.intents & Intent.GUILD_MEMBERS))

        yield News("GUILD_MEMBER_UPDATE", ALWAYS, guild.id, concerned, lambda _: body)
    else:
        gone = {"id": str(guild.id)}
        yield News("GUILD_DELETE", Intent.GUILDS, guild.id, lambda ear: ear.application.id == own, lambda _: gone)
        left = {"guild_id": str(guild.id), "user": user_payload(member.user)}
        yield News("GUILD_MEMBER_REMOVE", Intent.GUILD_MEMBERS, guild.id, own_guild, lambda _: left)


def ban_changed(change: changes.BanChanged, _: Realm) -> Iterable[News]:
    guild = change.guild
    body = {"guild_id": str(guild.id), "user": user_payload(change.user)}
    name = "GUILD_BAN_ADD" if change.banned else "GUILD_BAN_REMOVE"
    yield News(name, Intent.GUILD_MODERATION, guild.id, in_guild(guild), lambda _: body)


def role_changed(change: changes.RoleChanged, _: Realm) -> Iterable[News]:
    guild, role = change.guild, change.role
    body: Payload = {"guild_id": str(guild.id)}
    body |= {"role_id": str(role.id)} if change.how == "deleted" else {"role": role_payload(role)}
    verb = {"created": "CREATE", "updated": "UPDATE", "deleted": "DELETE"}[change.how]
    yield News(f"GUILD_ROLE_{verb}", Intent.GUILDS, guild.id, in_guild(guild), lambda _: body)


def expressions_changed(change: changes.ExpressionsChanged, _: Realm) -> Iterable[News]:
    guild = change.guild
    body: Payload = {"guild_id": str(guild.id)}
    if change.what == "emojis":
        body["emojis"] = [emoji_payload(each) for each in guild.emojis.values()]
    else:
        body["stickers"] = [sticker_payload(each) for each in guild.stickers.values()]
    name = f"GUILD_{change.what.upper()}_UPDATE"
    yield News(name, Intent.GUILD_EXPRESSIONS, guild.id, in_guild(guild), lambda _: body)


def event_changed(change: changes.EventChanged, _: Realm) -> Iterable[News]:
    guild, body = change.guild, scheduled_event_payload(change.event)
    name = {"created": "CREATE", "updated": "UPDATE", "deleted": "DELETE"}[change.how]
    intent = Intent.GUILD_SCHEDULED_EVENTS
    yield News(f"GUILD_SCHEDULED_EVENT_{name}", intent, guild.id, in_guild(guild), lambda _: body)


def presence_changed(change: changes.PresenceChanged, realm: Realm) -> Iterable[News]:
    """Told in each guild that the user is in, but not to the user."""
    user = change.user
    for guild in [each for each in realm.guilds.values() if user.id in each.members]:
        body = presence_payload(realm, user, guild.id)
        reaches = in_guild(guild)
        yield News(
            "PRESENCE_UPDATE",
            Intent.GUILD_PRESENCES,
            guild.id,
            lambda ear, ok=reaches: ok(ear) and ear.application.user is not user,
            lambda _, body=body: body,
        )


def interacted(change: changes.Interacted, _: Realm) -> Iterable[News]:
    own = change.application_id
    yield News(
        "INTERACTION_CREATE", ALWAYS, change.guild_id, lambda ear: ear.application.id == own, lambda _: change.payload
    )


def whole_guild(realm: Realm, guild: Guild, reaches: Callable[[Ear], bool]) -> News:
    """GUILD_CREATE, for those who come in and after an outage."""

    def body(ear: Ear) -> Payload:
        return guild_create_payload(realm, guild, ear.application, ear.intents)

    return News("GUILD_CREATE", Intent.GUILDS, guild.id, reaches, body)


def _message_news(realm: Realm, name: str, channel: Channel, message: Message) -> News:
    def body(ear: Ear) -> Payload:
        payload = gateway_message_payload(realm, message, ear.application, ear.intents)
        return with_nonce(message, payload) if name == "MESSAGE_CREATE" else payload

    if message.ephemeral:
        own = message.application_id
        return News(name, Intent.DIRECT_MESSAGES, None, lambda ear: ear.application.id == own, body)
    intents = either(channel, Intent.GUILD_MESSAGES, Intent.DIRECT_MESSAGES)
    return News(name, intents, channel.guild_id, in_channel(realm, channel), body)


def message_sent(change: changes.MessageSent, realm: Realm) -> Iterable[News]:
    channel = change.channel
    yield _message_news(realm, "MESSAGE_CREATE", channel, change.message)


def message_edited(change: changes.MessageEdited, realm: Realm) -> Iterable[News]:
    yield _message_news(realm, "MESSAGE_UPDATE", change.channel, change.message)


def messages_deleted(change: changes.MessagesDeleted, realm: Realm) -> Iterable[News]:
    channel = change.channel
    intents = either(channel, Intent.GUILD_MESSAGES, Intent.DIRECT_MESSAGES)
    ids = [str(each.id) for each in change.messages]
    if change.bulk:
        yield News(
            "MESSAGE_DELETE_BULK",
            intents,
            channel.guild_id,
            in_channel(realm, channel),
            lambda _: {"ids": ids} | place(channel),
        )
        return
    for message in change.messages:
        gone = {"id": str(message.id)} | place(channel)
        if message.ephemeral:
            continue
        yield News("MESSAGE_DELETE", intents, channel.guild_id, in_channel(realm, channel), lambda _, body=gone: body)


def reacted(change: changes.Reacted, realm: Realm) -> Iterable[News]:
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
        body |= {"message_author_id": str(message.author.id), **member_part(realm, channel, change.user.id)}
    name = "MESSAGE_REACTION_ADD" if change.added else "MESSAGE_REACTION_REMOVE"
    intents = either(channel, Intent.GUILD_MESSAGE_REACTIONS, Intent.DIRECT_MESSAGE_REACTIONS)
    yield News(name, intents, channel.guild_id, in_channel(realm, channel), lambda _: body)


def reactions_cleared(change: changes.ReactionsCleared, realm: Realm) -> Iterable[News]:
    channel = change.channel
    body = {"message_id": str(change.message.id)} | place(channel)
    name = "MESSAGE_REACTION_REMOVE_ALL"
    if change.emoji is not None:
        name, body["emoji"] = "MESSAGE_REACTION_REMOVE_EMOJI", emoji_part(change.emoji)
    intents = either(channel, Intent.GUILD_MESSAGE_REACTIONS, Intent.DIRECT_MESSAGE_REACTIONS)
    yield News(name, intents, channel.guild_id, in_channel(realm, channel), lambda _: body)


def voted(change: changes.Voted, realm: Realm) -> Iterable[News]:
    channel = change.channel
    ids = {"user_id": str(change.user.id), "message_id": str(change.message.id), "answer_id": change.answer_id}
    name = "MESSAGE_POLL_VOTE_ADD" if change.added else "MESSAGE_POLL_VOTE_REMOVE"
    intents = either(channel, Intent.GUILD_MESSAGE_POLLS, Intent.DIRECT_MESSAGE_POLLS)
    yield News(name, intents, channel.guild_id, in_channel(realm, channel), lambda _: ids | place(channel))


def pins_changed(change: changes.PinsChanged, realm: Realm) -> Iterable[News]:
    channel = change.channel
    intents = either(channel, Intent.GUILDS, Intent.DIRECT_MESSAGES)
    body = place(channel) | {"last_pin_timestamp": stamp_or_none(channel.last_pin_at)}
    yield News("CHANNEL_PINS_UPDATE", intents, channel.guild_id, in_channel(realm, channel), lambda _: body)


def typing(change: changes.Typing, realm: Realm) -> Iterable[News]:
    channel = change.channel
    body: Payload = {
        "user_id": str(change.user.id),
        "timestamp": int(change.at.timestamp()),
        **place(channel),
        **member_part(realm, channel, change.user.id),
    }
    intents = either(channel, Intent.GUILD_MESSAGE_TYPING, Intent.DIRECT_MESSAGE_TYPING)
    yield News("TYPING_START", intents, channel.guild_id, in_channel(realm, channel), lambda _: body)


_Teller = Callable[[Any, Realm], Iterable[News]]
_TELLERS: Mapping[type[Any], _Teller] = MappingProxyType(
    {
        changes.MessageSent: message_sent,
        changes.MessageEdited: message_edited,
        changes.MessagesDeleted: messages_deleted,
        changes.Reacted: reacted,
        changes.ReactionsCleared: reactions_cleared,
        changes.Voted: voted,
        changes.PinsChanged: pins_changed,
        changes.Typing: typing,
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
        changes.Interacted: interacted,
    }
)


def narrate(change: Change, realm: Realm) -> Iterable[News]:
    teller = _TELLERS.get(type(change))
    return () if teller is None else teller(change, realm)
