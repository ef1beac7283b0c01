"""Whom a text calls by `@name`, and the text without that (inventory S33-context). Pure.

What stands in code, in a quotation of somebody else or in a comment that nobody sees calls nobody. Logins have letters,
digits and single hyphens; an App is called by its slug, with or without `[bot]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from denizen.domain.markup import Span, Spans, list_code_spans, list_fences, replace_spans

_AT = re.compile(r"(?<![\w`@/.+-])@(?P<name>[A-Za-z0-9](?:-?[A-Za-z0-9])*)(?P<bot>\[bot\])?(?![\w`-])(?!/)")
_TEAM = re.compile(r"(?<![\w`@/.+-])@[A-Za-z0-9](?:-?[A-Za-z0-9])*/[\w.-]+")
_QUOTED = re.compile(r"^[ ]{0,3}>.*$", re.MULTILINE)
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def list_mentions(text: str) -> tuple[str, ...]:
    """The logins in lower case, in the order of the text, each once."""
    return tuple(dict.fromkeys(match["name"].lower() for match in _calls(text)))


def strip_mentions(text: str, own: str) -> str:
    """The text without what only GitHub needs: its own mention is gone, others are plain names, and so are comments."""
    edits: list[tuple[Span, str]] = []
    for match in _calls(text):
        is_own = match["name"].lower() == own.lower()
        edits.append((match.span(), "" if is_own else match["name"] + (match["bot"] or "")))
    return _HIDDEN.sub("", replace_spans(text, edits, tight=",:")).strip()


def defuse(text: str, leave: Iterable[Span] = ()) -> str:
    """An agent's words, in which `@name` reaches nobody: it stands as code (inventory CW8). `leave` are places that
    somebody else sees to.
    """
    others = [Spans(_code(text)), Spans(leave)]
    found = [match for pattern in (_AT, _TEAM) for match in pattern.finditer(text) if not _is_in(match.start(), others)]
    return replace_spans(text, sorted((match.span(), f"`{match[0]}`") for match in found))


def _calls(text: str) -> Iterator[re.Match[str]]:
    hidden = (Spans(match.span() for match in pattern.finditer(text)) for pattern in (_QUOTED, _HIDDEN))
    uncalled = [Spans(_code(text)), *hidden]
    return (match for match in _AT.finditer(text) if not _is_in(match.start(), uncalled))


def _code(text: str) -> list[Span]:
    fences = list_fences(text)
    return [*((fence.start, fence.end) for fence in fences), *list_code_spans(text, fences)]


def _is_in(at: int, kinds: Iterable[Spans]) -> bool:
    """Each kind is asked for itself: a comment that begins in a quotation reaches further than that."""
    return any(spans.find_around(at, or_at_start=True) for spans in kinds)
