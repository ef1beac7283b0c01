"""A git repository as a source: a shallow fetch of one branch, which asks the server for the documents only.

Each source has a bare repository in the library's folder; the next fetch brings only what is new. Files are read from
the object database one by one and never checked out, so that no link, attribute, filter or submodule has any effect. A
server that supports partial clones sends only the documents below the content path.
"""

from __future__ import annotations

import subprocess
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from shlex import quote
from shutil import rmtree

from anyio import to_thread

from denizen.adapters.git.program import Git, OnPercent, lock_repository
from denizen.domain.errors import LimitExceeded, NotFound, Unavailable
from denizen.domain.source import WHAT_IS_KEPT, Source, find_readme, is_kept
from denizen.ports.source import ReadingProgress, ReportProgress, SourceFile, SourceTree

LOOK_TIMEOUT_S = 60.0
FETCH_TIMEOUT_S = 1800.0
MAX_PACKS = 20
"""A repository with more packs is fetched anew: objects that were replaced would stay in it for ever."""

_HEAD = "refs/denizen/head"
_FILE_MODES = frozenset({b"100644", b"100755"})


class GitReader:
    """Reads git repositories (`denizen.ports.source.SourceReader`). `folder` is for its clones alone. `guild_git` reads
    those of sources that are for one community: whoever manages that is not the operator.
    """

    def __init__(self, git: Git, folder: Path, guild_git: Git | None = None) -> None:
        self._git = git
        self._guild_git = guild_git or git
        self._folder = folder

    async def look(self, source: Source) -> str:
        """Asks the server for the commit of the branch."""
        names = _names(source)
        # A tag of its own has an object of its own; its commit is told beside it.
        wanted = [name for each in names for name in (f"{each}^{{}}", each)] if source.branch else list(names)
        git = await self._open_remote(source)
        said = await git.run("ls-remote", "--", source.location, *wanted, timeout_s=LOOK_TIMEOUT_S)
        lines = (line.partition("\t") for line in said.decode(errors="replace").splitlines())
        found = {name: revision for revision, _, name in lines}
        revision = next((found[name] for name in wanted if name in found), "")
        if not revision:
            raise _no_branch(source)
        return revision

    @asynccontextmanager
    async def open(self, source: Source, report: ReportProgress) -> AsyncGenerator[SourceTree]:
        """Fetches the branch and gives its documents. Raises NotFound also when there is no content path, no README
        or no document.
        """
        # Before the lock: a source that is gone fails at once, without waiting for others.
        await self.look(source)
        git = await self._open_remote(source)
        place = self._place(source.id)
        try:
            async with lock_repository(place):
                await self._prepare(place, source)
                await self._fetch(git, place, source, report)
                revision = await self._git.run("rev-parse", "--verify", f"{_HEAD}^{{commit}}", folder=place)
                blobs = await self._list(place, source)
                await self._fetch_missing(git, place, blobs, report)
                with closing(_read(self._git, place, blobs)) as files:
                    yield SourceTree(revision.decode("ascii").strip(), len(blobs), files)
        except Unavailable as error:
            if error.code == "source_damaged":
                await self.forget([source.id])
            raise
        except LimitExceeded as error:
            if error.code == "repository_too_large":  # part of it lies there
                await self.forget([source.id])
            raise

    async def forget(self, source_ids: Sequence[str]) -> None:
        for source_id in source_ids:
            await to_thread.run_sync(partial(rmtree, self._place(source_id), ignore_errors=True))

    async def _open_remote(self, source: Source) -> Git:
        return await (self._guild_git if source.guild else self._git).open_remote(source.location)

    def _place(self, source_id: str) -> Path:
        return self._folder / f"{source_id}.git"

    async def _prepare(self, place: Path, source: Source) -> None:
        """Makes an empty repository, unless there is one with this address that is still fit."""
        if await to_thread.run_sync(_is_fit, place):
            try:
                known = await self._git.run("config", "--get", "remote.origin.url", folder=place)
            except Unavailable:
                known = b""  # the process was killed before it was written
            if known.decode(errors="replace").strip() == source.location:
                return
        await self.forget([source.id])
        await self._git.run("init", "--bare", "--quiet", "--template=", "--", str(place))
        settings = {
            "extensions.partialClone": "origin",
            "remote.origin.promisor": "true",
            "remote.origin.partialCloneFilter": "blob:none",
            "core.repositoryFormatVersion": "1",
            "remote.origin.url": source.location,
        }
        for name, value in settings.items():
            await self._git.run("config", name, value, folder=place)

    async def _fetch(self, git: Git, place: Path, source: Source, report: ReportProgress) -> None:
        [name, *others] = _names(source)
        options = (
            "--depth=1",
            "--filter=blob:none",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--no-auto-gc",
            "--force",
            "--progress",
        )
        for number, each in enumerate((name, *others)):
            try:
                await git.run(
                    "fetch",
                    *options,
                    "origin",
                    f"+{each}:{_HEAD}",
                    folder=place,
                    timeout_s=FETCH_TIMEOUT_S,
                    on_percent=_percents(report),
                )
            except NotFound as error:
                if error.code != "branch_missing" or number == len(others):
                    raise
            else:
                return

    async def _list(self, place: Path, source: Source) -> dict[str, str]:
        """Returns object ids by path below the content path."""
        below = source.content_path
        listed = await self._git.run(
            "ls-tree", "-r", "-z", "--full-tree", _HEAD, "--", *([f"{below}/"] if below else []), folder=place
        )
        blobs: dict[str, str] = {}
        for entry in listed.split(b"\0"):
            mode, _, rest = entry.partition(b" ")
            oid, _, name = rest.removeprefix(b"blob ").partition(b"\t")
            path = name.decode(errors="replace").removeprefix(f"{below}/" if below else "")
            # Other modes are links and submodules, which are never followed.
            if mode in _FILE_MODES and is_kept(path):
                blobs[path] = oid.decode("ascii")
        if source.readme_only:
            readme = find_readme([path for path in blobs if "/" not in path])
            blobs = {readme: blobs[readme]} if readme else {}
        if not blobs:
            where = f" below {below}" if below else ""
            raise NotFound(
                f"The repository of '{source.id}' has no {'README' if source.readme_only else 'document'}{where}.",
                code="source_empty",
                why="" if source.readme_only else WHAT_IS_KEPT,
                fix="Look at the content path and the branch; what was read before stays.",
            )
        return blobs

    async def _fetch_missing(self, git: Git, place: Path, blobs: dict[str, str], report: ReportProgress) -> None:
        """Fetches all missing blobs in one request; git itself would fetch them one by one, which takes for ever."""
        listed = await self._git.run("rev-list", "--objects", "--missing=print", _HEAD, folder=place)
        missing = {line[1:].decode("ascii") for line in listed.split(b"\n") if line.startswith(b"?")}
        wanted = sorted(missing.intersection(blobs.values()))
        if wanted:
            options = ("--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-gc", "--progress")
            await git.run(
                "-c",
                "fetch.negotiationAlgorithm=noop",
                "fetch",
                *options,
                "--filter=blob:none",
                "--stdin",
                "origin",
                folder=place,
                stdin="".join(f"{oid}\n" for oid in wanted).encode("ascii"),
                timeout_s=FETCH_TIMEOUT_S,
                on_percent=_percents(report),
            )


