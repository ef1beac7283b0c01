"""Reads one word of shell: quotes, `$'...'`, escapes and variables. The grammar above words is in `grammar.py`.

A word keeps which of its characters were quoted, since only unquoted ones are patterns and braces. Nothing is expanded
here. What is read means exactly what it means in bash; everything else is refused with the form that is allowed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


class CommandRefusedError(Exception):
    """Says why a line is not run and what to write instead, for a model."""

    def __init__(self, reason: str, instead: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.instead = instead

    def explain(self) -> str:
        return f"refused: {self.reason}. {self.instead}".rstrip() + "\n"


Char = tuple[str, bool]
"""A character and whether it was quoted. An empty quoted text stands for a pair of quotes with nothing between them."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A variable in a word. `trim` is the operator of `${name%pattern}` and its like, or `length` for `${#name}`."""

    name: str
    is_quoted: bool
    is_braced: bool = False
    trim: str = ""
    pattern: str = ""


Piece = Char | Parameter
Word = tuple[Piece, ...]

WORD_END = frozenset(" \t|&;<>()\n")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACED = re.compile(r"\{(#?)([A-Za-z_][A-Za-z0-9_]*|\?)(?:(%%?|##?)([A-Za-z0-9_./*?,:@=+-]*))?\}")
_OTHER_PARAMETERS = frozenset("0123456789{([@*#$!-")
_TILDE_AFTER = frozenset("=:{,}")
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "e": "\x1b",
    "E": "\x1b",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
}
_NUMBERS = (
    (re.compile(r"x([0-9A-Fa-f]{1,2})"), 16, False),
    (re.compile(r"([0-7]{1,3})"), 8, False),
    (re.compile(r"u([0-9A-Fa-f]{1,4})"), 16, True),
    (re.compile(r"U([0-9A-Fa-f]{1,8})"), 16, True),
)

NO_SUBSTITUTION = (
    "nothing is substituted here but variables of the command itself: no `$( )`, no backticks, no `$(( ))`",
    "Put a literal $ or ` into single quotes; give the results of one command to another with a pipe or with xargs.",
)
TRAILING_BACKSLASH = ("there is nothing behind a backslash", "Leave it out, or put it into quotes.")


def join_continued_lines(text: str) -> str:
    r"""Leaves out each `\` at the end of a line together with the line's end, except in single quotes and comments."""
    if "\\\n" not in text:
        return text
    made: list[str] = []
    at, quote = 0, ""
    while at < len(text):
        char, following = text[at], text[at + 1 : at + 2]
        if char == "\\" and following == "\n" and quote != "'":
            if made[-1:] == ["$"]:
                raise CommandRefusedError("a line is broken behind a `$`", "Write it on one line.")
            at += 2
            continue
        if not quote and char == "#" and (not made or made[-1] in WORD_END):
            end = text.find("\n", at)
            made.append(text[at:] if end < 0 else text[at:end])
            at = len(text) if end < 0 else end
            continue
        if char == "\\" and quote != "'":
            made.append(text[at : at + 2])
            at += 2
            continue
        if quote == char or (quote == "$" and char == "'"):
            quote = ""
        elif not quote and char in {"'", '"'}:
            quote = "$" if char == "'" and made[-1:] == ["$"] else char
        made.append(char)
        at += 1
    return "".join(made)


