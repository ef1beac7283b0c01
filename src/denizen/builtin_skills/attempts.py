"""The attempts of calls that must not act twice: each keeps in a small file, by its idempotency key, what it did first,
for the case that it runs again after a restart.
"""

from __future__ import annotations

import hashlib
import os
from datetime import datetime, timedelta
from pathlib import Path

from denizen.skill import ToolContext, ToolError, run_in_thread

KEPT = 200
_SLACK = timedelta(minutes=2)
"""Allows for clocks that differ."""


async def load_attempt(context: ToolContext) -> str | None:
    """Returns what an earlier attempt of this call saved; None in the first one, and for calls that are never
    repeated.
    """
    path = _path(context)
    return None if path is None else await run_in_thread(lambda: _read(path))


async def save_attempt(context: ToolContext, text: str) -> None:
    """Saves a text for later attempts of this call. It is on the disk when this returns."""
    path = _path(context)
    if path is not None:
        await run_in_thread(lambda: _write(path, text))


async def begin_once(context: ToolContext, fix: str) -> None:
    """Notes that the call begins. Raises ToolError where it was begun before: a process that died may have acted."""
    if await load_attempt(context) is not None:
        raise ToolError(f"This was begun before a restart, and may have been done. {fix}", is_own=True)
    await save_attempt(context, "begun")


async def find_first_attempt(context: ToolContext) -> str:
    """Returns an ISO time shortly before the first attempt of this call. In the first attempt, saves the time and
    returns an empty text.
    """
    first = await load_attempt(context)
    if first is None:
        await save_attempt(context, context.clock.now().isoformat())
        return ""
    return (datetime.fromisoformat(first) - _SLACK).isoformat()


def _path(context: ToolContext) -> Path | None:
    if not context.idempotency_key:
        return None
    name = hashlib.sha256(context.idempotency_key.encode()).hexdigest()[:32]
    return context.folder / ".tries" / name


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    following = path.with_suffix(".next")
    with following.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    following.replace(path)
    # Old attempts are dropped by age: a call is repeated soon after a restart or never.
    by_age = sorted(path.parent.iterdir(), key=lambda each: each.stat().st_mtime_ns, reverse=True)
    for old in by_age[KEPT:]:
        old.unlink(missing_ok=True)
