"""What bots are told about channels and threads. Of hidden channels they are told little."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from denizen.testing.discord.gateway.news import Ear, News, in_channel, in_guild, place
from denizen.testing.discord.payloads.channels import channel_payload, gateway_channel_payload, thread_member_payload
from denizen.testing.discord.payloads.people import Payload
from denizen.testing.discord.state import changes
from denizen.testing.discord.state.access import may, sees
from denizen.testing.discord.state.channels import Channel
from denizen.testing.discord.state.intents import Intent
from denizen.testing.discord.state.permissions import Permission
from denizen.testing.discord.state.realm import Realm

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
