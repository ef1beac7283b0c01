"""The tables of a release, from runs on this machine: `python -m scripts.tables`, or `make tables`.

They are written by what measures, never by hand: security, performance and quality, each with the command that gave it.
Nothing is written when a run fails, such as when an attack came through that must not. Run it on a machine that does
nothing else; it takes half an hour.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.release.__main__ import read_version

ROOT = Path(__file__).resolve().parents[1]
PAGE = "docs/explanation/measured.md"


class Run(NamedTuple):
    """One part of the page: its heading, and the module with arguments whose output stands below it."""

    heading: str
    arguments: Sequence[str]
    is_markdown: bool = False


RUNS = (
    Run("Security", ("denizen", "bench", "security", "--markdown"), is_markdown=True),
    Run("Performance", ("benchmarks", "size", "start", "turns", "growth", "gate")),
    Run("Quality", ("benchmarks", "retrieval", "retrieval_large", "memory", "archive_quality", "citations")),
)


class RunError(Exception):
    """A run that failed, by which no page is written."""


def build_page(root: Path, runs: Sequence[Run] = RUNS) -> str:
    """Measures, and returns the page. Raises RunError."""
    return "\n".join(_list_lines(root, runs))


def _list_lines(root: Path, runs: Sequence[Run]) -> Iterator[str]:
    yield "# What was measured"
    yield ""
    yield f"Denizen {read_version(root)}, Python {platform.python_version()}, {platform.system()} {platform.machine()},"
    yield f"{os.cpu_count()} processors. `make tables` wrote this page from the runs that it names; nothing in it is"
    yield "written by hand. Compare figures of time by their baseline, or in calibration loops."
    for run in runs:
        output = _measure(root, run).strip()
        yield f"\n## {run.heading}\n\n`python -m {' '.join(run.arguments)}`\n"
        yield output if run.is_markdown else f"```text\n{output}\n```"
    yield ""


def _measure(root: Path, run: Run) -> str:
    command = [sys.executable, "-m", *run.arguments]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603 - fixed programs
    if done.returncode or not done.stdout.strip():
        raise RunError(f"{' '.join(run.arguments)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def add_link(readme: str) -> str:
    """Returns the README with the page in its table of pages. A link before there is a page would lead nowhere."""
    row = f"| [What was measured]({PAGE}) | security, performance and quality, with the commands |\n"
    return readme if f"({PAGE})" in readme else readme.replace("| [Glossary](", f"{row}| [Glossary](", 1)


def main() -> int:
    try:
        text = build_page(ROOT)
    except RunError as error:
        sys.stderr.write(f"error: {error}\nfix: See what it says, mend that, and run it again; nothing was written.\n")
        return 1
    (ROOT / PAGE).write_text(text, encoding="utf-8")
    readme = ROOT / "README.md"
    readme.write_text(add_link(readme.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
