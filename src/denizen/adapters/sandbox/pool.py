"""Keeps sandbox workers for the life of the process: a few, each bound to one view, started when needed.

How programs can be isolated on this machine is found out once, by really running one (`check`): namespaces, else
Landlock alone, else the shell is off and says why. It never runs anything without isolation. Where the system offers no
mounts, several folders are copied side by side into one; files on the same disk are linked, so that a copy costs
little.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from anyio import to_thread

from denizen.adapters.sandbox.process import (
    HostPrograms,
    SandboxLimits,
    SandboxWorker,
    SandboxWorkerError,
    find_host_programs,
    is_world_readable,
    sandbox_unavailable,
    start_worker,
)
from denizen.adapters.sandbox.sessions import FairQueue, SandboxSessions
from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput, LimitExceeded, NotFound, Unavailable
from denizen.ports.sandbox import MAX_COMMANDS, ShellReply, ShellResult, ShellView

TIERS = ("namespaces", "landlock")
"""The kinds of isolation, the stronger first. With Landlock alone nothing outside can be read, run or written
either, but a link could tell whether a file exists there; lines with paths that lead out are refused for that
reason.
"""
ASK_AGAIN_S = 60.0
"""After this time a machine that could not isolate programs is probed again: it may have been too busy."""
COPY_TTL_S = 60.0
"""How long a copy of several folders is used, where they cannot be mounted side by side."""

_INSIDE = "inside\n"


@dataclass(slots=True)
class _BoundWorker:
    """A worker and its view. `copy` is the folder that was made for it, None where it sees the folders themselves."""

    worker: SandboxWorker
    view: ShellView
    folders: tuple[tuple[int, int], ...]
    """The device and inode of each folder, since other folders may take over the same paths."""
    opened_at_s: float
    copy: Path | None = None

    async def aclose(self) -> None:
        await self.worker.aclose()
        if self.copy is not None:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(remove_copy, self.copy)


class SandboxPool:
    """Implements `ports.sandbox.Sandbox`. `tiers` are tried in order."""

    def __init__(self, clock: Clock, limits: SandboxLimits | None = None, *, tiers: Sequence[str] = TIERS) -> None:
        self._clock = clock
        self.limits = limits or SandboxLimits()
        self._tiers = tiers
        self._sessions = SandboxSessions(clock.monotonic_s)
        self._free: list[_BoundWorker] = []
        self._queue = FairQueue(self.limits.workers)
        self._checking = anyio.Lock()
        self._found: tuple[str, HostPrograms] | None = None
        self._off: str | None = None
        self._asked_at_s = 0.0
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def run(self, commands: Sequence[str], view: ShellView, *, owner: str, session_id: str = "") -> ShellReply:
        """Implements the port. Raises NotFound (`folder_missing`) too, when a folder of the view is gone."""
        if not 1 <= len(commands) <= MAX_COMMANDS:
            raise InvalidInput(f"Give 1 to {MAX_COMMANDS} commands, not {len(commands)}.", code="too_many_commands")
        tier, host = await self._find_tier()
        session = self._sessions.open(owner, view, session_id)
        async with self._queue.place(owner):
            results = await self._run(commands, session.view, tier, host)
        return ShellReply(session.id, results)

    async def forget(self) -> None:
        self._sessions.clear()
        while self._free:
            await self._free.pop().aclose()

    async def check(self) -> str:
        tier, host = await self._find_tier()
        how = "namespaces and seccomp" if tier == "namespaces" else "Landlock and seccomp, without namespaces"
        missing = f"; not installed: {', '.join(host.missing)}" if host.missing else ""
        return f"commands are shut in by {how}{missing}"

    async def aclose(self) -> None:
        self._closed = True
        while self._free:
            await self._free.pop().aclose()

    async def _find_tier(self) -> tuple[str, HostPrograms]:
        async with self._checking:
            now = self._clock.monotonic_s()
            if self._off is not None and now - self._asked_at_s > ASK_AGAIN_S:
                self._off = None
            if self._found is None and self._off is None:
                try:
                    self._found = await self._probe()
                except Unavailable as error:
                    self._off, self._asked_at_s = error.why, now
        if self._found is None:
            raise sandbox_unavailable(self._off or "")
        return self._found

    async def _probe(self) -> tuple[str, HostPrograms]:
        """Runs a command that must print a file, and one that must not print what lies beside the view."""
        host = await to_thread.run_sync(find_host_programs)
        refusals: list[str] = []
        with tempfile.TemporaryDirectory(prefix="denizen-sandbox-") as folder:
            view = await to_thread.run_sync(_make_probe_folder, Path(folder))
            for tier in self._tiers:
                try:
                    worker = await start_worker(tier, view, host, self.limits)
                    try:
                        seen, unseen = await worker.run(["cat inside.txt", "cat link"])
                    finally:
                        await worker.aclose()
                except SandboxWorkerError as error:
                    refusals.append(f"{tier}: {error}")
                    continue
                if seen.stdout == _INSIDE and not unseen.stdout:
                    return tier, host
                refusals.append(f"{tier}: what a program could see was wrong ({seen.stderr.strip()})")
        raise sandbox_unavailable("; ".join(refusals))

    async def _run(
        self, commands: Sequence[str], view: ShellView, tier: str, host: HostPrograms
    ) -> tuple[ShellResult, ...]:
        """Runs the commands, a second time if the worker ended by itself: they change nothing."""
        # Two tries: a worker that ended while it was idle shows it only now.
        for is_last in (False, True):
            try:
                async with self._borrow(view, tier, host) as bound:
                    return await bound.worker.run(commands)
            except SandboxWorkerError as error:
                if is_last or error.is_stuck:
                    raise Unavailable(
                        "The read-only shell did not answer.", code="sandbox_failed", why=str(error), fix="Try again."
                    ) from error
        raise AssertionError("the second try returns or raises")

    @asynccontextmanager
    async def _borrow(self, view: ShellView, tier: str, host: HostPrograms) -> AsyncGenerator[_BoundWorker]:
        """Gives a worker on that view to this caller alone. One that is left in the middle of something is closed."""
        bound = await self._take(view, tier, host)
        try:
            yield bound
        except BaseException:
            await bound.aclose()
            raise
        if self._closed:
            await bound.aclose()
        else:
            self._free.append(bound)

    async def _take(self, view: ShellView, tier: str, host: HostPrograms) -> _BoundWorker:
        now = self._clock.monotonic_s()
        folders = _identify(view)
        for place, bound in enumerate(self._free):
            if (bound.view, bound.folders) == (view, folders) and (
                bound.copy is None or now - bound.opened_at_s < COPY_TTL_S
            ):
                return self._free.pop(place)
        # A worker is bound to its view, so one of another view has to go before a new one starts.
        while self._free and len(self._free) + self._queue.taken > self.limits.workers:
            await self._free.pop(0).aclose()
        return await self._open(view, folders, tier, host)

    async def _open(
        self, view: ShellView, folders: tuple[tuple[int, int], ...], tier: str, host: HostPrograms
    ) -> _BoundWorker:
        copy = None
        seen = view
        # Without mounts a worker can see one folder only.
        if tier == "landlock" and [name for name, _ in view.folders] != [""]:
            copy = await to_thread.run_sync(copy_view, view)
            copy.chmod(0o755 if is_world_readable(view) else 0o700)
            seen = ShellView((("", copy),))
        try:
            worker = await start_worker(tier, seen, host, self.limits)
        except BaseException:
            if copy is not None:
                remove_copy(copy)
            raise
        return _BoundWorker(worker, view, folders, self._clock.monotonic_s(), copy)


def _identify(view: ShellView) -> tuple[tuple[int, int], ...]:
    """Returns device and inode of each folder. Raises NotFound."""
    found: list[tuple[int, int]] = []
    for _, folder in view.folders:
        if not folder.is_dir():
            raise NotFound(f"There is no folder {folder}.", code="folder_missing", fix="Make it, or name another.")
        about = folder.stat()
        found.append((about.st_dev, about.st_ino))
    return tuple(found)


def _make_probe_folder(folder: Path) -> ShellView:
    view = folder / "view"
    view.mkdir(mode=0o755)
    (view / "inside.txt").write_text(_INSIDE, encoding="utf-8")
    (folder / "outside.txt").write_text("outside\n", encoding="utf-8")
    (view / "link").symlink_to(folder / "outside.txt")
    return ShellView((("", view),))


MAX_COPIED_BYTES = 2_000_000_000


def copy_view(view: ShellView) -> Path:
    """Copies the folders of a view into one new folder, which `remove_copy` removes. Raises LimitExceeded.

    The copy lies in a folder that only this user may enter: others on the machine must not read the documents either.
    """
    top = Path(tempfile.mkdtemp(prefix="denizen-sandbox-")) / "view"
    left = MAX_COPIED_BYTES
    try:
        top.mkdir(mode=0o755)
        for name, folder in view.folders:
            left = _copy(folder, top / name, left)
    except BaseException:
        remove_copy(top)
        raise
    return top


def remove_copy(top: Path) -> None:
    shutil.rmtree(top.parent, ignore_errors=True)


def _copy(source: Path, target: Path, left: int) -> int:
    target.mkdir()
    target.chmod(0o755)
    with os.scandir(source) as found:
        for entry in sorted(found, key=lambda each: each.name):
            if entry.is_dir(follow_symlinks=False):
                left = _copy(Path(entry.path), target / entry.name, left)
            elif entry.is_file(follow_symlinks=False):
                left -= _copy_file(Path(entry.path), target / entry.name)
            if left < 0:
                raise LimitExceeded(
                    f"The folders are larger than {MAX_COPIED_BYTES // 1_000_000} MB together.",
                    code="folders_too_large",
                    fix="Take out what nobody reads, or let the system offer user namespaces: nothing is copied then.",
                )
    return left


def _copy_file(source: Path, target: Path) -> int:
    """Links or copies a file. Returns the bytes that it cost."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copyfile(source, target, follow_symlinks=False)
        target.chmod(0o644)
        return target.stat().st_size
    return 0
