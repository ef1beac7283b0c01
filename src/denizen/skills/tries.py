"""What a call wrote down before it did its work, for the time when it runs again after a restart.

One small file a call, by its idempotency key, in the skill's own folder; of the newest ones only so many are kept. Used
by the skills that do things which must not be done twice.
"""

from __future__ import annotations

import hashlib
import os
from datetime import datetime, timedelta
from pathlib import Path

from denizen.skill import Json, JsonObject, NotFound, ToolContext, run_in_thread
from denizen.skills.discord import act

KEPT = 200
_SLACK = timedelta(minutes=2)
"""Clocks differ."""


async def load_attempt(context: ToolContext) -> str | None:
    """What an earlier try of this call kept; None in the first one, and for calls that nobody repeats."""
    path = _path(context)
    return None if path is None else await run_in_thread(lambda: _read(path))


async def save_attempt(context: ToolContext, text: str) -> None:
    """For later tries of this call. It is on the disk when this returns."""
    path = _path(context)
    if path is not None:
        await run_in_thread(lambda: _write(path, text))


async def find_first_attempt(context: ToolContext) -> str:
    """An ISO time shortly before the first try of this call; empty in the first one, which is noted."""
    first = await load_attempt(context)
    if first is None:
        await save_attempt(context, context.clock.now().isoformat())
        return ""
    return (datetime.fromisoformat(first) - _SLACK).isoformat()


async def act_removing(context: ToolContext, action: str, **details: Json) -> JsonObject | None:
    """Does what makes something go. None when an earlier try of this call has done it, as far as can be seen: it is
    not there any more.
    """
    again = await find_first_attempt(context)
    try:
        return await act(context, action, **details)
    except NotFound:
        if not again:
            raise
        return None


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
    by_age = sorted(path.parent.iterdir(), key=lambda each: each.stat().st_mtime_ns, reverse=True)
    for old in by_age[KEPT:]:
        old.unlink(missing_ok=True)
