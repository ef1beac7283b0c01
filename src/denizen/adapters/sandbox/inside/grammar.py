"""Parses the text of a command into lists, pipelines, simple commands, assignments and `for` loops.

The parser accepts a strict subset of bash: what it accepts means exactly what it means in bash, and everything else is
refused with the form that is allowed. No shell ever sees the text. Nothing is expanded or checked against the policy
here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from denizen.adapters.sandbox.inside.words import (
    NAME,
    WORD_END,
    CommandRefusedError,
    Parameter,
    Word,
    WordReader,
    join_continued_lines,
)

MAX_COMMANDS = 32
"""The limit for the commands in one text."""
MAX_STAGES = 10
"""The limit for one pipeline: its commands run at the same time, each with the memory that one may have."""
MAX_NESTING = 3
"""The limit for loops within loops."""

Operator = Literal["&&", "||", ";"]


@dataclass(frozen=True, slots=True)
class StreamRedirect:
    """A redirect of one descriptor. `target` is another descriptor, or None for /dev/null."""

    descriptor: int
    target: int | None


@dataclass(frozen=True, slots=True)
class InputRedirect:
    """A file in the place of standard input."""

    path: Word


Redirect = StreamRedirect | InputRedirect


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A program with its arguments, as written."""

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """One or more `NAME=VALUE` without a program behind them."""

    values: tuple[tuple[str, Word], ...]


@dataclass(frozen=True, slots=True)
class ForLoop:
    """A `for NAME in ITEMS; do BODY; done`."""

    name: str
    items: tuple[Word, ...]
    body: CommandList
    redirects: tuple[Redirect, ...] = ()


