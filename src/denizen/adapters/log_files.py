"""The log in files: one JSON object a line, in files of a day each, cut where they grow large.

Whoever writes holds a lock and opens the file anew, so several processes may write and delete at once. What is older
than `KEPT_DAYS`, and what is more than `MAX_BYTES` in all, goes by itself, the oldest first.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, timedelta
from pathlib import Path
from typing import TypeVar

from anyio import to_thread

from denizen.domain.errors import Unavailable
from denizen.domain.log import LogEntry, LogFilter, LogStatistics, decode_entry, sum_up_log

KEPT_DAYS = 8
"""A week, and the day that has begun."""
MAX_BYTES = 64_000_000
FILE_BYTES = 8_000_000
_TIME_AT = len('{"at": "')
"""Where the time stands in a line, so that most lines need not be parsed."""
_DATE_CHARS = 10

T = TypeVar("T")


class LogFiles:
    """`denizen.ports.log.LogArchive` in a folder. `append` is for the thread that writes the log."""

    def __init__(self, folder: Path, *, file_bytes: int = FILE_BYTES, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._file_bytes = file_bytes
        self._max_bytes = max_bytes

    # --- writing -----------------------------------------------------------------------------------------------------

    def append(self, lines: Sequence[str]) -> None:
        """Writes lines of `encode_entry`. Raises OSError."""
        day = lines[-1][_TIME_AT : _TIME_AT + _DATE_CHARS]
        body = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
        with self._lock():
            mine = [path for path in self._list() if path.name.startswith(day)]
            if mine and mine[-1].stat().st_size < self._file_bytes:
                path = mine[-1]
            else:
                number = int(mine[-1].stem[_DATE_CHARS + 1 :]) + 1 if mine else 1
                path = self._folder / f"{day}-{number:06}.jsonl"
                self._trim(date.fromisoformat(day))
            path.touch(mode=0o600)
            with path.open("ab") as file:
                file.write(body)

    def _trim(self, today: date) -> None:
        oldest, room = f"{today - timedelta(days=KEPT_DAYS - 1)}", self._max_bytes - self._file_bytes
        for path in reversed(self._list()):
            room -= path.stat().st_size
            if room < 0 or path.name < oldest:
                path.unlink()

    @contextmanager
    def _lock(self) -> Generator[None]:
        # Its parents are not made: a home folder that was moved away would come back empty and bar the way.
        self._folder.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _list(self) -> list[Path]:
        """The oldest first: their names are in the order of time."""
        return sorted(self._folder.glob("*.jsonl"))

    # --- reading -----------------------------------------------------------------------------------------------------

    async def search(self, wanted: LogFilter, *, limit: int) -> Sequence[LogEntry]:
        def find() -> list[LogEntry]:
            found: list[LogEntry] = []
            for entry in self._read(wanted):
                if len(found) >= limit:
                    break
                found.append(entry)
            return found

        return await _run(find)

    async def count(self, wanted: LogFilter) -> int:
        return await _run(lambda: sum(1 for _ in self._read(wanted)))

    async def sum_up(self, wanted: LogFilter) -> LogStatistics:
        return await _run(lambda: sum_up_log(self._read(wanted)))

    async def measure(self) -> int:
        return await _run(lambda: sum(path.stat().st_size for path in self._list()))

    async def purge(self, wanted: LogFilter) -> int:
        return await _run(lambda: self._purge(wanted))

    def _read(self, wanted: LogFilter) -> Iterator[LogEntry]:
        """The newest first. A file that goes meanwhile is passed over."""
        for path in reversed(self._list()):
            if _is_outside(path, wanted):
                continue
            try:
                lines = _read_lines(path)
            except FileNotFoundError:
                continue
            for line in reversed(lines):
                entry = _find(line, wanted)
                if entry is not None:
                    yield entry

    def _purge(self, wanted: LogFilter) -> int:
        deleted = 0
        with self._lock():
            for path in self._list():
                if _is_outside(path, wanted):
                    continue
                lines = _read_lines(path)
                kept = [line for line in lines if _find(line, wanted) is None]
                if len(kept) == len(lines):
                    continue
                deleted += len(lines) - len(kept)
                if not kept:
                    path.unlink()
                    continue
                rest = path.with_suffix(".rest")
                rest.touch(mode=0o600)
                rest.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
                rest.replace(path)
        return deleted


def _read_lines(path: Path) -> list[str]:
    """Splits at line ends alone: a text may hold other characters that end lines elsewhere."""
    return path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]


def _is_outside(path: Path, wanted: LogFilter) -> bool:
    """Whether no entry of that file can be in that time. Entries may be a moment older than the day of their file."""
    day = path.name[:_DATE_CHARS]
    too_old = wanted.since is not None and day < f"{wanted.since.astimezone(UTC).date()}"
    too_new = wanted.before is not None and day > f"{wanted.before.astimezone(UTC).date() + timedelta(days=1)}"
    return too_old or too_new


def _find(line: str, wanted: LogFilter) -> LogEntry | None:
    """Returns the entry of the line when it passes. What a line cannot hold is seen without parsing it."""
    if wanted.words and json.dumps(wanted.words, ensure_ascii=False)[1:-1].lower() not in line.lower():
        return None
    if wanted.levels and not any(f'"level": "{level}"' in line for level in wanted.levels):
        return None
    if (wanted.path or wanted.method or wanted.status) and '"status": ' not in line:
        return None
    entry = decode_entry(line)
    return entry if entry is not None and wanted.matches(entry) else None


async def _run(look: Callable[[], T]) -> T:
    """In a thread, since the files may be large."""
    try:
        return await to_thread.run_sync(look)
    except OSError as error:
        raise Unavailable(
            "The log that is kept cannot be used.",
            code="log_unavailable",
            why=error.strerror or type(error).__name__,
            fix="Look at the folder `logs` in the home folder, and at the room on its disk.",
        ) from error
