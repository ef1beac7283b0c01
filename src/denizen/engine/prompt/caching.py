"""For how long a provider's cache is to keep a conversation: five minutes or an hour, by the rhythm of its turns. Pure.

Prices of tokens, with that of an unread one as 1: written to be kept five minutes 1.25, for an hour 2, read 0.1. A
read begins the time anew. With `p` tokens that are kept and `d` new ones a turn:

    warm, for five minutes   0.1 p + 1.25 d     each turn, while no pause is longer than that
    warm, for an hour        0.1 p + 2 d
    cold, after a pause      1.25 or 2 times (p + d): all is written once more

The hour costs 0.75 d a turn, and saves 1.15 (p + d) with each pause that is longer than five minutes and not than an
hour. After n turns of like size p + d is n d. Where k of the n pauses so far were such, another comes with a chance of
k / n, and saves 1.15 k d: so one such pause in the conversation is enough. Unless it has just fallen out of the cache:
then all of it is new, the hour costs 0.75 n d, and two of the last three pauses have to be such (`COLD_SHARE`). After
longer pauses than an hour nothing is left of either, and the cheap one is right.

Steps of one turn change nothing of that: each reads what the one before it wrote, and writes only what is new. What is
written again and again, or seen by one turn only, is not what this is about: notes of one request stand behind the
last mark, and what a participant does with tools is kept for five minutes, since its next turn does not show it.
Tools and system prompt are shared by all sessions, and kept as the provider is configured (an hour).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from denizen.domain.ids import TurnId
from denizen.domain.prompt import count_tool_tokens
from denizen.domain.prompt_messages import count_tokens
from denizen.domain.trace import MessageUse, PromptUse, SegmentUse
from denizen.ports.model import ModelRequest

SHORT_S = 300.0
LONG_S = 3600.0
COLD_MEMORY, COLD_SHARE = 3, 0.65
"""The number of pauses, and the share of them that must last minutes, when all has to be written once more."""


def plan_keep_s(pauses_s: Sequence[float]) -> float:
    """`SHORT_S` or `LONG_S` for what is written now, by the pauses between the turns so far, oldest first; the last is
    the one before this turn.
    """
    is_middle = [SHORT_S < pause_s <= LONG_S for pause_s in pauses_s]
    keep_s, had_one = SHORT_S, False
    for place, pause_s in enumerate(pauses_s):
        had_one = had_one or is_middle[place]
        recent = is_middle[max(place + 1 - COLD_MEMORY, 0) : place + 1]
        is_cold = pause_s > keep_s
        keep_s = LONG_S if (sum(recent) >= COLD_SHARE * len(recent) if is_cold else had_one) else SHORT_S
    return keep_s


def pauses_between(turns: Iterable[tuple[datetime, datetime]]) -> list[float]:
    """From the end of each turn to the beginning of the next, in seconds. The turns by (beginning, end), in order."""
    pauses: list[float] = []
    ended_at: datetime | None = None
    for began_at, end in turns:
        if ended_at is not None:
            pauses.append(max((began_at - ended_at).total_seconds(), 0.0))
        ended_at = end
    return pauses


def describe(request: ModelRequest, turn_id: TurnId, step: int, model: str) -> PromptUse:
    """Segments, tools, and the messages by kind."""
    kinds: dict[str, list[int]] = {}
    for message in request.messages:
        kinds.setdefault(message.kind, []).append(count_tokens(message))
    return PromptUse(
        turn_id=turn_id,
        step=step,
        model=model,
        segments=tuple(map(SegmentUse.of, request.segments)),
        messages=tuple(MessageUse(kind, len(tokens), sum(tokens)) for kind, tokens in kinds.items()),
        tools=tuple(spec.name for spec in request.tools),
        tool_tokens=sum(map(count_tool_tokens, request.tools)),
    )
