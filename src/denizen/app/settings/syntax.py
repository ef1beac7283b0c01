"""What is usually behind an error of the YAML parser, said so that it can be corrected.

The parser's own words are never passed on: they quote the line, and the line may hold a secret.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, cast

from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError

from denizen.app.settings.problem import Problem

_INDENT = "Indent with spaces, two for each level, and start keys of one group in the same column."
_COLON = "Write `key: value`, with a colon and a space."
_QUOTE = "Put the whole value in quotes."

# (words in the parser's message, message, fix); the first match counts. {opened} is the line where a thing began.
_CAUSES: Sequence[tuple[str, str, str]] = (
    ("unexpected end of stream", "a quote that opens in line {opened} is not closed.", "Close it with the same quote."),
    ("unknown escape character", "a backslash in double quotes starts an escape.", "Use single quotes instead."),
    ("while scanning an alias", "a value that starts with `*` needs quotes.", _QUOTE),
    ("undefined alias", "a value that starts with `*` needs quotes.", _QUOTE),
    ("while scanning an anchor", "a value that starts with `&` needs quotes.", _QUOTE),
    ("while scanning a tag", "a value that starts with `!` needs quotes.", _QUOTE),
    ("cannot start any token", "a value starts with a character that means something else in YAML.", _QUOTE),
    ("could not find expected ':'", "line {opened} has no colon after its key.", _COLON),
    ("flow sequence", "a `[` that opens in line {opened} is not closed, or a comma is missing.", "Close it with `]`."),
    ("flow mapping", "a `{{` that opens in line {opened} is not closed, or a comma is missing.", "Close it with `}`."),
    ("expected <block end>", "this line does not line up with the lines around it.", _INDENT),
    ("a single document", "a second document starts here.", "Keep one document: take out the `---` line."),
)


class _Mark(Protocol):
    line: int
    column: int


class _Fault(Protocol):
    """A parser error, as ruamel does not type it. Lines and columns count from 0."""

    context: str | None
    context_mark: _Mark | None
    problem: str | None
    problem_mark: _Mark | None


def explain_syntax(error: MarkedYAMLError, text: str, file: Path) -> Problem:
    """The problem behind a parser error, with line and column."""
    lines = text.split("\n")
    fault = cast("_Fault", error)
    mark = _mark(fault.problem_mark) or _mark(fault.context_mark) or (1, 1)
    opened = _mark(fault.context_mark) or mark
    words = f"{fault.context or ''} {fault.problem or ''}"
    if isinstance(error, DuplicateKeyError):
        return _duplicate(words, mark, file)
    tab = _tab_line(lines, mark[0])
    if tab:
        column = lines[tab - 1].index("\t") + 1
        return Problem(file, tab, column, (), "a tab character; YAML wants spaces.", "Replace each tab by two spaces.")
    if "mapping values are not allowed" in words:
        return _misplaced_colon(lines, mark, file)
    for pattern, message, fix in _CAUSES:
        if pattern in words:
            at = opened if "{opened}" in message else mark
            return Problem(file, *at, (), message.format(opened=opened[0]), fix)
    return Problem(file, *mark, (), "this is not YAML.", f"{_COLON} {_INDENT}")


def _duplicate(words: str, mark: tuple[int, int], file: Path) -> Problem:
    found = re.search(r'duplicate key "([^"]*)" with value', words)
    key = f" `{found[1]}`" if found else ""
    return Problem(file, *mark, (), f"the key{key} is there twice.", "Keep one of the two.")


def _misplaced_colon(lines: Sequence[str], mark: tuple[int, int], file: Path) -> Problem:
    """A colon where none may be. Often the line above is to blame."""
    number = mark[0]
    line = lines[number - 1]
    above = next((n for n in range(number - 1, 0, -1) if _content(lines[n - 1])), 0)
    if above and ":" not in _content(lines[above - 1]):
        return Problem(file, above, 1, (), "this line has no colon after its key.", _COLON)
    glued = next((n for n in (above, number) if n and re.match(r"\s*[\w.-]+:[^\s/]", lines[n - 1])), 0)
    if glued:
        return Problem(file, glued, 1, (), "there must be a space after the colon.", _COLON)
    if above and _depth(line) > _depth(lines[above - 1]):
        return Problem(file, *mark, (), f"this line is indented below line {above}, which has a value.", _INDENT)
    return Problem(file, *mark, (), "a second colon in one line.", "Put a value that contains `: ` in quotes.")


def _tab_line(lines: Sequence[str], number: int) -> int:
    """The line, this or the one before, that is indented with a tab; 0 for none."""
    for candidate in (number, number - 1):
        if 1 <= candidate <= len(lines) and re.match(r"[^\S\n]*\t|[^#\"']*:[ ]*\t", lines[candidate - 1]):
            return candidate
    return 0


def _content(line: str) -> str:
    return line.partition("#")[0].strip()


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _mark(mark: _Mark | None) -> tuple[int, int] | None:
    return None if mark is None else (mark.line + 1, mark.column + 1)
