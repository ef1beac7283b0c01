"""The read-only shell beside a bare `bash -c` of the same run: single commands and a batch of three, interleaved.

As the superuser the same is measured again as nobody, where a Python can be found that nobody may run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

from benchmarks.figures import Figure, calibrate, middle, show, show_head
from denizen.adapters.sandbox.pool import SandboxPool
from denizen.domain.clock import SystemClock
from denizen.domain.errors import Unavailable
from denizen.ports.sandbox import ShellView

TIMES = 150
FILES = 300
SINGLE = "grep -rn foo docs | head -20"
BATCH = (SINGLE, "find docs -name '*.md' | sort | head -5", "cat docs/1.md | wc -l")
NOBODY = 65_534
_ROOT = Path(__file__).parent.parent


def main(*_: str) -> None:
    show_head(loop_ms := calibrate())
    with tempfile.TemporaryDirectory(prefix="denizen-bench-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        _write(root)
        try:
            mine = anyio.run(_measure, root)
        except Unavailable as error:
            print(f"no sandbox here: {error.why}")
            return
        show(_figures("" if os.geteuid() else "root, ", mine), loop_ms)
        if not os.geteuid():
            theirs = _measure_as_nobody(root)
            show(_figures("nobody, ", theirs) if theirs else (), loop_ms)


def _write(root: Path) -> None:
    (root / "docs").mkdir()
    for number in range(FILES):
        text = "".join(f"line {line} of {number}{' foo' if line % 40 == 0 else ''}\n" for line in range(100))
        (root / "docs" / f"{number}.md").write_text(text, encoding="utf-8")


def _figures(who: str, took_ms: dict[str, float]) -> list[Figure]:
    """The aim is the baseline."""
    return [
        Figure(f"{who}one command", took_ms["one"], "ms", took_ms["bare one"], took_ms["bare one"]),
        Figure(f"{who}a batch of three", took_ms["three"], "ms", took_ms["bare three"], took_ms["bare three"]),
    ]


async def _measure(root: Path) -> dict[str, float]:
    """Medians, in ms."""
    view = ShellView((("", root),))
    took: dict[str, list[float]] = {"one": [], "three": [], "bare one": [], "bare three": []}
    async with SandboxPool(SystemClock()) as pool:
        for commands in ([SINGLE], [*BATCH]):
            assert (await pool.run(commands, view, owner="bench")).results[0].stdout
        for _ in range(TIMES):
            for name, commands in (("one", [SINGLE]), ("three", [*BATCH])):
                started = time.perf_counter()
                await pool.run(commands, view, owner="bench")
                took[name].append((time.perf_counter() - started) * 1e3)
                started = time.perf_counter()
                for command in commands:
                    _run_bare(command, root)
                took[f"bare {name}"].append((time.perf_counter() - started) * 1e3)
    return {name: middle(values) for name, values in took.items()}


def _run_bare(command: str, root: Path) -> None:
    environ = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    subprocess.run(
        ["bash", "-c", command], cwd=root, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=True
    )


def _measure_as_nobody(root: Path) -> dict[str, float] | None:
    packages = Path(anyio.__file__).parent.parent
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{packages}:{_ROOT / 'src'}:{_ROOT}"}
    code = "import sys, benchmarks.sandbox as s; s.measure_here(sys.argv[1])"
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            done = subprocess.run(
                [python, "-B", "-c", code, str(root)],
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                env=environ,
                cwd="/",
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError:
            continue
        if done.returncode == 0:
            return json.loads(done.stdout)
    print("not measured as another user: no Python here can be run by one")
    return None


def measure_here(root: str) -> None:
    """Called in a process of another user; prints JSON."""
    print(json.dumps(anyio.run(_measure, Path(root))))
