"""`rg` as models write it: the same search by grep, or a refusal that says how grep does it."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.adapters.sandbox.inside.policy import resolve_command
from denizen.adapters.sandbox.inside.words import CommandRefusedError
from tests.adapters.sandbox.realistic import make_realistic_folder
from tests.adapters.sandbox.runner import run_all
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

SAME = {
    "rg TODO": "grep -rP --exclude-dir='.?*' TODO",
    "rg -n TODO": "grep -rnP --exclude-dir='.?*' TODO",
    "rg --hidden TODO": "grep -rP TODO",
    "rg -uu TODO": "grep -rP TODO",
    "rg -i todo docs": "grep -ri todo docs",
    "rg -S todo docs": "grep -ri todo docs",
    "rg -S TODO docs": "grep -r TODO docs",
    "rg -Sl 'todo' docs README.md": "grep -ril todo docs README.md",
    "rg -tmd TODO": "grep -r --include='*.md' --exclude-dir='.?*' TODO",
    "rg -t md -t py TODO": "grep -r --include='*.md' --include='*.py' --exclude-dir='.?*' TODO",
    "rg -g '*.md' TODO docs": "grep -r --include='*.md' TODO docs",
    "rg -g '**/*.md' TODO docs": "grep -r --include='*.md' TODO docs",
    "rg -g '!guides' TODO docs": "grep -r --exclude-dir=guides TODO docs",
    r"rg '\d+ GB' docs": r"grep -rE '[0-9]+ GB' docs",
    "rg -F '$12' docs": "grep -rF '$12' docs",
    "rg -o '[a-z]+@[a-z.]+' README.md": "grep -oE '[a-z]+@[a-z.]+' README.md",
    "rg -w error docs": "grep -rw error docs",
    "rg -A2 -B 1 Steps docs": "grep -r -A2 -B1 Steps docs",
    "rg -e TODO -e error docs": "grep -r -e TODO -e error docs",
    "rg --no-heading --line-number --color never TODO docs": "grep -rn TODO docs",
    "rg -m1 INFO logs": "grep -r -m1 INFO logs",
    "rg -- -x README.md": "grep -- -x README.md",
    "cat README.md | rg TODO": "grep TODO README.md",
    "cat README.md | rg -n TODO docs": "grep -rn TODO docs",
    "rg TODO < README.md": "grep TODO README.md",
    "rg -q TODO README.md && echo yes": "echo yes",
    "rg nosuch docs": "grep -r nosuch docs",
    "rg --files docs/api": "find docs/api -type f",
    "rg --files -g '*.csv' data": "find data -name '*.csv'",
    "rg --files -g '!*.csv' -g '!guides' docs data | sort": (
        "find docs data -type f ! -name '*.csv' ! -path '*/guides/*' | sort"
    ),
    "rg --files | sort": "find . -type f -not -path '*/.*' -printf '%P\\n' | sort",
    "ls docs/guides/*.md | xargs -d '\\n' rg -n TODO": "grep -n TODO docs/guides/*.md",
    "find docs -name '*.md' | sort | xargs -d '\\n' rg -l Run": "grep -l Run docs/guides/backup.md docs/install.md",
}


async def test_rg_finds_what_grep_finds(best_tier: str, tmp_path: Path) -> None:
    root = make_realistic_folder(tmp_path / "kb")
    results = await run_all(best_tier, root, [*SAME, *SAME.values()], HANG_LIMIT_S)
    told = [(each.command, sorted(each.stdout.splitlines()), each.exit_code, each.refused) for each in results]
    mine, theirs = told[: len(SAME)], told[len(SAME) :]
    assert [pair for pair in zip(mine, theirs, strict=True) if pair[0][1:] != pair[1][1:]] == []
    assert not any(row[3] for row in mine)


@pytest.mark.parametrize(
    ("line", "way"),
    [
        ("rg -c TODO", "grep -rc"),
        ("rg -r x TODO", "sed"),
        ("rg -U 'a\nb'", "grep -rPzo"),
        ("rg --json TODO", "grep -rn"),
        ("rg -L TODO", "--files-without-match"),
        ("rg -f patterns docs", "-e"),
        ("rg --pre ./script.sh TODO", "No other program"),
        ("rg -z TODO", "No other program"),
        ("rg -t klingon TODO", "-g '*.EXTENSION'"),
        ("rg -g 'docs/**' TODO", "name a folder"),
        ("rg --max-depth 1 TODO", "find . -maxdepth"),
        ("rg", "rg PATTERN"),
        ("rg --files TODO -n", "find . -type f"),
        ("rg --hostname-bin ./script.sh TODO", "grep -rn"),
        ("rg TODO /etc", "relative"),
        ("rg TODO ..", "without"),
        ("rg --files /etc", "relative"),
    ],
)
def test_what_grep_cannot_do_is_refused_with_the_way_that_there_is(line: str, way: str) -> None:
    with pytest.raises(CommandRefusedError) as caught:
        resolve_command(line.split(" "), 0, has_input=False)
    assert way in caught.value.explain()
