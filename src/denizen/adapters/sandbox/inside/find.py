"""The expression of find: tests, operators and actions that may stand in it. Called by `policy.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from denizen.adapters.sandbox.inside.paths import check_path
from denizen.adapters.sandbox.inside.refusal import CommandRefusedError

_ALONE = frozenset({
    "-depth", "-xdev", "-mount", "-empty", "-prune", "-print", "-print0", "-quit", "-ls", "-true", "-false", "-not",
    "!", "-a", "-and", "-o", "-or", "(", ")", ",", "-readable", "-daystart", "-noleaf",
})  # fmt: skip
_AMOUNT = re.compile(r"[-+]?[0-9]{1,12}(\.[0-9]{1,3})?")
_ANY = re.compile(r"[^\0]*", re.DOTALL)
_VALUED: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-newermt"), _ANY),
    **dict.fromkeys(("-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-links"), _AMOUNT),
    **dict.fromkeys(("-maxdepth", "-mindepth"), re.compile(r"[0-9]{1,4}")),
    "-size": re.compile(r"[-+]?[0-9]{1,12}[bcwkMG]?"),
    "-type": re.compile(r"[fdl](,[fdl])*"),
    "-perm": re.compile(r"[-/]?[0-7]{1,4}"),
    "-printf": re.compile(r"([^%\\]|%%|%[pfhPsdymMtlu]|%T[@YmdHMSFT+]|\\[nt0\\])*", re.DOTALL),
}
_WHY = {
    **dict.fromkeys(("-delete", "-fprint", "-fprint0", "-fprintf", "-fls"), "Nothing can be changed or written here."),
    **dict.fromkeys(("-execdir", "-ok", "-okdir"), "Write -exec PROGRAM ... {} + instead."),
    **dict.fromkeys(("-regex", "-iregex", "-regextype"), "Use -name or -path, or pipe the names into grep -E."),
    **dict.fromkeys(("-L", "-H", "-follow"), "Links are not followed."),
}
_SAMPLES = ("./x", "./%9n")
"""Stand for what find puts in the place of `{}`: its paths begin with a start, never with a hyphen, and may hold what
means something in a format.
"""


def check_find(argv: Sequence[str], depth: int) -> Iterator[list[str]]:
    """Checks all but the commands of -exec, which it yields with samples in place of `{}`. Raises Refused."""
    rest = list(argv[1:])
    while rest and not _begins_expression(rest[0]):
        check_path(rest.pop(0), depth)
    while rest:
        word = rest.pop(0)
        if word in _ALONE:
            continue
        if word == "-exec":
            command = _command(rest)
            yield from ([sample if each == "{}" else each for each in command] for sample in _SAMPLES)
        elif word in _VALUED:
            if not rest or not _VALUED[word].fullmatch(rest[0]):
                shown = f"`{rest[0][:80]}`" if rest else "nothing"
                raise CommandRefusedError(
                    f"find {word} cannot have the value {shown}", "Formats have plain directives, no widths."
                )
            rest.pop(0)
        else:
            allowed = " ".join(sorted({*_ALONE, *_VALUED, "-exec"}))
            raise CommandRefusedError(
                f"find may not have `{word[:80]}`", f"{_WHY.get(word, '')} Allowed are {allowed}.".strip()
            )


def _begins_expression(word: str) -> bool:
    return word.startswith("-") or word in {"(", ")", "!", ","}


def _command(rest: list[str]) -> list[str]:
    """Takes the words up to `;` or `+` away. `{}` must be a whole word, and no program's name."""
    command: list[str] = []
    while rest:
        word = rest.pop(0)
        if word == ";" or (word == "+" and command[-1:] == ["{}"]):
            break
        command.append(word)
    else:
        raise CommandRefusedError("find -exec has no end", r"Write -exec PROGRAM ... {} + or -exec PROGRAM ... {} \;")
    if not command or any("{}" in word and word != "{}" for word in command) or command[0] == "{}":
        raise CommandRefusedError(
            "find -exec is used in a way that is not allowed", "Write {} as a word of its own, as a file name."
        )
    return command
