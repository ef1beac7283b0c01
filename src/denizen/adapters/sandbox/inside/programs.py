"""The programs that may run, each with exactly the options that it may be given.

Options are listed one by one, and everything else is refused. A list of forbidden options would fail, since GNU
programs accept abbreviated and clustered options. Left out are options that write (`sort -o`, `tree -o`), run programs
(`sort --compress-program`, `diff -l`), read file names from elsewhere (`--files0-from`, `grep -f`), follow links or
wait (`tail -f`), and every width that could make gigabytes of output.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from denizen.adapters.sandbox.inside.scripts import check_awk, check_jq, check_printf, check_sed, check_set

NUMBER = re.compile(r"[0-9]{1,7}")
ANY = re.compile(r"[^\0]*", re.DOTALL)
LINES = re.compile(r"[-+]?[0-9]{1,9}[kKMG]?")
PATH = re.compile(r"(?s:.*)(?#path)")
"""A value that is checked as a path too."""
_DEPTH = re.compile(r"[0-9]{1,3}")
_WIDTH = re.compile(r"[0-9]{1,3}")
_COLOR = re.compile(r"always|never|auto")
_STAT = re.compile(r"(?:[^%]|%%|%[aAbBfFgGhimnNosuUwWxXyYzZ])*", re.DOTALL)
_NOT_RANDOM = re.compile(r"[0-9.,bdfghiMnrV]{1,40}")
_DELIMITER = re.compile(r".|\\0|\\t", re.DOTALL)
_LIST = re.compile(r"[0-9,-]{1,200}")
_NUMBERED = re.compile(r"[atn]|p[^\0]*", re.DOTALL)
_VARIABLE = re.compile(r"(?!(?:ENVIRON|PROCINFO|ARG[A-Z]*)=)[A-Za-z_][A-Za-z0-9_]*=[^\0]*", re.DOTALL)
SCRIPT = re.compile(r"(?s:.*)(?#script)")
"""A value that is checked as a program for the program too."""

PAIR = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,50}(?#pair)")
"""The name of a variable, behind which stands its value."""

Operands = Literal["paths", "pattern, paths", "script, paths", "script, texts", "text"]
Options = dict[str, re.Pattern[str] | None]


@dataclass(frozen=True, slots=True)
class ProgramRule:
    """The options and operands that a program may have.

    `flags` are single letters without a value. `valued` and `longs` map an option to the pattern that its whole
    value must match, None for no value. `optional` long options take a value only behind `=`. `parsing` is
    `numeric` for a program that has options such as `-5`, `apart` for one that reads the next word as the value and
    text joined to the letter as more options, `ordered` for one that reads no options behind operands. `gives` are
    options that replace the first operand of "pattern, paths" and "script, paths". `check_script` checks a script,
    or each operand that is text.
    """

    flags: str = ""
    valued: Options = field(default_factory=dict[str, "re.Pattern[str] | None"])
    longs: Options = field(default_factory=dict[str, "re.Pattern[str] | None"])
    optional: Options = field(default_factory=dict[str, "re.Pattern[str] | None"])
    parsing: Literal["", "numeric", "apart", "ordered"] = ""
    gives: frozenset[str] = frozenset()
    operands: Operands = "paths"
    operand_count: tuple[int, int] = (0, 1_000_000)
    check_script: Callable[[str], None] | None = None
    may_follow_find: bool = False
    hint: str = ""


_AT_LEAST_ONE = (1, 1_000_000)


def _longs(flags: str, **valued: re.Pattern[str]) -> Options:
    made: Options = dict.fromkeys(f"--{flag}" for flag in flags.split())
    made.update({f"--{name.replace('_', '-')}": pattern for name, pattern in valued.items()})
    return made


_GREP = ProgramRule(
    flags="EFGPivwxclLnHhoqsrRaIUbTZzy",
    valued={"e": ANY, "m": NUMBER, "A": NUMBER, "B": NUMBER, "C": NUMBER},
    longs=_longs(
        "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case invert-match word-regexp "
        "line-regexp count files-with-matches files-without-match line-number with-filename no-filename only-matching "
        "quiet silent no-messages recursive dereference-recursive text binary byte-offset initial-tab null null-data "
        "line-buffered",
        regexp=ANY,
        max_count=NUMBER,
        after_context=NUMBER,
        before_context=NUMBER,
        context=NUMBER,
        include=ANY,
        exclude=ANY,
        exclude_dir=ANY,
    ),
    optional={"--color": _COLOR, "--colour": _COLOR},
    parsing="numeric",
    gives=frozenset({"e", "--regexp"}),
    operands="pattern, paths",
    may_follow_find=True,
    hint="Patterns from files (-f) are not read; give them with -e.",
)

PROGRAMS: dict[str, ProgramRule] = {
    "grep": _GREP,
    "ls": ProgramRule(
        flags="aAlh1RrtSdFpisngoGCxmUXvkNQbqcuB",
        valued={"I": ANY},
        longs=_longs(
            "all almost-all human-readable recursive reverse size directory inode numeric-uid-gid si no-group "
            "group-directories-first full-time kibibytes ignore-backups literal quote-name escape file-type author",
            ignore=ANY,
            hide=ANY,
            sort=re.compile("none|size|time|version|extension"),
            time=re.compile("atime|access|use|ctime|status|birth|creation|mtime|modification"),
            time_style=re.compile("full-iso|long-iso|iso|locale"),
        ),
        optional={"--color": _COLOR, "--classify": _COLOR},
        may_follow_find=True,
    ),
    "tree": ProgramRule(
        flags="adfiNsphDtrUvnCFqxQugcJX",
        valued={"L": _DEPTH, "P": ANY, "I": ANY},
        longs=_longs(
            "noreport dirsfirst filesfirst prune matchdirs ignore-case du inodes device si",
            filelimit=NUMBER,
            sort=re.compile("name|size|mtime|ctime|version"),
        ),
        parsing="apart",
        hint="Its output cannot go to a file; values stand behind a blank, as in -L 2.",
    ),
    "cat": ProgramRule(
        flags="nbsAETvetu",
        longs=_longs("number number-nonblank squeeze-blank show-all show-ends show-tabs show-nonprinting"),
        may_follow_find=True,
    ),
    "head": ProgramRule(
        flags="qvz",
        valued={"n": LINES, "c": LINES},
        longs=_longs("quiet silent verbose zero-terminated", lines=LINES, bytes=LINES),
        parsing="numeric",
        may_follow_find=True,
    ),
    "tail": ProgramRule(
        flags="qvz",
        valued={"n": LINES, "c": LINES},
        longs=_longs("quiet silent verbose zero-terminated", lines=LINES, bytes=LINES),
        parsing="numeric",
        may_follow_find=True,
        hint="Files are not followed (-f): they do not change here.",
    ),
    "wc": ProgramRule(flags="lwcmL", longs=_longs("lines words bytes chars max-line-length"), may_follow_find=True),
    "sort": ProgramRule(
        flags="bdfgiMhnrVcCmsuz",
        valued={"k": _NOT_RANDOM, "t": _DELIMITER},
        longs=_longs(
            "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort "
            "human-numeric-sort numeric-sort reverse version-sort merge stable unique zero-terminated",
            key=_NOT_RANDOM,
            field_separator=_DELIMITER,
        ),
        optional={"--check": re.compile("quiet|silent|diagnose-first")},
        hint="The result goes to the output only, never to a file (-o).",
    ),
    "uniq": ProgramRule(
        flags="cdDiuz",
        valued={"f": NUMBER, "s": NUMBER, "w": NUMBER},
        longs=_longs(
            "count repeated ignore-case unique zero-terminated",
            skip_fields=NUMBER,
            skip_chars=NUMBER,
            check_chars=NUMBER,
        ),
        optional={"--all-repeated": re.compile("none|prepend|separate")},
        operand_count=(0, 1),
        hint="A second file would be written to.",
    ),
    "diff": ProgramRule(
        flags="ucqriwbBysaNEZdtTpe",
        valued={"U": _WIDTH, "C": _WIDTH, "W": _WIDTH, "x": ANY},
        longs=_longs(
            "normal brief recursive report-identical-files ignore-case ignore-all-space ignore-space-change "
            "ignore-blank-lines ignore-trailing-space ignore-tab-expansion side-by-side new-file text minimal "
            "suppress-common-lines left-column strip-trailing-cr expand-tabs show-c-function",
            width=_WIDTH,
            exclude=ANY,
        ),
        optional={"--color": _COLOR, "--unified": _WIDTH, "--context": _WIDTH},
        operand_count=(2, 2),
    ),
    "echo": ProgramRule(operands="text"),
    "stat": ProgramRule(
        flags="t",
        valued={"c": _STAT},
        longs=_longs("terse", format=_STAT),
        operand_count=_AT_LEAST_ONE,
        may_follow_find=True,
        hint="A format has plain directives such as %n %s %y, without widths.",
    ),
    "file": ProgramRule(
        flags="bikhNn0r",
        longs=_longs(
            "brief mime mime-type mime-encoding keep-going no-dereference no-pad no-buffer print0 raw extension"
        ),
        operand_count=_AT_LEAST_ONE,
        may_follow_find=True,
    ),
    "du": ProgramRule(
        flags="ashkmbcSxl0",
        valued={"d": _DEPTH},
        longs=_longs(
            "all summarize human-readable apparent-size bytes total separate-dirs one-file-system count-links null si",
            max_depth=_DEPTH,
            exclude=ANY,
            threshold=re.compile(r"-?[0-9]{1,12}[kKMG]?"),
        ),
        may_follow_find=True,
    ),
    "basename": ProgramRule(
        flags="az",
        valued={"s": ANY},
        longs=_longs("multiple zero", suffix=ANY),
        operands="text",
        operand_count=_AT_LEAST_ONE,
        may_follow_find=True,
    ),
    "dirname": ProgramRule(
        flags="z", longs=_longs("zero"), operands="text", operand_count=_AT_LEAST_ONE, may_follow_find=True
    ),
    "realpath": ProgramRule(
        flags="emqszLP",
        longs=_longs(
            "canonicalize-existing canonicalize-missing quiet strip no-symlinks zero logical physical",
            relative_to=PATH,
            relative_base=PATH,
        ),
        operand_count=_AT_LEAST_ONE,
        may_follow_find=True,
    ),
    "sed": ProgramRule(
        flags="nErsz",
        valued={"e": SCRIPT},
        longs=_longs("quiet silent regexp-extended separate null-data sandbox", expression=SCRIPT),
        gives=frozenset({"e", "--expression"}),
        operands="script, paths",
        check_script=check_sed,
        may_follow_find=True,
        hint="The result goes to the output only, never to a file (-i); scripts are not read from files (-f).",
    ),
    "awk": ProgramRule(
        valued={"F": ANY, "v": _VARIABLE},
        parsing="ordered",
        operands="script, paths",
        check_script=check_awk,
        may_follow_find=True,
        hint="Programs are not read from files (-f): write awk -F, '{print $1}' FILE.",
    ),
    "jq": ProgramRule(
        flags="rcnsSejaMCR",
        longs=_longs(
            "raw-output compact-output null-input slurp sort-keys exit-status join-output ascii-output raw-input "
            "monochrome-output color-output tab stream",
            indent=re.compile("[0-7]"),
            arg=PAIR,
            argjson=PAIR,
        ),
        operands="script, paths",
        check_script=check_jq,
        may_follow_find=True,
        hint="Programs and values are not read from files (-f --slurpfile --rawfile): write jq -r '.name' FILE.",
    ),
    "cut": ProgramRule(
        flags="snz",
        valued={"d": ANY, "f": _LIST, "c": _LIST, "b": _LIST},
        longs=_longs(
            "only-delimited complement zero-terminated",
            delimiter=ANY,
            fields=_LIST,
            characters=_LIST,
            bytes=_LIST,
            output_delimiter=ANY,
        ),
        may_follow_find=True,
    ),
    "tr": ProgramRule(
        flags="cCdst",
        longs=_longs("complement delete squeeze-repeats truncate-set1"),
        operands="text",
        operand_count=(1, 2),
        check_script=check_set,
        hint="It takes one or two sets of characters and reads what is piped in, or < FILE.",
    ),
    "nl": ProgramRule(
        flags="p",
        valued={
            "b": _NUMBERED,
            "h": _NUMBERED,
            "f": _NUMBERED,
            "n": re.compile("ln|rn|rz"),
            "s": ANY,
            "d": ANY,
            "w": _WIDTH,
            "v": re.compile(r"-?[0-9]{1,9}"),
            "i": re.compile(r"-?[0-9]{1,9}"),
            "l": NUMBER,
        },
        longs=_longs(
            "no-renumber",
            body_numbering=_NUMBERED,
            number_format=re.compile("ln|rn|rz"),
            number_separator=ANY,
            number_width=_WIDTH,
        ),
        may_follow_find=True,
    ),
    "printf": ProgramRule(
        parsing="ordered",
        operands="script, texts",
        check_script=check_printf,
        hint="It takes a format and texts, no options (-v): begin a format that begins with - with %s.",
    ),
    "true": ProgramRule(operands="text"),
    "false": ProgramRule(operands="text"),
}
"""The programs with options and operands in the usual form. `policy.py` checks find, `xargs.py` checks xargs."""

NAMES = frozenset({*PROGRAMS, "find", "test", "[", "xargs", "rg", "egrep", "fgrep", "pwd", "cd", ":"})
"""All that may stand as the first word of a command, besides the words of the grammar."""
EXTERNAL = frozenset({*PROGRAMS, "find", "test", "["})
"""The programs of the system; the others are our own."""
INSTEAD = {
    "rm": "Nothing can be changed here.",
    "mv": "Nothing can be changed here.",
    "cp": "Nothing can be changed here.",
    "tee": "Nothing can be written here.",
    "touch": "Nothing can be changed here.",
    "mkdir": "Nothing can be changed here.",
    "curl": "There is no network here.",
    "wget": "There is no network here.",
    "git": "There is no repository here.",
    "ssh": "There is no network here.",
    "sudo": "Commands run without privileges.",
    "less": "Write cat, head or sed -n.",
    "more": "Write cat, head or sed -n.",
    "column": "Use awk, cut or tr for columns.",
    "tac": "Use sed -n '1!G;h;$p'.",
    "paste": "Use tr or awk to join lines.",
    "python": "Use awk, jq or sed.",
    "python3": "Use awk, jq or sed.",
    "perl": "Use awk, sed or grep -oP.",
    "seq": "Write {1..9}.",
    "exit": "A command ends by itself.",
    "set": "Leave it out.",
    "read": "Give lines to xargs -I{}.",
    "export": "Write NAME=VALUE alone.",
    "bash": "Write the commands themselves.",
    "sh": "Write the commands themselves.",
}
