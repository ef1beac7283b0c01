"""The repositories of sources, one for each: who may use one now, and what killed programs leave in it.

A fetch that is killed leaves packs that are of no use to anybody, as large as what had come so far. They may go only
when nobody fetches there, in any process.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio import to_thread

from denizen.domain.errors import Unavailable

LOOK_AGAIN_S = 0.2
PATIENCE_S = 600.0


@asynccontextmanager
async def lock_repository(place: Path) -> AsyncGenerator[None]:
    """Waits until nobody else uses the repository that is or will be there, and clears up. Raises Unavailable when
    somebody does for long.
    """
    await to_thread.run_sync(_make_folder, place.parent)
    handle = os.open(place.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        await _wait_for(handle)
        await to_thread.run_sync(remove_unfinished, place)
        yield
    finally:
        os.close(handle)


def remove_unfinished(place: Path) -> None:
    """Removes what was never finished: packs, objects, and locks of programs that are gone. Blocks."""
    objects = place / "objects"
    for pattern in ("pack/tmp_*", "pack/.tmp-*", "??/tmp_obj_*", "tmp_*"):
        for left in objects.glob(pattern):
            left.unlink(missing_ok=True)
    for lock in place.glob("*.lock"):
        lock.unlink(missing_ok=True)


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


async def _wait_for(handle: int) -> None:
    with anyio.move_on_after(PATIENCE_S):
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await anyio.sleep(LOOK_AGAIN_S)
            else:
                return
    raise Unavailable("Another process of Denizen reads this source.", code="source_busy")
