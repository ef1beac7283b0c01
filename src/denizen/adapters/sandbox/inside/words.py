"""Parses one line of shell into words, pipelines and the few redirects without side effects.

The parser accepts a strict subset of bash: what it accepts means exactly what it means in bash, and everything else is
refused with the form that is allowed. No shell ever sees the text. Nothing is expanded or checked against the policy
here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal


class CommandRefusedError(Exception):
    """Says why a line is not run and what to write instead, for a model. Raised before anything of the line runs."""

    def __init__(self, reason: str, instead: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.instead = instead

    def explain(self) -> str:
        return f"refused: {self.reason}. {self.instead}".rstrip() + "\n"


Char = tuple[str, bool]
"""A character and whether it was quoted. An empty quoted text stands for a pair of quotes with nothing between them."""
Word = tuple[Char, ...]
Operator = Literal["", "&&", "||", ";"]

_END = frozenset(" \t|&;<>()\n")
_PARAMETER = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_{([@*#?$!-")
_DESCRIPTORS = {"": 1, "1": 1, "2": 2}
_DIGITS = re.compile(r"[0-9]+(?=[<>])")

_NO_SUBSTITUTION = (
    "nothing is substituted here: no `$( )`, no backticks, no variables",
    "Put a literal $ or ` into single quotes; give the results of one command to another with a pipe or with xargs.",
)
_NO_REDIRECT = (
    "files cannot be written or redirected, only `2>/dev/null`, `>/dev/null` and `2>&1` are allowed",
    "Read a file by naming it as an argument; put < and > into quotes when they belong to a pattern.",
)
_ONE_LINE = ("a command is one line", "Join commands with && or ; on one line, or send several commands as a batch.")


@dataclass(frozen=True, slots=True)
class StreamRedirect:
    """A redirect of one descriptor. `target` is another descriptor, or None for /dev/null."""

    descriptor: int
    target: int | None


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One command of a pipeline, as written."""

    words: tuple[Word, ...]
    redirects: tuple[StreamRedirect, ...]


@dataclass(frozen=True, slots=True)
class ParsedPipeline:
    """A pipeline as written. `operator` is the operator before it."""

    operator: Operator
    commands: tuple[SimpleCommand, ...]


def parse_line(text: str) -> tuple[ParsedPipeline, ...]:
    """Returns at least one pipeline of at least one command with at least one word. Raises CommandRefusedError."""
    text = text.strip(" \t\n")
    if not text:
        raise CommandRefusedError("the command is empty", "Write one, such as `ls` or `grep -rn WORD .`.")
    if "\0" in text or any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        raise CommandRefusedError("there are characters in it that cannot stand in a command")
    return _Reader(text).read()


