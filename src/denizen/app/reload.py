"""Changes of the configuration while Denizen runs: noticing them, applying them, and making one.

`watch` notices changed files, `Reloader` builds a whole validated generation or keeps the old one, and `RemoteSwitch`
writes a change of the web page into `denizen.yaml`.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from functools import partial
from os.path import samestat
from pathlib import Path
from threading import Event

import anyio
from anyio import to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from denizen.app.build import Denizen
from denizen.app.generation import build_generation
from denizen.app.home.environment import read_environment
from denizen.app.home.secrets import SECRETS_FILE
from denizen.app.logging import EXPLANATION
from denizen.app.settings import CONFIG_FILE, Settings, load_settings, set_values
from denizen.app.settings.persona import AGENTS_FOLDER
from denizen.app.settings.problem import KeyPath
from denizen.app.settings.workflows import WORKFLOWS_FOLDER
from denizen.builtin_skills import BUILTIN
from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.json import Json
from denizen.domain.record import record
from denizen.domain.snapshot import RemoteRepository
from denizen.domain.store_move import STORE_MOVED
from denizen.engine.listener.background import run_once

_AT_START = (
    "store.url",
    "store.max_connections",
    "server",
    "channels.terminal",
    "channels.web",
    "channels.api",
    "channels.mcp",
    "logging",
    "sandbox",
)
"""Sections that take effect at the next start only."""

RETRY_S = 5.0
"""How soon a configuration is read again that could not be for want of file descriptors."""

_log = logging.getLogger("denizen.app")


@record
class ReloadResult:
    """The result of a reload. `needs_restart` names changed sections that take effect at the next start only."""

    generation: int
    changed: bool
    needs_restart: tuple[str, ...] = ()


class Reloader:
    """Reloads the configuration, once at a time. `followers` is called after each reload that changed something; a
    fault in it goes to the log, since the new configuration holds already.
    """

    def __init__(
        self, denizen: Denizen, followers: Callable[[], Awaitable[None]] | None = None, *, retry_s: float = RETRY_S
    ) -> None:
        self._denizen = denizen
        self._followers = followers
        self._folder = denizen.home.stat()
        self._retry_s = retry_s
        self._lock = anyio.Lock()
        self._is_half_done = False
        """Whether the last reload failed after it had looked at the owner's skills."""

    async def reload(self) -> ReloadResult:
        """Reads the configuration, builds a generation and swaps it in. Raises what is wrong with the configuration;
        the old generation stays then.
        """
        async with self._lock:
            denizen = self._denizen
            self._check_not_moved()
            settings = load_settings(
                denizen.home, read_environment(), known_tools=BUILTIN, simulation=denizen.simulation
            )
            _check_not_emptied(settings, denizen.settings)
            current = denizen.runtime.current.number
            are_skills_same = not await denizen.generation_deps.own_skills.has_changed(settings.skills)
            if are_skills_same and not self._is_half_done and _is_same(settings, denizen.settings):
                return ReloadResult(current, changed=False)
            self._is_half_done = True
            generation = await build_generation(settings, current + 1, denizen.generation_deps)
            async with AsyncExitStack() as unused:
                unused.push_async_callback(generation.aclose)
                async with denizen.services.store.work() as work:
                    now = denizen.services.clock.now()
                    await work.generations.add(digest=settings.digest, source="reload", now=now)
                unused.pop_all()
            restart = tuple(name for name in _AT_START if _section(settings, name) != _section(denizen.settings, name))
            _tell_broken(settings, denizen.settings)
            denizen.settings = settings
            await denizen.runtime.swap(generation)
            self._is_half_done = False
            if self._followers is not None:
                await run_once("following a changed configuration", self._followers)
            return ReloadResult(generation.number, changed=True, needs_restart=restart)

    def _check_not_moved(self) -> None:
        """Raises InvalidInput when another folder, or none, stands where the home folder was."""
        home = self._denizen.home
        if not home.exists() or not samestat(home.stat(), self._folder):
            raise InvalidInput(
                f"The home folder {home} was moved or removed while Denizen runs.",
                code="home_moved",
                why="the databases that are open went with it, and new files would be written elsewhere",
                fix="Move it back, or stop Denizen and start it with --home and the new place.",
            )

    async def reload_and_tell(self) -> None:
        """Reloads for the watcher: the outcome goes to the log, and nothing is raised. Without free file descriptors it
        tries again, since nobody else would come back to the change.
        """
        is_told = False
        while True:
            try:
                done = await self.reload()
            except Exception as error:  # noqa: BLE001 - the boundary of a job: a fault here must not end the server
                if isinstance(error, DenizenError) and error.code == STORE_MOVED:
                    _log.info("the data has moved to another database, restarting")
                    self._denizen.restart.follow_store()
                    return
                if not _lacks_descriptors(error):
                    _tell_refusal(error)
                    return
            else:
                break
            if not is_told:
                _log.warning("the changed configuration is read as soon as there are free file descriptors")
                is_told = True
            await anyio.sleep(self._retry_s)
        if done.changed:
            _log.info("configuration reloaded", extra={"generation": done.generation})
        if done.needs_restart:
            _log.warning(
                "changed settings take effect after a restart", extra={"sections": ", ".join(done.needs_restart)}
            )


