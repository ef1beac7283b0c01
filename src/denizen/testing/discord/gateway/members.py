"""Answers to a request for members (op 8), in chunks of at most a thousand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from denizen.testing.discord.payloads.people import Payload, member_payload, presence_payload
from denizen.testing.discord.state.guilds import Guild, Member, find_members
from denizen.testing.discord.state.people import Application
from denizen.testing.discord.state.realm import Realm

_CHUNK = 1000


def chunk_members(realm: Realm, application: Application, asked: Mapping[str, Any]) -> Iterator[Payload]:
    """One body after the other; none for a guild that the bot is not in."""
    guild = realm.guilds.get(int(asked["guild_id"]))
    if guild is None or application.id not in guild.members:
        return
    found, missing = _select(guild, asked)
    chunks = [found[at : at + _CHUNK] for at in range(0, len(found), _CHUNK)] or [[]]
    for index, members in enumerate(chunks):
        body: Payload = {
            "guild_id": str(guild.id),
            "members": [member_payload(each) for each in members],
            "chunk_index": index,
            "chunk_count": len(chunks),
            "not_found": missing,
        }
        if asked.get("nonce"):
            body["nonce"] = asked["nonce"]
        if asked.get("presences"):
            known = [each for each in members if each.user.id in realm.presences]
            body["presences"] = [presence_payload(realm, each.user, guild.id) for each in known]
        yield body


def _select(guild: Guild, asked: Mapping[str, Any]) -> tuple[list[Member], list[str]]:
    ids = asked.get("user_ids")
    if ids:
        wanted = [int(each) for each in (ids if isinstance(ids, list) else [ids])]  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        return [guild.members[each] for each in wanted if each in guild.members], [
            str(each) for each in wanted if each not in guild.members
        ]
    return find_members(guild, str(asked.get("query") or ""), int(asked.get("limit") or 0)), []
