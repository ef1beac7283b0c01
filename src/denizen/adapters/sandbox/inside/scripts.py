"""Checks the programs that are given to awk, sed and jq as text, and the formats and sets of printf and tr: they may
compute, and reach nothing else.

The system underneath runs no program, writes no file and reads nothing outside, whatever a script says; these checks
tell it early and in clear words, and keep a script from asking what exists outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from denizen.adapters.sandbox.inside.paths import cut_text
from denizen.adapters.sandbox.inside.words import CommandRefusedError


def check_no_file_name(program: str, script: str) -> None:
    """Raises CommandRefusedError for what may be a name that find puts in: a file's name is no program."""
    if script.startswith("./"):
        raise CommandRefusedError(f"{program} takes `{cut_text(script)}` for its program", "Write the program first.")


# A sed script: commands with addresses. What reads, writes and runs (r R w W e, the flags e and w of s) is left out.
_BRACKET = r"(?>\[\^?\]?(?>\[[:.=][^\]\n]*\]|[^\]\n])*+\])"
_REGEX = rf"/(?>[^/\\\n\[]|\\[^\n]|{_BRACKET})*+/"
_OTHER_REGEX = "|".join(rf"\\{char}(?:[^{char}\\\n\[])*+{char}" for char in (r"\|", ",", "#", "@", "%", "!"))
_ADDRESS = rf"(?:[0-9]{{1,9}}(?:~[0-9]{{1,9}})?|\$|(?:{_REGEX}|{_OTHER_REGEX})[IM]{{0,2}})"
_ADDRESSES = re.compile(rf"(?:{_ADDRESS}(?:[ \t]*,[ \t]*(?:{_ADDRESS}|[+~][0-9]{{1,9}}))?)?[ \t]*!?[ \t]*")
_SED_COMMAND = re.compile(r"[pdPDnNgGhHx=]|[qQ][ \t]*[0-9]{0,3}|[btT][ \t]*[A-Za-z0-9_]*|:[ \t]*[A-Za-z0-9_]+")
_SED_BRACKET = re.compile(_BRACKET)
_SED_FLAGS = re.compile(r"[gpIiMm0-9]*")
_SED_END = re.compile(r"[ \t]*(?:[;\n]|#[^\n]*|$|(?=\}))")
_SED_FIX = (
    "Allowed are p d q = n N s y and their like with addresses, as in `sed -n '/re/,$p'` and `sed 's/a/b/g'`; nothing "
    "that reads, writes or runs."
)


def check_sed(script: str) -> None:
    """Raises CommandRefusedError for a script that is more than a filter of lines."""
    check_no_file_name("sed", script)
    at, depth = 0, 0
    while True:
        at += len(script[at:]) - len(script[at:].lstrip(" \t\n;"))
        if at == len(script):
            break
        if script[at] == "#" and not script.startswith("#n"):
            at = _find_line_end(script, at)
            continue
        if script[at] == "}":
            depth, at = depth - 1, at + 1
        else:
            at = _ADDRESSES.match(script, at).end()  # type: ignore[union-attr]  # it matches nothing too
            if script[at : at + 1] == "{":
                depth, at = depth + 1, at + 1
                continue
            at = _find_command_end(script, at)
        end = _SED_END.match(script, at)
        if end is None or depth < 0:
            raise _sed_refused(script[at:])
        at = end.end()
    if depth:
        raise CommandRefusedError("a { of the sed script is not closed", "Close it.")


def _find_line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _find_command_end(script: str, at: int) -> int:
    if script[at : at + 1] in {"s", "y"} and script[at + 1 : at + 2] not in {"", "\n", "\\"}:
        delimiter = script[at + 1]
        middle = _find_part_end(script, at + 2, delimiter, has_brackets=script[at] == "s")
        end = _find_part_end(script, middle, delimiter, has_brackets=False)
        flags = _SED_FLAGS.match(script, end)
        return flags.end() if flags and script[at] == "s" else end
    found = _SED_COMMAND.match(script, at)
    if found is None:
        raise _sed_refused(script[at:])
    return found.end()


def _find_part_end(script: str, at: int, delimiter: str, *, has_brackets: bool) -> int:
    """Returns the place behind the next delimiter."""
    while at < len(script):
        char = script[at]
        if char == delimiter:
            return at + 1
        if char == "[" and has_brackets and (bracket := _SED_BRACKET.match(script, at)):
            at = bracket.end()
        else:
            at += 2 if char == "\\" else 1
    raise CommandRefusedError("a command s or y of the sed script has no end", _SED_FIX)


def _sed_refused(rest: str) -> CommandRefusedError:
    return CommandRefusedError(f"sed may not have `{cut_text(rest)}`", _SED_FIX)


