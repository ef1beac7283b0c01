"""Messages and rooms of discord.py, as our records: what the account hears, and what it reads back.

Called by `events`, `rooms`, `account` and `sending`. What a message says in words is in `wording`; the files that hang
on it are read by `attachments`, once somebody has decided to answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TypeVar, cast

import anyio
import discord

from denizen.adapters.discord.attachments import load_parts
from denizen.adapters.discord.faults import RESPONSE_TIMEOUT_S, speaking
from denizen.adapters.discord.settings import PLATFORM
from denizen.adapters.discord.wording import (
    attachments_of,
    is_spoken,
    original_of,
    question_of,
    reference_of,
    text_of,
)
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.message import Author
from denizen.domain.room import Post, Room, RoomKind
from denizen.ports.channel import IncomingMessage, MessageMentions, ReactionChange

_DOING = "read the channel's messages"
_FORUMS = frozenset({discord.ChannelType.forum, discord.ChannelType.media})

T = TypeVar("T")


def to_room(channel: object) -> Room:
    """Any channel, thread or direct talk of discord.py. One that it knows by id only is a bare channel.

    Raises InvalidInput for what holds neither messages nor threads (categories).
    """
    match channel:
        case discord.Thread():
            parent = channel.parent
            kind = RoomKind.PRIVATE_THREAD if channel.is_private() else RoomKind.THREAD
            return Room(
                platform=PLATFORM,
                id=str(channel.id),
                name=channel.name,
                kind=kind,
                guild=str(channel.guild.id),
                guild_name=_name_of(channel.guild),
                parent=str(channel.parent_id),
                parent_name=parent.name if parent is not None else "",
                latest_post=str(channel.last_message_id or ""),
            )
        case discord.TextChannel() | discord.VoiceChannel() | discord.StageChannel() | discord.ForumChannel():
            # What a forum calls its last message is its last thread.
            is_forum = channel.type in _FORUMS
            return Room(
                platform=PLATFORM,
                id=str(channel.id),
                name=channel.name,
                kind=RoomKind.FORUM if is_forum else RoomKind.CHANNEL,
                guild=str(channel.guild.id),
                guild_name=_name_of(channel.guild),
                latest_post="" if is_forum else str(channel.last_message_id or ""),
            )
        case discord.DMChannel():
            name = channel.recipient.display_name if channel.recipient is not None else ""
            return Room(PLATFORM, str(channel.id), name, RoomKind.DIRECT)
        case discord.GroupChannel():
            names = ", ".join(each.display_name for each in channel.recipients)
            return Room(PLATFORM, str(channel.id), channel.name or names, RoomKind.DIRECT)
        case discord.PartialMessageable():
            return Room(PLATFORM, str(channel.id), "", guild=str(channel.guild_id or ""))
        case _:
            raise InvalidInput("That channel holds no messages.", code="discord_no_talk", why=type(channel).__name__)


def to_post(message: discord.Message) -> Post:
    """As the archive keeps it. Webhooks count as bots: nobody can be asked who is behind them."""
    room = to_room(message.channel)
    reference = reference_of(message)
    return Post(
        platform=PLATFORM,
        id=str(message.id),
        room=room.id,
        author=Author(
            str(message.author.id), message.author.display_name, message.author.bot or message.webhook_id is not None
        ),
        text=text_of(message),
        created_at=message.created_at,
        guild=room.guild,
        parent=room.parent,
        reply_to=str(reference.message_id or "") if reference is not None else "",
        edited_at=message.edited_at,
        attachments=attachments_of(message),
    )


def to_arrival(message: discord.Message, me: discord.ClientUser, *, is_edit: bool = False) -> IncomingMessage:
    """As the account sees it. For what `wording.is_spoken` only: Discord's own notes are nobody's question."""
    question = question_of(message, me)
    return IncomingMessage(
        post=to_post(message),
        room=to_room(message.channel),
        question=question,
        load_parts=partial(load_parts, message, me, question),
        roles=roles_of(message.author),
        mentions=MessageMentions(
            me=_mentions(message, me),
            others=any(user.id != me.id and user.id in message.raw_mentions for user in message.mentions),
            users=_mentioned(message),
            roles=frozenset(str(role.id) for role in message.role_mentions if not role.is_default()),
            replies_to_me=_replies_to(message, me),
            replies_to=_answered(message),
        ),
        is_mine=message.author.id == me.id,
        is_edit=is_edit,
    )


def to_reacted(event: discord.RawReactionActionEvent, room: Room, *, is_on: bool) -> ReactionChange:
    """Who puts one comes along with the event in guilds; who takes one off does not."""
    member = event.member
    return ReactionChange(
        emoji=str(event.emoji),
        message_id=str(event.message_id),
        room=room,
        user_id=str(event.user_id),
        user_name=member.display_name if member is not None else "",
        roles=roles_of(member) if member is not None else frozenset(),
        is_bot=member is not None and member.bot,
        is_on=is_on,
    )


def roles_of(member: discord.Member | discord.User | discord.ClientUser) -> frozenset[str]:
    """Ids of their roles in the guild, without the one that everybody has; none for users outside of one."""
    if not isinstance(member, discord.Member):
        return frozenset()
    return frozenset(str(role.id) for role in member.roles if not role.is_default())


async def list_posts(
    client: discord.Client, room_id: str, before: str = "", after: str = "", limit: int = 100
) -> Sequence[Post]:
    """As `ports.channel.Channel.list_posts`. Fewer than `limit` means that there are no more."""
    return await _read(await _history(client, room_id, before, after), limit, to_post, newest_first=not after)


async def list_arrivals(client: discord.Client, room: Room, after: str, limit: int = 100) -> Sequence[IncomingMessage]:
    """As `ports.channel.Channel.list_arrivals`: everything said by people and bots, in order."""
    me = client.user
    if me is None:
        return []
    # The oldest of all are those after nothing.
    messages = await _history(client, room.id, "", after or "0")
    return await _read(messages, limit, lambda message: to_arrival(message, me))


async def _read(
    messages: AsyncGenerator[discord.Message],
    limit: int,
    convert: Callable[[discord.Message], T],
    *,
    newest_first: bool = False,
) -> list[T]:
    """Oldest first. Reads on over what nobody said, so that a page is short only at the end."""
    found: list[T] = []
    with speaking(_DOING), anyio.fail_after(RESPONSE_TIMEOUT_S):
        async with aclosing(messages):
            async for message in messages:
                if is_spoken(message):
                    found.append(convert(message))
                if len(found) >= limit:
                    break
    return found[::-1] if newest_first else found


async def _history(client: discord.Client, room_id: str, before: str, after: str) -> AsyncGenerator[discord.Message]:
    """All messages of the room before one, newest first, or after one, oldest first; fetched as they are taken.

    Raises NotFound for what holds none.
    """
    if not room_id.isdecimal():
        raise NotFound("There is no such channel.", code="discord_no_talk")
    channel = client.get_channel(int(room_id))
    if channel is None:
        with speaking(_DOING), anyio.fail_after(RESPONSE_TIMEOUT_S):
            channel = await client.fetch_channel(int(room_id))
    if not isinstance(channel, discord.abc.Messageable):
        raise NotFound("There are no messages in that channel.", code="discord_no_talk")
    history = channel.history(
        limit=None,
        before=discord.Object(int(before)) if before else None,
        after=discord.Object(int(after)) if after else None,
        oldest_first=bool(after),
    )
    # It is a generator, and has to be closed when it is left early.
    return cast("AsyncGenerator[discord.Message]", history)


def _mentions(message: discord.Message, me: discord.ClientUser) -> bool:
    """Whether it calls the account with an @ in its text: a reply that pings has none, and code pings nobody.

    The role that Discord made for the account counts, since menus offer it under the same name.
    """
    if me.id in message.raw_mentions and any(user.id == me.id for user in message.mentions):
        return True
    own_role = message.guild.self_role if message.guild is not None else None
    return own_role is not None and own_role in message.role_mentions


def _mentioned(message: discord.Message) -> tuple[str, ...]:
    """As `_mentions` tells of one account; who is called by the role of an account comes last."""
    pinged = {user.id for user in message.mentions}
    called = [str(each) for each in dict.fromkeys(message.raw_mentions) if each in pinged]
    bots = [str(role.tags.bot_id) for role in message.role_mentions if role.tags is not None and role.tags.bot_id]
    return tuple(dict.fromkeys((*called, *bots)))


def _answered(message: discord.Message) -> str:
    original = original_of(message)
    return str(original.author.id) if original is not None else ""


def _replies_to(message: discord.Message, me: discord.ClientUser) -> bool:
    original = original_of(message)
    return original is not None and original.author.id == me.id


def _name_of(guild: discord.Guild) -> str:
    """discord.py has no name for a guild that it knows by id only."""
    return str(getattr(guild, "name", "") or "")
