"""Pushes a snapshot to a git repository, for those who want to see or keep it elsewhere.

The repository belongs to Denizen: a marker file in it says so. A repository without the marker is not written to unless
the configuration allows it. A commit is made from the snapshot's folder without a working tree of git's own.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from shutil import rmtree

from anyio import to_thread

from denizen.adapters.git.program import Git, lock_repository
from denizen.domain.errors import Conflict, Unavailable
from denizen.domain.ids import fresh
from denizen.domain.snapshot import RemoteRepository, Snapshot
from denizen.domain.source import is_open_to

MARKER = ".denizen-snapshot"
"""The file that says that a repository may be overwritten."""
PUSH_TIMEOUT_S = 1800.0

_MARK = b"Snapshots of what Denizen has read are pushed here; what others push is replaced.\n"
_KNOWN = "refs/denizen/remote"
_BY = {
    "GIT_AUTHOR_NAME": "Denizen",
    "GIT_AUTHOR_EMAIL": "denizen@localhost",
    "GIT_COMMITTER_NAME": "Denizen",
    "GIT_COMMITTER_EMAIL": "denizen@localhost",
}


class GitRemote:
    """Pushes snapshots (`denizen.ports.source.SnapshotUploader`). `folder` is for its repository alone."""

    def __init__(self, git: Git, folder: Path) -> None:
        self._git = git
        self._place = folder / "remote.git"

    async def claim(self, remote: RemoteRepository) -> None:
        """Marks an empty repository as Denizen's. Where the location is a path with nothing there, the repository is
        created first.

        Raises Conflict for a repository with content of others, unless that is allowed, and what reading a repository
        raises.
        """
        async with lock_repository(self._place):
            await self._prepare(remote)
            if await self._fetch(remote):
                return
            tree = await self._git.run("mktree", folder=self._place, stdin=await self._mark_entry())
            # The first commit has a text of its own in each repository. If two repositories shared a commit, neither
            # could be pushed to, because only a shallow copy of it is kept here.
            await self._send(remote, _text(tree), "", f"A place for snapshots, {fresh('place')}")

    async def push(self, remote: RemoteRepository, snapshot: Snapshot, folder: Path) -> bool:
        """Implements the port. Raises Conflict without the marker, and what reading a repository raises."""
        async with lock_repository(self._place):
            try:
                return await self._push(remote, snapshot, folder)
            except Unavailable as error:
                if error.code == "source_damaged":
                    await to_thread.run_sync(partial(rmtree, self._place, ignore_errors=True))
                raise

    async def _push(self, remote: RemoteRepository, snapshot: Snapshot, folder: Path) -> bool:
        await self._prepare(remote)
        parent = await self._fetch(remote)
        tree = await self._write_tree(snapshot, folder)
        if parent and tree == await self._rev(f"{_KNOWN}^{{tree}}"):
            return False
        await self._send(remote, tree, parent, f"Snapshot {snapshot.id}")
        return True

    async def _send(self, remote: RemoteRepository, tree: str, parent: str, message: str) -> None:
        above = ["-p", parent] if parent else []
        commit = await self._git.with_variables(_BY).run("commit-tree", tree, *above, "-m", message, folder=self._place)
        git = await self._git.open_remote(remote.location)
        await git.run(
            "push",
            "--quiet",
            "--no-verify",
            "--",
            remote.location,
            f"{_text(commit)}:refs/heads/{remote.branch}",
            folder=self._place,
            timeout_s=PUSH_TIMEOUT_S,
        )

    async def _prepare(self, remote: RemoteRepository) -> None:
        """Makes the local repository, and an empty repository at a path where there is nothing."""
        if not (self._place / "HEAD").is_file():
            await to_thread.run_sync(partial(rmtree, self._place, ignore_errors=True))
            await self._init(self._place, remote.branch)
        is_path = remote.location.startswith("/")
        if is_path and not await to_thread.run_sync(Path(remote.location).exists):
            await self._init(Path(remote.location), remote.branch)

    async def _init(self, place: Path, branch: str) -> None:
        await self._git.run("init", "--bare", "--quiet", "--template=", f"--initial-branch={branch}", "--", str(place))

    async def _fetch(self, remote: RemoteRepository) -> str:
        """Returns the newest commit of the branch; empty for a repository without any."""
        git = await self._git.open_remote(remote.location)
        listed = await git.run("ls-remote", "--", remote.location)
        refs = {name for _, _, name in (line.partition("\t") for line in _text(listed).splitlines())}
        branch = f"refs/heads/{remote.branch}"
        if branch in refs:
            await git.run(
                "fetch",
                "--quiet",
                "--depth=1",
                "--no-tags",
                "--no-recurse-submodules",
                "--no-write-fetch-head",
                "--force",
                "--",
                remote.location,
                f"+{branch}:{_KNOWN}",
                folder=self._place,
                timeout_s=PUSH_TIMEOUT_S,
            )
        marked = branch in refs and await self._git.run("ls-tree", _KNOWN, "--", MARKER, folder=self._place)
        # An empty repository is nobody's, so it may be taken.
        if refs and not marked and not remote.allow_existing:
            raise Conflict(
                "The repository for snapshots is somebody else's.",
                code="remote_unmarked",
                why=f"It has content, and no {MARKER} on the branch {remote.branch}.",
                fix="Name an empty one, or write knowledge.remote.allow_existing: true to have the branch replaced.",
            )
        return await self._rev(f"{_KNOWN}^{{commit}}") if branch in refs else ""

    async def _write_tree(self, snapshot: Snapshot, folder: Path) -> str:
        """Writes the snapshot as a tree, without conversations: a history that others copied cannot forget them. Nor
        with documents of one community alone: others may read the repository.
        """
        index = self._place / "snapshot.index"
        await to_thread.run_sync(partial(index.unlink, missing_ok=True))
        writer = self._git.with_variables({"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(folder)})
        withheld = [part.folder for part in snapshot.parts if part.is_talk or not is_open_to(part.folder, "")]
        # literal: a folder name may hold characters that are patterns to git.
        left_out = [f":(top,literal,exclude){each}" for each in withheld]
        await writer.run(
            "add", "--all", "--force", "--", ":(top)", *left_out, folder=self._place, timeout_s=PUSH_TIMEOUT_S
        )
        await writer.run("update-index", "--add", "--index-info", folder=self._place, stdin=await self._mark_entry())
        return _text(await writer.run("write-tree", folder=self._place))

    async def _mark_entry(self) -> bytes:
        """Returns the marker as an index entry."""
        mark = await self._git.run("hash-object", "-w", "--stdin", folder=self._place, stdin=_MARK)
        return f"100644 blob {_text(mark)}\t{MARKER}\n".encode()

    async def _rev(self, name: str) -> str:
        return _text(await self._git.run("rev-parse", "--verify", name, folder=self._place))


def _text(said: bytes) -> str:
    return said.decode(errors="replace").strip()
