"""The parser against bash: whatever it accepts, bash must read in the same way (inventory S19).

Random texts around `echo`. Each text that is accepted runs in one bash where `echo` is a function that tells its
arguments apart; the arguments, and which commands print them, must be the same.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from denizen.adapters.sandbox.inside.evaluation import (
    Evaluator,
    InputFile,
    LoopStage,
    ProgramStage,
    Rehearsal,
    Stage,
    Stream,
)
from denizen.adapters.sandbox.inside.grammar import StreamRedirect, parse_commands
from denizen.adapters.sandbox.inside.words import CommandRefusedError
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.proves("S19", "SW1", "SW2", "E2")

LINES = 20_000
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
    " | echo ",
    " && echo ",
    " || echo ",
    "; echo ",
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
    "\n",
    "\necho ",
    " # a",
    "#\n",
    "\n\n",
    " \\\n",
    "! echo ",
    "! ",
    "$'\\n'",
    "$'\\x41\\''",
    "$'\\u00e9\\101'",
    "{1..3}",
    "{03..1}",
    "{1..9..4}",
    "{c..a}",
    "{a,{b,c}}",
    "{a{1,2},}",
    "{a,b}{c,{d,e}f}",
    "{{a,b},c}",
    "{a}",
    "x=a;",
    "x='a  b' ; echo ",
    "x=b.md\necho ",
    "x=d/z.md;y=*; echo ",
    "x=$x$x;echo ",
    "$x",
    "${x}",
    '"$x"',
    '"${x}"',
    " $y ",
    "${x%.md}",
    "${x##*/}",
    "${x#a}",
    "${x%%b*}",
    "${#x}",
    "$?",
    "; for x in a b; do echo ",
    "; for y in $x *.md; do echo $y ",
    "\nfor x in {1..3}\ndo\necho $x ",
    "; done",
    "\ndone",
    "; done; echo ",
    "; done | echo ",
    "; done >/dev/null; echo ",
    "; break",
    "; continue; echo ",
    "; ! continue",
    "; cd d; echo ",
    "; cd .. && echo ",
    "; cd nosuch || echo ",
    " <a ",
    " < nosuch",
    " 0<b.md",
)
SCRIPT = r"""
echo() { printf '%s\1' "$@"; printf '\2'; }
top=$PWD
while IFS= read -r -d '' line; do
  unset x y; cd "$top"; true; eval "$line" 2>/dev/null </dev/null; printf '\3'
done
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
    top = os.open(".", os.O_RDONLY)
    for _ in range(LINES):
        line = "echo " + "".join(chance.choices(PIECES, k=chance.randint(1, 9)))
        try:
            accepted[line] = _simulate(line, top)
        except CommandRefusedError:
            continue
    os.fchdir(top)
    os.close(top)
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


def _simulate(text: str, top: int) -> bytes:
    """What bash would print. Raises CommandRefusedError."""
    printer, commands = _Printer(), parse_commands(text)
    for runner in (Rehearsal(), printer):
        Evaluator(runner, top, {"echo", "true"}).evaluate(commands)
    return printer.printed


@dataclass(slots=True)
class _Printer:
    """A runner of `echo` alone, which prints to nowhere but at the end of a pipeline."""

    printed: bytes = b""
    enclosing: list[StreamRedirect] = field(default_factory=list[StreamRedirect])

    def run(self, stages: Sequence[Stage]) -> int:
        codes = [self._run_stage(stage, is_last=stage is stages[-1]) for stage in stages]
        return codes[-1]

    def _run_stage(self, stage: Stage, *, is_last: bool) -> int:
        table = {1: "out" if is_last else "null", 2: "null"}
        for stream in (*self.enclosing, *stage.streams):
            if isinstance(stream, InputFile):
                if not os.path.exists(stream.path):  # noqa: PTH110 - pathlib leaves out a last slash
                    if table[2] == "out":
                        raise CommandRefusedError("bash has words of its own for this")
                    return 1
            else:
                table[stream.descriptor] = "null" if stream.target is None else table[stream.target]
        if isinstance(stage, LoopStage):
            inner = _Printer()
            code = stage.evaluate(inner)
            self.printed += inner.printed if table[1] == "out" else b""
            return code
        assert isinstance(stage, ProgramStage)
        if table[1] == "out" and stage.argv[0] == "echo":
            self.printed += b"\1".join(map(os.fsencode, stage.argv[1:])) + b"\1\2"
        return 0

    @contextmanager
    def redirect(self, streams: Sequence[Stream]) -> Generator[None]:
        before = self.enclosing
        self.enclosing = [*before, *(each for each in streams if isinstance(each, StreamRedirect))]
        yield
        self.enclosing = before

    def write_error(self, text: str) -> None:
        pass
