"""Actions on messages and polls: sending, editing, deleting, pinning, publishing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import discord
from discord.http import handle_message_parameters

from denizen.adapters.discord.actions.context import ActionContext
from denizen.adapters.discord.actions.lookup import find_message, get_guild_place, load_channel
from denizen.adapters.discord.actions.menus import list_buttons
from denizen.adapters.discord.actions.posting import (
    OutgoingMessage,
    describe_message,
    post_message,
    prepare_text,
    read_embeds,
    require_rules,
)
from denizen.adapters.discord.messages.content import find_action
from denizen.adapters.discord.messages.wording import find_replied_message
from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.domain.json import Json, JsonObject

_NOTHING: Mapping[str, Json] = {}


async def send_message(
    context: ActionContext, text: str = "", channel: str = "", embed: Mapping[str, Json] = _NOTHING, reply_to: str = ""
) -> JsonObject:
    where = await load_channel(context, channel)
    if reply_to:
        reply_to = str((await find_message(context, reply_to, str(where.id), named=True)).id)
    return await post_message(context, where, OutgoingMessage(text, embed, reply_to))


async def edit_message(
    context: ActionContext, message: str, text: str = "", channel: str = "", embed: Mapping[str, Json] = _NOTHING
) -> JsonObject:
    """Changes the text or the embed of a message of the account; what is not given stays."""
    found = await find_message(context, message, channel, named=True)
    where = get_guild_place(found)
    require_own(context, found)
    if not (text.strip() or any(embed.values())):
        raise InvalidInput("Nothing was said to change.", code="discord_empty", fix="Give a text or an embed.")
    context.require_writing(where, *(["embed_links"] if embed else []))
    worded = await prepare_text(context, where, text)
    params = handle_message_parameters(
        content=worded.text if text else discord.utils.MISSING,
        embeds=read_embeds(embed) if embed else discord.utils.MISSING,
        allowed_mentions=worded.pings,
    )
    with params:
        await context.client.http.edit_message(where.id, found.id, params=params)
    return describe_message(context, where.id, found.id)


async def delete_message(context: ActionContext, message: str, channel: str = "", *, own: bool = False) -> JsonObject:
    """Deletes a message; with `own` it has to be one of the account's."""
    found = await find_message(context, message, channel)
    if own or found.author.id == context.me.id:
        require_own(context, found)
    elif found.author.id == context.asker.id:
        context.require_account("manage_messages", get_guild_place(found))
    else:
        context.require("manage_messages", get_guild_place(found))
    await found.delete()
    return describe_message(context, found.channel.id, found.id)


async def pin_message(context: ActionContext, message: str, channel: str = "") -> JsonObject:
    found = await find_message(context, message, channel)
    context.require("pin_messages", get_guild_place(found))
    await found.pin(reason=context.reason())
    return describe_message(context, found.channel.id, found.id)


async def unpin_message(context: ActionContext, message: str, channel: str = "") -> JsonObject:
    found = await find_message(context, message, channel)
    context.require("pin_messages", get_guild_place(found))
    await found.unpin(reason=context.reason())
    return describe_message(context, found.channel.id, found.id)


async def crosspost_message(context: ActionContext, message: str, channel: str = "") -> JsonObject:
    """Publishes a message to the following channels of other servers. Publishing it again changes nothing."""
    found = await find_message(context, message, channel)
    where = get_guild_place(found)
    if not isinstance(where, discord.TextChannel) or not where.is_news():
        raise InvalidInput("Only messages of announcement channels can be published.", code="discord_no_news")
    if found.flags.crossposted:
        return describe_message(context, where.id, found.id)
    for member, require in ((context.asker, context.require_asker), (context.me, context.require_account)):
        require("send_messages" if found.author.id == member.id else "manage_messages", where)
    await found.publish()
    return describe_message(context, where.id, found.id)


def require_own(context: ActionContext, message: discord.Message) -> None:
    """Raises NotAllowed unless the account wrote the message and the asker has a say in it: it answered them, or they
    may manage messages there.

    Nobody may change a card that asks for an approval: people approve what it says.
    """
    if message.author.id != context.me.id:
        raise NotAllowed("That message is not mine.", code="discord_not_mine")
    if any(find_action(each.custom_id or "") for each in list_buttons(message)):
        raise NotAllowed("That message asks people for a decision; it stays as it is.", code="discord_card")
    original = find_replied_message(message)
    command = message.interaction_metadata
    answered = (original.author.id if original else None, command.user.id if command else None)
    if context.asker.id not in answered:
        context.require_asker("manage_messages", get_guild_place(message))


# Discord's limits for polls.
_QUESTION_CHARS = 300
_ANSWER_CHARS = 55
_MAX_ANSWERS = 10
_MAX_HOURS = 768


async def create_poll(
    context: ActionContext,
    question: str,
    answers: Sequence[str],
    hours: int = 24,
    *,
    several: bool = False,
    channel: str = "",
) -> JsonObject:
    """Posts a poll. With `several` people may choose more than one answer."""
    where = await load_channel(context, channel)
    require_rules(
        "poll",
        (
            (1 <= len(question.strip()) <= _QUESTION_CHARS, f"its question has 1 to {_QUESTION_CHARS} characters"),
            (1 <= len(answers) <= _MAX_ANSWERS, f"it has 1 to {_MAX_ANSWERS} answers"),
            (
                all(1 <= len(each.strip()) <= _ANSWER_CHARS for each in answers),
                f"each answer has 1 to {_ANSWER_CHARS} characters",
            ),
            (1 <= hours <= _MAX_HOURS, f"it lasts 1 to {_MAX_HOURS} hours"),
        ),
    )
    poll = discord.Poll(question, timedelta(hours=hours), multiple=several)
    for answer in answers:
        poll.add_answer(text=answer)
    return await post_message(context, where, OutgoingMessage(poll=poll))


async def end_poll(context: ActionContext, message: str, channel: str = "") -> JsonObject:
    """Ends a poll. Ending it again changes nothing."""
    found = await find_message(context, message, channel)
    poll = _get_poll(found)
    require_own(context, found)
    if not poll.is_finalised():
        await found.end_poll()
    return describe_message(context, found.channel.id, found.id)


async def read_poll(context: ActionContext, message: str, channel: str = "") -> JsonObject:
    found = await find_message(context, message, channel)
    await context.require_open(get_guild_place(found))
    poll = _get_poll(found)
    return {
        "question": poll.question,
        "answers": [[each.text, each.vote_count] for each in poll.answers],
        "ended": poll.is_finalised(),
        "ends": poll.expires_at.isoformat(timespec="minutes") if poll.expires_at else "",
    }


def _get_poll(message: discord.Message) -> discord.Poll:
    if message.poll is None:
        raise InvalidInput("That message is no poll.", code="discord_no_poll")
    return message.poll
