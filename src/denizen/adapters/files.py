"""Folders of this machine as sources of knowledge, and the folder of learned answers.

No link is followed, and only regular files are opened. The revision of a folder is a digest of the names, sizes and
times of its files, and of what cannot be read there, so that one look tells whether anything changed. What cannot be
read holds up nothing else, and is named with the reason.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from anyio import to_thread

from denizen.domain.errors import InvalidInput, NeedsAttention, NotFound, Unavailable
from denizen.domain.proposal import find_proposal_id
from denizen.domain.record import record
from denizen.domain.source import WHAT_IS_KEPT, Source, find_readme, is_kept
from denizen.ports.source import ReportProgress, SourceFile, SourceTree

__all__ = ["FolderReader", "LearnedFolder"]


_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not hold the thread for ever
_FOLDER = _OPEN | os.O_DIRECTORY
_MAX_DEPTH = 100
"""Each level is an open file while what is below it is read."""
_GONE = frozenset({errno.ENOENT, errno.ELOOP, errno.ENOTDIR})
"""The file or folder went meanwhile, or is a link now."""


@record
class _FoundFile:
    """A file by its path below the content path, with the times and inode that tell two states of it apart. `lacks`
    says why it cannot be read; of a folder that cannot be, whose path ends with a slash, that is all there is.
    """

    path: str
    size_bytes: int = 0
    changed: tuple[int, int, int] = (0, 0, 0)
    lacks: str = ""


@record
class _Entry:
    """A file by its path, and by its name in the open folder `place`; or what `error` kept from being listed."""

    path: str
    name: str = ""
    place: int = -1
    error: OSError | None = None

    def holds(self, path: str) -> bool:
        return self.path.endswith("/") and path.startswith(self.path)


class FolderReader:
    """Reads folders (`denizen.ports.source.SourceReader`). Refuses those that hold Denizen's `home` or `library`."""

    def __init__(self, home: Path, library: Path) -> None:
        self._home = home
        self._library = library

    async def look(self, source: Source) -> str:
        return _revision(await to_thread.run_sync(self._find, source))

    @asynccontextmanager
    async def open(self, source: Source, report: ReportProgress) -> AsyncGenerator[SourceTree]:
        """Raises InvalidInput for a folder that holds Denizen's own secrets. At the end raises NeedsAttention when
        nothing of it could be read, and Unavailable when most could not, as with a disk that is away.
        """
        del report
        found = await to_thread.run_sync(self._find, source)
        if not found:
            raise _no_documents(source)
        with closing(_open_files(_root(source), found)) as files:
            yield SourceTree(_revision(found), len(found), files)

    async def forget(self, source_ids: Sequence[str]) -> None:
        """Does nothing: nothing is kept."""

    def _find(self, source: Source) -> list[_FoundFile]:
        root = _root(source)
        if not root.is_dir():
            raise _no_folder(root)
        real = root.resolve()
        # Resolved, so that a link to the home folder is refused as well.
        if self._home.resolve().is_relative_to(real) or real.is_relative_to(self._library.resolve()):
            raise InvalidInput(
                f"The folder {root} holds Denizen's own home folder, or is part of its library.",
                code="source_invalid",
                why="Agents would read the configuration and the secrets, or what they were given already.",
                fix="Name the folder of the documents alone.",
            )
        found = list(_walk(root))
        if source.readme_only:
            readme = find_readme([each.path for each in found if "/" not in each.path])
            found = [each for each in found if each.path == readme]
        return found


def _root(source: Source) -> Path:
    """Returns the folder to read. The location itself may be a link; raises InvalidInput for a link below it."""
    root = Path(source.location).resolve() / source.content_path
    if root.resolve() != root:
        raise InvalidInput(
            f"The content path {source.content_path} leads through a link.",
            code="source_invalid",
            why="Who writes in the folder could lead to files outside of it.",
            fix="Name the folder that the link points to as the location.",
        )
    return root


def _revision(found: Sequence[_FoundFile]) -> str:
    digest = hashlib.sha256()
    for each in found:
        told = (each.path, each.size_bytes, each.changed, *([each.lacks] if each.lacks else []))
        digest.update(repr(told).encode(errors="surrogatepass"))
    return digest.hexdigest()[:40]


def _walk(root: Path) -> Generator[_FoundFile]:
    """Yields the files of a kept kind, and what cannot be read. Each file is opened for a moment: only that tells."""
    for entry in _entries(root):
        if entry.error is not None:
            yield _FoundFile(entry.path, lacks=_explain(entry.error))
        elif is_kept(entry.path):
            try:
                state = os.stat(entry.name, dir_fd=entry.place, follow_symlinks=False)
                if stat.S_ISREG(state.st_mode):
                    os.close(os.open(entry.name, _OPEN, dir_fd=entry.place))
                    changed = (state.st_mtime_ns, state.st_ctime_ns, state.st_ino)
                    yield _FoundFile(entry.path, state.st_size, changed)
            except OSError as error:
                if error.errno not in _GONE:
                    yield _FoundFile(entry.path, lacks=_explain(error))


def _open_files(root: Path, found: Sequence[_FoundFile]) -> Generator[SourceFile]:
    wanted = {each.path for each in found}
    readable, missed = 0, list[SourceFile]()
    for entry in _entries(root):
        error = entry.error
        is_wanted = entry.path in wanted or (error is not None and any(map(entry.holds, wanted)))
        if is_wanted and error is None:
            try:
                # Relative to the open folder: a folder that is swapped for a link meanwhile leads nowhere.
                handle = os.open(entry.name, _OPEN, dir_fd=entry.place)
            except OSError as failure:
                error = failure
            else:
                with os.fdopen(handle, "rb") as stream:
                    state = os.fstat(handle)
                    if stat.S_ISREG(state.st_mode):
                        readable += 1
                        yield SourceFile(entry.path, state.st_size, stream.read)
        if is_wanted and error is not None and error.errno not in _GONE:
            missed.append(SourceFile(entry.path, 0, bytes, _explain(error)))
    _check_readable(readable, missed)
    yield from missed


