"""What is harmless works, and gives byte for byte what bash gives."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from denizen.ports.sandbox import ShellResult
from tests.adapters.sandbox.benign import BENIGN
from tests.adapters.sandbox.realistic import REALISTIC, REFUSED_REALISTIC, make_realistic_folder
from tests.adapters.sandbox.runner import run_all
from tests.adapters.sandbox.sandbox_folder import make_sandbox_folder
from tests.adapters.sandbox.unprivileged import find_interpreter, open_folder, run_as_nobody
from tests.timing import HANG_LIMIT_S

pytestmark = [pytest.mark.anyio, pytest.mark.proves("S16", "S18", "SW1", "E2")]

BASH = shutil.which("bash")
ENVIRON = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PATH": "/usr/local/bin:/usr/bin:/bin"}


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    with open_folder() as folder:  # with Landlock alone, realpath needs the folders above too
        yield make_sandbox_folder(folder, traps=False).root


async def test_usual_lines_give_what_bash_gives(tier: str, root: Path) -> None:
    compare(await run_all(tier, root, list(BENIGN), HANG_LIMIT_S), root)


def test_usual_lines_give_what_bash_gives_a_user_without_privileges(tier: str, root: Path) -> None:
    interpreter, why = find_interpreter()
    if why:
        pytest.skip(why)
    rows = run_as_nobody(interpreter, tier, root, BENIGN, HANG_LIMIT_S)
    if isinstance(rows, dict):
        pytest.skip(f"{tier} cannot be had by other users here: {rows}")
    compare((ShellResult(**row) for row in rows if "ls -l" not in row["command"]), root)  # which tell the owner


async def test_what_models_write_gives_what_bash_gives_or_is_known_to_be_refused(tier: str) -> None:
    assert len(REALISTIC) > 200
    with open_folder() as folder:
        root = make_realistic_folder(folder / "kb")
        results = await run_all(tier, root, list(REALISTIC), HANG_LIMIT_S)
        ran = [result for result in results if "is not installed here" not in result.stderr]
        refused = {result.command for result in ran if result.refused}
        assert refused == REFUSED_REALISTIC
        if BASH is None:
            pytest.skip("there is no bash to compare with")
        mine = [(each.command, each.stdout, each.exit_code) for each in ran if not each.refused]
        theirs = [(command, *ask_bash(BASH, command, root)[::2]) for command, _, _ in mine]
        assert [pair for pair in zip(mine, theirs, strict=True) if pair[0] != pair[1]] == []


def compare(results: Iterable[ShellResult], root: Path) -> None:
    if BASH is None:
        pytest.skip("there is no bash to compare with")
    different: list[tuple[str, object, object]] = []
    for result in results:
        if "is not installed here" in result.stderr:
            continue
        mine = (result.stdout, result.stderr, result.exit_code)
        theirs = ask_bash(BASH, result.command, root)
        if mine != theirs:
            different.append((result.command, mine, theirs))
    assert different == []


@cache
def ask_bash(bash: str, command: str, root: Path) -> tuple[str, str, int]:
    done = subprocess.run(
        [bash, "-c", command], cwd=root, env=ENVIRON, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return done.stdout.decode(), done.stderr.decode(), done.returncode
