"""Another user on this machine, for tests that run as the superuser."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.adapters.sandbox.runner import LIMIT_S
from tests.timing import PROCESS_LIMIT_S

NOBODY = 65_534
_ROOT = Path(__file__).parents[3]


@cache
def find_interpreter() -> tuple[str, str]:
    """A Python that nobody may run, with why there is none."""
    if os.geteuid():
        return "", "these tests run without privileges anyway"
    for path in (sys.executable, "/usr/bin/python3"):
        try:
            tried = subprocess.run(
                [path, "-c", "import anyio, denizen.adapters.sandbox.pool"],
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                env=_environ(),
                cwd="/",
                capture_output=True,
                check=False,
            )
        except OSError:
            continue
        if tried.returncode == 0:
            return path, ""
    return "", "no Python here can be run by another user together with Denizen's packages"


@contextmanager
def open_folder() -> Generator[Path]:
    """One that nobody can reach, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="denizen-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def give_to_nobody(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def run_as_nobody(interpreter: str, tier: str, root: Path, commands: Sequence[str], timeout_s: float = LIMIT_S) -> Any:
    """What `runner.py` answers: rows, or why the tier is off."""
    done = subprocess.run(
        [interpreter, "-m", "tests.adapters.sandbox.runner"],
        input=json.dumps({"tier": tier, "root": str(root), "commands": list(commands), "timeout_s": timeout_s}),
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        env=_environ(),
        cwd=_ROOT,
        text=True,
        capture_output=True,
        check=False,
        timeout=PROCESS_LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _environ() -> dict[str, str]:
    import anyio

    packages = Path(anyio.__file__).parent.parent
    return {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": f"{packages}:{_ROOT / 'src'}:{_ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
