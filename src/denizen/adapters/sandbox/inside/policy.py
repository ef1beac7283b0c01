"""Checks one final command, after all expansion, against the rules in `programs.py` and the expression of find.

This is the only check: lines of agents, people and programs pass it, and every command that xargs or find would run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from denizen.adapters.sandbox.inside.conditions import check_condition
from denizen.adapters.sandbox.inside.paths import check_path
from denizen.adapters.sandbox.inside.programs import INSTEAD, NAMES, PAIR, PATH, PROGRAMS, SCRIPT, ProgramRule
from denizen.adapters.sandbox.inside.ripgrep import translate_rg
from denizen.adapters.sandbox.inside.words import CommandRefusedError

_ALONE = frozenset(
    {
        "-depth",
        "-xdev",
        "-mount",
        "-empty",
        "-prune",
        "-print",
        "-print0",
        "-quit",
        "-ls",
        "-true",
        "-false",
        "-not",
        "!",
        "-a",
        "-and",
        "-o",
        "-or",
        "(",
        ")",
        ",",
        "-readable",
        "-daystart",
        "-noleaf",
    }
)
_AMOUNT = re.compile(r"[-+]?[0-9]{1,12}(\.[0-9]{1,3})?")
_ANY = re.compile(r"[^\0]*", re.DOTALL)
_TEXTS = ["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-newermt", "-regex", "-iregex"]
_VALUED: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(_TEXTS, _ANY),
    **dict.fromkeys(("-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-links"), _AMOUNT),
    **dict.fromkeys(("-maxdepth", "-mindepth"), re.compile(r"[0-9]{1,4}")),
    "-size": re.compile(r"[-+]?[0-9]{1,12}[bcwkMG]?"),
    "-regextype": re.compile("(?:posix-)?(?:awk|basic|egrep|extended|grep)|emacs|ed|sed|findutils-default"),
    "-type": re.compile(r"[fdl](,[fdl])*"),
    "-perm": re.compile(r"[-/]?[0-7]{1,4}"),
    "-printf": re.compile(r"([^%\\]|%%|%[pfhPsdymMtlu]|%T[@YmdHMSFT+]|\\[nt0\\])*", re.DOTALL),
}
_WHY = {
    **dict.fromkeys(("-delete", "-fprint", "-fprint0", "-fprintf", "-fls"), "Nothing can be changed or written here."),
    **dict.fromkeys(("-execdir", "-ok", "-okdir"), "Write -exec PROGRAM ... {} + instead."),
    **dict.fromkeys(("-L", "-H", "-follow"), "Links are not followed."),
}
_SAMPLES = ("./x", "./%9n")
"""Samples for what find puts in the place of `{}`. Its paths never begin with a hyphen, but may hold characters that
mean something in a format.
"""


def check_find(argv: Sequence[str], depth: int) -> Iterator[list[str]]:
    """Checks the expression and yields the commands of -exec, with samples for `{}`. Raises CommandRefusedError."""
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
    """Takes the words up to `;` or `+` from `rest`. `{}` must be a whole word, and not the name of the program."""
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


_NUMERIC = re.compile(r"-[0-9]{1,7}")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[.*\])?\+?=", re.DOTALL)


def check_command(argv: Sequence[str], depth: int) -> None:
    """Checks a command. `depth` is how far the current folder lies below the top. Raises CommandRefusedError. xargs
    is checked by `xargs.py`.
    """
    name = argv[0]
    program = PROGRAMS.get(name)
    if name == "find":
        for command in check_find(argv, depth):
            if not (inner := PROGRAMS.get(command[0])) or not inner.may_follow_find:
                allowed = ", ".join(each for each, rule in PROGRAMS.items() if rule.may_follow_find)
                raise CommandRefusedError(f"find may not run `{command[0]}`", f"After -exec may stand {allowed}.")
            check_command(command, depth)
    elif name in {"test", "["}:
        check_condition(argv, depth)
    elif program is None:
        refuse_program(name)
        raise CommandRefusedError(f"`{name}` cannot stand here", "Write it as a command of its own.")
    else:
        _OptionParser(name, program, depth).check(argv[1:])


def resolve_command(argv: Sequence[str], depth: int, *, has_input: bool) -> list[str]:
    """Returns the command that runs, which is another for `rg`, `egrep`, `fgrep` and `:`, after `check_command`.
    `has_input` tells whether it stands behind a pipe.
    """
    name, *rest = argv
    if name == "rg":
        resolved = translate_rg(argv, has_input=has_input)
    elif name in _ALIASES:
        resolved = [*_ALIASES[name], *rest]
    else:
        resolved = [*argv]
    check_command(resolved, depth)
    return resolved


def check_installed(name: str, installed: Collection[str]) -> None:
    """Raises CommandRefusedError for a program that this machine does not have."""
    if name not in installed:
        others = ", ".join(sorted({*installed, "xargs"}))
        raise CommandRefusedError(f"`{name}` is not installed here", f"There are {others}.")


_ALIASES = {"egrep": ["grep", "-E"], "fgrep": ["grep", "-F"], ":": ["true"]}


def refuse_program(name: str) -> None:
    """Raises CommandRefusedError unless the program is one of those that may run."""
    if name in NAMES:
        return
    if _ASSIGNMENT.match(name):
        raise CommandRefusedError(
            "variables are set by plain words only", "Write NAME=VALUE without quotes and brackets before the =."
        )
    if "/" in name:
        raise CommandRefusedError(f"`{name[:80]}` names a program by its path", "Write the bare name, such as grep.")
    allowed = f"Allowed are {', '.join(sorted(NAMES))}."
    raise CommandRefusedError(f"`{name[:80]}` is not allowed", f"{INSTEAD.get(name, '')} {allowed}".strip())


@dataclass(slots=True)
class _OptionParser:
    """Parses options as getopt_long does, but accepts exact names only."""

    name: str
    program: ProgramRule
    depth: int
    given: set[str] = field(default_factory=set[str])
    operands: list[str] = field(default_factory=list[str])

    def check(self, args: Sequence[str]) -> None:
        if self.program.operands == "text" and not self.program.flags:
            if args[:1] in (["--help"], ["--version"]) and len(args) == 1:
                raise self._refused(args[0])
            return
        rest = list(args)
        while rest:
            word = rest.pop(0)
            if word == "--":
                self.operands += rest
                break
            if word.startswith("--"):
                self._long(word, rest)
            elif word.startswith("-") and word != "-":
                self._short(word, rest)
            else:
                self.operands.append(word)
                if self.program.parsing == "ordered":
                    self.operands += rest
                    break
        self._check_operands()

    def _long(self, word: str, rest: list[str]) -> None:
        name, equals, value = word.partition("=")
        self.given.add(name)
        if name in self.program.optional:
            pattern = self.program.optional[name]
            if equals and not (pattern and pattern.fullmatch(value)):
                raise self._refused(word)
        elif name not in self.program.longs:
            raise self._refused(word)
        elif (pattern := self.program.longs[name]) is None:
            if equals:
                raise self._refused(word)
        else:
            self._check_value(name, pattern, value if equals else self._take(name, rest))
            if pattern is PAIR:
                self._take(name, rest)

    def _short(self, word: str, rest: list[str]) -> None:
        if self.program.parsing == "numeric" and _NUMERIC.fullmatch(word):
            return
        for place, letter in enumerate(word[1:], start=1):
            pattern = self.program.valued.get(letter)
            self.given.add(letter)
            if pattern is not None:
                if self.program.parsing == "apart" and word[place + 1 :]:
                    raise self._refused(word)
                self._check_value(f"-{letter}", pattern, word[place + 1 :] or self._take(f"-{letter}", rest))
                return
            if letter not in self.program.flags:
                raise self._refused(word if len(word) == 2 else f"-{letter} in {word}")

    def _take(self, name: str, rest: list[str]) -> str:
        if not rest:
            raise CommandRefusedError(f"{self.name} {name} needs a value")
        return rest.pop(0)

    def _check_value(self, name: str, pattern: re.Pattern[str], value: str) -> None:
        if not pattern.fullmatch(value):
            raise CommandRefusedError(f"{self.name} {name} cannot have the value `{value[:80]}`", self.program.hint)
        if pattern is PATH:
            check_path(value, self.depth)
        if pattern is SCRIPT and self.program.check_script:
            self.program.check_script(value)

    def _check_operands(self) -> None:
        operands = self.operands
        if "," in self.program.operands and not self.program.gives & self.given:
            first, operands = operands[:1], operands[1:]
            if not first:
                raise CommandRefusedError(
                    f"{self.name} cannot be used like this", self.program.hint or "Give it a pattern."
                )
            if self.program.check_script:
                self.program.check_script(first[0])
        least, most = self.program.operand_count
        if not least <= len(operands) <= most:
            how_many = f"{least} to {most}" if most < 9 else "at least one"
            raise CommandRefusedError(
                f"{self.name} takes {how_many} here, not {len(operands)} files or names", self.program.hint
            )
        for operand in operands:
            if "text" not in self.program.operands:
                check_path(operand, self.depth)
            elif self.program.operands == "text" and self.program.check_script:
                self.program.check_script(operand)

    def _refused(self, word: str) -> CommandRefusedError:
        shorts = " ".join(f"-{letter}" for letter in (*self.program.flags, *self.program.valued))
        longs = " ".join((*self.program.longs, *self.program.optional))
        allowed = f"Allowed are {shorts} {longs}.".replace("  ", " ") if shorts or longs else ""
        return CommandRefusedError(
            f"{self.name} may not have the option `{word[:80]}`", f"{self.program.hint} {allowed}".strip()
        )
