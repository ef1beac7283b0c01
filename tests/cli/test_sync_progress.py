"""What `denizen sources sync` says while it works, where its output is no terminal."""

from __future__ import annotations

from denizen.cli.sync_progress import ProgressLines
from denizen.ports.source import WAITING, ReadingProgress


def test_what_takes_long_is_told_by_tenths_and_what_is_quick_not_at_all() -> None:
    said: list[str] = []
    lines = ProgressLines(said.append)
    for done in range(0, 2000, 50):
        lines.draw({"big": ReadingProgress("keeping files", done, 2000)})
    lines.draw({"big": ReadingProgress("read", 2000, 2000), "small": ReadingProgress("read", 3, 3)})
    assert said == [f"big: keeping files, {done} of 2000" for done in range(200, 2000, 200)]


def test_what_is_waited_for_is_told_once_for_each_attempt() -> None:
    said: list[str] = []
    lines = ProgressLines(said.append)
    for attempt in (1, 1, 2):
        lines.draw({"site": ReadingProgress(f"{WAITING} (attempt {attempt}): There is no answer.")})
    assert said == [f"site: waiting (attempt {attempt}): There is no answer." for attempt in (1, 2)]


def test_each_stage_and_each_source_counts_by_itself_and_percents_are_told_as_such() -> None:
    said: list[str] = []
    lines = ProgressLines(said.append)
    for stage in ("receiving objects", "keeping files"):
        for percent in (0, 35, 39, 71):
            lines.draw({"a": ReadingProgress(stage, percent, 100), "b": ReadingProgress("looking")})
    assert said == [
        "a: receiving objects, 35 %",
        "a: receiving objects, 71 %",
        "a: keeping files, 35 %",
        "a: keeping files, 71 %",
    ]
