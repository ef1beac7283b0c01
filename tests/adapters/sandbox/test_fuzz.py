"""The parser against bash: whatever it accepts, bash must read in the same way (inventory S19).

Random lines of a command `p` that prints its arguments. Each line that is accepted runs in one bash with a function of
that name; the arguments, and which commands print them, must be the same.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from denizen.adapters.sandbox.inside.expansion import GlobWalker, expand
from denizen.adapters.sandbox.inside.words import CommandRefusedError, ParsedPipeline, parse_line
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.proves("S19", "SW1", "SW2", "E2")

LINES = 12_000
SEED = 20261122
PIECES = (
    *"abcxyz019",
    *"abc",
    " ",
    " ",
    " ",
    "  ",
    "\t",
    "'",
    '"',
    "'a b'",
    '"a b"',
    '"a $ b"',
    "\\",
    "\\\\",
    "\\ ",
    '\\"',
    "\\'",
    "$",
    "$ ",
    "`",
    "|",
    " | p ",
    " && p ",
    " || p ",
    "; p ",
    ";",
    "&",
    "&&",
    "||",
    "(",
    ")",
    "<",
    ">",
    "{",
    "}",
    "{a,b}",
    "{a,b,}",
    "{}",
    "{a..c}",
    ",",
    "*",
    "?",
    "[",
    "]",
    "[ab]",
    "[!a]",
    "[a-c]*",
    "^",
    "!",
    "#",
    "~",
    "=",
    ":",
    "-",
    "--",
    "/",
    "./",
    "..",
    ".",
    "d/",
    "%",
    "@",
    "+",
    "ü",
    "\u00a0",
    "''",
    '""',
    "2>/dev/null",
    " 2>&1",
    " >/dev/null",
    " 1>&2",
    "&>/dev/null",
    "2>",
    ">&2",
    " 2> /dev/null ",
    "3>&1",
    "\\\n",
    "\n",
    "\r",
    "\v",
    "$'a'",
    '$"a"',
    "${a}",
    "$(",
    "d/*",
    "*.md",
    ".*",
    "a*",
    "*/",
    "=~",
    "a=~",
    "'\n'",
)
SCRIPT = r"""
p() { printf '%s\1' "$@"; printf '\2'; }
while IFS= read -r -d '' line; do eval "$line" 2>/dev/null </dev/null; printf '\3'; done
"""


def test_what_is_accepted_means_what_bash_means_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash to compare with")
    for name in ("a", "ab", "b.md", "c.md", ".h", "x y", "ü", "d/a", "d/z.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    chance = random.Random(SEED)
    accepted: dict[str, bytes] = {}
    for _ in range(LINES):
        line = "p " + "".join(chance.choices(PIECES, k=chance.randint(1, 9)))
        try:
            accepted[line] = _simulate(parse_line(line))
        except CommandRefusedError:
            continue
    assert len(accepted) > LINES / 10
    done = subprocess.run(
        [bash, "-c", SCRIPT],
        input=b"".join(line.encode() + b"\0" for line in accepted),
        capture_output=True,
        env={"LC_ALL": "C.UTF-8", "PATH": "/nonexistent"},
        cwd=tmp_path,
        check=False,
        timeout=HANG_LIMIT_S,
    )
    printed = done.stdout.split(b"\3")[:-1]
    assert len(printed) == len(accepted)
    assert [row for row in zip(accepted, accepted.values(), printed, strict=True) if row[1] != row[2]] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [".h", "a", "ab", "b.md", "c.md", "d", "x y", "ü"]
    )


def _simulate(pipelines: tuple[ParsedPipeline, ...]) -> bytes:
    """What bash would print: each `p` succeeds, and what goes into a pipe is not printed. Raises Refused for what the
    policy would refuse: another command than `p`.
    """
    printed = b""
    for pipeline in pipelines:
        for command in pipeline.commands:
            argv = [text for word in command.words for text in expand(word, 0, GlobWalker())]
            if argv[:1] != ["p"]:
                raise CommandRefusedError("another command")
            if pipeline.operator == "||":
                continue
            shown = b"\1".join(map(os.fsencode, argv[1:])) + b"\1\2"
            table = {1: "out", 2: "null"}
            for redirect in command.redirects:
                table[redirect.descriptor] = "null" if redirect.target is None else table[redirect.target]
            if command is pipeline.commands[-1] and table[1] == "out":
                printed += shown
    return printed
