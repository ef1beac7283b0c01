"""Memories of an agent: who may hear of them again, and which of them fit a question. Pure.

The rule about hearing: a memory comes up where everybody who reads the reply could have read it where it
was told. `engine/memory` finds out who reads; everything is decided here.

- What was told in a room comes up in that room, and where all readers may see that room at that moment.
- What was told in private comes up in the private talks of the same person, never where others read.
- What the operator wrote on the command line was told nowhere, and is for everybody.

A user's memories are read and changed in turns of that user only, whatever the place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import fsum

from denizen.domain.bm25 import weigh_word
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.prompt import estimate_tokens
from denizen.domain.ranking import telling_words
from denizen.domain.record import record
from denizen.domain.words import split_words

NOWHERE = TurnId("")
"""The turn of what was told outside of any."""

CORE = ""
"""The owner of what an agent knows whoever speaks."""

ID_CHARS = 14
"""The length of a memory's id: short, since a model has to write it."""

MAX_CHARS = 1000
"""The limit of one memory: it is a sentence or two, not a document."""

MAX_MEMORIES = 500
"""The limit of one owner with one agent: all of them are searched for each question. Of those that were superseded
the newest are kept, as many again.
"""


@record
class RecallPolicy:
    """How much comes up unasked: at most so many memories and tokens in one prompt. What is less similar than
    `similarity` (a cosine) in meaning is not found by it.
    """

    max_items: int = 5
    max_tokens: int = 400
    similarity: float = 0.3


@record
class MemoryOrigin:
    """Where a memory was told. An empty platform: nowhere, by the operator. `room` is the thread or channel."""

    platform: str = ""
    room: str = ""
    private: bool = False


@record
class Memory:
    """One thing to keep in mind, as it was told once. `owner` is a principal's key, or `CORE`; `told_by` is the key of
    who told it. What was told instead later supersedes it; then it is history, for people to see.
    """

    id: str
    agent: AgentName
    owner: str
    text: str
    told_at: MemoryOrigin
    told_by: str
    created_at: datetime
    turn_id: TurnId = NOWHERE
    superseded_by: str = ""
    """The id of the memory that is told instead; of a chain, the last one."""
    superseded_at: datetime | None = None

    @property
    def is_core(self) -> bool:
        return self.owner == CORE

    def counts_at(self, moment: datetime) -> bool:
        """Whether it had been told by then, and nothing else instead."""
        return self.created_at <= moment and (self.superseded_at is None or self.superseded_at > moment)


@record
class Audience:
    """Who reads what is said at a place. `private`: nobody but the one who asks. `rooms` are those of the platform
    that all readers may see now; the place's own room need not be among them.
    """

    platform: str
    room: str
    private: bool
    rooms: frozenset[str] = frozenset()

    @property
    def told_at(self) -> MemoryOrigin:
        return MemoryOrigin(self.platform, self.room, self.private)


def may_come_up(memory: Memory, hearing: Audience) -> bool:
    """Whether all who read there may hear of it."""
    told = memory.told_at
    if not told.platform or (told.platform, told.room) == (hearing.platform, hearing.room):
        return True
    if told.private:
        return hearing.private and not memory.is_core
    return told.platform == hearing.platform and told.room in hearing.rooms


def describe_audience(memory: Memory, place: str) -> str:
    """Returns who may hear of it again, in words for people; `place` names the room where it was told."""
    told = memory.told_at
    if not told.platform:
        return "everybody" if memory.is_core else "wherever this person asks"
    if told.private:
        return f"only there, in {place}" if memory.is_core else "only in private talks of this person"
    return f"in {place}, and where all readers may see it"


def needs_rooms(memories: Iterable[Memory], hearing: Audience) -> bool:
    """Whether it matters which rooms the readers may see, which is not free to ask."""
    return any(
        not memory.told_at.private and memory.told_at.platform == hearing.platform and not may_come_up(memory, hearing)
        for memory in memories
    )


WORDS_SHARE = 0.5
"""How much words count beside meaning, whose similarity goes up to 1."""

SHARED_BY = 0.5
"""A word that more than this share of the memories have, such as a name, says nothing about which of them fit."""

WEAK = 0.2
"""A memory with less of the weight of the best one by words is not found by them."""


def rank_memories(question: str, memories: Sequence[Memory], similar: Mapping[str, float]) -> list[Memory]:
    """Returns those that fit the question, the best first, of equals the first: by the words that they share with it,
    weighed by how rare they are among these memories, and by how near in meaning they are. `similar` leads from the ids
    of those that are near enough to their similarity; where none is, whatever shares a word with the question fits.
    """
    stems = {memory.id: _list_stems(split_words(memory.text)) for memory in memories}
    found = Counter(stem for each in stems.values() for stem in each)
    asked = _list_stems(telling_words(question))
    if similar:
        asked = frozenset(stem for stem in asked if found[stem] <= SHARED_BY * len(memories)) or asked
    weights = {stem: weigh_word(found[stem], len(memories)) for stem in asked}
    whole = fsum(weights.values()) or 1.0
    by_words = {key: fsum([weights[stem] for stem in asked & each]) for key, each in stems.items()}
    least = WEAK * max(by_words.values(), default=0.0) if similar else 0.0
    scores = {
        memory.id: similar.get(memory.id, 0.0) + WORDS_SHARE * by_words[memory.id] / whole
        for memory in memories
        if memory.id in similar or (by_words[memory.id] > 0 and by_words[memory.id] >= least)
    }
    return sorted((memory for memory in memories if memory.id in scores), key=lambda memory: -scores[memory.id])


_ENDINGS = ("ings", "ing", "edly", "ied", "ies", "ed", "ly", "es", "s", "e")
_STEM_CHARS = 6


def _list_stems(words: Iterable[str]) -> frozenset[str]:
    """The beginnings of words without usual endings, so that `lives` and `living` are found for `live`."""
    return frozenset(map(_strip_ending, words))


def _strip_ending(word: str) -> str:
    ending = next((each for each in _ENDINGS if word.endswith(each) and len(word) - len(each) > 2), "")
    bare = word.removesuffix(ending)
    doubled = ending[:2] in ("in", "ed") and len(bare) > 3 and bare[-1] == bare[-2]
    return (bare[:-1] if doubled else bare.removesuffix("e"))[:_STEM_CHARS]


def plan_recall(memories: Iterable[Memory], *, max_items: int, max_tokens: int) -> list[Memory]:
    """The first of them within the bounds; one that is too large is passed over."""
    chosen: list[Memory] = []
    left = max_tokens
    for memory in memories:
        if len(chosen) == max_items:
            break
        tokens = estimate_tokens(memory.text)
        if tokens <= left:
            chosen.append(memory)
            left -= tokens
    return chosen
