"""Where log records go and how they look. Everything in Denizen logs through the standard library; structlog renders.

One canonical line per turn, job and request carries its data as fields. Known secrets are taken out of every line
before it is written. Called by the command line once per process.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from denizen.domain.errors import NeedsAttention

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger

Mask = Callable[[str], str]

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


def configure_logging(*, level: str, style: Literal["console", "json"], mask: Mask, file: Path | None = None) -> None:
    """One handler, on standard error or a file. Libraries speak only from WARNING on.

    Raises NeedsAttention when the file cannot be opened.
    """
    handler = _open_handler(file)
    handler.setFormatter(_Masked(_formatter(style), mask))
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
        return logging.FileHandler(file, encoding="utf-8")
    except OSError as error:
        raise NeedsAttention(
            f"The log file {file} cannot be opened.",
            code="log_not_writable",
            why=error.strerror or type(error).__name__,
            fix="Correct logging.file, or its folder's permissions.",
        ) from error


class _Masked(logging.Formatter):
    """Another formatter's lines without secrets, tracebacks included."""

    def __init__(self, inner: logging.Formatter, mask: Mask) -> None:
        super().__init__()
        self._inner = inner
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        return self._mask(self._inner.format(record))


def _formatter(style: Literal["console", "json"]) -> logging.Formatter:
    import structlog

    shared = [structlog.stdlib.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True), _add_fields]
    if style == "json":
        ending = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        plain = structlog.dev.plain_traceback
        ending = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *ending]
    )


def _add_fields(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """Fields given as `extra=` become fields of the line."""
    del logger, name
    record: logging.LogRecord = event["_record"]
    event.update({key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS})
    return event
