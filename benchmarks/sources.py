"""Sources: the first sync of a repository of 200 MB of documents, and the next ones, as whole commands.

The documents are half words and half noise, so that git cannot pack them to nothing. The index of them is made by the
first sync too. What is measured of a command is all of it, from the start of the interpreter to its end.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure, least
from benchmarks.processes import Process, denizen_command, make_home, time_command

FILES, FILE_BYTES = 10_000, 20_000
TIMES = 3


def measure(folder: Path, model: Process) -> Iterator[Figure]:
    home, repository = make_home(folder / "sources", model.port), _make_repository(folder / "library")
    command = denizen_command(home)
    size_mb = FILES * FILE_BYTES / 1e6
    time_command([*command, "sources", "add", str(repository), "--kind", "git"])
    first_s, first_cpu_s = time_command([*command, "sources", "sync"])
    yield Figure(f"first sync of {FILES} documents, {size_mb:.0f} MB", first_s, "s")
    yield Figure("  processor time of it, git's too", first_cpu_s * 1e3, "ms CPU")
    bare_s = least(lambda: time_command([sys.executable, "-c", "pass"])[0], TIMES)
    again = [time_command([*command, "sources", "sync"]) for _ in range(TIMES)]
    again_s = min(wall for wall, _ in again)
    yield Figure("second sync, nothing changed, the whole command", again_s, "s", aim=2.0, baseline=bare_s)
    yield Figure("  processor time of it", min(cpu for _, cpu in again) * 1e3, "ms CPU")
    listed_s = least(lambda: time_command([*command, "sources", "list"])[0], TIMES)
    yield Figure("denizen sources list, of which it is part", listed_s, "s", baseline=bare_s)
    changed: list[float] = []
    for number in range(TIMES):
        (repository / f"part-0/{number}.md").write_text(f"# Changed {number}\n", encoding="utf-8")
        _git(repository, "commit", "--quiet", "--all", "--message", "One more.")
        changed.append(time_command([*command, "sources", "sync"])[0])
    yield Figure("sync after one document of them changed", min(changed), "s")


def texts(count: int) -> Iterator[str]:
    """Documents, always the same ones."""
    random_source = random.Random(7)
    words = [f"{random_source.getrandbits(24):x}" for _ in range(5000)]
    for number in range(count):
        lines = [f"# Document {number}"]
        size = 0
        while size < FILE_BYTES:
            lines.append(" ".join(random_source.choices(words, k=12)) + f" {random_source.getrandbits(256):x}")
            size += len(lines[-1]) + 1
        yield "\n".join(lines)


def _make_repository(folder: Path) -> Path:
    for number, text in enumerate(texts(FILES)):
        place = folder / f"part-{number % 100}" / f"{number // 100}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    _git(folder, "init", "--quiet", "--initial-branch=main")
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "A library.")
    return folder


def _git(folder: Path, *args: str) -> None:
    by = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org", "-c", "gc.auto=0")
    subprocess.run(["git", "-C", str(folder), *by, *args], check=True)
