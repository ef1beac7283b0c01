"""Checks `test` and `[`: they compare texts and numbers, and ask about files below the top folder only."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.adapters.sandbox.inside.paths import resolve_path
from denizen.adapters.sandbox.inside.words import CommandRefusedError

_FILE = frozenset({"-nt", "-ot", "-ef", *(f"-{letter}" for letter in "bcdefghkprsuwxLOGSN")})
_OTHER = frozenset(
    {"!", "-a", "-o", "(", ")", "-n", "-z", "=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "<", ">"}
)
_OPERATORS = _FILE | _OTHER
_FIX = "Allowed are -e -f -d -s -r -L -nt, -n -z = != and -eq -ne -lt -le -gt -ge, joined by ! -a -o."


def check_condition(argv: Sequence[str], depth: int) -> None:
    """Raises CommandRefusedError for an unknown operator or a file outside of the top folder.

    Where anything asks about a file, every word that is no operator may be that file: how a long expression is read
    differs between programs.
    """
    words = list(argv[1:])
    if argv[0] == "[":
        if words[-1:] != ["]"]:
            raise CommandRefusedError("a [ is not closed", "Write `[ -f FILE ]`, with blanks around ].")
        words.pop()
    if words in (["--help"], ["--version"]):
        raise CommandRefusedError(f"{argv[0]} may not have the option `{words[0]}`", _FIX)
    asks_files = not _FILE.isdisjoint(words)
    for word in words:
        if word in _OPERATORS:
            continue
        if len(word) == 2 and word[0] == "-" and word[1].isalpha():
            raise CommandRefusedError(f"{argv[0]} may not have `{word}`", _FIX)
        if asks_files:
            resolve_path(word, depth)
