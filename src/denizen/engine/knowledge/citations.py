"""Whether a place that an answer names is proved: it is looked up in the snapshot, and held against what the agent has
read and against what the sentence says. Called by `proof`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, cast

from anyio import to_thread

from denizen.domain.citation import Citation, CitationFault, DocumentRef, citation_link
from denizen.domain.cited_text import CitationMark
from denizen.domain.errors import DenizenError
from denizen.domain.evidence import READ, ReadResult, describe_reading, places_from_json, read_places
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.domain.message import Role, TextPart, ToolCallPart, ToolResultPart, join_text
from denizen.domain.numbers import WrittenNumber, find_values
from denizen.domain.prompt import PromptMessage
from denizen.domain.ranking import telling_words
from denizen.engine.configuration.generation import ReadOwn
from denizen.ports.source import DocumentText, Library

if TYPE_CHECKING:  # loaded with the first document that is cited: most turns cite none
    from denizen.domain.attribution import ReadLines

MAX_CITED_LINES = 300
"""The limit of one cited place."""
MAX_LOOKED_AT = 2000
MIN_TELLING_CHARS = 10
"""Lines of a document that is cited as a whole: one of them must have been read."""
SEEN_SHARE = 0.5
"""The share of the cited lines that must have been read: tools cut their output."""
MAX_PART_LINES = 20
"""Where so few lines are cited, parts of them count as read too, such as `grep -o` prints."""
MAX_READ_FILES = 30
"""The number of files in which the lines are looked for that an answer was taken from."""
MAX_QUESTIONS = 5
"""So many earlier questions may have figures that an answer takes up."""
MAX_POINTING_WORDS = 3
"""A sentence with fewer telling words only points to a file."""

MAX_PATTERNS = 500
"""The limit of path patterns in calls; the newest count."""
MAX_PATTERN_CHARS = 300
MAX_CLAIMS = 200
"""The number of lines of one result that are looked up in a document."""

_WORD = re.compile(r"[^\s\"'\\]+")
_WILD = frozenset("*?[")
_NUMBERED = re.compile(r"^\d{1,9}: ")
_GREP_NUMBER = re.compile(r"\d{1,9}[:-](.*)")
_LISTED = re.compile(r"\S*|\$ .*|</?untrusted\b[^>]*>|\[exit code \d+\]")
"""A line of a result that is nothing but paths; with what tools put around them."""
_DIGITS_OR_QUOTES = re.compile(r"[\d\"“„«]")


def _no_results() -> UnrecordedResults:
    return UnrecordedResults()


@dataclass(frozen=True)
class ReadPlaces:
    """Everything that an agent has read in its turn and in the talk that it remembers: results of tools, with what they
    were read from. `earlier` are results from before that was recorded. `question` is what the turn answers, with what
    was asked last before it.
    """

    results: Sequence[ReadResult] = ()
    earlier: UnrecordedResults = field(default_factory=_no_results)
    question: str = ""

    def has_read(self, document: _Document, cited: Sequence[str], *, is_whole: bool) -> bool:
        """Whether the lines stand in results that were read from the document; of all of it (`is_whole`) any line that
        says something.
        """
        texts = [each.text for each in self.results if each.covers(document.path)]
        if texts and _has_lines(texts, cited, is_whole=is_whole):
            return True
        earlier = self.earlier.texts
        return bool(earlier) and _has_lines(earlier, cited, is_whole=is_whole) and document.is_named

    def find_path(self, end: str) -> str:
        """Returns the path of the only file that was read whose path ends like this; empty when there is none."""
        read = {place.path for each in self.results for place in each.places if place.path.endswith(f"/{end}")}
        return read.pop() if len(read) == 1 else ""

    def lists(self, path: str) -> bool:
        """Whether a result or the question shows the path."""
        texts = (self.question, *self.earlier.texts, *(each.text for each in self.results))
        return any(path in text for text in texts)


def _has_lines(texts: Sequence[str], lines: Sequence[str], *, is_whole: bool) -> bool:
    if is_whole:
        told = (line.strip() for line in islice(lines, MAX_LOOKED_AT))
        return any(line in text for line in told if len(line) >= MIN_TELLING_CHARS for text in texts)
    told = [line.strip() for line in lines if line.strip()]
    unseen = [line for line in told if not any(line in text for text in texts)]
    if len(told) - len(unseen) >= SEEN_SHARE * len(told):
        return True
    if len(told) > MAX_PART_LINES:
        return False
    printed = {part for text in texts for part in map(str.strip, text.split("\n")) if len(part) >= MIN_TELLING_CHARS}
    parts = sum(any(part in line for part in printed) for line in unseen)
    return len(told) - len(unseen) + parts >= SEEN_SHARE * len(told)


@dataclass(frozen=True)
class UnrecordedResults:
    """Results of tools that nobody recorded the reading of: those from before that was done, and those that a client
    brings with its history. What they were read from is found in them and in their calls.
    """

    texts: Sequence[str] = ()
    calls: Sequence[str] = ()

    def has_path(self, document: _Document) -> bool:
        """In a call; or in a result where tools put it, followed by words of the document; or in a list of paths. Any
        document can hold lines that look as if they were another's: they prove nothing.
        """
        path, parts = document.path, document.path.split("/")
        return (
            any(path in call for call in self.calls)
            # As `cat docs/*.md` names it.
            or any(len(each) == len(parts) and all(map(fnmatchcase, parts, each)) for each in self._patterns)
            or any(path in result.text and result.shows(document) for result in self._told)
        )

    @cached_property
    def _patterns(self) -> list[list[str]]:
        words = (
            word for call in reversed(self.calls) for word in _WORD.findall(call) if len(word) <= MAX_PATTERN_CHARS
        )
        patterns = dict.fromkeys(word for word in words if "/" in word and not _WILD.isdisjoint(word))
        return [pattern.removeprefix("./").split("/") for pattern in islice(patterns, MAX_PATTERNS)]

    @cached_property
    def _told(self) -> list[_Result]:
        return list(map(_Result, self.texts))


class CitationProver:
    """Proves the citations of one agent in the community `guild`, or outside of any. Each place is looked up once, so
    it is shown alike wherever it stands.
    """

    def __init__(
        self, library: Library, agent: AgentName, read_own: ReadOwn, seen: ReadPlaces, *, guild: str = ""
    ) -> None:
        self._library = library
        self._agent = agent
        self._read_own = read_own
        self._seen = seen
        self._guild = guild
        self._documents: dict[str, _Document | None] = {}
        self._known: dict[CitationMark, Sequence[Citation]] = {}

    async def prove(self, mark: CitationMark) -> Sequence[Citation]:
        """Returns the places of the mark in order. Never raises for what is wrong with them or with the library.

        Nothing is returned for a mark that is not meant as a citation: a mention of what is no document, or one that
        only points to a file that the agent has seen in a list.
        """
        if mark not in self._known:
            documents = [await self._find(ref.path) for ref in mark.refs]
            beside = [(ref, await self._find(ref.path)) for ref in mark.also]
            if mark.is_mention and not any(documents):
                self._known[mark] = ()
            else:
                self._known[mark] = await to_thread.run_sync(_judge, mark, documents, beside, self._seen)
        return self._known[mark]

    async def list_read(self, results: Sequence[ReadResult]) -> list[ReadLines]:
        """Returns the lines of documents that these results show, as far as their records name the files."""
        texts: dict[str, list[tuple[DocumentRef, str]]] = {}
        for result in results:
            for place in result.places:
                if not place.path.endswith("/"):
                    texts.setdefault(place.path, []).append((place, result.text))
        from denizen.domain.attribution import ReadLines

        found: list[ReadLines] = []
        for path in islice(texts, MAX_READ_FILES):
            document = await self._find(path)
            if document is not None:
                found.append(ReadLines(document.lines, _find_shown(document.lines.lines, texts[path])))
        return found

    async def _find(self, path: str) -> _Document | None:
        """Finds it by its path, or by the end of one that was read."""
        if path not in self._documents:
            found = await self._load(path)
            whole = "" if found else self._seen.find_path(path)
            self._documents[path] = await self._load(whole) if whole else found
        return self._documents[path]

    async def _load(self, path: str) -> _Document | None:
        found = await find_document(self._library, self._agent, self._read_own, path, guild=self._guild)
        return found and _Document(path, found, self._seen)


async def find_document(
    library: Library, agent: AgentName, read_own: ReadOwn, path: str, *, guild: str = ""
) -> DocumentText | None:
    """Returns a document that the agent may cite in the community `guild`: an own file, or one of the current snapshot.
    Never raises for what is wrong with the library.
    """
    if "/" not in path:
        return None
    own = await to_thread.run_sync(read_own, agent, path)
    try:
        return DocumentText(own) if own is not None else await library.find_document(path, guild=guild)
    except DenizenError:
        return None


def _find_shown(lines: Sequence[str], texts: Sequence[tuple[DocumentRef, str]]) -> list[int]:
    """Returns the numbers of the lines that a result shows."""
    shown: set[int] = set()
    for place, text in texts:
        first, last = (place.first_line, place.last_line) if place.first_line else (1, min(len(lines), MAX_LOOKED_AT))
        shown.update(
            number
            for number, line in enumerate(lines[first - 1 : last], first)
            if len(line.strip()) >= MIN_TELLING_CHARS and line.strip() in text
        )
    return sorted(shown)


class _Document:
    def __init__(self, path: str, found: DocumentText, seen: ReadPlaces) -> None:
        from denizen.domain.claims import DocumentLines

        self.path = path
        self._seen = seen
        self.part = found.part
        self.text = found.text
        self.lines = DocumentLines(path, found.text.split("\n"))

    @cached_property
    def is_named(self) -> bool:
        return self._seen.earlier.has_path(self)

    def has_line(self, told: str) -> bool:
        """Or a part of one that says something."""
        told = told.strip()
        return bool(told) and (told in self._stripped or (len(told) >= MIN_TELLING_CHARS and told in self.text))

    @cached_property
    def _stripped(self) -> frozenset[str]:
        return frozenset(line.strip() for line in self.lines.lines)


class _Result:
    """The result of one tool call."""

    def __init__(self, text: str) -> None:
        self.text = text

    def shows(self, document: _Document) -> bool:
        if self._is_list and (document.path in self._lines or f"./{document.path}" in self._lines):
            return True
        return any(map(document.has_line, islice(_claims(self._lines, document.path), MAX_CLAIMS)))

    @cached_property
    def _is_list(self) -> bool:
        return all(map(_LISTED.fullmatch, self._lines))

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")


def _judge(
    mark: CitationMark,
    documents: Sequence[_Document | None],
    beside: Sequence[tuple[DocumentRef, _Document | None]],
    seen: ReadPlaces,
) -> Sequence[Citation]:
    from denizen.domain.claims import CitedLines, find_fault

    told = [_look_up(ref, document, seen) for ref, document in zip(mark.refs, documents, strict=True)]
    if mark.is_mention and mark.is_bare and _only_points(mark, told, seen):
        return ()
    cited = [
        CitedLines(document.lines, each.ref.first_line, each.ref.last_line)
        for each, document in zip(told, documents, strict=True)
        if each.doubt is None and document
    ]
    others = [
        CitedLines(document.lines, ref.first_line, ref.last_line)
        for ref, document in beside
        if document and _find_doubt(ref, document, seen) is None
    ]
    fault = find_fault(mark.claim, [*cited, *others], seen.question) if cited and mark.claim else None
    return [each if each.doubt else replace(each, doubt=fault) for each in told]


def _only_points(mark: CitationMark, told: Sequence[Citation], seen: ReadPlaces) -> bool:
    """Whether a sentence says where something is, and nothing of what stands there."""
    is_pointing = len(telling_words(mark.claim)) < MAX_POINTING_WORDS and not _DIGITS_OR_QUOTES.search(mark.claim)
    unread = [each for each in told if each.doubt is CitationFault.NOT_READ and not each.ref.first_line]
    return is_pointing and len(unread) == len(told) and all(seen.lists(each.ref.path) for each in unread)


def _look_up(ref: DocumentRef, document: _Document | None, seen: ReadPlaces) -> Citation:
    if document is None:
        return Citation(ref, doubt=CitationFault.NO_FILE)
    ref, part = replace(ref, path=document.path), document.part
    known = (part.source_id, part.revision, citation_link(part, ref)) if part else ("", "", "")
    return Citation(ref, *known, doubt=_find_doubt(ref, document, seen))


def _find_doubt(ref: DocumentRef, document: _Document, seen: ReadPlaces) -> CitationFault | None:
    lines = document.lines.lines
    if ref.last_line - ref.first_line >= MAX_CITED_LINES:
        return CitationFault.TOO_MANY
    cited = lines[ref.first_line - 1 : ref.last_line] if ref.first_line else lines
    if ref.last_line > len(lines) or not any(line.strip() for line in cited):
        return CitationFault.NO_LINES
    is_read = seen.has_read(document, cited, is_whole=not ref.first_line)
    return None if is_read else CitationFault.NOT_READ


def _claims(told: Sequence[str], path: str) -> Iterator[str]:
    """Lists the lines that a result claims to be of that document: below the head of a search, where they are
    numbered; or behind the path as `grep` prints it, perhaps with a number, which may be another by now.
    """
    for line, below in zip_longest(told, told[1:], fillvalue=""):
        plain = line.removeprefix("./")
        if plain.startswith(f"[{path}:"):
            yield _NUMBERED.sub("", below)
        elif plain.startswith((f"{path}:", f"{path}-")):
            behind = plain[len(path) + 1 :]
            yield behind
            numbered = _GREP_NUMBER.fullmatch(behind)
            if numbered is not None:
                yield numbered[1]


_PLACES = re.compile(r"\[[^\]\n]*:\d+(?:-\d+)?\]|^\d+: ", re.MULTILINE)
"""Lines as a search names and numbers them: figures that say nothing."""


@dataclass(slots=True)
class TurnEvidence:
    """The results of a turn's tools, with what they were read from. `searches` counts those of documents, `found` their
    passages. `history` is what was said before it, as far as the agent still has it before it.
    """

    history: Sequence[PromptMessage] = ()
    question: str = ""
    results: list[ReadResult] = field(default_factory=list[ReadResult])
    searches: int = 0
    found: int = 0

    def add(self, text: str, recorded: Mapping[str, Any]) -> Json:
        """Adds a result from the record of its call (`loop/step_record`), and returns what was read for it: by the
        tool, and by those that it has called. `data` of a search has the number of passages that it found, as `found`.
        """
        data = cast("Mapping[str, Json]", recorded.get("data") or {})
        within = [each for inner in recorded.get("inner") or () for each in places_from_json(inner.get(READ))]
        places = (*read_places(data), *within)
        self.results.append(ReadResult(text, places))
        found = data.get("found")
        if isinstance(found, int):
            self.searches += 1
            self.found += found
        return describe_reading(places).get(READ)

    def supports_figures(self, text: str, figures: Sequence[WrittenNumber]) -> bool:
        """Whether one of the figures of a text stands in a result or in what was said before, or all follow from those
        and the question. "Yes, 50 euros" does not where a result tells another price.
        """
        from denizen.domain.claimed_numbers import has_numbers

        ends_with_question = bool(self.history) and self.history[-1].role is Role.USER
        earlier = [part for message in self.history[: -1 if ends_with_question else None] for part in message.parts]
        before = [part.text for part in earlier if isinstance(part, TextPart | ToolResultPart)]
        told = _PLACES.sub("", "\n".join([*(result.text for result in self.results), *before]))
        known = find_values(told)
        if any(not figure.values.isdisjoint(known) for figure in figures):
            return True
        return not any(figure.is_year for figure in figures) and has_numbers(text, told, "", self.question)

    def seen(self) -> ReadPlaces:
        """Until now, in this turn and in the history."""
        recorded, texts, calls = list[ReadResult](), list[str](), list[str]()
        asked = [join_text(message.parts) for message in self.history if message.role is Role.USER]
        for message in self.history:
            results = [part for part in message.parts if isinstance(part, ToolResultPart)]
            written = [part.args for part in message.parts if isinstance(part, ToolCallPart)]
            calls += [json.dumps(args, ensure_ascii=False) for args in written]
            if message.read is None:
                texts += [part.text for part in results]
            else:
                recorded += [ReadResult(p.text, places_from_json(message.read.get(p.call_id))) for p in results]
        question = "\n".join([*asked[-MAX_QUESTIONS:], self.question])
        return ReadPlaces([*recorded, *self.results], UnrecordedResults(texts, calls), question)
