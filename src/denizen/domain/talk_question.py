"""A question about earlier talk: who said it, in which room, and when. Pure.

Only where the words leave little doubt: a person counts as the speaker in "what did Ana say" and "according to Ana",
but not in "who saw Ana"; a room is written as `#plans`; times are those of `period`, and count where the question is
about talk and not about a thing that happened then, of which people may talk later. What is understood narrows a
search, the rest of the words is what is searched for.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, tzinfo
from itertools import pairwise

from denizen.domain.period import Period, find_period
from denizen.domain.ranking import telling_words
from denizen.domain.record import record
from denizen.domain.words import split_words

_SAID = frozenset(
    split_words(
        "said says saying told mentioned wrote written writes suggested proposed recommended decided agreed discussed"
        " talked announced asked answered replied promised explained reported complained posted shared thought claimed"
        " admitted confirmed warned remarked noted argued"
    )
)
_SAY = frozenset(
    split_words(
        "say tell mention write suggest propose recommend decide agree discuss talk announce ask answer reply promise"
        " explain report complain post share think claim admit confirm warn remark note argue"
    )
)
_OF_SPEAKER = frozenset(
    split_words(
        "message messages post posts answer answers reply replies opinion idea ideas view suggestion suggestions"
        " proposal comment comments advice"
    )
)
_ASKS_BACK = frozenset({"did", "has", "have", "had", "was", "were"})
_ANYBODY = frozenset({"we", "they", "anybody", "anyone", "somebody", "someone"})
_SPEECH_REACH = 3
"""How many words after a name a verb of speaking may come: "did Ana ever really say"."""
_TOLD_ABOUT = frozenset({"to", "about", "who", "that"})
"""Behind one of these words, a verb is somebody else's."""

_WORD = re.compile(r"[^\W_]+(?:[^\W_]|[\u0300-\u036f])*")
_ANYTHING = re.compile(r"\b(?:messages?|posts?|happen(?:ed)?|miss(?:ed)?|news)\b", re.IGNORECASE)
"""Whatever is found is one, so the word says nothing to a search."""
_ROOM_ID = re.compile(r"<#(\w+)>")
_MENTION = re.compile(r"(?:^|\s)[@#][^\W_]|<[@#]")
_NAME_LIKE = re.compile(r"(?<![.!?:])\s(?![A-Z]+\b)[^\W\d_a-z][^\W\d_]+|^[^\W\d_]+['’]s\b")


@record(kw_only=True)
class TalkQuestion:
    """`words` are what is left to be searched for. `author` and `room` are ids, empty where nothing is said of them."""

    words: str
    author: str = ""
    author_name: str = ""
    room: str = ""
    period: Period = field(default_factory=Period)

    @property
    def is_narrowed(self) -> bool:
        return bool(self.author or self.room or self.period.is_bounded)


def asks_about_talk(question: str) -> bool:
    """Whether a question may be about what people said: it asks for that, or names a room or maybe a person."""
    return (
        _asks_what_was_said(question)
        or any(one == "did" and other in _ANYBODY for one, other in pairwise(split_words(question)))
        or _MENTION.search(question) is not None
        or _NAME_LIKE.search(question) is not None
    )


def names_speaker(text: str) -> bool:
    """Whether the text may say who spoke, so that it is worth knowing who there is."""
    words = set(split_words(text))
    return bool(words & (_SAID | _SAY | _OF_SPEAKER | {"by", "from", "according"})) or "@" in text


def read_talk_question(
    text: str, *, rooms: Mapping[str, str], authors: Mapping[str, str], asker: str, now: datetime, zone: tzinfo
) -> TalkQuestion:
    """Reads a question. `rooms` and `authors` are names by id, of those that the asker may know of; `asker` is the
    author who is `I`. A name that several have says nothing.
    """
    left, room = _take_room(text, rooms)
    left, author = _take_author(left, authors, asker)
    mention = find_period(left, now=now, zone=zone)
    if mention and (author or room or _asks_what_was_said(text) or not telling_words(mention.rest)):
        left, period = mention.rest, mention.period
    else:
        period = Period()
    asked = TalkQuestion(words=text, author=author, author_name=authors.get(author, ""), room=room, period=period)
    return replace(asked, words=" ".join(_ANYTHING.sub("", left).split())) if asked.is_narrowed else asked


