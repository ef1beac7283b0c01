"""Gaps: questions that the documents did not answer, put together where they ask the same. Pure.

What is asked again and again and stands nowhere is what a community should write next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.ranking import STEM_CHARS, telling_words
from denizen.domain.record import record

MAX_CHARS = 500
"""The limit for a question that is stored."""

ALIKE = 0.5
"""Two questions are one when they share so much of the words that tell what they are about."""


class GapKind(StrEnum):
    """Why a question counts as unanswered."""

    UNKNOWN = "unknown"
    """The agent said that its documents do not answer."""
    NOT_FOUND = "not found"
    """It searched, and nothing was found."""


@record(kw_only=True)
class KnowledgeGap:
    """`asker` is a principal's key. `is_private`: it was not asked where others read along."""

    id: str
    agent: AgentName
    question: str
    asker: str
    place: Place
    is_private: bool
    kind: GapKind
    turn_id: TurnId
    created_at: datetime
    is_closed: bool = False


@dataclass(slots=True)
class GapGroup:
    """Gaps of one matter, newest first; `words` are those that all share."""

    gaps: list[KnowledgeGap] = field(default_factory=list[KnowledgeGap])
    words: frozenset[str] = frozenset()

    @property
    def newest(self) -> KnowledgeGap:
        return self.gaps[0]

    @property
    def askers(self) -> int:
        return len({gap.asker for gap in self.gaps})


def group_gaps(gaps: Sequence[KnowledgeGap]) -> list[GapGroup]:
    """`gaps` are newest first. What was asked most comes first, of equals what was asked last."""
    groups: list[GapGroup] = []
    for gap in gaps:
        words = _words(gap.question)
        group = next((each for each in groups if _alike(words, each.words)), None)
        if group is None:
            groups.append(GapGroup([gap], words))
        else:
            group.gaps.append(gap)
    return sorted(groups, key=lambda each: len(each.gaps), reverse=True)


def asks_alike(one: str, other: str) -> bool:
    """Whether two questions are one. What has no word that tells what it is about is like no other."""
    words = _words(one)
    return bool(words) and _alike(words, _words(other))


def _words(question: str) -> frozenset[str]:
    return frozenset(word[:STEM_CHARS] for word in telling_words(question))


def _alike(words: frozenset[str], others: frozenset[str]) -> bool:
    if not words or not others:
        return words == others
    return len(words & others) >= ALIKE * len(words | others)
