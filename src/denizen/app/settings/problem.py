"""One problem of the configuration, and the one error that lists them all."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from denizen.domain.errors import InvalidInput
from denizen.domain.record import record

KeyPath = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


@record
class ConfigProblem:
    """A problem at a place of the file. `line` and `column` count from 1; line 0 means the file as a whole. It never
    holds a secret.

    `variable` is the one that is not set, when that is the problem: it goes away without a change of the file.
    """

    file: Path
    line: int
    column: int
    path: KeyPath
    message: str
    fix: str
    variable: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.line else str(self.file)
        return f"{where}: {format_path(self.path)}: {self.message}" if self.path else f"{where}: {self.message}"


def format_path(path: KeyPath) -> str:
    """Returns a key path for people: `models.overrides."lab/qwen3".images`, `server.api_keys[0].key`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        key = part if _PLAIN_KEY.fullmatch(part) else f'"{part}"'
        text += f".{key}" if text else key
    return text


def find_closest(name: str, known: Iterable[str]) -> str:
    """Returns the known name that was probably meant, or nothing."""
    by_folded = {each.casefold(): each for each in known}
    found = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[found[0]] if found else ""


def suggest(name: str, known: Iterable[str], *, noun: str) -> str:
    """Returns the remedy for an unknown name: the nearest known one, and all of them."""
    names = sorted(known)
    near = find_closest(name, names)
    listed = f"Known {noun}: {', '.join(names)}." if names else f"There are no {noun} here."
    return f"Did you mean '{near}'? {listed}" if near else listed


def config_error(problems: Sequence[ConfigProblem]) -> InvalidInput:
    """Returns the one error for all problems, in the order of the file. Its context holds them as data."""
    ordered = sorted(problems, key=lambda each: (str(each.file), each.line, each.column))
    data = tuple(
        {
            "file": str(each.file),
            "line": each.line,
            "column": each.column,
            "path": format_path(each.path),
            "message": each.message,
            "fix": each.fix,
        }
        for each in ordered
    )
    if len(ordered) == 1:
        return InvalidInput(str(ordered[0]), code="config_invalid", fix=ordered[0].fix, problems=data)
    lines = [f"The configuration has {len(ordered)} problems:"]
    lines += (f"{each}\n    fix: {each.fix}" for each in ordered)
    return InvalidInput(
        "\n".join(lines),
        code="config_invalid",
        fix="Correct these places; `denizen doctor` checks them again.",
        problems=data,
    )
