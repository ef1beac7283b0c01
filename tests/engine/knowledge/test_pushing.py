"""Pushing snapshots to a real repository: one that is Denizen's own, and nobody else's by mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.adapters.git import GitRemote
from denizen.adapters.git.program import Git
from denizen.domain.errors import Conflict, NotFound, Unavailable
from denizen.domain.snapshot import RemoteRepository, Snapshot
from denizen.domain.source import SyncStatus
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, write
from tests.repository import ENVIRONMENT, Repository, create_repository

pytestmark = pytest.mark.anyio
MARKER = ".denizen-snapshot"


@pytest.fixture
async def engine(engine: KnowledgeFixture, tmp_path: Path) -> KnowledgeFixture:
    """Two documents, which are pushed to an empty repository."""
    engine.remote = RemoteRepository(str(tmp_path / "mirror"))
    await engine.add(write(tmp_path / "notes", {"a.md": "A", "b.md": "B"}))
    return engine


def list_branch_files(mirror: Repository, branch: str = "main") -> list[str]:
    return mirror.git("ls-tree", "-r", "--name-only", branch).splitlines()


@pytest.mark.proves("S24", "S25", "S25-limits")
async def test_each_new_snapshot_is_a_commit_and_an_unchanged_one_is_not_pushed(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    mirror = Repository(tmp_path / "mirror")
    first = await engine.run()
    assert (first.status, first.failed) == (SyncStatus.DONE, {})
    assert list_branch_files(mirror) == [MARKER, "docs/notes/a.md", "docs/notes/b.md"]
    await engine.run()
    assert mirror.git("log", "--format=%s", "main") == f"Snapshot {first.snapshot}"
    (tmp_path / "notes/a.md").rename(tmp_path / "notes/c.md")
    second = await engine.run()
    assert mirror.git("log", "--format=%s", "main").splitlines() == [
        f"Snapshot {second.snapshot}",
        f"Snapshot {first.snapshot}",
    ]
    assert list_branch_files(mirror) == [MARKER, "docs/notes/b.md", "docs/notes/c.md"]


async def test_what_others_pushed_is_replaced_and_stays_in_the_history(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    await engine.run()
    mirror = Repository(tmp_path / "mirror")
    theirs = Repository(tmp_path / "theirs")
    mirror.git("clone", "--quiet", str(mirror.folder), str(theirs.folder))
    theirs.write("docs/notes/extra.md", "x")
    theirs.commit()
    theirs.git("push", "--quiet", "origin", "main")
    write(tmp_path / "notes", {"a.md": "A, longer"})
    await engine.run()
    assert list_branch_files(mirror) == [MARKER, "docs/notes/a.md", "docs/notes/b.md"]
    assert mirror.git("rev-list", "--count", "main") == "3"


async def test_a_repository_of_somebody_else_is_not_touched_until_it_is_allowed(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    other = create_repository(tmp_path / "other", {"precious.txt": "x"})
    for branch in ("main", "snapshots"):
        engine.remote = RemoteRepository(str(other.folder), branch)
        run = await engine.run()
        assert run.status is SyncStatus.PARTIAL and run.snapshot
        assert "somebody else's" in run.failed["(remote)"] and "allow_existing" in run.failed["(remote)"]
    assert other.git("branch", "--format=%(refname:short)") == "main"
    engine.remote = RemoteRepository(str(other.folder), "snapshots", allow_existing=True)
    assert (await engine.run()).status is SyncStatus.DONE
    assert list_branch_files(other, "snapshots") == [MARKER, "docs/notes/a.md", "docs/notes/b.md"]
    assert list_branch_files(other) == ["precious.txt"]
    engine.remote = RemoteRepository(str(other.folder), "snapshots")
    assert (await engine.run()).status is SyncStatus.DONE


async def test_without_push_and_without_a_remote_nothing_is_pushed(engine: KnowledgeFixture, tmp_path: Path) -> None:
    await engine.sync.wait(await engine.sync.start(push=False))
    engine.remote = None
    await engine.run()
    assert not (tmp_path / "mirror").exists()


class UnreliableRemote:
    """A remote that is away as often as it is told."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.pushed: list[str] = []

    async def push(self, remote: RemoteRepository, snapshot: Snapshot, folder: Path) -> bool:
        if self.failures:
            self.failures -= 1
            raise Unavailable("The repository could not be read.", why="Connection reset by peer")
        assert (folder / "docs").is_dir()
        self.pushed.append(snapshot.id)
        return True


@pytest.mark.proves("S25")
async def test_a_push_is_tried_five_times_more_and_one_that_fails_spoils_nothing_else(tmp_path: Path) -> None:
    remote = UnreliableRemote(5)
    async with KnowledgeFixture(tmp_path, remote=RemoteRepository("/x"), repository=remote) as engine:
        await engine.add(write(tmp_path / "notes", {"a.md": "A"}))
        run = await engine.run()
        assert (run.status, remote.pushed) == (SyncStatus.DONE, [run.snapshot])
        assert engine.clock.sleeps == [2, 4, 6, 8, 10]
        remote.failures = 6
        run = await engine.run()
        assert (run.status, list(run.failed)) == (SyncStatus.PARTIAL, ["(remote)"])
        assert engine.files() == {"docs/notes/a.md": "A"}


@pytest.mark.proves("S30")
async def test_a_remote_that_is_claimed_is_made_and_marked_and_one_of_somebody_else_is_refused(tmp_path: Path) -> None:
    remote = GitRemote(Git(ENVIRONMENT), tmp_path / "pushing")
    await remote.claim(RemoteRepository(str(tmp_path / "new"), "kept"))
    assert list_branch_files(Repository(tmp_path / "new"), "kept") == [MARKER]
    await remote.claim(RemoteRepository(str(tmp_path / "new"), "kept"))
    assert Repository(tmp_path / "new").git("rev-list", "--count", "kept") == "1"
    empty = Repository(tmp_path / "empty")
    empty.folder.mkdir()
    empty.git("init", "--bare", "--quiet")
    await remote.claim(RemoteRepository(f"file://{empty.folder}", "kept"))
    assert list_branch_files(empty, "kept") == [MARKER]
    other = create_repository(tmp_path / "other", {"precious.txt": "x"})
    for branch in ("main", "snapshots"):
        with pytest.raises(Conflict) as refused:
            await remote.claim(RemoteRepository(str(other.folder), branch))
        assert refused.value.code == "remote_unmarked"
    assert other.git("branch", "--format=%(refname:short)") == "main"
    await remote.claim(RemoteRepository(str(other.folder), "snapshots", allow_existing=True))
    assert list_branch_files(other, "snapshots") == [MARKER]
    await remote.claim(RemoteRepository(str(other.folder), "main", allow_existing=True))
    assert list_branch_files(other) == ["precious.txt"]
    with pytest.raises(NotFound):
        await remote.claim(RemoteRepository(f"file://{tmp_path}/nowhere.git"))


@pytest.mark.proves("S30")
async def test_what_is_cleared_is_current_no_more_and_the_status_says_so(engine: KnowledgeFixture) -> None:
    run = await engine.run()
    assert (await engine.snapshots.status()).current == run.snapshot
    await engine.snapshots.clear()
    status = await engine.snapshots.status()
    assert (status.current, status.latest, status.needs_sync) == ("", run.snapshot, True)
    assert engine.library.current_folder() is None
    assert (await engine.run()).snapshot == run.snapshot
    assert (await engine.snapshots.status()).current == run.snapshot
