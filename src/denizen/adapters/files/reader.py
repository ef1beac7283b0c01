"""A folder of this machine as a source. No link is followed, and nothing but regular files is opened.

The revision stands for the names, sizes and times of all its files, so that one look tells whether anything changed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from anyio import to_thread

from denizen.domain.errors import InvalidInput, NeedsAttention, NotFound
from denizen.domain.source import WHAT_IS_KEPT, Source, find_readme, is_kept
from denizen.ports.source import ReportProgress, SourceFile, SourceTree

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not hold the thread for ever


@dataclass(frozen=True, slots=True)
class _FoundFile:
    """A file by its path below the content path, and what tells two states of it apart."""

    path: str
    size_bytes: int
    changed: tuple[int, int, int]


class FolderReader:
    """`denizen.ports.source.SourceReader`. Folders that hold Denizen's `home` are refused, and the `library` in it."""

    def __init__(self, home: Path, library: Path) -> None:
        self._home = home
        self._library = library

    async def look(self, source: Source) -> str:
        return _revision(await to_thread.run_sync(self._find, source))

    @asynccontextmanager
    async def open(self, source: Source, report: ReportProgress) -> AsyncGenerator[SourceTree]:
        """Raises InvalidInput for a folder that holds Denizen's own secrets."""
        del report
        found = await to_thread.run_sync(self._find, source)
        if not found:
            raise _no_documents(source)
        with closing(_open_files(_root(source), {each.path for each in found})) as files:
            yield SourceTree(_revision(found), len(found), files)

    async def forget(self, source_ids: Sequence[str]) -> None:
        """Nothing is kept."""

    def _find(self, source: Source) -> list[_FoundFile]:
        root = _root(source)
        if not root.is_dir():
            raise _no_folder(root)
        real = root.resolve()
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
    """Whoever named the location may have named a link; below it none is followed. Raises InvalidInput for one."""
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
        digest.update(repr((each.path, each.size_bytes, each.changed)).encode(errors="surrogatepass"))
    return digest.hexdigest()[:40]


def _walk(root: Path) -> Generator[_FoundFile]:
    for above, name, place in _entries(root):
        path = f"{above}{name}"
        if not is_kept(path):
            continue
        try:
            state = os.stat(name, dir_fd=place, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if stat.S_ISREG(state.st_mode):
            yield _FoundFile(path, state.st_size, (state.st_mtime_ns, state.st_ctime_ns, state.st_ino))


def _open_files(root: Path, wanted: set[str]) -> Generator[SourceFile]:
    for above, name, place in _entries(root):
        path = f"{above}{name}"
        if path not in wanted:
            continue
        try:
            handle = os.open(name, _OPEN, dir_fd=place)
        except PermissionError as error:
            raise _unreadable(path) from error
        except OSError:  # gone since it was listed, or a link now
            continue
        with os.fdopen(handle, "rb") as stream:
            state = os.fstat(handle)
            if stat.S_ISREG(state.st_mode):
                yield SourceFile(path, state.st_size, stream.read)


def _entries(root: Path) -> Generator[tuple[str, str, int]]:
    """The path of each folder with a slash behind it, the name of a file in it, and the open folder; in order."""

    def refuse(error: OSError) -> None:
        raise _unreadable(str(error.filename)) from error

    for above, folders, names, place in os.fwalk(root, follow_symlinks=False, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below = PurePosixPath(os.path.relpath(above, root)).as_posix()
        prefix = "" if below == "." else f"{below}/"
        for name in sorted(names):
            yield prefix, name, place


def _unreadable(path: str) -> NeedsAttention:
    return NeedsAttention(
        f"{path} may not be read.",
        code="source_denied",
        fix="Let the user that runs Denizen read it, or take it out of the folder.",
    )


def _no_folder(root: Path) -> NotFound:
    if root.exists():
        fix = "Name the folder that it is in."
        return NotFound(f"{root} is a file, and no folder.", code="source_missing", fix=fix)
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
