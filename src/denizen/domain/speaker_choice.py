"""Who of several agents speaks when one message concerns them all, and how one of them stays silent. Pure.

Whoever was addressed speaks, in the order addressed, each after having read those before. Of those who may join in
unasked at most one does: the one named in the text, else who spoke last with this person, else the most eager; where
nobody is eager, nobody. Who is unasked stays silent where others were addressed. Silence is an answer that is exactly
`SILENCE`, never a word inside other text (inventory X-no-action, TW9).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from denizen.domain.attention import Trigger
from denizen.domain.ids import AgentName
from denizen.domain.room import Post

SILENCE = "[silence]"
"""What an agent answers that has nothing to add, where that is allowed."""

_ADDRESSED = (Trigger.MENTION, Trigger.REPLY, Trigger.ROLE_MENTION, Trigger.DIRECT)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An agent that may answer the message. `place` is where it was mentioned, counted from 0, or None; `named` is
    where its name stands in the text; `spoke_at` is when it answered this person last. `eagerness` is 0 to 100.
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


def decide_speakers(candidates: Iterable[Candidate]) -> tuple[AgentName, ...]:
    """Those who speak, in their order. The same candidates in any order give the same."""
    known = sorted(candidates, key=lambda each: each.agent)
    addressed = [each for each in known if each.is_addressed]
    if addressed:
        return tuple(each.agent for each in sorted(addressed, key=_order))
    if len(known) < 2:
        return tuple(each.agent for each in known)
    return tuple(each.agent for each in _choose(known))


def _order(candidate: Candidate) -> tuple[int, int, str]:
    """By mention; a reply and a role come after all mentions."""
    place = candidate.place
    return (_ADDRESSED.index(candidate.trigger), 0, candidate.agent) if place is None else (-1, place, candidate.agent)


def _choose(unasked: Sequence[Candidate]) -> Sequence[Candidate]:
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
    """Where a name stands as a word of its own, in any case."""
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
    return found.start() if found else None


def find_last_answer(posts: Sequence[Post], person: str, account: str) -> datetime | None:
    """When the account answered that person last, in posts from old to new."""
    asked = {post.id for post in posts if post.author.id == person}
    answers = [post.created_at for post in posts if post.author.id == account and post.reply_to in asked]
    return answers[-1] if answers else None


def is_silence(text: str) -> bool:
    """Whether the whole answer is the agreed word."""
    return text.strip() == SILENCE
