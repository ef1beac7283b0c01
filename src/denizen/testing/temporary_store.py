"""A SQLite store for one test, in a file of its own that is deleted when the store is closed.

The migrations run once in a process, into a template; each store starts as a copy of the template, which takes a few
milliseconds. A store opens with its first unit of work, so that it can be made in synchronous code.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from itertools import count
from pathlib import Path

import anyio

from denizen.adapters.store import open_store
from denizen.domain.clock import SystemClock
from denizen.domain.errors import Unavailable
from denizen.ports.store import Store, UnitOfWork

_numbers = count(1)
_open: set[TemporaryStore] = set()


class TemporaryStore:
    """`denizen.ports.store.Store` on SQLite: empty at first, and shared with no other instance. `path` is its file."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._store: Store | None = None
        self.path = _folder() / f"{next(_numbers)}.db"
        self._closed = False

    def work(self, *, write: bool = True) -> AbstractAsyncContextManager[UnitOfWork]:
        if self._closed:
            raise Unavailable("The store is closed.", code="store_closed", why="Denizen is shutting down.")
        if self._store is not None:
            return self._store.work(write=write)
        return self._first_work(write=write)

    async def aclose(self) -> None:
        """Closes the store and deletes its file."""
        self._closed = True
        store, self._store = self._store, None
        if store is not None:
            await store.aclose()
            _open.discard(self)
            for suffix in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    @asynccontextmanager
    async def _first_work(self, *, write: bool) -> AsyncGenerator[UnitOfWork]:
        async with self._lock:  # several tasks may ask for their first unit of work at once
            if self._store is None:
                template = _folder() / "template.db"
                if not template.exists():
                    # Two tasks may come here at once: each makes a template of its own, and renaming it is atomic.
                    made = self.path.with_suffix(".template")
                    await (await open_store(f"sqlite:///{made}", clock=SystemClock())).aclose()
                    made.replace(template)
                shutil.copyfile(template, self.path)
                self._store = await open_store(f"sqlite:///{self.path}", clock=SystemClock())
                _open.add(self)
        async with self._store.work(write=write) as work:
            yield work


def close_temporary_stores() -> None:
    """Closes every open store, since their threads and connections must not outlive a test. Call it when the event
    loop of the test has ended.
    """
    if _open:
        anyio.run(_close_all)


async def _close_all() -> None:
    for store in list(_open):
        await store.aclose()


@cache
def _folder() -> Path:
    """The folder of this process, deleted when it ends. On a file system in memory if there is one: closing a store
    would otherwise wait for the disk to write a file that is deleted next.
    """
    memory = Path("/dev/shm")  # noqa: S108 - the folder made there is this user's alone
    folder = Path(tempfile.mkdtemp(prefix="denizen-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
