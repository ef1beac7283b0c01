"""Actions on messages: sending, editing, deleting, pinning, publishing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import discord
from discord.http import handle_message_parameters

from denizen.adapters.discord.actions.context import Hand
from denizen.adapters.discord.actions.lookup import find_message, load_channel, place_of
from denizen.adapters.discord.actions.menus import list_buttons
from denizen.adapters.discord.actions.posting import Written, post, read_embeds, told, word
from denizen.adapters.discord.messages.content import find_action
from denizen.adapters.discord.messages.wording import original_of
from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.domain.json import Json, JsonObject

_NOTHING: Mapping[str, Json] = {}


async def send_message(
    hand: Hand, text: str = "", channel: str = "", embed: Mapping[str, Json] = _NOTHING, reply_to: str = ""
) -> JsonObject:
    where = await load_channel(hand, channel)
    if reply_to:
        reply_to = str((await find_message(hand, reply_to, str(where.id), named=True)).id)
    return await post(hand, where, Written(text, embed, reply_to))


async def edit_message(
    hand: Hand, message: str, text: str = "", channel: str = "", embed: Mapping[str, Json] = _NOTHING
) -> JsonObject:
    """What is not given stays as it is."""
    found = await find_message(hand, message, channel, named=True)
    where = place_of(found)
    require_own(hand, found)
    if not (text.strip() or any(embed.values())):
        raise InvalidInput("Nothing was said to change.", code="discord_empty", fix="Give a text or an embed.")
    hand.require_writing(where, *(["embed_links"] if embed else []))
    worded = await word(hand, where, text)
    params = handle_message_parameters(
        content=worded.text if text else discord.utils.MISSING,
        embeds=read_embeds(embed) if embed else discord.utils.MISSING,
        allowed_mentions=worded.pings,
    )
    with params:
        await hand.client.http.edit_message(where.id, found.id, params=params)
    return told(hand, where.id, found.id)


async def delete_message(hand: Hand, message: str, channel: str = "", *, own: bool = False) -> JsonObject:
    """With `own` it has to be one of the account's."""
    found = await find_message(hand, message, channel)
    if own or found.author.id == hand.me.id:
        require_own(hand, found)
    elif found.author.id == hand.asker.id:
        hand.require_of_me("manage_messages", place_of(found))
    else:
        hand.require("manage_messages", place_of(found))
    await found.delete()
    return told(hand, found.channel.id, found.id)


async def pin_message(hand: Hand, message: str, channel: str = "") -> JsonObject:
    found = await find_message(hand, message, channel)
    hand.require("pin_messages", place_of(found))
    await found.pin(reason=hand.reason())
    return told(hand, found.channel.id, found.id)


async def unpin_message(hand: Hand, message: str, channel: str = "") -> JsonObject:
    found = await find_message(hand, message, channel)
    hand.require("pin_messages", place_of(found))
    await found.unpin(reason=hand.reason())
    return told(hand, found.channel.id, found.id)


async def crosspost_message(hand: Hand, message: str, channel: str = "") -> JsonObject:
    """To all channels of other servers that follow this one. Twice is once."""
    found = await find_message(hand, message, channel)
    where = place_of(found)
    if not isinstance(where, discord.TextChannel) or not where.is_news():
        raise InvalidInput("Only messages of announcement channels can be published.", code="discord_no_news")
    if found.flags.crossposted:
        return told(hand, where.id, found.id)
    for member, require in ((hand.asker, hand.require_of_asker), (hand.me, hand.require_of_me)):
        require("send_messages" if found.author.id == member.id else "manage_messages", where)
    await found.publish()
    return told(hand, where.id, found.id)


def require_own(hand: Hand, message: discord.Message) -> None:
    """Raises NotAllowed unless it is the account's, and the asker may have a word in it: because it answered them, or
    because they may manage messages there. A card that asks for a decision is nobody's to change: what it says is what
    people approve.
    """
    if message.author.id != hand.me.id:
        raise NotAllowed("That message is not mine.", code="discord_not_mine")
    if any(find_action(each.custom_id or "") for each in list_buttons(message)):
        raise NotAllowed("That message asks people for a decision; it stays as it is.", code="discord_card")
    original = original_of(message)
    command = message.interaction_metadata
    answered = (original.author.id if original else None, command.user.id if command else None)
    if hand.asker.id not in answered:
        hand.require_of_asker("manage_messages", place_of(message))


_QUESTION_CHARS = 300
_ANSWER_CHARS = 55
_MAX_ANSWERS = 10
_MAX_HOURS = 768


async def create_poll(
    hand: Hand, question: str, answers: Sequence[str], hours: int = 24, *, several: bool = False, channel: str = ""
) -> JsonObject:
    """`several`: each may choose more than one answer."""
    where = await load_channel(hand, channel)
    _check(question, answers, hours)
    poll = discord.Poll(question, timedelta(hours=hours), multiple=several)
    for answer in answers:
        poll.add_answer(text=answer)
    return await post(hand, where, Written(poll=poll))


async def end_poll(hand: Hand, message: str, channel: str = "") -> JsonObject:
    """Twice is once."""
    found = await find_message(hand, message, channel)
    poll = _poll_of(found)
    require_own(hand, found)
    if not poll.is_finalised():
        await found.end_poll()
    return told(hand, found.channel.id, found.id)


async def read_poll(hand: Hand, message: str, channel: str = "") -> JsonObject:
    found = await find_message(hand, message, channel)
    await hand.require_open(place_of(found))
    poll = _poll_of(found)
    return {
        "question": poll.question,
        "answers": [[each.text, each.vote_count] for each in poll.answers],
        "ended": poll.is_finalised(),
        "ends": poll.expires_at.isoformat(timespec="minutes") if poll.expires_at else "",
    }


def _poll_of(message: discord.Message) -> discord.Poll:
    if message.poll is None:
        raise InvalidInput("That message is no poll.", code="discord_no_poll")
    return message.poll


def _check(question: str, answers: Sequence[str], hours: int) -> None:
    wrong = ""
    if not 1 <= len(question.strip()) <= _QUESTION_CHARS:
        wrong = f"its question has 1 to {_QUESTION_CHARS} characters"
    elif not 1 <= len(answers) <= _MAX_ANSWERS:
        wrong = f"it has 1 to {_MAX_ANSWERS} answers"
    elif not all(1 <= len(each.strip()) <= _ANSWER_CHARS for each in answers):
        wrong = f"each answer has 1 to {_ANSWER_CHARS} characters"
    elif not 1 <= hours <= _MAX_HOURS:
        wrong = f"it lasts 1 to {_MAX_HOURS} hours"
    if wrong:
        raise InvalidInput(f"That cannot be a poll: {wrong}.", code="discord_bad_poll")