Command = SimpleCommand | Assignment | ForLoop


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands joined by `|`. `operator` is the operator before it."""

    operator: Operator
    commands: tuple[Command, ...]
    is_negated: bool = False


CommandList = tuple[Pipeline, ...]


def parse_commands(text: str) -> CommandList:
    """Returns at least one pipeline. Raises CommandRefusedError."""
    if "\0" in text or any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        raise CommandRefusedError("there are characters in it that cannot stand in a command")
    parser = _Parser(WordReader(join_continued_lines(text)))
    parsed = parser.read_list(nesting=0)
    if not parsed:
        raise CommandRefusedError("the command is empty", "Write one, such as `ls` or `grep -rn WORD .`.")
    for piece in (piece for word in _find_words(parsed) for piece in word):
        if isinstance(piece, Parameter) and piece.name not in {"?", *parser.names}:
            raise CommandRefusedError(
                f"the variable `{piece.name}` is not set in this command",
                'Set it first, as in `f=docs/a.md; cat "$f"`, or put a literal $ into single quotes.',
            )
    return parsed


_DESCRIPTORS = {"": 1, "1": 1, "2": 2}
_DIGITS = re.compile(r"[0-9]+(?=[<>])")
_NAMED_DESCRIPTOR = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\}(?=[<>])")
_RESERVED = re.compile(r"(?:[a-z]+|\[\[|[{}!])(?=[\s;|&<>()]|$)")
_FUNCTION = re.compile(r"[^\s;|&<>()'\"\\$`]+[ \t]*\([ \t]*\)")
_OWN_NAMES = re.compile(
    "PATH|IFS|HOME|PWD|OLDPWD|CDPATH|ENV|SHELL|TZ|LANG|LANGUAGE|LC_.*|LD_.*|BASH.*|GLOB.*|HIST.*|OPT.*|POSIX.*|PS[0-9]|"
    "RANDOM|SRANDOM|SECONDS|EPOCH.*|LINENO|UID|EUID|PPID|GROUPS|SHELLOPTS|FUNCNAME|DIRSTACK|PIPESTATUS|REPLY|_"
)
"""Names that mean something to bash or to programs."""

_NO_REDIRECT = (
    "files cannot be written; the redirects are `2>/dev/null`, `>/dev/null`, `2>&1` and `< FILE`",
    "Put < and > into quotes when they belong to a pattern.",
)
_NO_HERE_TEXT = ("there are no here-documents and here-strings", "Write `echo 'TEXT' | PROGRAM`.")
_NO_CONDITIONS = (
    "there is no `if`, `case` and `[[ ]]`",
    "Write `[ -f FILE ] && COMMAND`, or join commands with && ||.",
)
_NO_WHILE = (
    "there is no `while` and `until`",
    "Write `for NAME in WORDS; do COMMAND; done`, or give lines to `xargs -I{} COMMAND {}`.",
)
_NO_FUNCTIONS = ("there are no functions", "Write the commands themselves.")
_NO_GROUPS = (
    "there are no subshells and groups",
    "Write the commands one after another; cd holds for what follows. Put ( ) { } into quotes.",
)
_REFUSED_WORDS = {
    **dict.fromkeys(("if", "then", "else", "elif", "fi", "case", "esac", "[["), _NO_CONDITIONS),
    **dict.fromkeys(("while", "until", "select"), _NO_WHILE),
    **dict.fromkeys(("do", "done", "in"), ("`do` and `done` belong to a loop", "Write `for NAME in WORDS; do`.")),
    **dict.fromkeys(("{", "}"), _NO_GROUPS),
    **dict.fromkeys(("function", "coproc"), _NO_FUNCTIONS),
    "time": ("there is nothing to time", "Leave `time` out."),
}


@dataclass(slots=True)
class _Parser:
    reader: WordReader
    names: set[str] = field(default_factory=set[str])
    """The variables that are set somewhere."""
    commands: int = 0

    def read_list(self, nesting: int) -> CommandList:
        """Reads to the end, and in a loop to its `done`."""
        pipelines: list[Pipeline] = []
        operator: Operator = ";"
        while True:
            self._skip_lines()
            word = self._peek_reserved()
            is_over = word == "done" if nesting else self._peek() == ""
            if is_over and operator == ";":
                self.reader.at += len(word)
                return tuple(pipelines)
            if nesting and self._peek() == "":
                raise CommandRefusedError("a loop has no end", "Write `for NAME in WORDS; do COMMAND; done`.")
            pipelines.append(self._read_pipeline(operator, nesting))
            operator = self._read_operator()

    def _peek(self) -> str:
        return self.reader.text[self.reader.at : self.reader.at + 1]

    def _peek_reserved(self) -> str:
        found = _RESERVED.match(self.reader.text, self.reader.at)
        return found.group() if found else ""

    def _skip_blanks(self) -> None:
        """Skips blanks and a comment."""
        text = self.reader.text
        while self._peek() in {" ", "\t"}:
            self.reader.at += 1
        if self._peek() == "#":
            end = text.find("\n", self.reader.at)
            self.reader.at = len(text) if end < 0 else end

    def _skip_lines(self) -> None:
        self._skip_blanks()
        while self._peek() == "\n":
            self.reader.at += 1
            self._skip_blanks()

    def _read_operator(self) -> Operator:
        self._skip_blanks()
        char = self._peek()
        for operator in ("&&", "||"):
            if self.reader.next_is(operator):
                self.reader.at += 2
                return operator
        if char == "&":
            raise CommandRefusedError("nothing runs in the background", "Leave the & out, or put it into quotes.")
        if char in {"(", ")"}:
            raise CommandRefusedError(*_NO_GROUPS)
        if self.reader.next_is(";;"):
            raise CommandRefusedError("`;;` belongs to no command", "Write one `;`.")
        if char == ";":
            self.reader.at += 1
        elif char not in {"", "\n"}:
            raise CommandRefusedError("there is something behind the `done` of a loop", "Write ; or | behind `done`.")
        return ";"

    def _read_pipeline(self, operator: Operator, nesting: int) -> Pipeline:
        is_negated = False
        while self._peek_reserved() == "!":
            is_negated = not is_negated
            self.reader.at += 1
            self._skip_blanks()
        commands = [self._read_command(nesting)]
        while True:
            self._skip_blanks()
            if self.reader.next_is("|&"):
                raise CommandRefusedError("`|&` is not known here", "Write `2>&1 |`.")
            if self._peek() != "|" or self.reader.next_is("||"):
                break
            self.reader.at += 1
            self._skip_lines()
            commands.append(self._read_command(nesting))
            if len(commands) > MAX_STAGES:
                raise CommandRefusedError(
                    f"a pipeline has more than {MAX_STAGES} commands", "Send several commands as a batch."
                )
        return Pipeline(operator, tuple(commands), is_negated)

    def _read_command(self, nesting: int) -> Command:
        self.commands += 1
        if self.commands > MAX_COMMANDS:
            raise CommandRefusedError(
                f"there are more than {MAX_COMMANDS} commands in it", "Send several commands as a batch."
            )
        word = self._peek_reserved()
        if word == "for":
            return self._read_for(nesting + 1)
        if word in _REFUSED_WORDS:
            raise CommandRefusedError(*_REFUSED_WORDS[word])
        if _FUNCTION.match(self.reader.text, self.reader.at):
            raise CommandRefusedError(*_NO_FUNCTIONS)
        return self._read_simple()

    def _read_simple(self) -> Command:
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self._skip_blanks()
            char = self._peek()
            if found := self._read_redirects():
                redirects += found
            elif char in {"(", ")"}:
                raise CommandRefusedError(*_NO_GROUPS)
            elif _NAMED_DESCRIPTOR.match(self.reader.text, self.reader.at):
                raise CommandRefusedError(*_NO_REDIRECT)
            elif not char or char in WORD_END:
                break
            else:
                words.append(self.reader.read_word())
        if not words:
            raise CommandRefusedError("a command is missing between `|`, `&&`, `||`, `;` or at an end")
        if first := _split_assignment(words[0]):
            return self._read_assignment(words, redirects, first)
        return SimpleCommand(tuple(words), tuple(redirects))

    def _read_assignment(self, words: list[Word], redirects: list[Redirect], first: tuple[str, Word]) -> Assignment:
        values = [first]
        for word in words[1:]:
            if (split := _split_assignment(word)) is None:
                break
            values.append(split)
        if len(values) < len(words) or redirects:
            raise CommandRefusedError(
                "variables cannot be set for one program", "Leave NAME=VALUE out, or write `NAME=VALUE; COMMAND`."
            )
        for name, _ in values:
            self._set(name)
        return Assignment(tuple(values))

    def _set(self, name: str) -> None:
        if _OWN_NAMES.fullmatch(name):
            raise CommandRefusedError(f"the variable `{name}` cannot be set", "Take a name in small letters.")
        self.names.add(name)

    def _read_for(self, nesting: int) -> ForLoop:
        if nesting > MAX_NESTING:
            raise CommandRefusedError(f"there are more than {MAX_NESTING} loops within one another")
        self.reader.at += len("for")
        self._skip_blanks()
        name = NAME.match(self.reader.text, self.reader.at)
        if name is None:
            raise CommandRefusedError("this kind of loop is not known here", "Write `for NAME in 1 2 3; do ...; done`.")
        self._set(name.group())
        self.reader.at = name.end()
        self._skip_lines()
        self._expect("in")
        items: list[Word] = []
        while True:
            self._skip_blanks()
            char = self._peek()
            if char in {";", "\n"}:
                break
            if not char or char in WORD_END:
                raise CommandRefusedError("the words of a loop have no end", "Write `for NAME in WORDS; do`.")
            items.append(self.reader.read_word())
        self.reader.at += 1
        self._skip_lines()
        self._expect("do")
        body = self.read_list(nesting)
        if not body:
            raise CommandRefusedError("a loop does nothing", "Write `for NAME in WORDS; do COMMAND; done`.")
        redirects: list[Redirect] = []
        self._skip_blanks()
        while found := self._read_redirects():
            redirects += found
            self._skip_blanks()
        if any(isinstance(each, InputRedirect) for each in redirects):
            raise CommandRefusedError("a loop does not read a file", "Write `< FILE` behind a command within it.")
        return ForLoop(name.group(), tuple(items), body, tuple(redirects))

    def _expect(self, word: str) -> None:
        if self._peek_reserved() != word:
            raise CommandRefusedError(
                f"a loop has no `{word}` where it belongs", "Write `for NAME in WORDS; do COMMAND; done`."
            )
        self.reader.at += len(word)

    def _read_redirects(self) -> list[Redirect]:
        """Reads one redirect, which may be two, if there is one."""
        reader = self.reader
        if reader.next_is("&>"):
            reader.at += 2
            self._read_null()
            return [StreamRedirect(1, None), StreamRedirect(2, 1)]
        # Digits right before < or > are a descriptor; anywhere else they are a word.
        found = _DIGITS.match(reader.text, reader.at)
        digits = found.group() if found else ""
        if not found and self._peek() not in {"<", ">"}:
            return []
        reader.at += len(digits)
        if self._peek() == "<" and digits in {"", "0"}:
            return [self._read_input()]
        if self._peek() == "<" or digits not in _DESCRIPTORS:
            raise CommandRefusedError(*_NO_REDIRECT)
        reader.at += 1
        if not reader.next_is("&"):
            self._read_null()
            return [StreamRedirect(_DESCRIPTORS[digits], None)]
        target = reader.text[reader.at + 1 : reader.at + 2]
        if target not in {"1", "2"} or reader.text[reader.at + 2 : reader.at + 3] not in {"", *WORD_END}:
            raise CommandRefusedError(*_NO_REDIRECT)
        reader.at += 2
        return [StreamRedirect(_DESCRIPTORS[digits], int(target))]

    def _read_input(self) -> InputRedirect:
        if self.reader.next_is("<<"):
            raise CommandRefusedError(*_NO_HERE_TEXT)
        self.reader.at += 1
        self._skip_blanks()
        if self._peek() in {"", *WORD_END} or _DIGITS.match(self.reader.text, self.reader.at):
            raise CommandRefusedError(*_NO_REDIRECT)
        return InputRedirect(self.reader.read_word())

    def _read_null(self) -> None:
        while self._peek() in {" ", "\t"}:
            self.reader.at += 1
        word = self.reader.read_word() if self._peek() not in {"", *WORD_END} else ()
        if "".join("$" if isinstance(piece, Parameter) else piece[0] for piece in word) != "/dev/null":
            raise CommandRefusedError(*_NO_REDIRECT)


def _split_assignment(word: Word) -> tuple[str, Word] | None:
    plain = "".join(piece[0] if not isinstance(piece, Parameter) and not piece[1] else " " for piece in word)
    found = NAME.match(plain)
    if found is None or plain[found.end() : found.end() + 1] != "=":
        return None
    return found.group(), word[found.end() + 1 :]


def _find_words(commands: CommandList) -> Iterator[Word]:
    for command in (each for pipeline in commands for each in pipeline.commands):
        if isinstance(command, Assignment):
            yield from (value for _, value in command.values)
            continue
        yield from (each.path for each in command.redirects if isinstance(each, InputRedirect))
        if isinstance(command, ForLoop):
            yield from command.items
            yield from _find_words(command.body)
        else:
            yield from command.words
