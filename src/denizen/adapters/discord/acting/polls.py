"""Discord's own polls: asking, ending, reading."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import discord

from denizen.adapters.discord.acting.hand import Hand
from denizen.adapters.discord.acting.lookup import find_message, load_channel, place_of
from denizen.adapters.discord.acting.messages import require_own
from denizen.adapters.discord.acting.writing import Written, post, told
from denizen.domain.errors import InvalidInput
from denizen.domain.json import JsonObject

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
