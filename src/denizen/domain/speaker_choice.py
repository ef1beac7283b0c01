"""Which of several agents speak when one message concerns them all, and how an agent stays silent. Pure.

Agents that are addressed speak in the order in which they are addressed, each after having read the earlier replies.
Agents that are not addressed stay silent where others are. Where nobody is addressed, at most one agent joins in: the
one named in the text, else the one that answered this person last, else the most eager one, if its eagerness is not 0.
An answer means silence only when all of it is `SILENCE`: the word inside other text means nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from denizen.domain.attention import Trigger
from denizen.domain.ids import AgentName
from denizen.domain.record import record
from denizen.domain.room import Post

SILENCE = "[silence]"
"""The answer of an agent that has nothing to add, where it may stay silent."""

_ADDRESSED = (Trigger.MENTION, Trigger.REPLY, Trigger.ROLE_MENTION, Trigger.DIRECT, Trigger.HANDED)


@record
class SpeakerCandidate:
    """An agent that may answer the message.

    `place` is its position among the mentions, counted from 0; None without one. `named` is the position of its name in
    the text. `spoke_at` is when it answered this person last. `eagerness` is 0 to 100.
    """

    agent: AgentName
    trigger: Trigger
    place: int | None = None
    named: int | None = None
    spoke_at: datetime | None = None
    eagerness: int = 50

    @property
    def is_addressed(self) -> bool:
        return self.trigger in _ADDRESSED


def decide_speakers(candidates: Iterable[SpeakerCandidate]) -> tuple[AgentName, ...]:
    """Returns the agents that speak, in order. The order of the candidates does not matter."""
    known = sorted(candidates, key=lambda each: each.agent)
    addressed = [each for each in known if each.is_addressed]
    if addressed:
        return tuple(each.agent for each in sorted(addressed, key=_order))
    if len(known) < 2:
        return tuple(each.agent for each in known)
    return tuple(each.agent for each in _choose(known))


def _order(candidate: SpeakerCandidate) -> tuple[int, int, str]:
    """The sort key of an addressed agent: by mention; replies and role mentions come after all mentions."""
    place = candidate.place
    return (_ADDRESSED.index(candidate.trigger), 0, candidate.agent) if place is None else (-1, place, candidate.agent)


def _choose(unasked: Sequence[SpeakerCandidate]) -> Sequence[SpeakerCandidate]:
    named = [each for each in unasked if each.named is not None]
    if named:
        return [min(named, key=lambda each: each.named or 0)]
    known = [each for each in unasked if each.spoke_at is not None]
    if known:
        latest = max(each.spoke_at for each in known if each.spoke_at is not None)
        return [each for each in known if each.spoke_at == latest][:1]
    most = max(unasked, key=lambda each: each.eagerness)
    return [most] if most.eagerness > 0 else []


def find_name(text: str, name: str) -> int | None:
    """Returns where a name stands as a word of its own, in any case; None where it does not."""
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
    return found.start() if found else None


def find_last_answer(posts: Sequence[Post], person: str, account: str) -> datetime | None:
    """Returns when the account answered that person last. The posts are from old to new."""
    asked = {post.id for post in posts if post.author.id == person}
    answers = [post.created_at for post in posts if post.author.id == account and post.reply_to in asked]
    return answers[-1] if answers else None


def is_silence(text: str) -> bool:
    """Whether the answer means silence."""
    return text.strip() == SILENCE
