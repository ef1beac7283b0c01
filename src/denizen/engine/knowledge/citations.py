"""Whether a place that an answer names is proved: it is looked up in the snapshot, and held against what the agent has
read. Called by `proof`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import islice, zip_longest

from anyio import to_thread

from denizen.domain.citation import Citation, CitationFault, DocumentRef, citation_link
from denizen.domain.errors import DenizenError
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.domain.message import ToolCallPart, ToolResultPart
from denizen.domain.prompt import PromptMessage
from denizen.engine.configuration.generation import ReadOwn
from denizen.ports.source import DocumentText, Library

MAX_CITED_LINES = 300
"""The limit of one cited place."""
MAX_LOOKED_AT = 2000
MIN_TELLING_CHARS = 10
"""Lines of a document that is cited as a whole: one of them must have been read."""
SEEN_SHARE = 0.5
"""The share of the cited lines that must have been read: tools cut their output."""

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


@dataclass(frozen=True)
class ReadPlaces:
    """Everything that an agent has read in its turn and in the talk that it remembers: calls of tools and their
    results.
    """

    results: Sequence[str]
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
        return list(map(_Result, self.results))

    def has_some(self, lines: Iterable[str]) -> bool:
        """Any line that says something; a path alone is no reading."""
        told = (line.strip() for line in islice(lines, MAX_LOOKED_AT))
        return any(line in text for line in told if len(line) >= MIN_TELLING_CHARS for text in self.results)

    def has_lines(self, lines: Iterable[str]) -> bool:
        told = [line.strip() for line in lines if line.strip()]
        seen = sum(any(line in text for text in self.results) for line in told)
        return not told or seen >= SEEN_SHARE * len(told)


class CitationProver:
    """Proves the citations of one agent. Each place is looked up once, so it is shown alike wherever it stands."""

    def __init__(self, library: Library, agent: AgentName, read_own: ReadOwn, seen: ReadPlaces) -> None:
        self._library = library
        self._agent = agent
        self._read_own = read_own
        self._seen = seen
        self._documents: dict[str, _Document | None] = {}
        self._known: dict[tuple[DocumentRef, str], Citation] = {}

    async def look_up(self, ref: DocumentRef, quoted: str) -> Citation:
        """Never raises for what is wrong with the place or with the library. `quoted` has to stand there."""
        known = self._known.get((ref, quoted))
        if known is None:
            if ref.path not in self._documents:
                self._documents[ref.path] = await self._load(ref.path)
            document = self._documents[ref.path]
            known = await to_thread.run_sync(_judge, ref, quoted, document, self._seen)
            self._known[ref, quoted] = known
        return known

    async def _load(self, path: str) -> _Document | None:
        own = await to_thread.run_sync(self._read_own, self._agent, path)
        try:
            found = DocumentText(own) if own is not None else await self._library.find_document(path)
        except DenizenError:
            return None
        return found and _Document(path, found, self._seen)


class _Document:
    def __init__(self, path: str, found: DocumentText, seen: ReadPlaces) -> None:
        self.path = path
        self._seen = seen
        self.part = found.part
        self.text = found.text
        self.lines = found.text.split("\n")

    @cached_property
    def is_named(self) -> bool:
        return self._seen.has_path(self)

    def has_line(self, told: str) -> bool:
        """Or a part of one that says something."""
        told = told.strip()
        return bool(told) and (told in self._stripped or (len(told) >= MIN_TELLING_CHARS and told in self.text))

    @cached_property
    def _stripped(self) -> frozenset[str]:
        return frozenset(line.strip() for line in self.lines)


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


def _judge(ref: DocumentRef, quoted: str, document: _Document | None, seen: ReadPlaces) -> Citation:
    if document is None:
        return Citation(ref, doubt=CitationFault.NO_FILE)
    part = document.part
    known = (part.source_id, part.revision, citation_link(part, ref)) if part else ("", "", "")
    return Citation(ref, *known, doubt=_doubt(ref, quoted, document, seen))


def _doubt(ref: DocumentRef, quoted: str, document: _Document, seen: ReadPlaces) -> CitationFault | None:
    lines = document.lines
    if ref.last_line - ref.first_line >= MAX_CITED_LINES:
        return CitationFault.TOO_MANY
    cited = lines[ref.first_line - 1 : ref.last_line] if ref.first_line else lines
    if ref.last_line > len(lines) or not any(line.strip() for line in cited):
        return CitationFault.NO_LINES
    is_read = seen.has_lines(cited) if ref.first_line else seen.has_some(cited)
    if not is_read or not document.is_named:
        return CitationFault.NOT_READ
    if quoted and _flat(quoted) not in _flat(" ".join(cited)):
        return CitationFault.NOT_SAID
    return None


def _flat(text: str) -> str:
    """Without what quoting changes: case, spaces, marks of emphasis, and dots for what is left out at the end."""
    return " ".join("".join(c for c in text if c not in "*_`\\").casefold().split()).strip(" .\u2026")


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


@dataclass(slots=True)
class TurnEvidence:
    """The calls and results of a turn's tools. `searches` counts those of documents, `found` their passages.
    `history` is what was said before it, as far as the agent still has it before it.
    """

    history: Sequence[PromptMessage] = ()
    results: list[str] = field(default_factory=list[str])
    calls: list[str] = field(default_factory=list[str])
    searches: int = 0
    found: int = 0

    def add(self, args: Mapping[str, Json], text: str, data: Json) -> None:
        """`data` of a search has the number of passages that it found, as `found`."""
        self.results.append(text)
        self.calls.append(_written(args))
        found = data.get("found") if isinstance(data, dict) else None
        if isinstance(found, int):
            self.searches += 1
            self.found += found

    def seen(self) -> ReadPlaces:
        """Until now, in this turn and in the history."""
        parts = [part for message in self.history for part in message.parts]
        earlier = [part.text for part in parts if isinstance(part, ToolResultPart)]
        asked = [_written(part.args) for part in parts if isinstance(part, ToolCallPart)]
        return ReadPlaces([*earlier, *self.results], [*asked, *self.calls])


def _written(args: Mapping[str, Json]) -> str:
    return json.dumps(args, ensure_ascii=False)
