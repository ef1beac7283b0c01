"""Set-up of the log. Everything in Denizen logs through the standard library; the command line configures it once.

One canonical line per turn, job and request carries its data as fields. Known secrets are masked in every line before
it is written, and foreign text (a path, the words of an exception) can neither begin a line of its own nor send control
sequences to a terminal.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import re
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol, cast

from denizen.domain.errors import DenizenError, NeedsAttention
from denizen.domain.json import Json
from denizen.domain.log import LogEntry, encode_entry
from denizen.domain.principal import PrincipalKind
from denizen.domain.record import record

Mask = Callable[[str], str]
Style = Literal["console", "json"]

_SHOWN_QUOTED = frozenset(" \t=\r\n\"'")
"""A field with one of these characters is shown as a Python literal, which escapes everything."""
_LEVEL_WIDTH = 9
_EVENT_WIDTH = 30
_COLORS = {"debug": "2", "info": "32", "warning": "33", "error": "31", "critical": "1;31"}
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_QUIET = ("httpx2", "httpcore2", "alembic", "dbos", "uvicorn.error", "uvicorn.access", "asyncio", "watchfiles")


ACCESS_LOG = "denizen.access"
"""The logger of requests to the web, which only the log that is kept has: people would see nothing else."""


class LogSink(Protocol):
    """Keeps lines of `encode_entry`. Raises OSError where it cannot."""

    def append(self, lines: Sequence[str]) -> None: ...


def configure_logging(
    *, level: str, style: Style, mask: Mask, file: Path | None = None, keep: LogSink | None = None
) -> None:
    """Installs one handler, on standard error or a file, which hands everything on to what keeps it. Libraries log from
    WARNING on. Raises NeedsAttention when the file cannot be opened.
    """
    access = logging.getLogger(ACCESS_LOG)
    for old in list(access.handlers):
        access.removeHandler(old)
    access.propagate = False
    handler = _open_handler(file)
    if style == "json":
        handler.setFormatter(_JsonLines(mask))
    else:
        handler.setFormatter(_ConsoleLines(mask, colored=file is None and sys.stderr.isatty()))
    if keep is not None:
        keeper = LogKeeper(keep, mask)
        access.addHandler(keeper)
        handler = _TwoHandlers(handler, keeper)
    handler.addFilter(_brief)
    handler.addFilter(RepeatFilter())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("denizen").setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


class _TwoHandlers(logging.Handler):
    """Hands what passes its filters on to both."""

    def __init__(self, *handlers: logging.Handler) -> None:
        super().__init__()
        self._handlers = handlers

    def emit(self, record: logging.LogRecord) -> None:
        for handler in self._handlers:
            handler.handle(record)

    def flush(self) -> None:
        for handler in self._handlers:
            handler.flush()

    def close(self) -> None:
        for handler in self._handlers:
            handler.close()
        super().close()


class LogKeeper(logging.Handler):
    """Keeps the log so that it can be searched. Formats and writes in a thread of its own, since the disk may be slow.
    When more comes than it can write, it leaves out the newest, and then says how many.
    """

    WAITING = 10_000
    BATCH = 500
    CLOSE_S = 2.0

    def __init__(self, sink: LogSink, mask: Mask) -> None:
        super().__init__()
        self._sink = sink
        self._waiting: queue.Queue[logging.LogRecord | None] = queue.Queue(self.WAITING)
        self._left_out = 0
        self._is_failing = False
        self._thread: threading.Thread | None = None
        self.setFormatter(_KeptLines(mask))

    def emit(self, record: logging.LogRecord) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="log keeper", daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            self._left_out += 1

    def flush(self) -> None:
        """Waits until what was logged so far is written."""
        if self._thread is not None and self._thread.is_alive():
            self._waiting.join()

    def close(self) -> None:
        if self._thread is not None:
            with suppress(queue.Full):
                self._waiting.put_nowait(None)
            self._thread.join(self.CLOSE_S)
            self._thread = None
        super().close()

    def _write(self) -> None:
        is_open = True
        while is_open:
            batch = self._take_batch()
            is_open = None not in batch
            self._keep([record for record in batch if record is not None])
            for _ in batch:
                self._waiting.task_done()

    def _take_batch(self) -> list[logging.LogRecord | None]:
        """Waits for the first record, and takes what else is there. None is the end."""
        batch = [self._waiting.get()]
        with suppress(queue.Empty):
            while len(batch) < self.BATCH:
                batch.append(self._waiting.get_nowait())
        return batch

    def _keep(self, records: Sequence[logging.LogRecord]) -> None:
        lines = [self.format(record) for record in records]
        if self._left_out:
            left_out, self._left_out = self._left_out, 0
            told = {"levelno": logging.WARNING, "levelname": "WARNING", "msg": "log entries left out"}
            lines.append(self.format(logging.makeLogRecord({**told, "left_out": left_out})))
        try:
            if lines:
                self._sink.append(lines)
        except OSError as error:
            if not self._is_failing:
                self._is_failing = True
                sys.stderr.write(f"The log cannot be kept any more: {error.strerror or error}\n")
        else:
            self._is_failing = False


def _brief(record: logging.LogRecord) -> bool:
    """Leaves one line of a traceback that says nothing about the code: discord.py logs one each time it reconnects, and
    while a database is away, everything that needs it fails.
    """
    error = record.exc_info[1] if record.exc_info else None
    outage = find_outage(error)
    if error is not None and (outage or record.name.startswith("discord.")):
        told = outage or error
        if isinstance(told, DenizenError):
            why, code = f"{told.message} {told.fix}".strip(), told.code
        else:
            why, code = f"{type(told).__name__}: {told}".partition("\n")[0], _UNREACHABLE if outage else ""
        if isinstance(record.args, tuple) and record.args:
            record.msg, record.args = f"{record.msg} (%s)", (*record.args, why)
        else:
            record.msg, record.args = f"{record.getMessage().replace('%', '%%')} (%s)", (why,)
        record.exc_info = record.exc_text = None
        if code:
            record.code = code
    return True


_OUTAGE_CODES = re.compile(r"store_(?:busy|full|refused|unavailable|unusable|damaged)|durable_\w+|disk_full")
_UNREACHABLE = "store_unavailable"
_DRIVERS = ("sqlalchemy.exc", "psycopg", "sqlite3")
"""The modules of the errors of databases; they are not imported for this."""


def find_outage(error: BaseException | None) -> BaseException | None:
    """Returns the error in a chain that tells of a database that is away: one of ours, or else the driver's."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    ours = [each for each in chain if isinstance(each, DenizenError) and _OUTAGE_CODES.fullmatch(each.code)]
    drivers = [each for each in chain if type(each).__module__.startswith(_DRIVERS)]
    return next(iter((*ours, *(each for each in drivers if type(each).__name__ == "OperationalError"))), None)