def _tell_broken(new: Settings, old: Settings) -> None:
    """Logs the workflows that cannot be used any more."""
    for name, problems in new.broken_workflows.items():
        if problems != old.broken_workflows.get(name):
            for each in problems:
                about = {"workflow": name, "where": str(each), "fix": each.fix}
                _log.warning("a workflow cannot be used, so nothing starts it", extra=about)


def _tell_refusal(error: Exception) -> None:
    if isinstance(error, DenizenError):
        _log.error("configuration refused, the old one stays", extra=error.fields | {EXPLANATION: error.explain()})
    else:
        _log.error("configuration could not be loaded, the old one stays", exc_info=error)


def _lacks_descriptors(error: BaseException | None) -> bool:
    """Whether the error may be for want of file descriptors: it says so, or there are none now."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            return True
        error = error.__cause__ or error.__context__
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return True
    return False


def _check_not_emptied(new: Settings, old: Settings) -> None:
    """Raises InvalidInput when the file is gone or says nothing any more: editors empty a file before they write it,
    and the defaults in its place would log every account out.
    """
    if old.document.tree and not new.document.tree:
        raise InvalidInput(
            f"{new.home / CONFIG_FILE} is empty or gone.",
            code="config_emptied",
            why="a running server does not fall back to the defaults",
            fix="Put the file back. To start anew with the defaults, stop Denizen first.",
        )


def _section(settings: Settings, name: str) -> object:
    found: object = settings.config
    for key in name.split("."):
        found = getattr(found, key)
    return found


def _is_same(new: Settings, old: Settings) -> bool:
    """Returns whether text and secrets are the same; a rotated key counts as a change."""
    return new.digest == old.digest and new.secrets == old.secrets


REMOTE_KEY = ("knowledge", "remote")


class RemoteSwitch:
    """Changes the git repository that snapshots are pushed to. `reload` applies the changed file."""

    def __init__(self, denizen: Denizen, reload: Callable[[], Awaitable[object]]) -> None:
        self._denizen = denizen
        self._reload = reload

    async def change(self, remote: RemoteRepository) -> None:
        """Checks the repository, writes it into `denizen.yaml`, and starts snapshots anew; an empty location means that
        nothing is pushed. Raises Conflict for a repository of somebody else, and what reading one raises; nothing is
        changed then.
        """
        knowledge = self._denizen.knowledge
        if remote.location:
            await knowledge.remote.claim(remote)
        wanted: dict[KeyPath, Json] = {
            (*REMOTE_KEY, "repository"): remote.location,
            (*REMOTE_KEY, "branch"): remote.branch,
            (*REMOTE_KEY, "allow_existing"): remote.allow_existing,
        }
        known = self._denizen.settings.config.knowledge.remote
        changed = {path: value for path, value in wanted.items() if getattr(known, str(path[-1])) != value}
        if not changed:
            return
        write = partial(set_values, self._denizen.home, read_environment(), changed, known_tools=BUILTIN)
        await to_thread.run_sync(write)
        await self._reload()
        await knowledge.snapshots.clear()
        await self._denizen.generation_deps.skills.sandbox.forget()


SKILLS_FOLDER = "skills"
MAX_ROUNDS = 20
"""A file that is written without a pause is reported after this many times `debounce_s`."""

FilePrint = tuple[int, int, int, int]
"""The state of a file: times of content and of inode, size, inode."""
Folders = Callable[[], Sequence[Path]]
"""Returns the folders to look at; called at each look, since they change with the configuration."""
Notices = Callable[[Sequence[Path], Event], AsyncGenerator[object]]
"""Yields when something below the given paths may have changed, until the event is set. May fail with OSError or
RuntimeError."""

_EXISTS: FilePrint = (0, 0, 0, 0)
"""The print of a folder. Its own times change with files that do not count."""
_OURS = frozenset({CONFIG_FILE, SECRETS_FILE, AGENTS_FOLDER, SKILLS_FOLDER, WORKFLOWS_FOLDER})
_watch_log = logging.getLogger("denizen.watch")


async def native_notices(paths: Sequence[Path], stop: Event) -> AsyncGenerator[object]:
    """Yields the notices of the operating system. Subscribes anew when folders come or go, since a notice is bound to a
    folder.
    """
    from watchfiles import Change, awatch  # pyright: ignore[reportUnknownVariableType] - trio's types are not installed

    def concerns(_: Change, name: str) -> bool:
        return _is_ours(places, name)

    while (folders := _folders(paths)) and not stop.is_set():
        places = _list_places(paths)
        yield None
        changes = awatch(*folders, watch_filter=concerns, debounce=500, step=50, recursive=False, stop_event=stop)
        async with aclosing(changes):
            async for each in changes:
                yield each
                touched = {Path(name) for _, name in each}
                if touched & folders or _folders(paths) != folders:
                    break


async def watch(
    paths: Iterable[Path | Folders],
    on_change: Callable[[], Awaitable[None]],
    *,
    debounce_s: float = 0.5,
    poll_s: float = 2.0,
    notices: Notices = native_notices,
    catch_up: bool = False,
) -> None:
    """Calls `on_change` once after each burst of changes, when the files have been still for `debounce_s`. Runs until
    it is cancelled; what `on_change` raises ends it.

    What counts is a comparison of the files themselves, made every `poll_s`; notices of the operating system only make
    it happen at once. So a file system that sends none, or a watcher that fails, costs two seconds and nothing else;
    while folders cannot be read, as without file descriptors, nothing has changed. With `catch_up` it calls
    `on_change` after the first look too: a change between the caller's reading and that look would go unnoticed
    otherwise.

    `paths` are files, which need not exist yet, or home folders: their configuration, secrets, personas, workflows and
    skills count. `Folders` among them are folders elsewhere: their Markdown files count, and whether they exist.
    """
    given = list(paths)
    watched = tuple(each for each in given if isinstance(each, Path))
    asked = [each for each in given if not isinstance(each, Path)]

    def folders() -> Sequence[Path]:
        return [folder for each in asked for folder in each()]

    send, receive = anyio.create_memory_object_stream[None](1)
    stop = Event()
    look = _FileLook(watched, folders)
    async with send, receive, anyio.create_task_group() as group:
        seen = await look.take()
        group.start_soon(_listen, notices(watched, stop), send, stop)
        try:
            if catch_up:
                await on_change()
            while True:
                await _wait_for_notice(receive, poll_s)
                current = await _settle(look.take, seen, debounce_s)
                if current != seen:
                    seen = current
                    await on_change()
        finally:
            stop.set()  # the native watcher waits in a thread, which a cancellation does not reach


async def _listen(notices: AsyncGenerator[object], send: MemoryObjectSendStream[None], stop: Event) -> None:
    try:
        async with aclosing(notices) as stream:
            async for _ in stream:
                with suppress(anyio.WouldBlock):  # one notice is waiting already
                    send.send_nowait(None)
        reason = "no folder to watch"
    except (OSError, RuntimeError) as error:
        reason = type(error).__name__
    if stop.is_set():
        return
    _watch_log.warning("file notices do not work here; looking at the files instead", extra={"reason": reason})


async def _wait_for_notice(receive: MemoryObjectReceiveStream[None], poll_s: float) -> None:
    with anyio.move_on_after(poll_s):
        await receive.receive()


async def _settle(
    look: Callable[[], Awaitable[Mapping[Path, FilePrint]]], seen: Mapping[Path, FilePrint], debounce_s: float
) -> Mapping[Path, FilePrint]:
    """Returns the state of the files once it stays the same. Editors write in several steps."""
    current = await look()
    for _ in range(MAX_ROUNDS):
        if current == seen:
            break
        await anyio.sleep(debounce_s)
        again = await look()
        if again == current:
            break
        current = again
    return current


class _FileLook:
    """Looks at the files again and again."""

    def __init__(self, paths: Sequence[Path], folders: Folders) -> None:
        self._paths = paths
        self._folders = folders
        self._latest: Mapping[Path, FilePrint] = {}
        self._has_failed = False

    async def take(self) -> Mapping[Path, FilePrint]:
        """Returns the state of the files; the last one known while folders cannot be read, which is logged once."""
        try:
            self._latest = await to_thread.run_sync(_prints, self._paths, self._folders())
        except OSError as error:
            if not self._has_failed:
                _watch_log.warning("the configuration cannot be watched now", extra={"reason": error.strerror})
            self._has_failed = True
        else:
            self._has_failed = False
        return self._latest


def _prints(paths: Sequence[Path], folders: Sequence[Path]) -> Mapping[Path, FilePrint]:
    prints: dict[Path, FilePrint] = {folder: _EXISTS for folder in folders if folder.is_dir()}
    shared = [file for folder in list(prints) for file in _list_below(folder, is_flat=True) if file.suffix == ".md"]
    for file in (*_files(paths), *shared):
        try:
            stat = file.stat()
        except OSError:
            continue  # not there, or gone meanwhile
        prints[file] = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
    return prints


def _files(paths: Sequence[Path]) -> Iterable[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        yield from (path / CONFIG_FILE, path / SECRETS_FILE)
        yield from (each for each in _list_below(path / AGENTS_FOLDER) if each.suffix == ".md")
        yield from _list_below(path / WORKFLOWS_FOLDER, is_flat=True)
        yield from (each for each in _list_below(path / SKILLS_FOLDER) if "__pycache__" not in each.parts)


def _list_below(folder: Path, *, is_flat: bool = False) -> Iterable[Path]:
    """Yields what is in a folder, and without `is_flat` below it. Raises OSError without file descriptors: what cannot
    be listed then would look as if it was gone.
    """
    for root, folders, files in os.walk(folder, onerror=_check_listing):
        yield from (Path(root, name) for name in (*folders, *files))
        if is_flat:
            return


def _check_listing(error: OSError) -> None:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        raise error


def _folders(paths: Sequence[Path]) -> set[Path]:
    """Returns the folders to take notices from, as far as they exist."""
    wanted: set[Path] = set()
    for path in paths:
        wanted.add(path if path.is_dir() else path.parent)
        agents = path / AGENTS_FOLDER
        skills = path / SKILLS_FOLDER
        wanted |= {agents, *_list_below(agents), skills, *_list_below(skills), path / WORKFLOWS_FOLDER}
    return {each for each in wanted if each.is_dir()}


def _list_places(paths: Sequence[Path]) -> frozenset[str]:
    """Returns the watched paths as notices tell them: some systems tell the real path of a link."""
    return frozenset(str(place) for path in paths for place in (path, path.resolve()))


def _is_ours(places: frozenset[str], changed: str) -> bool:
    """Returns whether a notice concerns a watched file, or a folder that may hold one. The rest of a home folder
    (store, logs) changes all the time, so this takes no look at the disk.
    """
    if changed in places:
        return True
    below = (changed[len(place) + 1 :] for place in places if changed.startswith(place + os.sep))
    return any(each.split(os.sep, 1)[0] in _OURS for each in below)
