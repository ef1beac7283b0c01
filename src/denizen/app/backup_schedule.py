"""Backups at set times, made by the server: when one is due, what became of the last, and which old ones go.

What is known of them is in the store. So of several processes the one that does the upkeep makes them, and a process
that dies over a backup finds a failure written down, and waits before it tries again.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path

import anyio
import anyio.lowlevel
from anyio import to_thread
from pydantic import TypeAdapter

from denizen.app.backups import Backup, BackupOptions, BackupProgress, explain_disk_errors, make_backup
from denizen.app.settings import Settings
from denizen.app.settings.backups import BackupsSection
from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, NeedsAttention
from denizen.domain.record import record
from denizen.engine.events.signal import Signal
from denizen.ports.schedules import CronTimes
from denizen.ports.store import Store

LOOK_EVERY_S = 60.0
FIRST_RETRY = timedelta(minutes=5)
LAST_RETRY = timedelta(hours=6)
"""The pause after a failure doubles from the first to the last."""
CLOCK_ERROR = timedelta(hours=1)
MAX_KNOWN = 1000
"""So many of the newest are known, to be removed one day."""
_KEY = "backups"

_log = logging.getLogger("denizen.backups")


@record(kw_only=True)
class BackupFailure:
    """The last of `tries` that failed since a backup was good. `is_begun`: it is under way, or was interrupted.
    `is_told`: owners were told.
    """

    at: datetime
    tries: int
    message: str
    why: str = ""
    fix: str = ""
    is_begun: bool = False
    is_told: bool = False

    @property
    def is_owed(self) -> bool:
        """Whether owners are to be told. Of one that was interrupted, such as by a restart, the next is waited for."""
        return not self.is_told and not (self.is_begun and self.tries == 1)


@record(kw_only=True)
class BackupState:
    """The known state of the backups of one home folder. `good_at` is the moment of which the last one is that was
    checked, None before the first; `made` are the files that are kept, the newest first.
    """

    home: str
    good_at: datetime | None = None
    made: tuple[str, ...] = ()
    failure: BackupFailure | None = None


async def load_backup_state(store: Store, home: Path) -> BackupState:
    """Returns the state. Each home folder has its own: those of a fleet, and the one whose store was restored here,
    have files that are not ours.
    """
    own = str(await anyio.Path(home).resolve())
    async with store.work(write=False) as work:
        found = (await work.user_settings.get(_KEY)).get(own)
    return _reader().validate_python(found) if found else BackupState(home=own)


def find_due(section: BackupsSection, state: BackupState, times: CronTimes, now: datetime) -> datetime:
    """Returns when the next backup is to be made."""
    latest = state.failure.at if state.failure is not None else state.good_at
    if latest is None or latest > now + CLOCK_ERROR:  # a clock that was ahead must not put off backups for years
        return now
    if state.failure is not None:
        return latest + min(FIRST_RETRY * 2 ** min(state.failure.tries - 1, 10), LAST_RETRY)
    return next(times.list_after(section.schedule, section.zone, latest))


def find_overdue(section: BackupsSection, good_at: datetime, times: CronTimes) -> datetime:
    """Returns when a backup is too old: the second time after it has come, too."""
    following = times.list_after(section.schedule, section.zone, good_at)
    next(following)
    return next(following)


def find_backup_folder(settings: Settings) -> Path:
    return Path(os.path.normpath(settings.home / Path(settings.config.backups.folder).expanduser()))


class BackupSchedule:
    """Makes backups while `run` runs. `settings` is asked each time; `tell_owners` returns whether somebody was told,
    or nobody ever can be.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        store: Store,
        clock: Clock,
        times: CronTimes,
        *,
        changed: Signal,
        tell_owners: Callable[[str, str], Awaitable[bool]],
    ) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._times = times
        self._changed = changed
        self._tell_owners = tell_owners

    async def run(self) -> None:
        while True:
            changed = self._changed.next
            wait_s = await self.look()
            with anyio.move_on_after(wait_s):
                await changed.wait()

    async def look(self) -> float | None:
        """Makes a backup if one is due. Returns how many seconds to wait for the next look; None without a schedule."""
        settings = self._settings()
        section = settings.config.backups
        if not section.schedule:
            return None
        state = await load_backup_state(self._store, settings.home)
        if find_due(section, state, self._times, self._clock.now()) <= self._clock.now():
            state = await self._back_up(settings, state)
        failure = state.failure
        if failure is not None and failure.is_owed:
            text = "\n".join(filter(None, ["The backup failed, and is tried again.", failure.message, failure.fix]))
            if await self._tell_owners(text, f"backup:{failure.at.isoformat()}"):
                await self._keep(replace(state, failure=replace(failure, is_told=True)))
        due = find_due(section, state, self._times, self._clock.now())
        return min(max((due - self._clock.now()).total_seconds(), 1.0), LOOK_EVERY_S)

    async def _back_up(self, settings: Settings, state: BackupState) -> BackupState:
        now, before = self._clock.now(), state.failure
        tries = before.tries + 1 if before else 1
        was_told = before is not None and before.is_told
        # Written first: a process that is killed by its backup must not begin again at once. A stop is no failure yet.
        begun = BackupFailure(
            at=now,
            tries=tries,
            message="It was interrupted, or is being made just now.",
            is_begun=True,
            is_told=was_told,
        )
        state = replace(state, failure=begun)
        await self._keep(state)
        stop = threading.Event()

        async def stop_when_cancelled() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                stop.set()

        async with anyio.create_task_group() as group:
            group.start_soon(stop_when_cancelled)
            with anyio.CancelScope(shield=True):  # a file that is there must be noted, or it would stay forever
                state = await self._make(settings, state, begun, stop)
            group.cancel_scope.cancel()
        await anyio.lowlevel.checkpoint_if_cancelled()
        return state

    async def _make(
        self, settings: Settings, state: BackupState, begun: BackupFailure, stop: threading.Event
    ) -> BackupState:
        """Returns what became of it, which is written. Ends soon when it is to stop, and leaves nothing then."""

        def report(progress: BackupProgress) -> None:
            if stop.is_set():
                raise NeedsAttention(f"The backup was stopped while {progress.stage}.", code="backup_stopped")

        try:
            made = await to_thread.run_sync(partial(_make_in_folder, settings, begun.at, report))
            removed = await to_thread.run_sync(_remove_old, (str(made.file), *state.made), settings.config.backups.keep)
        except Exception as raised:  # noqa: BLE001 - the boundary of a job: a fault in here is a failure, too
            if stop.is_set():
                return state
            error = _explain(raised)
            failure = replace(begun, message=error.message, why=error.why, fix=error.fix, is_begun=False)
            state = replace(state, failure=failure)
        else:
            kept = [each for each in (str(made.file), *state.made) if each not in removed]
            _log.info(
                "a backup was made and checked",
                extra={"file": str(made.file), "size_bytes": made.size_bytes, "removed": len(removed)},
            )
            state = BackupState(home=state.home, good_at=begun.at, made=tuple(kept[:MAX_KNOWN]))
        await self._keep(state)
        return state

    async def _keep(self, state: BackupState) -> None:
        value = _reader().dump_python(state, mode="json")
        async with self._store.work() as work:
            await work.user_settings.put(_KEY, state.home, value, now=self._clock.now())


