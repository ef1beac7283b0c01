"""Actions on threads and forum posts: opening, renaming, archiving, adding people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import discord
from discord.http import handle_message_parameters

from denizen.adapters.discord.actions.context import ActionContext, GuildPlace
from denizen.adapters.discord.actions.lookup import find_member, find_message, load_channel, pick_by_name
from denizen.adapters.discord.actions.posting import OutgoingMessage, describe_message, post_message, prepare_text
from denizen.adapters.discord.client.errors import THREAD_EXISTS
from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.domain.json import JsonObject

_NAME_CHARS = 100
_MAX_TAGS = 5


async def create_thread(
    context: ActionContext, name: str, text: str = "", message: str = "", channel: str = "", *, private: bool = False
) -> JsonObject:
    """Opens a thread under `message`, under a new message with `text`, or a private one that the asker is added to."""
    where = await load_channel(context, channel)
    if not isinstance(where, discord.TextChannel):
        raise InvalidInput("Threads are opened in text channels.", code="discord_no_threads")
    title = _title(name)
    if private:
        return await _open_private(context, where, title, text)
    context.require("create_public_threads", where)
    context.require("read_message_history", where)
    if message:
        start = (await find_message(context, message, str(where.id), named=True)).id
    elif text.strip():
        start = int(str((await post_message(context, where, OutgoingMessage(text)))["message"]))
    else:
        raise InvalidInput(
            "A thread begins under a message.", code="discord_no_start", fix="Give the `message`, or a `text` for one."
        )
    try:
        await where.get_partial_message(start).create_thread(name=title, reason=context.reason())
    except discord.HTTPException as error:
        if error.code != THREAD_EXISTS:
            raise
    return describe_message(context, where.id, start) | {"thread": str(start)}


async def edit_thread(
    context: ActionContext,
    thread: str = "",
    name: str = "",
    *,
    archived: bool | None = None,
    locked: bool | None = None,
) -> JsonObject:
    """Changes a thread, for those who manage threads. Its owner may do all but lock it; nothing once it is locked."""
    found = await _find_thread(context, thread)
    for member, require in ((context.asker, context.require_asker), (context.me, context.require_account)):
        if found.owner_id != member.id or locked is not None or found.locked:
            require("manage_threads", found)
    changes: dict[str, Any] = {"name": _title(name)} if name.strip() else {}
    changes |= {} if archived is None else {"archived": archived}
    changes |= {} if locked is None else {"locked": locked}
    if not changes:
        raise InvalidInput("Nothing was said to change.", code="discord_empty")
    await found.edit(**changes, reason=context.reason())
    return {"thread": str(found.id), "link": found.jump_url}


async def add_to_thread(context: ActionContext, member: str, thread: str = "") -> JsonObject:
    found = await _find_thread(context, thread)
    context.require_writing(found)
    if found.is_private() and not found.invitable and found.owner_id != context.asker.id:
        context.require("manage_threads", found)
    guest = await find_member(context, member)
    if not found.permissions_for(guest).view_channel:
        raise NotAllowed(f"{guest.mention} cannot see the channel of that thread.", code="discord_not_visible")
    await found.add_user(guest)
    return {"thread": str(found.id), "member": str(guest.id), "link": found.jump_url}


async def create_forum_post(
    context: ActionContext, channel: str, title: str, text: str, tags: Sequence[str] = ()
) -> JsonObject:
    """Creates a post in a forum, or returns an open post that says the same: Discord has no nonce for posts, so a retry
    would create a second one.
    """
    forum = await load_channel(context, channel)
    if not isinstance(forum, discord.ForumChannel):
        raise InvalidInput(f"{forum.mention} is no forum.", code="discord_no_forum")
    context.require("send_messages", forum)
    chosen = [pick_by_name(each, forum.available_tags, lambda tag: tag.name, "tag") for each in tags]
    if len(chosen) > _MAX_TAGS:
        raise InvalidInput(f"A post has at most {_MAX_TAGS} tags.", code="discord_bad_tags")
    if any(tag.moderated for tag in chosen):
        context.require("manage_threads", forum)
    worded, name = await prepare_text(context, forum, text), _title(title)
    standing = await _find_post(context, forum, name, worded.text)
    if standing:
        return describe_message(context, standing, standing) | {"thread": str(standing)}
    plan = {"name": name, "type": discord.ChannelType.public_thread.value, "applied_tags": [str(t.id) for t in chosen]}
    params = handle_message_parameters(content=worded.text, allowed_mentions=worded.pings, channel_payload=plan)
    with params:
        made = await context.client.http.start_thread_in_forum(forum.id, params=params, reason=context.reason())
    number = int(cast("Mapping[str, Any]", made)["id"])
    return describe_message(context, number, number) | {"thread": str(number)}


async def _open_private(context: ActionContext, where: discord.TextChannel, title: str, text: str) -> JsonObject:
    context.require("create_private_threads", where)
    context.require("send_messages_in_threads", where)
    thread = next(
        (each for each in await _own_threads(context, where, title) if each.is_private() and context.sees(each)), None
    )
    if thread is None:
        thread = await where.create_thread(name=title, type=discord.ChannelType.private_thread, reason=context.reason())
    await thread.add_user(context.asker)
    if text.strip():
        await post_message(context, thread, OutgoingMessage(text))
    return {"thread": str(thread.id), "link": thread.jump_url}


async def _own_threads(context: ActionContext, parent: GuildPlace, name: str) -> list[discord.Thread]:
    """Returns the account's open threads of that name there. Asks Discord, since the cache hears of a new one late."""
    return [
        context.guild.get_thread(each.id) or each
        for each in await context.guild.active_threads()
        if each.parent_id == parent.id and each.owner_id == context.me.id and each.name == name
    ]


async def _find_post(context: ActionContext, forum: discord.ForumChannel, name: str, text: str) -> int:
    """Returns the id of a post with this name and text; 0 when there is none."""
    for thread in await _own_threads(context, forum, name):
        try:
            start = await thread.fetch_message(thread.id)
        except discord.NotFound:
            continue
        if start.content == text.strip():
            return thread.id
    return 0


async def _find_thread(context: ActionContext, text: str) -> discord.Thread:
    found = await load_channel(context, text)
    if not isinstance(found, discord.Thread):
        raise InvalidInput(f"{found.mention} is no thread.", code="discord_no_thread", fix="Give the id of the thread.")
    return found


def _title(name: str) -> str:
    title = " ".join(name.split())
    if not 1 <= len(title) <= _NAME_CHARS:
        raise InvalidInput(f"A thread's name has 1 to {_NAME_CHARS} characters.", code="discord_bad_name")
    return title