@dataclass(slots=True)
class WordReader:
    """Reads words out of a text, one at a time. `at` is the place of the next character."""

    text: str
    at: int = 0

    def next_is(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def read_word(self) -> Word:
        """Reads up to a blank or an operator. Raises CommandRefusedError."""
        pieces: list[Piece] = []
        while self.at < len(self.text) and (char := self.text[self.at]) not in WORD_END:
            if char == "'":
                self._single(pieces)
            elif char == '"':
                self._double(pieces)
            elif char == "\\":
                self._escaped(pieces)
            elif char == "$" and self._following() == "'":
                self._ansi(pieces)
            elif char == "$" and self._following() == '"':
                raise CommandRefusedError(*NO_SUBSTITUTION)
            elif char in "$`":
                pieces.append(self._dollar(is_quoted=False))
            else:
                self._plain(char, pieces)
        return tuple(pieces)

    def _following(self) -> str:
        return self.text[self.at + 1 : self.at + 2]

    def _plain(self, char: str, pieces: list[Piece]) -> None:
        # Some terminals and programs act on them; bash would pass them on.
        if ord(char) < 0x20 or ord(char) == 0x7F:
            raise CommandRefusedError("there is a control character in it", "Leave it out, or put it into quotes.")
        if char == "~" and (not pieces or pieces[-1] in {(each, False) for each in _TILDE_AFTER}):
            raise CommandRefusedError(
                "there is no home folder `~` here", "Paths are relative to the top folder; or quote the ~."
            )
        pieces.append((char, False))
        self.at += 1

    def _dollar(self, *, is_quoted: bool) -> Piece:
        """Reads a variable, or a `$` that means itself."""
        following = self._following()
        if self.text[self.at] == "`":
            raise CommandRefusedError(*NO_SUBSTITUTION)
        if name := NAME.match(self.text, self.at + 1):
            self.at = name.end()
            return Parameter(name.group(), is_quoted)
        if following == "?":
            self.at += 2
            return Parameter("?", is_quoted)
        if braced := _BRACED.match(self.text, self.at + 1):
            length, variable, trim, pattern = braced.groups(default="")
            if length and (trim or variable == "?"):
                raise CommandRefusedError(*NO_SUBSTITUTION)
            self.at = braced.end()
            return Parameter(variable, is_quoted, is_braced=True, trim="length" if length else trim, pattern=pattern)
        if following == "{":
            raise CommandRefusedError(
                "this form of `${ }` is not known here",
                "There are $name, ${name}, ${#name} and ${name%text}, ${name%%text}, ${name#text}, ${name##text}.",
            )
        if following and following in _OTHER_PARAMETERS:
            raise CommandRefusedError(*NO_SUBSTITUTION)
        self.at += 1
        return ("$", is_quoted)

    def _single(self, pieces: list[Piece]) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise CommandRefusedError("a single quote is not closed", "Close it.")
        inner = self.text[self.at + 1 : end]
        pieces += [(char, True) for char in inner] or [("", True)]
        self.at = end + 1

    def _escaped(self, pieces: list[Piece]) -> None:
        following = self._following()
        if following in {"", "\n"}:
            raise CommandRefusedError(*TRAILING_BACKSLASH)
        pieces.append((following, True))
        self.at += 2

    def _double(self, pieces: list[Piece]) -> None:
        self.at += 1
        before = len(pieces)
        while True:
            char, following = self.text[self.at : self.at + 1], self._following()
            if not char:
                raise CommandRefusedError(
                    "a double quote is not closed", "Close it, or put the text into single quotes."
                )
            if char == '"':
                break
            if char in "$`":
                pieces.append(self._dollar(is_quoted=True))
                continue
            is_escape = char == "\\" and following in {"$", "`", '"', "\\"}
            pieces.append((following if is_escape else char, True))
            self.at += 2 if is_escape else 1
        self.at += 1
        if len(pieces) == before:
            pieces.append(("", True))

    def _ansi(self, pieces: list[Piece]) -> None:
        """Reads `$'...'`. Bytes that are no UTF-8 stay what they are."""
        self.at += 2
        made = bytearray()
        while (char := self.text[self.at : self.at + 1]) != "'":
            if not char:
                raise CommandRefusedError("the quote of a `$'` is not closed", "Close it.")
            made += self._ansi_escape() if char == "\\" else char.encode()
            self.at += 1
        self.at += 1
        pieces += [(each, True) for each in made.decode(errors="surrogateescape")] or [("", True)]

    def _ansi_escape(self) -> bytes:
        """Returns what an escape stands for, and leaves `at` at its last character."""
        for pattern, base, is_code_point in _NUMBERS:
            if found := pattern.match(self.text, self.at + 1):
                self.at = found.end() - 1
                number = int(found.group(1), base)
                if not number or number > (0x10FFFF if is_code_point else 0xFF) or 0xD800 <= number <= 0xDFFF:
                    break
                return chr(number).encode() if is_code_point else bytes([number])
        else:
            self.at += 1
            if (letter := self.text[self.at : self.at + 1]) in _ESCAPES:
                return _ESCAPES[letter].encode()
        raise CommandRefusedError("an escape in a `$'...'` is not known here", r"There are \n \t \\ \' \x41 \u00e9.")