class RepeatFilter(logging.Filter):
    """Lets a warning through once a minute, and says how many were left out since. Warnings are the same when every
    field is; those about a database that is away are the same whatever failed by it.
    """

    PERIOD_S = 60.0
    _KEPT = 1000

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now_s = now_s
        self._told: dict[str, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        cause, now_s = _find_cause(record), self._now_s()
        if not cause:
            return True
        with self._lock:
            told_s, left_out = self._told.pop(cause, (now_s - self.PERIOD_S, 0))
            is_due = now_s - told_s >= self.PERIOD_S
            self._told[cause] = (now_s, 0) if is_due else (told_s, left_out + 1)
            while len(self._told) > self._KEPT:
                self._told.pop(next(iter(self._told)))
        if is_due and left_out:
            record.left_out = left_out
        return is_due


def _find_cause(record: logging.LogRecord) -> str:
    """Returns the same text for warnings that say the same; empty for a line that always counts."""
    if record.levelno < logging.WARNING or record.exc_info:
        return ""
    code = str(vars(record).get("code", ""))
    if _OUTAGE_CODES.fullmatch(code):
        return code
    if record.levelno > logging.WARNING:
        return ""
    fields = {key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS}
    return repr((record.name, record.getMessage(), sorted(fields.items(), key=lambda pair: pair[0])))


def _open_handler(file: Path | None) -> logging.Handler:
    if file is None:
        return logging.StreamHandler(sys.stderr)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        return logging.FileHandler(file, encoding="utf-8")
    except OSError as error:
        raise NeedsAttention(
            f"The log file {file} cannot be opened.",
            code="log_not_writable",
            why=error.strerror or type(error).__name__,
            fix="Correct logging.file, or its folder's permissions.",
        ) from error


@record
class _Line:
    """A record without secrets. `fields` are the `extra=` of the call; `trace` is a traceback, a stack, or empty."""

    time: str
    level: str
    event: str
    fields: dict[str, object]
    trace: str
    record: logging.LogRecord


MOST_FRAMES = 80
DEEPEST_FRAMES = 20
EXPLANATION = "explanation"
"""The field of an error's whole explanation, which people read on lines of its own."""
_EXPLAINED = frozenset({EXPLANATION, "why", "fix", "context"})


class _Lines(logging.Formatter):
    """Formats records. Texts are masked before they are rendered, since that may escape or break them, and the result
    once more.
    """

    def __init__(self, mask: Mask) -> None:
        super().__init__()
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        traces = [self.formatException(record.exc_info)] if record.exc_info else []
        traces += [record.stack_info] if record.stack_info else []
        line = _Line(
            datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            record.levelname.lower(),
            self._mask(record.getMessage()),
            {key: _masked(value, self._mask) for key, value in vars(record).items() if key not in _STANDARD_FIELDS},
            trace=self._mask("\n".join(traces)),
            record=record,
        )
        return self._mask(self._render(line))

    def _render(self, line: _Line) -> str:
        raise NotImplementedError


class _JsonLines(_Lines):
    """Formats records for programs: one JSON object a line."""

    def _render(self, line: _Line) -> str:
        body = {"event": line.event, "level": line.level, "timestamp": line.time, **line.fields}
        return json.dumps(body | {"exception": line.trace} if line.trace else body)


_PRINCIPAL = re.compile(rf"({'|'.join(PrincipalKind)}):.*", re.DOTALL)


class _KeptLines(_Lines):
    """Formats records for the log that is kept. It names nobody, so that who is forgotten is not in it: of somebody's
    key only the kind is left. The audit log tells who did what.
    """

    def _render(self, line: _Line) -> str:
        fields = {
            name: _PRINCIPAL.sub(r"\1", value) if isinstance(value, str) else value
            for name, value in cast("dict[str, Json]", line.fields).items()
            if name != "user"
        }
        at, error = datetime.fromisoformat(line.time), line.record.exc_info[1] if line.record.exc_info else None
        # Others may put anything into the texts of their events.
        name = str(line.record.msg) if line.record.pathname.startswith(_PACKAGE) else ""
        frames = () if error is None else list_frames(error)
        entry = LogEntry(at, line.level, line.event, fields, trace=line.trace, name=name, frames=frames)
        return encode_entry(entry)


_PACKAGE = str(Path(__file__).parent.parent) + os.sep


def list_frames(error: BaseException) -> Sequence[str]:
    """Returns the classes of an error and of its causes, each with the places in the code that it passed: without its
    words. Code that is neither Denizen's nor installed, such as an owner's skill, is not named.
    """
    told: list[str] = []
    seen: list[BaseException] = []
    waiting = [error]
    while waiting and len(told) < MOST_FRAMES:
        each = waiting.pop(0)
        if each in seen:
            continue
        seen.append(each)
        kind = type(each)
        home = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
        told.append(kind.__qualname__ if _is_installed(kind.__module__, home) else "an error from elsewhere")
        for frame, line in list(traceback.walk_tb(each.__traceback__))[-DEEPEST_FRAMES:]:
            module = str(frame.f_globals.get("__name__", ""))
            is_shown = _is_installed(module, frame.f_code.co_filename)
            told.append(f"  {module}:{line} {frame.f_code.co_name}" if is_shown else "  elsewhere")
        if isinstance(each, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", each).exceptions
        waiting += [cause for cause in (each.__cause__ or each.__context__,) if cause is not None]
    return told[:MOST_FRAMES]


def _is_installed(module: str, file: str) -> bool:
    return module.partition(".")[0] in {"denizen", *sys.stdlib_module_names} or "site-packages" in Path(file).parts


class _ConsoleLines(_Lines):
    """Formats records for people. A trace and an explanation are indented, so that no line of them looks like a
    record.
    """

    def __init__(self, mask: Mask, *, colored: bool) -> None:
        super().__init__(mask)
        self._colored = colored

    def _render(self, line: _Line) -> str:
        level = f"{line.level:{_LEVEL_WIDTH}}"
        if self._colored:
            level = f"\x1b[{_COLORS.get(line.level, '0')}m{level}\x1b[0m"
        told, below = line.fields, [line.trace]
        if EXPLANATION in told:
            below.insert(0, str(told[EXPLANATION]))
            told = {key: value for key, value in told.items() if key not in _EXPLAINED}
        fields = " ".join(f"{key}={_shown(value)}" for key, value in sorted(told.items()))
        text = f"{line.time} [{level}] {_tame(line.event):{_EVENT_WIDTH}} {fields}".rstrip()
        for block in filter(None, below):
            text += "\n" + textwrap.indent(_tame(block, keep="\n"), "    ", lambda _: True)
        return text


def _masked(value: object, mask: Mask) -> object:
    match value:
        case str():
            return mask(value)
        case None | bool() | int() | float():
            return value
        case dict():
            return {mask(str(key)): _masked(each, mask) for key, each in cast("dict[object, object]", value).items()}
        case list() | tuple():
            return [_masked(each, mask) for each in cast("list[object]", value)]
        case _:
            return mask(repr(value))


def _shown(value: object) -> str:
    if isinstance(value, str) and value.isprintable() and not _SHOWN_QUOTED & set(value):
        return value
    return repr(value)


def _tame(text: str, *, keep: str = "") -> str:
    """Returns the text with escapes in place of characters that break a line or command a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else repr(char)[1:-1] for char in text)
