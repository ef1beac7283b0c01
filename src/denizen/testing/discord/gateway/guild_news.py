"""What bots are told about guilds, their members and roles, presences, and interactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from denizen.testing.discord.gateway.news import ALWAYS, Ear, News, in_guild
from denizen.testing.discord.payloads.events import event_payload
from denizen.testing.discord.payloads.guilds import (
    emoji_payload,
    guild_create_payload,
    guild_payload,
    role_payload,
    sticker_payload,
)
from denizen.testing.discord.payloads.people import Payload, member_payload, presence_payload, user_payload
from denizen.testing.discord.state import changes
from denizen.testing.discord.state.guilds import Guild
from denizen.testing.discord.state.intents import Intent
from denizen.testing.discord.state.realm import Realm


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
    guild, body = change.guild, event_payload(change.event)
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
