"""Events of the gateway about members, roles, channels and threads, as the engine is told of them."""

from __future__ import annotations

from collections.abc import Iterator

import discord

from denizen.adapters.discord.messages.conversion import list_role_ids
from denizen.domain.cloud_event import CHANNEL, JOIN, LEAVE, ROLE, THREAD
from denizen.domain.json import JsonObject
from denizen.ports.channel import CommunityEvent

GuildRoom = discord.abc.GuildChannel | discord.Thread


def describe_join(member: discord.Member) -> CommunityEvent:
    """Returns the event for a member who has come. A time of joining is one event, whoever tells of it."""
    at = member.joined_at.isoformat() if member.joined_at else ""
    return _describe_member(JOIN, member.guild, member, key=f"join:{member.id}:{at}" if at else "")


def describe_leave(guild: discord.Guild, user: discord.User | discord.Member) -> CommunityEvent:
    """Returns the event for somebody who has left, or was put out."""
    at = user.joined_at.isoformat() if isinstance(user, discord.Member) and user.joined_at else ""
    return _describe_member(LEAVE, guild, user, key=f"leave:{user.id}:{at}" if at else "")


def list_role_changes(before: discord.Member, after: discord.Member) -> Iterator[CommunityEvent]:
    """Yields an event for each role that a member has got or lost."""
    for change, roles in (
        ("given", set(after.roles) - set(before.roles)),
        ("taken", set(before.roles) - set(after.roles)),
    ):
        for role in sorted(roles, key=lambda each: each.id):
            yield _describe_role(change, role, after)


def describe_role(change: str, role: discord.Role) -> CommunityEvent:
    """Returns the event for a role that was `created`, `renamed` or `deleted`."""
    return _describe_role(change, role, None)


def describe_room(change: str, room: GuildRoom) -> CommunityEvent:
    """Returns the event for a channel or thread that was `created`, `renamed`, `archived`, `reopened` or `deleted`."""
    data: JsonObject = {"change": change, "guild": _describe_guild(room.guild)}
    if not isinstance(room, discord.Thread):
        data["channel"] = _describe_named(room.id, room.name, f"<#{room.id}>")
        return CommunityEvent(kind=CHANNEL, guild=str(room.guild.id), subject=str(room.id), data=data)
    data["thread"] = _describe_named(room.id, room.name, f"<#{room.id}>")
    name = room.parent.name if room.parent else ""
    data["channel"] = _describe_named(room.parent_id, name, f"<#{room.parent_id}>")
    owner = str(room.owner_id or "") if change == "created" else ""
    return CommunityEvent(kind=THREAD, guild=str(room.guild.id), subject=str(room.id), user_id=owner, data=data)


def list_thread_changes(before: discord.Thread, after: discord.Thread) -> Iterator[CommunityEvent]:
    if before.name != after.name:
        yield describe_room("renamed", after)
    if before.archived != after.archived:
        yield describe_room("archived" if after.archived else "reopened", after)


def _describe_member(
    kind: str, guild: discord.Guild, user: discord.User | discord.Member, *, key: str
) -> CommunityEvent:
    data: JsonObject = {"guild": _describe_guild(guild), "user": _describe_user(user)}
    return CommunityEvent(kind=kind, guild=str(guild.id), id=key, subject=str(user.id), user_id=str(user.id), data=data)


def _describe_role(change: str, role: discord.Role, member: discord.Member | None) -> CommunityEvent:
    data: JsonObject = {
        "change": change,
        "guild": _describe_guild(role.guild),
        "role": _describe_named(role.id, role.name, f"<@&{role.id}>"),
    }
    if member is not None:
        data["user"] = _describe_user(member)
    user = str(member.id) if member else ""
    return CommunityEvent(kind=ROLE, guild=str(role.guild.id), subject=str(role.id), user_id=user, data=data)


def _describe_guild(guild: discord.Guild) -> JsonObject:
    return {"id": str(guild.id), "name": guild.name, "members": guild.member_count}


def _describe_named(key: int, name: str, mention: str) -> JsonObject:
    return {"id": str(key), "name": name, "mention": mention}


def _describe_user(user: discord.User | discord.Member) -> JsonObject:
    roles = sorted(list_role_ids(user))
    return {
        "id": str(user.id),
        "name": user.display_name,
        "mention": f"<@{user.id}>",
        "is_bot": user.bot,
        "roles": [*roles],
    }