def _asks_what_was_said(question: str) -> bool:
    words = split_words(question)
    asks_back = next((place for place, word in enumerate(words) if word in _ASKS_BACK), len(words))
    return (
        not _SAID.isdisjoint(words[1:])
        or not _SAY.isdisjoint(words[asks_back:])
        or _ANYTHING.search(question) is not None
    )


def _take_room(text: str, rooms: Mapping[str, str]) -> tuple[str, str]:
    """Returns the text without the room that it names as `#name` or `<#id>`, and the room's id."""
    if (found := _ROOM_ID.search(text)) and found[1] in rooms:
        return _cut(text, found.start(), found.end()), found[1]
    by_name: defaultdict[str, list[str]] = defaultdict(list)
    for key, name in rooms.items():
        by_name[name.casefold()].append(key)
    folded = text.casefold()
    if len(folded) != len(text):  # places would differ
        return text, ""
    for name in sorted(filter(None, by_name), key=lambda each: (-len(each), each)):
        place = re.search(rf"(?<!\w)#{re.escape(name)}(?![\w-])", folded)
        if place and len(by_name[name]) == 1:
            return _cut(text, place.start(), place.end()), by_name[name][0]
    return text, ""


def _take_author(text: str, authors: Mapping[str, str], asker: str) -> tuple[str, str]:
    """Returns the text without the speaker that it names and the verb of speaking, and the author's id."""
    runs = list(_WORD.finditer(text))
    words = ["".join(split_words(run[0])) for run in runs]
    forms = _list_forms(authors, asker)
    longest = max(map(len, forms), default=0)
    found: dict[str, set[int]] = {}
    place = 0
    while place < len(words):
        end = next((e for e in range(place + longest, place, -1) if tuple(words[place:e]) in forms), place + 1)
        keys = forms.get(tuple(words[place:end]), ())
        spoken = _find_speaking(text[: runs[place].start()], words, place, end) if keys else None
        for key in keys if spoken is not None else ():
            found.setdefault(key, {*range(place, end), *(spoken or ())})
        place = end
    if len(found) != 1:
        return text, ""
    [(author, taken)] = found.items()
    for number in sorted(taken, reverse=True):
        start = runs[number].start()
        text = _cut(text, start - text[:start].endswith("@"), runs[number].end())
    return text, author


def _list_forms(authors: Mapping[str, str], asker: str) -> dict[tuple[str, ...], Collection[str]]:
    """Names in words, with the ids of who has them; first names where nobody is called that in full."""
    full: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    first: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for key, name in authors.items():
        words = tuple(split_words(name))
        if words:
            full[words].add(key)
            first[words[:1]].add(key)
    own = {("i",): {asker}} if asker else {}
    return {**first, **full, **own}


def _find_speaking(before: str, words: Sequence[str], first: int, end: int) -> list[int] | None:
    """Returns the places of words that say that the name from `first` to `end` is the speaker's; None where none do."""
    if before.endswith("@"):
        return []
    if first and words[first - 1] in {"by", "from"}:
        return [first - 1]
    if words[max(first - 2, 0) : first] == ["according", "to"]:
        return [first - 2, first - 1]
    asks_back = not _ASKS_BACK.isdisjoint(words[:first])
    for place, word in enumerate(words[end : end + _SPEECH_REACH], start=end):
        if word in _TOLD_ABOUT:
            return None
        if word in _SAID or (word in _SAY and asks_back) or (word in _OF_SPEAKER and words[end] == "s"):
            return list(range(end, place + 1))
    return None


def _cut(text: str, start: int, end: int) -> str:
    return f"{text[:start]}{text[end:]}"
