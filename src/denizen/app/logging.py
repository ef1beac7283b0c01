"""Where log records go and how they look. Everything in Denizen logs through the standard library; structlog renders.

One canonical line per turn, job and request carries its data as fields. Known secrets are taken out of every line
before it is written, and what others wrote (a path, the words of an exception) can neither begin a line of its own nor
send control sequences to a terminal. Called by the command line once per process.
"""

from __future__ import annotations

import functools
import io
import logging
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO, cast

from denizen.domain.errors import NeedsAttention

if TYPE_CHECKING:
    from structlog.typing import EventDict, ExcInfo, WrappedLogger

Mask = Callable[[str], str]
Style = Literal["console", "json"]

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_CONTROL_WITHIN_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SHOWN_QUOTED = frozenset(" \t=\r\n\"'")
"""A field with one of these is shown as a Python literal, which escapes everything."""
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_QUIET = (
    "httpx2",
    "httpcore2",
    "alembic",
    "dbos",
    "uvicorn.error",
    "uvicorn.access",
    "asyncio",
    "watchfiles",
)


def configure_logging(*, level: str, style: Style, mask: Mask, file: Path | None = None) -> None:
    """One handler, on standard error or a file. Libraries speak only from WARNING on.

    Raises NeedsAttention when the file cannot be opened.
    """
    handler = _open_handler(file)
    handler.setFormatter(_Masked(style, mask))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("denizen").setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


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


class _Masked(logging.Formatter):
    """Lines without secrets, tracebacks included. The renderer is imported when the first line is written."""

    def __init__(self, style: Style, mask: Mask) -> None:
        super().__init__()
        self._look: Style = style
        self._mask = mask

    @functools.cached_property
    def _inner(self) -> logging.Formatter:
        return _formatter(self._look, self._mask)

    def format(self, record: logging.LogRecord) -> str:
        return self._mask(self._inner.format(record))


def _formatter(style: Style, mask: Mask) -> logging.Formatter:
    """Texts are masked before they are rendered, since that may escape or break them, and the lines once more."""
    import structlog

    def mask_event(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
        del logger, name
        return {key: value if key.startswith("_") else _masked(value, mask) for key, value in event.items()}

    def write_traceback(stream: TextIO, exc_info: ExcInfo) -> None:
        _write_traceback(stream, exc_info, mask)

    shared = [structlog.stdlib.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True), _add_fields]
    if style == "json":
        ending = [structlog.processors.format_exc_info, mask_event, structlog.processors.JSONRenderer()]
    else:
        show = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=write_traceback)
        ending = [mask_event, _escape_controls, show]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *ending]
    )


def _add_fields(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """Fields given as `extra=` become fields of the line."""
    del logger, name
    record: logging.LogRecord = event["_record"]
    event.update({key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS})
    return event


def _escape_controls(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """Every record stays on its line, and commands no terminal."""
    del logger, name
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable() and (key == "event" or not _SHOWN_QUOTED & set(value)):
            event[key] = _CONTROL.sub(_escaped, value)
    return event


def _masked(value: object, mask: Mask) -> object:
    match value:
        case str():
            return mask(value)
        case dict():
            return {mask(str(key)): _masked(each, mask) for key, each in cast("dict[object, object]", value).items()}
        case list() | tuple():
            return [_masked(each, mask) for each in cast("list[object]", value)]
        case _:
            return value


def _write_traceback(stream: TextIO, exc_info: ExcInfo, mask: Mask) -> None:
    """Indented, so that no line of it looks like a record."""
    from structlog.dev import plain_traceback

    plain = io.StringIO()
    plain_traceback(plain, exc_info)
    text = _CONTROL_WITHIN_LINES.sub(_escaped, mask(plain.getvalue()).strip("\n"))
    stream.write("\n" + textwrap.indent(text, "    ", lambda _: True))


def _escaped(match: re.Match[str]) -> str:
    return repr(match[0])[1:-1]