def _check_readable(readable: int, missed: Sequence[SourceFile]) -> None:
    """A disk that is away must not look like a folder whose files were removed."""
    if missed and not readable:
        raise _unreadable(missed[0].path, missed[0].lacks)
    broken = [each for each in missed if each.lacks != _DENIED]
    if len(broken) > readable:
        raise Unavailable(
            "Most files of the folder could not be read.",
            code="source_unavailable",
            why=f"{len(broken)} of {readable + len(missed)}, such as {broken[0].path} ({broken[0].lacks})",
        )


def _entries(root: Path) -> Generator[_Entry]:
    """Yields all files below the folder by name, those that no link leads to. Raises NeedsAttention where the folder
    itself cannot be listed.
    """
    try:
        place = os.open(root, _FOLDER)
    except OSError as error:
        raise _unreadable(str(root), _explain(error)) from error
    try:
        for entry in _list_entries(place, ""):
            if entry.error is not None and not entry.path:
                raise _unreadable(str(root), _explain(entry.error)) from entry.error
            yield entry
    finally:
        os.close(place)


def _list_entries(place: int, above: str) -> Generator[_Entry]:
    """`above` is the path of the open folder `place`, with a slash at its end."""
    try:
        with os.scandir(place) as listed:
            # Hidden folders, such as .git, are no documents.
            entries = sorted((each for each in listed if not each.name.startswith(".")), key=lambda each: each.name)
    except OSError as error:
        yield _Entry(above, error=error)
        return
    for each in entries:
        path = f"{above}{each.name}"
        try:
            is_folder = each.is_dir(follow_symlinks=False)
        except OSError as error:
            yield _Entry(path, error=error)
            continue
        if not is_folder:
            yield _Entry(path, each.name, place)
        elif path.count("/") >= _MAX_DEPTH:
            yield _Entry(f"{path}/", error=OSError(errno.ENAMETOOLONG, "it lies too deep"))
        else:
            yield from _enter(each.name, place, f"{path}/")


def _enter(name: str, place: int, path: str) -> Generator[_Entry]:
    try:
        folder = os.open(name, _FOLDER, dir_fd=place)
    except OSError as error:
        if error.errno not in _GONE:
            yield _Entry(path, error=error)
        return
    try:
        yield from _list_entries(folder, path)
    finally:
        os.close(folder)


_DENIED = "Denizen may not read it"


def _explain(error: OSError) -> str:
    """Returns why something cannot be read, as it stands behind its name."""
    return _DENIED if isinstance(error, PermissionError) else f"it cannot be read: {error.strerror}"


def _unreadable(path: str, why: str) -> NeedsAttention:
    return NeedsAttention(
        f"{path} may not be read." if why == _DENIED else f"{path} cannot be read.",
        code="source_denied",
        why="" if why == _DENIED else why,
        fix="Let the user that runs Denizen read it, or take it out of the folder.",
    )


def _no_folder(root: Path) -> NotFound:
    if root.exists():
        fix = "Name the folder that it is in."
        return NotFound(f"{root} is a file, not a folder.", code="source_missing", fix=fix)
    return NotFound(
        f"There is no folder {root}.", code="source_missing", fix="Check the location and the content path."
    )


def _no_documents(source: Source) -> NotFound:
    return NotFound(
        f"The folder of '{source.id}' has no {'README' if source.readme_only else 'document'}.",
        code="source_empty",
        why="" if source.readme_only else WHAT_IS_KEPT,
        fix="Look at the location and the content path; what was read before stays.",
    )


T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class LearnedFolder:
    """The folder of learned answers in the home folder (`denizen.ports.source.LearnedAnswerFiles`). Its files are for
    their owner only. The folder is made with its first file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def location(self) -> str:
        return str(self._folder)

    async def list_files(self) -> Mapping[str, str]:
        return await _in_thread(self._list)

    async def read(self, name: str) -> str:
        return await _in_thread(_read_text, self._place(name))

    async def write(self, name: str, text: str) -> None:
        await _in_thread(self._write, self._place(name), text.encode())

    async def remove(self, name: str) -> None:
        await _in_thread(self._place(name).unlink, True)  # noqa: FBT003 - `missing_ok`

    def _place(self, name: str) -> Path:
        if Path(name).name != name or not name.endswith(".md") or name.startswith("."):
            raise InvalidInput(f"'{name}' is not a valid name for a learned file.", code="file_invalid")
        return self._folder / name

    def _list(self) -> dict[str, str]:
        if not self._folder.is_dir():
            return {}
        found = (each for each in sorted(self._folder.iterdir()) if each.is_file() and not each.is_symlink())
        return {each.name: find_proposal_id(_read_text(each)) for each in found if not each.name.startswith(".")}

    def _write(self, place: Path, data: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
        try:
            with os.fdopen(os.open(beside, _WRITE, 0o600), "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            # A rename is atomic: a reader sees the old file or the new one.
            beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)


def _read_text(place: Path) -> str:
    try:
        with os.fdopen(os.open(place, _READ), encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""


async def _in_thread(job: Callable[[*Ts], T], *args: *Ts) -> T:
    try:
        return await to_thread.run_sync(job, *args)
    except OSError as error:
        raise NeedsAttention(
            "The folder of learned answers cannot be used.",
            code="learned_unusable",
            why=f"{error.strerror or type(error).__name__}: {error.filename or 'no file in particular'}",
            fix="Look at the space and the permissions of learned in the home folder.",
        ) from error