def _names(source: Source) -> tuple[str, ...]:
    return (f"refs/heads/{source.branch}", f"refs/tags/{source.branch}") if source.branch else ("HEAD",)


def _percents(report: ReportProgress) -> OnPercent:
    return lambda doing, percent: report(ReadingProgress(doing.lower(), percent, 100))


def _is_fit(place: Path) -> bool:
    packs = place / "objects/pack"
    return (place / "config").is_file() and len(list(packs.glob("*.pack"))) < MAX_PACKS


def _read(git: Git, place: Path, blobs: dict[str, str]) -> Generator[SourceFile]:
    """Yields the files. Blocks. Content is read only when it is asked for: unpacked, a file may be a thousand times
    as large as the repository.
    """
    with _asking(git, place, "--batch-check") as sizes, _asking(git, place, "--batch") as contents:
        for path, oid in sorted(blobs.items()):
            yield SourceFile(path, _ask(sizes, path, oid), partial(_read_blob, contents, path, oid))


@contextmanager
def _asking(git: Git, place: Path, how: str) -> Generator[subprocess.Popen[bytes]]:
    """Starts a git process that answers about one object after the other."""
    process = subprocess.Popen(  # noqa: S603 - separate arguments, see `program`
        git.argv(["cat-file", how], place),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        # No protocol at all: a missing object must not be fetched one by one.
        env={**git.environ, "GIT_ALLOW_PROTOCOL": ""},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _ask(process: subprocess.Popen[bytes], path: str, oid: str) -> int:
    """Returns the size of the blob."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(f"{oid}\n".encode("ascii"))
        process.stdin.flush()
    except BrokenPipeError:
        raise _damaged(path) from None
    head = process.stdout.readline().split()
    if len(head) != 3 or head[1] != b"blob":
        raise _damaged(path)
    return int(head[2])


def _read_blob(process: subprocess.Popen[bytes], path: str, oid: str) -> bytes:
    """Returns the bytes of the blob, without the line break that git adds."""
    assert process.stdout is not None
    left = _ask(process, path, oid) + 1
    data = process.stdout.read(left)
    if len(data) < left:
        raise _damaged(path)
    return data[:-1]


def _damaged(path: str) -> Unavailable:
    return Unavailable("The repository is damaged.", code="source_damaged", why=f"{path} cannot be read")


def _no_branch(source: Source) -> NotFound:
    what = f"no branch or tag '{source.branch}'" if source.branch else "nothing in it yet"
    fix = f"`git ls-remote {quote(source.location)}` lists what it has." if source.branch else "Commit something to it."
    return NotFound(f"The repository of '{source.id}' has {what}.", code="branch_missing", fix=fix)