_AWK_WORDS = re.compile(r"\bgetline\b|\bsystem\s*\(|\b(?:ENVIRON|PROCINFO|SYMTAB|FUNCTAB|ARGV|ARGC|ARGIND)\b", re.ASCII)
"""Looked for in the whole text, since awks differ in where they see a string or a regular expression."""
_AWK_TOKEN = re.compile(
    r"""
    (?P<blank>[ \t]+|\#[^\n]*)
    | (?P<end>[;\n}])
    | (?P<string>"(?:[^"\\\n]|\\[^\n])*")
    | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<output>>>|\|&|>(?!=)|\|(?!\|))
    | (?P<operator>&&|\|\||[-+*/%^<>=!]=|\+\+|--|[-+*/%^<=!~?:,$&({\[\])])
    """,
    re.VERBOSE,
)
_AWK_REGEX = re.compile(_REGEX)
_AWK_KEYWORDS = frozenset(
    {
        *("BEGIN", "END", "if", "else", "while", "for", "do", "in", "return", "print", "printf", "exit", "delete"),
        *("case", "func", "function"),
    }
)
_AWK_FIX = (
    "A program computes and prints: no system(), getline, | and > FILE, no @. Compare with > in parentheses or "
    "outside of print."
)


def check_awk(script: str) -> None:
    """Raises CommandRefusedError for a program that could reach anything but its input and its output."""
    check_no_file_name("awk", script)
    if found := _AWK_WORDS.search(script):
        raise CommandRefusedError(f"awk may not have `{found.group()}`", _AWK_FIX)
    if "\\\n" in script or "\r" in script:
        raise CommandRefusedError("a line of the awk program is continued with a backslash", "Write it on one line.")
    depth, is_printing = 0, False
    for kind, text in _awk_tokens(script):
        if kind == "end" and not depth:
            is_printing = False
        elif kind == "name" and text in {"print", "printf"}:
            depth, is_printing = 0, True
        elif text in {"(", ")"}:
            depth = max(0, depth + (1 if text == "(" else -1))
        elif kind == "output" and (text != ">" or (is_printing and not depth)):
            raise CommandRefusedError(f"awk may not have `{text}` here", _AWK_FIX)


def _awk_tokens(script: str) -> Iterator[tuple[str, str]]:
    at = 0
    is_value = False  # whether a value comes before, behind which / divides
    last = ""
    while at < len(script):
        if script[at] == "/" and last == "length":  # some awks divide, others begin a regular expression
            raise CommandRefusedError("awk may not have `/` right behind `length`", "Write length() or length($0).")
        found = None if script[at] == "/" and not is_value else _AWK_TOKEN.match(script, at)
        if found is None:
            found = _AWK_REGEX.match(script, at)
            if found is None:
                raise CommandRefusedError(f"awk may not have `{cut_text(script[at:])}`", _AWK_FIX)
        kind, text, at = found.lastgroup or "regex", found.group(), found.end()
        if kind != "blank":
            yield kind, text
            last = text
            is_value = kind in {"number", "string", "regex"} or text in {")", "]", "++", "--"}
            is_value = is_value or (kind == "name" and text not in _AWK_KEYWORDS)


_JQ_WORDS = re.compile(r'(?<![.\w"])(?:env|ENV|import|include|modulemeta|get_search_list)\b|\$__prog', re.ASCII)


def check_jq(script: str) -> None:
    """Raises CommandRefusedError for a program that asks for the environment or for other files."""
    check_no_file_name("jq", script)
    if found := _JQ_WORDS.search(script):
        raise CommandRefusedError(
            f"jq may not have `{found.group()}`", "A program sees its input only: no env, import and include."
        )


_FORMAT = re.compile(r"(?:[^%\\]|\\.|\\$|%%|%[-+ #0]{0,3}[0-9]{0,3}(?:\.[0-9]{0,3})?[diouxXeEfFgGaAcsbq])*", re.DOTALL)


def check_printf(script: str) -> None:
    """Raises CommandRefusedError for a format with other directives, or widths that could make gigabytes."""
    if not _FORMAT.fullmatch(script):
        raise CommandRefusedError(
            f"printf cannot have the format `{cut_text(script)}`", "There are %s %d %f %x %c %b %q, widths up to 999."
        )


_REPEAT = re.compile(r"\[[^\0]\*0*[1-9][0-9]{3,}\]", re.DOTALL)


def check_set(characters: str) -> None:
    """Raises CommandRefusedError for a set of tr with a character repeated more often than there are characters."""
    if found := _REPEAT.search(characters):
        raise CommandRefusedError(f"tr may not have `{cut_text(found.group())}`", "Write [x*] to fill up a set.")
