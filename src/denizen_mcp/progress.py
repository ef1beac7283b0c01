"""How far a long call is: tools tell it, and whoever runs them hears of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

Report = Callable[[str], Awaitable[None]]
_listener: ContextVar[Report | None] = ContextVar("listener", default=None)


@contextmanager
def progress_to(report: Report) -> Generator[None]:
    """Within the block, `report` hears of the progress of what runs there."""
    token = _listener.set(report)
    try:
        yield
    finally:
        _listener.reset(token)


async def report_progress(text: str) -> None:
    """Tells how far the call is that runs here; nothing where nobody listens."""
    report = _listener.get()
    if report is not None:
        await report(text)
