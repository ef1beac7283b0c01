"""Finds the lines that an answer was taken from, for models that do not say it themselves. Pure.

A line is named only for a sentence that plainly says it again: it shares most of the sentence's telling words and
something that the question did not have, and every number of the sentence stands there. A name or a figure alone that
answers the question counts where the line is about the question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log

from denizen.domain.citation import DocumentRef
from denizen.domain.claims import CitedLines, DocumentLines, find_fault, find_stems
from denizen.domain.record import record

MAX_SENTENCES = 30
MAX_NAMED = 3
"""So many places are named at most."""
SHARED = 0.6
"""The share of a sentence's telling words, by weight, that a line must have."""
MIN_SHARED = 3
MIN_ABOUT = 2
"""So many words of the question a line must have that answers it in a word."""

_SENTENCE = re.compile(r"[^\n]+?(?:[.!?…][\"')*_”’»]*(?=\s)|[。！？]|$)", re.MULTILINE)
_REFUSAL = re.compile(
    r"(?i)\b(?:not?|nothing|cannot|unable|nicht|nichts|keine?|ne|no|nada|niet|geen|не|нет)\b|n['’]t\b|没有|不知道"
)
_TOLD = re.compile(
    r"(?i)\b(?:says?|said|mention\w*|contain\w*|know\w*|found|find|answer\w*|inform\w*|tell|states?|specif\w*|sources?"
    r"|documents?|weiß|steht|gefunden|angaben?|erwähn\w*|quellen?|dokument\w*|sais|dit|trouv\w*|sé|dice|encontr\w*)\b"
)
"""Words of an answer that says that there is none."""
_FENCED = re.compile(r"^[ \t>]*```.*?(?:^[ \t>]*```|\Z)", re.MULTILINE | re.DOTALL)


@record
class ReadLines:
    """A document, and the lines of it that were read."""

    document: DocumentLines
    numbers: Sequence[int]


@record
class Attribution:
    """A sentence, and the line that it says again."""

    sentence: str
    ref: DocumentRef


def find_attributions(answer: str, read: Sequence[ReadLines], question: str) -> list[Attribution]:
    """Returns the sentences of the answer that come from these lines, each line once, in order."""
    headings_of = {each.document.path: _find_headings(each.document) for each in read}
    lines = [
        (each.document, number, find_stems(line), headings_of[each.document.path].get(number, frozenset[str]()))
        for each in read
        for number in each.numbers
        for line in [each.document.lines[number - 1]]
        if not line.startswith("#")
    ]
    counts = Counter(stem for _, _, stems, _ in lines for stem in stems)
    weights = {stem: log(1 + len(lines) / count) for stem, count in counts.items()}
    asked = find_stems(question)
    found: dict[DocumentRef, Attribution] = {}
    for sentence in _sentences(answer):
        stems = find_stems(sentence)
        best, most = None, 0.0
        for document, number, held, headings in lines:
            if not _says_again(stems, held, headings, asked, weights):
                continue
            weight = sum(weights[stem] for stem in (stems | asked) & held)
            cited = CitedLines(document, number, number)
            if weight > most and find_fault(sentence, [cited], question) is None:
                best, most = DocumentRef(document.path, number, number), weight
        if best and best not in found:
            found[best] = Attribution(sentence, best)
        if len(found) == MAX_NAMED:
            break
    return list(found.values())


def _find_headings(document: DocumentLines) -> dict[int, frozenset[str]]:
    """Returns the words that rows of tables have from above them, by line: of the columns, and of the heading."""
    found: dict[int, frozenset[str]] = {}
    heading, columns = "", None
    for number, line in enumerate(document.lines, 1):
        is_row = line.lstrip().startswith("|")
        if line.startswith("#"):
            heading = line
        if is_row and columns is None:
            columns = find_stems(f"{line} {heading}")
        elif not is_row:
            columns = None
        if columns is not None:
            found[number] = columns
    return found


def is_refusal(sentence: str) -> bool:
    """Whether it says that there is no answer."""
    return bool(_REFUSAL.search(sentence) and _TOLD.search(sentence))


def _sentences(answer: str) -> Iterator[str]:
    plain = _FENCED.sub("", answer)
    for count, found in enumerate(_SENTENCE.finditer(plain)):
        if count == MAX_SENTENCES:
            return
        sentence = found[0].strip()
        if sentence and not sentence.endswith(("?", "？")) and not is_refusal(sentence):
            yield sentence


def _says_again(
    stems: frozenset[str],
    held: frozenset[str],
    headings: frozenset[str],
    asked: frozenset[str],
    weights: Mapping[str, float],
) -> bool:
    """`held` are the words of the line itself, `headings` those above it that it is to be read with."""
    if not stems & held - asked:
        return False
    held |= headings
    shared = stems & held
    if len(shared) < MIN_SHARED:
        return stems - asked <= held and len(asked & held) >= MIN_ABOUT
    rarest = max(weights.values())
    answering = asked & held  # a line about the question may say it in the question's words
    whole = sum(weights.get(stem, rarest) for stem in stems | answering)
    return sum(weights.get(stem, rarest) for stem in shared | answering) >= SHARED * whole
