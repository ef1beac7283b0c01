"""Looks up earlier messages of the conversation that the prompt does not hold any more: by words, or by their
numbers where the prompt has a summary of them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from denizen.skill import HistoryMessage, Param, Skill, Taint, Tier, ToolContext, ToolOutput, quote_untrusted

MAX_MESSAGE_CHARS = 400
MAX_PAGE_CHARS = 6000
"""The limit for messages that are read unchanged at once. A single longer message is cut."""

_SOURCE = "this conversation, times in UTC"

skill = Skill("conversation", description="Earlier messages of this conversation.")


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def search_conversation(
    context: ToolContext,
    words: Annotated[str, Param("all must occur", min_length=1, max_length=200)],
    limit: Annotated[int, Param(ge=1, le=20)] = 5,
) -> str | ToolOutput:
    """Finds earlier messages of this conversation, newest first."""
    found = await context.history.search(words, limit=limit)
    if not found:
        return ToolOutput(f"No earlier message of this conversation contains: {words}", is_own=True)
    lines = [f"{message.at:%Y-%m-%d %H:%M} {message.author}: {_shorten(message.text)}" for message in found]
    return quote_untrusted("\n".join(lines), source=_SOURCE)


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def read_messages(
    context: ToolContext, first: Annotated[int, Param(ge=1)], last: Annotated[int, Param(ge=1)]
) -> str | ToolOutput:
    """Reads summed up messages word for word, by their numbers."""
    found = await context.history.read(first, last)
    if not found:
        return ToolOutput(f"There are no messages {first} to {last} in this conversation (any more).", is_own=True)
    page, left = [_told(found[0])[:MAX_PAGE_CHARS]], MAX_PAGE_CHARS
    for before, message in pairwise(found):
        left -= len(_told(before))
        if len(_told(message)) > left:
            break
        page.append(_told(message))
    read = found[len(page) - 1].number
    more = f"\nFor more, read on from {read + 1}." if read < last else ""
    return quote_untrusted("\n".join(page), source=_SOURCE) + more


def _told(message: HistoryMessage) -> str:
    return f"{message.number} {message.at:%Y-%m-%d %H:%M} {message.author}: {message.text}"


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_MESSAGE_CHARS else f"{flat[:MAX_MESSAGE_CHARS]} …"
