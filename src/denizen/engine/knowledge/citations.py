"""Whether a place that an answer names is proved: it is looked up in the snapshot, and held against what the agent has
read. Called by `proof`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice, zip_longest

from anyio import to_thread

from denizen.domain.citation import Citation, Doubt, Ref, link_of
from denizen.domain.errors import DenizenError
from denizen.domain.ids import AgentName
from denizen.ports.source import DocumentText, Library

MAX_CITED_LINES = 300
"""Of one place."""
MAX_LOOKED_AT = 2000
MIN_TELLING_CHARS = 10
"""Lines of a document that is cited as a whole: one of them must have been read."""
SEEN_SHARE = 0.5
"""Of the cited lines that say something, so many must have been read: tools cut what they show."""

_PATTERN = re.compile(r"[^\s\"'\\]*[*?\[][^\s\"'\\]*")
_NUMBERED = re.compile(r"^\d{1,9}: ")
_GREP_NUMBER = re.compile(r"\d{1,9}[:-](.*)")
_LISTED = re.compile(r"\S*|\$ .*|</?untrusted\b[^>]*>|\[exit code \d+\]")
"""A line of a result that is nothing but paths; with what tools put around them."""

ReadOwn = Callable[[AgentName, str], str | None]
"""The text of an agent's own file, or one that all agents share, by the name that tools give it."""


def no_own_files(agent: AgentName, path: str) -> None:
    """Where agents have none."""
    del agent, path


@dataclass(frozen=True, slots=True)
class Seen:
    """What an agent has read in its turn, and before in the talk that it remembers: what tools gave, and what they were
    called with.
    """

    results: Sequence[str]
    calls: Sequence[str] = ()

    def has_path(self, path: str, lines: Sequence[str]) -> bool:
        """In a call; or in a result where tools put it, followed by words of the document, whose `lines` these are; or
        in a list of paths. Any document can hold lines that look as if they were another's: they prove nothing.
        """
        return any(_names(text, path) for text in self.calls) or any(
            _shows(text.split("\n"), path, lines) for text in self.results if path in text
        )

    def has_some(self, lines: Iterable[str]) -> bool:
        """Any line that says something; a path alone is no reading."""
        told = (line.strip() for line in islice(lines, MAX_LOOKED_AT))
        return any(line in text for line in told if len(line) >= MIN_TELLING_CHARS for text in self.results)

    def has_lines(self, lines: Iterable[str]) -> bool:
        told = [line.strip() for line in lines if line.strip()]
        seen = sum(any(line in text for text in self.results) for line in told)
        return not told or seen >= SEEN_SHARE * len(told)


class Places:
    """What one agent names while it has read the same. Each place is looked up once, so it is shown alike wherever it
    stands.
    """

    def __init__(self, library: Library, agent: AgentName, read_own: ReadOwn, seen: Seen) -> None:
        self._library = library
        self._agent = agent
        self._read_own = read_own
        self._seen = seen
        self._documents: dict[str, _Document | None] = {}
        self._known: dict[tuple[Ref, str], Citation] = {}

    async def look_up(self, ref: Ref, quoted: str) -> Citation:
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
        return found and _Document(found)


class _Document:
    def __init__(self, found: DocumentText) -> None:
        self.part = found.part
        self.lines = found.text.split("\n")


def _judge(ref: Ref, quoted: str, document: _Document | None, seen: Seen) -> Citation:
    if document is None:
        return Citation(ref, doubt=Doubt.NO_FILE)
    part = document.part
    known = (part.source_id, part.revision, link_of(part, ref)) if part else ("", "", "")
    return Citation(ref, *known, doubt=_doubt(ref, quoted, document.lines, seen))


def _doubt(ref: Ref, quoted: str, lines: Sequence[str], seen: Seen) -> Doubt | None:
    if ref.last_line - ref.first_line >= MAX_CITED_LINES:
        return Doubt.TOO_MANY
    cited = lines[ref.first_line - 1 : ref.last_line] if ref.first_line else lines
    if ref.last_line > len(lines) or not any(line.strip() for line in cited):
        return Doubt.NO_LINES
    is_read = seen.has_lines(cited) if ref.first_line else seen.has_some(cited)
    if not is_read or not seen.has_path(ref.path, lines):
        return Doubt.NOT_READ
    if quoted and _flat(quoted) not in _flat(" ".join(cited)):
        return Doubt.NOT_SAID
    return None


def _flat(text: str) -> str:
    """Without what quoting changes: case, spaces, marks of emphasis, and dots for what is left out at the end."""
    return " ".join("".join(c for c in text if c not in "*_`\\").casefold().split()).strip(" .\u2026")


def _names(call: str, path: str) -> bool:
    """Also by a pattern, as `cat docs/*.md` does."""
    if path in call:
        return True
    parts = path.split("/")
    patterns = (word.removeprefix("./").split("/") for word in _PATTERN.findall(call))
    return any(len(each) == len(parts) and all(map(fnmatchcase, parts, each)) for each in patterns)


def _shows(told: Sequence[str], path: str, lines: Sequence[str]) -> bool:
    """`told` are the lines of a result; below a head of a search they are numbered."""
    for line, below in zip_longest(told, told[1:], fillvalue=""):
        plain = line.removeprefix("./")
        is_shown = (
            (plain.startswith(f"[{path}:") and _is_of(_NUMBERED.sub("", below), lines))
            or (plain.startswith((f"{path}:", f"{path}-")) and _is_match(plain[len(path) + 1 :], lines))
            or (plain == path and all(_LISTED.fullmatch(each) for each in told))
        )
        if is_shown:
            return True
    return False


def _is_match(told: str, lines: Sequence[str]) -> bool:
    """Whether it is what `grep` prints behind a path: a line, perhaps with its number, which may be another by now."""
    numbered = _GREP_NUMBER.fullmatch(told)
    return _is_of(told, lines) or (numbered is not None and _is_of(numbered[1], lines))


def _is_of(told: str, lines: Sequence[str]) -> bool:
    told = told.strip()
    is_telling = len(told) >= MIN_TELLING_CHARS
    return bool(told) and any(told == line.strip() or (is_telling and told in line) for line in lines)