@dataclass(slots=True)
class _Reader:
    text: str
    at: int = 0
    words: list[Word] = field(default_factory=list[Word])
    redirects: list[StreamRedirect] = field(default_factory=list[StreamRedirect])
    commands: list[SimpleCommand] = field(default_factory=list[SimpleCommand])
    pipelines: list[ParsedPipeline] = field(default_factory=list[ParsedPipeline])
    operator: Operator = ""

    def read(self) -> tuple[ParsedPipeline, ...]:
        while self.at < len(self.text):
            self._step(self.text[self.at])
        if self.words or self.redirects or self.commands or self.operator != ";":
            self._close_pipeline()
        return tuple(self.pipelines)

    def _step(self, char: str) -> None:
        if char in " \t":
            self.at += 1
        elif char == "|":
            self._pipe()
        elif char == "&":
            self._ampersand()
        elif char == ";":
            if self._next() == ";":
                raise CommandRefusedError("`;;` belongs to no command", "Write one `;`.")
            self._join(";", 1)
        elif char in "()":
            raise CommandRefusedError(
                "there are no subshells and groups", "Write the commands one after another; put ( and ) into quotes."
            )
        elif char == "#":
            raise CommandRefusedError("there are no comments", "Leave it out, or put # into quotes.")
        elif char in "<>":
            self._redirect("")
        # Digits right before < or > are a descriptor; anywhere else they are a word.
        elif digits := _DIGITS.match(self.text, self.at):
            self._redirect(digits.group())
        else:
            self.words.append(self._word())

    def _next(self) -> str:
        return self.text[self.at + 1 : self.at + 2]

    def _pipe(self) -> None:
        following = self._next()
        if following == "&":
            raise CommandRefusedError("`|&` is not known here", "Write `2>&1 |`.")
        if following == "|":
            self._join("||", 2)
        else:
            self._close_command()
            self.at += 1

    def _ampersand(self) -> None:
        following = self._next()
        if following == "&":
            self._join("&&", 2)
        elif following == ">":
            self.at += 2
            self._to_null()
            self.redirects += [StreamRedirect(1, None), StreamRedirect(2, 1)]
        else:
            raise CommandRefusedError("nothing runs in the background", "Leave the & out, or put it into quotes.")

    def _join(self, operator: Operator, length: int) -> None:
        self._close_pipeline()
        self.operator = operator
        self.at += length

    def _close_command(self) -> None:
        if not self.words:
            raise CommandRefusedError("a command is missing between `|`, `&&`, `||`, `;` or at an end")
        self.commands.append(SimpleCommand(tuple(self.words), tuple(self.redirects)))
        self.words, self.redirects = [], []

    def _close_pipeline(self) -> None:
        self._close_command()
        self.pipelines.append(ParsedPipeline(self.operator, tuple(self.commands)))
        self.commands = []

    def _redirect(self, digits: str) -> None:
        self.at += len(digits)
        if digits not in _DESCRIPTORS or self.text[self.at] == "<":
            raise CommandRefusedError(*_NO_REDIRECT)
        descriptor = _DESCRIPTORS[digits]
        self.at += 1
        if self.text.startswith("&", self.at):
            target = self.text[self.at + 1 : self.at + 2]
            if target not in {"1", "2"} or self.text[self.at + 2 : self.at + 3] not in {"", *_END}:
                raise CommandRefusedError(*_NO_REDIRECT)
            self.redirects.append(StreamRedirect(descriptor, int(target)))
            self.at += 2
        else:
            self._to_null()
            self.redirects.append(StreamRedirect(descriptor, None))

    def _to_null(self) -> None:
        while self.text.startswith((" ", "\t"), self.at):
            self.at += 1
        plain = "".join(char for char, _ in self._word()) if self.text[self.at : self.at + 1] not in {"", *_END} else ""
        if plain != "/dev/null":
            raise CommandRefusedError(*_NO_REDIRECT)

    def _word(self) -> Word:
        chars: list[Char] = []
        while self.at < len(self.text) and (char := self.text[self.at]) not in _END:
            if char == "'":
                self._single(chars)
            elif char == '"':
                self._double(chars)
            elif char == "\\":
                self._escaped(chars)
            else:
                self._plain(char, chars)
        if self.at < len(self.text) and self.text[self.at] == "\n":
            raise CommandRefusedError(*_ONE_LINE)
        return tuple(chars)

    def _plain(self, char: str, chars: list[Char]) -> None:
        if char == "`" or (char == "$" and (self._next() in _PARAMETER or self._next() in {"'", '"'}) and self._next()):
            raise CommandRefusedError(*_NO_SUBSTITUTION)
        # Some terminals and programs act on them; bash would pass them on.
        if ord(char) < 0x20 or ord(char) == 0x7F:
            raise CommandRefusedError("there is a control character in it", "Leave it out, or put it into quotes.")
        if char == "~" and (
            not chars or chars[-1] in {("=", False), (":", False), ("{", False), (",", False), ("}", False)}
        ):
            raise CommandRefusedError(
                "there is no home folder `~` here", "Paths are relative to the top folder; or quote the ~."
            )
        chars.append((char, False))
        self.at += 1

    def _single(self, chars: list[Char]) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise CommandRefusedError("a single quote is not closed", "Close it.")
        inner = self.text[self.at + 1 : end]
        chars += [(char, True) for char in inner] or [("", True)]
        self.at = end + 1

    def _escaped(self, chars: list[Char]) -> None:
        following = self._next()
        if following in {"", "\n"}:
            raise CommandRefusedError(*_ONE_LINE)
        chars.append((following, True))
        self.at += 2

    def _double(self, chars: list[Char]) -> None:
        self.at += 1
        before = len(chars)
        while True:
            char, following = self.text[self.at : self.at + 1], self._next()
            if not char:
                raise CommandRefusedError(
                    "a double quote is not closed", "Close it, or put the text into single quotes."
                )
            if char == '"':
                break
            if char == "`" or (char == "$" and following in _PARAMETER and following):
                raise CommandRefusedError(*_NO_SUBSTITUTION)
            if char == "\\" and following == "\n":
                raise CommandRefusedError(*_ONE_LINE)
            is_escape = char == "\\" and following in {"$", "`", '"', "\\"}
            chars.append((following if is_escape else char, True))
            self.at += 2 if is_escape else 1
        self.at += 1
        if len(chars) == before:
            chars.append(("", True))
