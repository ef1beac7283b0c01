"""Leases tell which processes live: a run whose process holds none may be taken over.

On SQLite the lease is a lock on a file, which the kernel drops at the moment the process dies, whichever container it
was in. On Postgres it is a row with a heartbeat. Called by `recovery`, in its thread.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import re
import socket
from collections.abc import Callable, Collection
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa

from denizen.adapters.durable.settings import DurableSettings
from denizen.domain.clock import tell_elapsed_s
from denizen.domain.record import record


@record
class ProcessIdentity:
    """Identifies a process, precisely enough for another process to see whether it is gone.

    A pid is unique only within `realm` (one boot and one pid namespace). Pids come back, so `born` is the kernel's
    start time of the process; empty if unknown.
    """

    realm: str
    pid: int
    born: str


def identify_process() -> ProcessIdentity:
    """Returns the identity of this process."""
    pid = os.getpid()
    return ProcessIdentity(_realm(), pid, _born(pid) or "")


def is_gone(place: ProcessIdentity) -> bool:
    """Tells whether that process has certainly ended. False for one that cannot be seen from here."""
    if place.realm != _realm():
        return False
    if place.born:
        return _born(place.pid) != place.born
    try:
        os.kill(place.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _realm() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def _born(pid: int) -> str | None:
    """Returns the clock ticks from boot to the start of the process; None when it is gone, or without /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    # A zombie runs nothing any more; its parent has not looked yet.
    return None if fields[0] in {"Z", "X"} else fields[19]


_SAFE_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


class Lease(Protocol):
    """Shows that this process lives, and tells which others do not. Methods raise OSError or SQLAlchemyError."""

    @property
    def renewed_s(self) -> float:
        """The time by `tell_elapsed_s` just before the last renewal; infinite for a lease that needs none."""
        ...

    def acquire(self) -> None:
        """Takes the lease, before the first run."""
        ...

    def renew(self) -> bool:
        """Renews the lease. False when another process took this one for dead and may have taken over its runs."""
        ...

    def find_dead(self, executors: Collection[str]) -> set[str]:
        """Returns the executors that do not live any more."""
        ...

    def release(self) -> None:
        """Gives the lease back after the last run, so that other processes need not wait for its expiry."""
        ...


def open_lease(settings: DurableSettings, engine: sa.Engine, executor: str) -> Lease:
    """Returns the lease that suits the database, not acquired yet."""
    if isinstance(settings.database, Path):
        return FileLease(settings.database.with_name(settings.database.name + "-workers"), executor)
    return TableLease(engine, schema=settings.schema, executor=executor, expiry_s=settings.expiry_s)


class FileLease:
    """A locked file in `folder`, named after the executor."""

    def __init__(self, folder: Path, executor: str) -> None:
        self._folder = folder
        self._executor = executor
        self._file: int | None = None
        self.renewed_s = math.inf

    def acquire(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for leftover in self._folder.glob("*.lock"):
            self._remove_if_free(leftover)
        path = self._path(self._executor)
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            # Another process that tidies may have removed the file between the two calls.
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == os.fstat(file).st_ino:
                    self._file = file
                    return
            os.close(file)

    def renew(self) -> bool:
        return True

    def find_dead(self, executors: Collection[str]) -> set[str]:
        return {
            executor
            for executor in executors
            if not _SAFE_NAME.fullmatch(executor) or self._remove_if_free(self._path(executor))
        }

    def release(self) -> None:
        if self._file is not None:
            self._path(self._executor).unlink(missing_ok=True)
            os.close(self._file)
            self._file = None

    def _path(self, executor: str) -> Path:
        return self._folder / f"{executor}.lock"

    @staticmethod
    def _remove_if_free(path: Path) -> bool:
        """Removes the file if nobody holds it. True when it is gone."""
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            path.unlink(missing_ok=True)
            return True
        finally:
            os.close(file)


class TableLease:
    """A row in `workers`. All times are the database's, so that clocks need not agree.

    A process that was silent itself, for instance because the database was away, declares nobody dead for silence until
    one expiry later: the others need the chance to renew their leases first.
    """

    def __init__(
        self,
        engine: sa.Engine,
        *,
        schema: str,
        executor: str,
        expiry_s: float,
        elapsed_s: Callable[[], float] = tell_elapsed_s,
    ) -> None:
        self._engine = engine
        self._schema = schema
        self._executor = executor
        self._expiry_s = expiry_s
        self._elapsed_s = elapsed_s
        self._place = identify_process()
        self.renewed_s = 0.0
        self._judges_from_s = 0.0
        self._workers = sa.Table(
            "workers",
            sa.MetaData(schema=schema),
            sa.Column("executor_id", sa.Text, primary_key=True),
            sa.Column("realm", sa.Text, nullable=False),
            sa.Column("pid", sa.BigInteger, nullable=False),
            sa.Column("born", sa.Text, nullable=False),
            sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        )

    def acquire(self) -> None:
        with self._engine.begin() as connection:
            # Two processes that start together must not both create the table.
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtext(f"denizen:{self._schema}"))))
            self._workers.create(connection, checkfirst=True)
        self.renewed_s = self._elapsed_s()
        self._insert()

    def _insert(self) -> None:
        with self._engine.begin() as connection:
            connection.execute(
                sa.insert(self._workers).values(
                    executor_id=self._executor,
                    realm=self._place.realm,
                    pid=self._place.pid,
                    born=self._place.born,
                    seen_at=sa.func.now(),
                )
            )

    def renew(self) -> bool:
        with self._engine.begin() as connection:
            now_s = self._elapsed_s()  # behind the wait for a connection, before others see the renewal
            mine = self._workers.c.executor_id == self._executor
            updated = connection.execute(sa.update(self._workers).where(mine).values(seen_at=sa.func.now())).rowcount
        if now_s - self.renewed_s > self._expiry_s:
            self._judges_from_s = now_s + self._expiry_s
        self.renewed_s = now_s
        if updated:
            return True
        self._insert()
        return False

    def find_dead(self, executors: Collection[str]) -> set[str]:
        if not executors:
            return set()
        worker = self._workers.c
        asked = worker.executor_id.in_(executors)
        with self._engine.begin() as connection:
            rows = connection.execute(
                sa.select(worker.executor_id, worker.realm, worker.pid, worker.born).where(asked)
            ).all()
            gone = worker.executor_id.in_([row[0] for row in rows if is_gone(ProcessIdentity(row[1], row[2], row[3]))])
            silent = worker.seen_at < sa.func.now() - timedelta(seconds=self._expiry_s)
            judges = self._elapsed_s() >= self._judges_from_s
            dead = connection.execute(
                sa.delete(self._workers)
                .where(asked, sa.or_(gone, silent) if judges else gone)
                .returning(worker.executor_id)
            ).scalars()
            return {*dead, *(set(executors) - {row[0] for row in rows})}

    def release(self) -> None:
        with self._engine.begin() as connection:
            connection.execute(sa.delete(self._workers).where(self._workers.c.executor_id == self._executor))