def _make_in_folder(settings: Settings, now: datetime, report: Callable[[BackupProgress], None]) -> Backup:
    section, folder = settings.config.backups, find_backup_folder(settings)
    with explain_disk_errors(folder):
        if folder.is_relative_to(settings.home):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not folder.is_dir():  # a disk that is not mounted must not become a folder of this one
            raise NeedsAttention(
                f"The folder {folder} for backups is not there.",
                code="backup_folder",
                fix="Mount its disk or make the folder, or change backups.folder.",
            )
    options = BackupOptions(
        target=folder, with_secrets=section.with_secrets, recipient=section.encrypt_to, is_checked=True
    )
    return make_backup(settings, options, now, report)


def _explain(raised: Exception) -> DenizenError:
    """Logs why a backup failed, and returns it in words for people."""
    if isinstance(raised, DenizenError):
        _log.warning("the backup failed: %s", raised.message, extra=raised.fields)
        return raised
    _log.error("the backup failed with a fault", exc_info=raised)
    return NeedsAttention(
        "The backup met a fault of the program.",
        code="backup_fault",
        why=type(raised).__name__,
        fix="Look into the log of the server, and report the fault.",
    )


def _remove_old(made: Sequence[str], keep: int) -> Sequence[str]:
    """Removes all but the newest that are there, and returns what it removed. What is not there may be on a disk that
    comes back.
    """
    removed: list[str] = []
    # Unlike `Path.is_file`, this raises nothing where the disk of an old one answers with an error.
    for each in [each for each in made if os.path.isfile(each)][keep:]:  # noqa: PTH113
        try:
            Path(each).unlink()
        except OSError as error:
            _log.warning("an old backup cannot be removed", extra={"file": each, "why": error.strerror})
        else:
            removed.append(each)
    return removed


@cache
def _reader() -> TypeAdapter[BackupState]:
    return TypeAdapter(BackupState)
