"""Converts messages and rooms of discord.py into our records, reads them from Discord, and finds rooms.

`wording` renders the text of a message. `attachments` reads its files, once somebody has decided to answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TypeAlias, TypeVar, cast

import anyio
import anyio.lowlevel
import discord

from denizen.adapters.discord.client.errors import RESPONSE_TIMEOUT_S, translate_errors
from denizen.adapters.discord.client.settings import PLATFORM
from denizen.adapters.discord.messages.attachments import load_parts
from denizen.adapters.discord.messages.wording import (
    convert_attachments,
    extract_command,
    extract_question,
    find_replied_message,
    find_reply_reference,
    is_conversation,
    render_text,
)
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.message import Author
from denizen.domain.room import Post, PostChanges, Room, RoomKind
from denizen.ports.channel import IncomingMessage, MessageMentions, ReactionChange
from denizen.ports.pdf import ReadPdf

_DOING = "read the channel's messages"
_FORUMS = frozenset({discord.ChannelType.forum, discord.ChannelType.media})

T = TypeVar("T")


def to_room(channel: object) -> Room:
    """Converts any channel, thread or direct message channel. One that is known by id only becomes a bare room.

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
                guild_name=_get_guild_name(channel.guild),
                parent=str(channel.parent_id),
                parent_name=parent.name if parent is not None else "",
                latest_post=str(channel.last_message_id or ""),
            )
        case discord.TextChannel() | discord.VoiceChannel() | discord.StageChannel() | discord.ForumChannel():
            # The last message id of a forum is the id of its last thread.
            is_forum = channel.type in _FORUMS
            return Room(
                platform=PLATFORM,
                id=str(channel.id),
                name=channel.name,
                kind=RoomKind.FORUM if is_forum else RoomKind.CHANNEL,
                guild=str(channel.guild.id),
                guild_name=_get_guild_name(channel.guild),
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
    """Converts a message for the archive. Webhooks count as bots: nobody can be asked who is behind them."""
    room = to_room(message.channel)
    reference = find_reply_reference(message)
    return Post(
        platform=PLATFORM,
        id=str(message.id),
        room=room.id,
        author=Author(
            str(message.author.id), message.author.display_name, message.author.bot or message.webhook_id is not None
        ),
        text=render_text(message),
        created_at=message.created_at,
        guild=room.guild,
        parent=room.parent,
        reply_to=str(reference.message_id or "") if reference is not None else "",
        changes=PostChanges(edited_at=message.edited_at),
        attachments=convert_attachments(message),
    )


def to_incoming_message(
    message: discord.Message, me: discord.ClientUser, read_pdf: ReadPdf, *, is_edit: bool = False
) -> IncomingMessage:
    """Converts a message of `wording.is_conversation` as the account sees it. Discord's notices are no questions."""
    question, original = extract_question(message, me), find_replied_message(message)
    return IncomingMessage(
        post=to_post(message),
        room=to_room(message.channel),
        question=question,
        command=extract_command(message),
        load_parts=partial(load_parts, message, me, question, read_pdf),
        roles=list_role_ids(message.author),
        mentions=MessageMentions(
            me=_mentions(message, me),
            others=any(user.id != me.id and user.id in message.raw_mentions for user in message.mentions),
            users=_mentioned(message),
            roles=frozenset(str(role.id) for role in message.role_mentions if not role.is_default()),
            replies_to_me=original is not None and original.author.id == me.id,
            replies_to=str(original.author.id) if original is not None else "",
        ),
        is_mine=message.author.id == me.id,
        is_edit=is_edit,
    )


def to_reaction_change(event: discord.RawReactionActionEvent, room: Room, *, is_on: bool) -> ReactionChange:
    """Converts a reaction event. In guilds Discord names the member who adds a reaction, not the one who removes it."""
    member = event.member
    return ReactionChange(
        emoji=str(event.emoji),
        message_id=str(event.message_id),
        room=room,
        user_id=str(event.user_id),
        user_name=member.display_name if member is not None else "",
        roles=list_role_ids(member) if member is not None else frozenset(),
        is_bot=member is not None and member.bot,
        is_on=is_on,
    )


def list_role_ids(member: discord.Member | discord.User | discord.ClientUser) -> frozenset[str]:
    """Returns the ids of the member's roles without @everyone; none for users outside of a guild."""
    if not isinstance(member, discord.Member):
        return frozenset()
    return frozenset(str(role.id) for role in member.roles if not role.is_default())


async def list_posts(
    client: discord.Client, room_id: str, before: str = "", after: str = "", limit: int = 100
) -> Sequence[Post]:
    """Implements `ports.channel.Channel.list_posts`. Fewer than `limit` means that there are no more."""
    return await _read(await _history(client, room_id, before, after), limit, to_post, newest_first=not after)


async def list_arrivals(
    client: discord.Client, room: Room, after: str, limit: int, read_pdf: ReadPdf
) -> Sequence[IncomingMessage]:
    """Implements `ports.channel.Channel.list_arrivals`: all messages of people and bots, in order."""
    me = client.user
    if me is None:
        return []
    # Id 0 is before every message. Without an id Discord would return the newest ones.
    messages = await _history(client, room.id, "", after or "0")
    return await _read(messages, limit, lambda message: to_incoming_message(message, me, read_pdf))


async def _read(
    messages: AsyncGenerator[discord.Message | None],
    limit: int,
    convert: Callable[[discord.Message], T],
    *,
    newest_first: bool = False,
) -> list[T]:
    """Returns messages, oldest first. It reads on past Discord's notices and what cannot be read (`gateway.tolerance`),
    so that only the last page is short.
    """
    found: list[T] = []
    with translate_errors(_DOING), anyio.fail_after(RESPONSE_TIMEOUT_S):
        async with aclosing(messages):
            async for message in messages:
                if message is not None and is_conversation(message):
                    found.append(convert(message))
                if len(found) >= limit:
                    break
    return found[::-1] if newest_first else found


async def _history(
    client: discord.Client, room_id: str, before: str, after: str
) -> AsyncGenerator[discord.Message | None]:
    """Yields the messages of a room before one, newest first, or after one, oldest first; they are fetched as they are
    taken.

    Raises NotFound for a room that holds no messages.
    """
    if not room_id.isdecimal():
        raise NotFound("There is no such channel.", code="discord_no_talk")
    channel = client.get_channel(int(room_id))
    if channel is None:
        with translate_errors(_DOING), anyio.fail_after(RESPONSE_TIMEOUT_S):
            channel = await client.fetch_channel(int(room_id))
    if not isinstance(channel, discord.abc.Messageable):
        raise NotFound("There are no messages in that channel.", code="discord_no_talk")
    history = channel.history(
        limit=None,
        before=discord.Object(int(before)) if before else None,
        after=discord.Object(int(after)) if after else None,
        oldest_first=bool(after),
    )
    # The caller closes it: an async generator that is left early would otherwise be finalized by the event loop.
    return cast("AsyncGenerator[discord.Message | None]", history)


def _mentions(message: discord.Message, me: discord.ClientUser) -> bool:
    """Whether the text calls the account with an @. A reply that pings does not, and neither does code.

    The role that Discord made for the account counts, since menus offer it under the same name.
    """
    if me.id in message.raw_mentions and any(user.id == me.id for user in message.mentions):
        return True
    own_role = message.guild.self_role if message.guild is not None else None
    return own_role is not None and own_role in message.role_mentions


def _mentioned(message: discord.Message) -> tuple[str, ...]:
    """Returns everybody whom the text calls, by the rules of `_mentions`; those called by an account's role last."""
    pinged = {user.id for user in message.mentions}
    called = [str(each) for each in dict.fromkeys(message.raw_mentions) if each in pinged]
    bots = [str(role.tags.bot_id) for role in message.role_mentions if role.tags is not None and role.tags.bot_id]
    return tuple(dict.fromkeys((*called, *bots)))


def _get_guild_name(guild: discord.Guild) -> str:
    """Returns the name; discord.py has none for a guild that it knows by id only."""
    return str(getattr(guild, "name", "") or "")


_AT_A_TIME = 100
"""The number of rooms that are checked before other tasks may run."""

AnyChannel: TypeAlias = discord.abc.GuildChannel | discord.Thread | discord.abc.PrivateChannel
TextRoom: TypeAlias = (
    discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread | discord.DMChannel
)
"""A channel that holds messages itself."""


async def get_channel(client: discord.Client, channel_id: int) -> AnyChannel:
    """Returns a channel, cached or fetched (an archived thread, direct messages). Raises NotFound and other errors."""
    known = client.get_channel(channel_id)
    if known is not None:
        return known
    with translate_errors("open that channel"):
        return await client.fetch_channel(channel_id)


async def get_text_channel(client: discord.Client, channel_id: int) -> TextRoom:
    """Like `get_channel`, for a channel that holds messages."""
    channel = await get_channel(client, channel_id)
    if not isinstance(channel, TextRoom):
        raise NotFound("There are no messages in that channel.", code="discord_no_talk")
    return channel


async def list_readable(client: discord.Client) -> list[Room]:
    """Returns the channels, forums and open threads of all guilds whose messages and history the account may read.

    Direct message channels are left out: Discord does not list them.
    """
    rooms: list[Room] = []
    looked_at = 0
    for guild in tuple(client.guilds):
        for channel in list_channels(guild):
            if is_readable(channel):
                rooms.append(to_room(channel))
            looked_at += 1
            if looked_at % _AT_A_TIME == 0:
                await anyio.lowlevel.checkpoint()
    return rooms


def list_channels(guild: discord.Guild) -> list[discord.abc.GuildChannel | discord.Thread]:
    """Returns the channels where messages can be, including forums, readable or not."""
    channels = [each for each in guild.channels if not isinstance(each, discord.CategoryChannel)]
    return [*channels, *guild.threads]


def is_readable(channel: discord.abc.GuildChannel | discord.Thread) -> bool:
    """Whether the account may read the channel now. A thread has the permissions of its parent."""
    me = cast("discord.Member | None", channel.guild.me)  # None while the guild is unavailable
    if me is None or (isinstance(channel, discord.Thread) and channel.parent is None):
        return False
    held = channel.permissions_for(me)
    return held.view_channel and held.read_message_history
