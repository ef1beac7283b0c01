"""Our own xargs: every command that it builds is checked before it runs, so that no file name becomes an option.

The real xargs is not in the sandbox. `-P` is accepted and does nothing: commands run one after another. `plan.py`
parses it, `pipeline.py` runs it in a process of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from denizen.adapters.sandbox.inside.policy import refuse_program, resolve_command
from denizen.adapters.sandbox.inside.programs import NUMBER
from denizen.adapters.sandbox.inside.words import CommandRefusedError

MAX_COMMANDS = 2000
MAX_BYTES = 100_000
"""The limit for the arguments of one command."""
_FAILED, _FATAL, _NOT_RUN = 123, 124, 126
_BLANK = frozenset(" \t\n\v\f\r")
_VALUED = {
    "I": re.compile(r".{1,50}", re.DOTALL),
    "n": NUMBER,
    "L": NUMBER,
    "P": NUMBER,
    "s": NUMBER,
    "d": re.compile(r".|\\[0nt]", re.DOTALL),
}
_LONG = {
    "--null": "0",
    "--no-run-if-empty": "r",
    "--max-args": "n",
    "--max-lines": "L",
    "--max-procs": "P",
    "--replace": "I",
    "--delimiter": "d",
}
_FIX = "Allowed are -0 -r -n NUMBER -L NUMBER -I TEXT -d CHARACTER -P NUMBER, then a program that may run."
_ESCAPES = {"\\0": "\0", "\\n": "\n", "\\t": "\t"}

Run = Callable[[list[str]], int]
"""Runs one command to its end and returns its exit code; 126 or 127 when it could not be started."""


@dataclass(frozen=True, slots=True)
class XargsCommand:
    """The options of xargs and its command. `replace` is the text of -I, `most` and `lines` those of -n and -L."""

    command: tuple[str, ...]
    replace: str = ""
    delimiter: str = ""
    most: int = 0
    lines: int = 0
    skip_empty: bool = False
    program: str = "echo"


def parse_xargs(argv: Sequence[str], depth: int) -> XargsCommand:
    """Checks the options, and the command as far as it is known. Raises CommandRefusedError."""
    rest = list(argv[1:])
    given: dict[str, str] = {}
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        _read_option(word, rest, given)
    command = tuple(rest) or ("echo",)
    delimiter = "\0" if "0" in given else _ESCAPES.get(given.get("d", ""), given.get("d", ""))
    xargs = XargsCommand(
        command=command,
        replace=given.get("I", ""),
        delimiter=delimiter,
        most=int(given.get("n", 0)),
        lines=int(given.get("L", 0)),
        skip_empty="r" in given,
    )
    return replace(xargs, program=_check_known(xargs, depth))


def _read_option(word: str, rest: list[str], given: dict[str, str]) -> None:
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        letter = _LONG.get(name, "")
        if not letter or (letter in "0r" and equals) or (letter == "I" and not equals):
            raise CommandRefusedError(f"xargs may not have the option `{word[:80]}`", _FIX)
        given[letter] = _checked(letter, value if equals else rest.pop(0) if letter in _VALUED and rest else "")
        return
    for place, letter in enumerate(word[1:], start=1):
        if letter in _VALUED:
            given[letter] = _checked(letter, word[place + 1 :] or (rest.pop(0) if rest else ""))
            return
        if letter not in {"0", "r"}:
            raise CommandRefusedError(f"xargs may not have the option `-{letter}`", _FIX)
        given[letter] = ""


def _checked(letter: str, value: str) -> str:
    pattern = _VALUED.get(letter)
    if pattern is not None and not pattern.fullmatch(value):
        raise CommandRefusedError(f"xargs -{letter} cannot have the value `{value[:80]}`", _FIX)
    return value


def _check_known(xargs: XargsCommand, depth: int) -> str:
    """Checks the command with a sample in place of the items. Returns the program that runs."""
    name = xargs.command[0]
    if name in {"xargs", "find", "cd", "pwd"}:
        raise CommandRefusedError(f"xargs may not run {name}", "Write it as a command of its own.")
    refuse_program(name)
    if xargs.replace and xargs.replace in name:
        raise CommandRefusedError("the program that xargs runs cannot come from its input", _FIX)
    if not xargs.replace:
        sample = [*xargs.command, "./x"]
    else:
        sample = [word.replace(xargs.replace, "x") for word in xargs.command]
    return resolve_command(sample, depth, has_input=False)[0]


def run_xargs(xargs: XargsCommand, text: str, depth: int, run: Run) -> tuple[int, str]:
    """Returns the exit code and the text for standard error. Every command is checked right before it runs. Raises
    CommandRefusedError.
    """
    worst = 0
    try:
        for count, command in enumerate(_commands(xargs, text), start=1):
            if count > MAX_COMMANDS:
                return _FATAL, f"xargs: stopped after {MAX_COMMANDS} commands\n"
            code = run(resolve_command(command, depth, has_input=False))
            # As GNU xargs does: a program that cannot be started ends it.
            if code in {126, 127}:
                return code, ""
            if code == 255 or code < 0:
                return _FATAL, f"xargs: {command[0]}: stopped\n"
            worst = _FAILED if code else worst
    except _UnmatchedQuoteError as error:
        return 1, f"xargs: {error}\n"
    return worst, ""


def _commands(xargs: XargsCommand, text: str) -> Iterator[list[str]]:
    lines = list(_items(xargs, text))
    if xargs.replace:
        for line in lines:
            for item in line:
                yield [word.replace(xargs.replace, item) for word in xargs.command]
        return
    if not any(lines):
        if not xargs.skip_empty:
            yield list(xargs.command)
        return
    groups = [lines[at : at + xargs.lines] for at in range(0, len(lines), xargs.lines)] if xargs.lines else [lines]
    for group in groups:
        yield from _fill(xargs, [item for line in group for item in line])


def _fill(xargs: XargsCommand, items: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for item in items:
        size += len(item) + 1
        if batch and (size > MAX_BYTES or (xargs.most and len(batch) == xargs.most)):
            yield [*xargs.command, *batch]
            batch, size = [], len(item) + 1
        batch.append(item)
    yield [*xargs.command, *batch]


class _UnmatchedQuoteError(Exception):
    """Repeats the message of GNU xargs."""

    def __init__(self, quote: str) -> None:
        kind = "single" if quote == "'" else "double"
        rest = "by default quotes are special to xargs unless you use the -0 option"
        super().__init__(f"unmatched {kind} quote; {rest}")


def _items(xargs: XargsCommand, text: str) -> Iterator[list[str]]:
    """Yields the items by line. With a delimiter, and with -I, a line is one item."""
    if xargs.delimiter:
        yield from ([item] for item in text.removesuffix(xargs.delimiter).split(xargs.delimiter) if text)
        return
    line: list[str] = []
    item: list[str] | None = None
    for char, is_plain in _characters(text):
        if is_plain and (char == "\n" or (char in _BLANK and not xargs.replace)):
            if item is not None:
                line.append("".join(item))
                item = None
            if char == "\n" and line:
                yield line
                line = []
        elif item is not None:
            item.append(char)
        elif not is_plain or char not in _BLANK:
            item = [char]
    if item is not None:
        line.append("".join(item))
    if line:
        yield line


def _characters(text: str) -> Iterator[tuple[str, bool]]:
    """Yields each character without quotes and backslashes, and whether it is unquoted. An opening quote yields an
    empty character, so that `''` is an item too.
    """
    quote = ""
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if quote and char == "\n":
            raise _UnmatchedQuoteError(quote)
        if quote:
            if char == quote:
                quote = ""
            else:
                yield char, False
        elif char in {"'", '"'}:
            quote = char
            yield "", False
        elif char == "\\" and at < len(text):
            yield text[at], False
            at += 1
        else:
            yield char, True
    if quote:
        raise _UnmatchedQuoteError(quote)
