"""Set-up of the log. Everything in Denizen logs through the standard library; the command line configures it once.

One canonical line per turn, job and request carries its data as fields. Known secrets are masked in every line before
it is written, and foreign text (a path, the words of an exception) can neither begin a line of its own nor send control
sequences to a terminal.
"""

from __future__ import annotations

import json
import logging
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, cast

from denizen.domain.errors import NeedsAttention

Mask = Callable[[str], str]
Style = Literal["console", "json"]

_SHOWN_QUOTED = frozenset(" \t=\r\n\"'")
"""A field with one of these characters is shown as a Python literal, which escapes everything."""
_LEVEL_WIDTH = 9
_EVENT_WIDTH = 30
_COLORS = {"debug": "2", "info": "32", "warning": "33", "error": "31", "critical": "1;31"}
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_QUIET = ("httpx2", "httpcore2", "alembic", "dbos", "uvicorn.error", "uvicorn.access", "asyncio", "watchfiles")


def configure_logging(*, level: str, style: Style, mask: Mask, file: Path | None = None) -> None:
    """Installs one handler, on standard error or a file. Libraries log from WARNING on. Raises NeedsAttention when the
    file cannot be opened.
    """
    handler = _open_handler(file)
    if style == "json":
        handler.setFormatter(_JsonLines(mask))
    else:
        handler.setFormatter(_ConsoleLines(mask, colored=file is None and sys.stderr.isatty()))
    handler.addFilter(_brief)
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("denizen").setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def _brief(record: logging.LogRecord) -> bool:
    """Shortens records of discord.py: it logs a whole traceback each time it reconnects, and one line will do."""
    if record.name.startswith("discord.") and record.exc_info:
        error = record.exc_info[1]
        record.msg, record.args = f"{record.getMessage()} ({type(error).__name__}: {error})", ()
        record.exc_info = record.exc_text = None
    return True


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


@dataclass(frozen=True, slots=True)
class _Line:
    """A record without secrets. `fields` are the `extra=` of the call; `trace` is a traceback, a stack, or empty."""

    time: str
    level: str
    event: str
    fields: dict[str, object]
    trace: str


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
            self._mask("\n".join(traces)),
        )
        return self._mask(self._render(line))

    def _render(self, line: _Line) -> str:
        raise NotImplementedError


class _JsonLines(_Lines):
    """Formats records for programs: one JSON object a line."""

    def _render(self, line: _Line) -> str:
        body = {"event": line.event, "level": line.level, "timestamp": line.time, **line.fields}
        return json.dumps(body | {"exception": line.trace} if line.trace else body)


class _ConsoleLines(_Lines):
    """Formats records for people. A trace is indented, so that no line of it looks like a record."""

    def __init__(self, mask: Mask, *, colored: bool) -> None:
        super().__init__(mask)
        self._colored = colored

    def _render(self, line: _Line) -> str:
        level = f"{line.level:{_LEVEL_WIDTH}}"
        if self._colored:
            level = f"\x1b[{_COLORS.get(line.level, '0')}m{level}\x1b[0m"
        fields = " ".join(f"{key}={_shown(value)}" for key, value in sorted(line.fields.items()))
        text = f"{line.time} [{level}] {_tame(line.event):{_EVENT_WIDTH}} {fields}".rstrip()
        if line.trace:
            text += "\n" + textwrap.indent(_tame(line.trace, keep="\n"), "    ", lambda _: True)
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
