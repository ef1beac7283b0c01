"""The log that is kept in files: bounded, whole with several writers, and searched and purged by what is in it."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from denizen.adapters.log_files import KEPT_DAYS, LogFiles
from denizen.domain.log import LogEntry, LogFilter, encode_entry
from tests.clock import NOON
from tests.timing import PROCESS_LIMIT_S

pytestmark = pytest.mark.anyio

ALL = LogFilter()
WRITER = """
import sys
from pathlib import Path
from denizen.adapters.log_files import LogFiles
files = LogFiles(Path(sys.argv[1]), file_bytes=20_000)
for number in range(300):
    line = '{"at": "2026-11-21T12:00:00.000000Z", "level": "info", "event": "%s %d", "fields": {}, "trace": ""}'
    files.append([line % (sys.argv[2], number)])
"""


def line(event: str, level: str = "info", days: float = 0) -> str:
    return encode_entry(LogEntry(NOON + timedelta(days=days), level, event))


async def read(files: LogFiles, wanted: LogFilter = ALL) -> list[str]:
    return [entry.event for entry in await files.search(wanted, limit=100_000)]


async def test_entries_come_back_as_they_were_written_newest_first(tmp_path: Path) -> None:
    files = LogFiles(tmp_path / "logs")
    odd = LogEntry(NOON, "error", "a\nb \u2028 \ud800 ä", {"n": 1, "list": ["x", None]}, "Traceback\n  line")
    files.append([line("first"), encode_entry(odd)])
    files.append([line("next day", days=1)])
    last, found, first = await files.search(ALL, limit=10)
    assert (last.event, first.event) == ("next day", "first")
    assert (found.at, found.level, found.fields, found.trace) == (odd.at, odd.level, odd.fields, odd.trace)
    assert found.event.startswith("a\nb \u2028 ")
    assert [path.stat().st_mode & 0o777 for path in sorted((tmp_path / "logs").iterdir())] == [0o600] * 3


async def test_what_is_too_long_is_shortened_and_a_torn_line_is_passed_over(tmp_path: Path) -> None:
    files = LogFiles(tmp_path)
    files.append([encode_entry(LogEntry(NOON, "info", "long", {"text": "x" * 100_000}, "t" * 100_000))])
    [path] = tmp_path.glob("*.jsonl")
    path.write_text(path.read_text() + '{"at": "2026-11-21T12:0\n' + line("whole") + "\n")
    whole, long = await files.search(ALL, limit=10)
    assert (whole.event, long.event, long.fields) == ("whole", "long", {"shortened": True})
    assert len(encode_entry(long)) <= 20_000


async def test_the_oldest_files_go_after_a_week_and_when_there_are_too_many(tmp_path: Path) -> None:
    by_age = LogFiles(tmp_path / "age")
    for day in range(KEPT_DAYS + 3):
        by_age.append([line(str(day), days=day)])
    assert await read(by_age) == [str(day) for day in range(KEPT_DAYS + 2, 2, -1)]
    by_size = LogFiles(tmp_path / "size", file_bytes=1000, max_bytes=5000)
    for number in range(200):
        by_size.append([line(f"entry {number}")])
    left = await read(by_size)
    assert left == [f"entry {number}" for number in range(199, 199 - len(left), -1)]
    assert await by_size.measure() <= 5000 + 1000
    assert len(left) > 20


def test_a_home_folder_that_was_moved_away_is_not_made_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    files = LogFiles(home / "logs")
    with pytest.raises(FileNotFoundError):
        files.append([line("too late")])
    assert not home.exists()


async def test_several_processes_write_at_once_and_one_purges_and_no_line_is_lost_or_torn(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name]) for name in "ab"]
    files, old = LogFiles(tmp_path, file_bytes=20_000), LogFilter(levels=frozenset({"debug"}))
    purged = 0
    while any(writer.poll() is None for writer in writers):
        files.append([line("noise", "debug")])
        purged += await files.purge(old)
    assert [writer.wait(PROCESS_LIMIT_S) for writer in writers] == [0, 0]
    found = await read(files)
    assert sorted(found) == sorted(f"{name} {number}" for name in "ab" for number in range(300))
    assert purged > 0


async def test_a_purge_takes_what_passes_and_leaves_the_rest(tmp_path: Path) -> None:
    files = LogFiles(tmp_path)
    files.append([line("old", days=-1), line("old fault", "error", days=-1)])
    files.append([line("new"), line("new fault", "error")])
    wanted = LogFilter(before=NOON, levels=frozenset({"error"}))
    assert await files.count(wanted) == 1
    assert await files.purge(wanted) == 1
    assert await read(files) == ["new fault", "new", "old"]
    assert await files.purge(LogFilter(before=NOON + timedelta(days=1))) == 3
    assert await read(files) == []
    assert list(tmp_path.glob("*.jsonl*")) == []


async def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    files = LogFiles(tmp_path / "nowhere")
    assert (await read(files), await files.count(ALL), await files.measure()) == ([], 0, 0)
    assert await files.purge(LogFilter(before=NOON)) == 0
