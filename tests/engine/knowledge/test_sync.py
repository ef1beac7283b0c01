"""Reading sources and publishing what was read, with real repositories and folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from pathlib import Path

import anyio
import pytest

from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, NotFound, Unavailable
from denizen.domain.snapshot import Snapshot, SnapshotPart, SnapshotStatus
from denizen.domain.source import Source, SourceChange, SourceKind, SourceState, SyncRun, SyncStatus
from denizen.engine.knowledge.index import INDEX
from denizen.engine.knowledge.reading import ReadingOutcome
from denizen.engine.knowledge.schedule import SyncSchedule, WithheldTalkRefresh
from denizen.engine.knowledge.sync import SyncState, follow_sync
from denizen.ports.source import ReadingProgress
from denizen.testing.memory_durable import MemoryDurable, MemoryLog
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, UnreliableReader, give_way, write
from tests.repository import create_repository
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


async def never(source: Source, state: SourceState) -> bool:
    return False


async def keep_everything() -> bool:
    return False


NO_TALK = WithheldTalkRefresh(never, keep_everything)


def reset_connection() -> Unavailable:
    return Unavailable("The repository could not be read.", why="Connection reset by peer")


@pytest.mark.proves("S24", "S26")
async def test_repositories_and_folders_are_read_side_by_side_and_published_as_one_snapshot(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    repository = create_repository(
        tmp_path / "site",
        {
            "docs/guide/a.md": "# A",
            "docs/guide/c.mdx": "# C",
            "docs/b.yml": "b: 1",
            "docs/d.yaml": "d: 1",
            "docs/img/a.png": "no",
            "src/a.py": "no",
            "README.md": "# Site",
        },
    )
    notes = write(tmp_path / "notes", {"x/note.txt": "A note.", "page.html": "<p>hi</p>", "main.py": "no"})
    await engine.add(repository.folder, "site", kind=SourceKind.GIT, content_path="docs", output_path="site/v1")
    await engine.add(notes)
    run = await engine.run()
    assert run.status is SyncStatus.DONE and run.failed == {}
    assert run.changed == ("notes", "site")
    assert engine.files() == {
        "docs/notes/page.html.md": "<P>HI</P>",
        "docs/notes/x/note.txt": "A note.",
        "docs/site/v1/b.yml": "b: 1",
        "docs/site/v1/d.yaml": "d: 1",
        "docs/site/v1/guide/a.md": "# A",
        "docs/site/v1/guide/c.mdx": "# C",
    }
    root = engine.library.current_folder()
    assert root is not None
    assert [each for each in root.rglob("*") if each.is_dir() and not any(each.iterdir())] == [], "no empty folders"
    known = await engine.catalog.get("site")
    assert known.state is not None and known.state.taken is not None
    assert (known.state.taken.files, known.state.taken.documents) == (4, 2)
    assert known.state.revision == repository.git("rev-parse", "HEAD")


@pytest.mark.proves("SW7")
async def test_what_was_removed_or_renamed_vanishes_and_the_old_snapshot_stays_as_it_was(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    repository = create_repository(tmp_path / "site", {"a.md": "A", "b.md": "B", "c.md": "C"})
    await engine.add(repository.folder, kind=SourceKind.GIT)
    first = await engine.run()
    async with engine.library.hold() as held:
        repository.git("rm", "--quiet", "a.md")
        repository.git("mv", "b.md", "moved.md")
        repository.commit()
        second = await engine.run()
        assert second.snapshot != first.snapshot
        assert engine.files() == {"docs/site/c.md": "C", "docs/site/moved.md": "B"}
        assert held is not None
        assert sorted(path.name for path in held.rglob("*.md")) == ["a.md", "b.md", "c.md"]


@pytest.mark.proves("SW7")
async def test_a_source_that_is_taken_away_is_gone_from_the_snapshot_at_once(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    await engine.add(write(tmp_path / "one", {"a.md": "A"}))
    await engine.add(write(tmp_path / "two", {"b.md": "B"}))
    await engine.run()
    await engine.catalog.remove("one")
    assert engine.files() == {"docs/two/b.md": "B"}
    await engine.catalog.remove("two")
    assert engine.files() == {}
    with pytest.raises(NotFound):
        await engine.catalog.remove("two")


async def test_a_second_sync_without_changes_reads_nothing_and_publishes_nothing(tmp_path: Path) -> None:
    reader = UnreliableReader()
    async with KnowledgeFixture(tmp_path, {SourceKind.GIT: reader}) as engine:
        await engine.add("owner/repo")
        first = await engine.run()
        second = await engine.run()
        assert (first.changed, second.changed) == (("repo",), ())
        assert first.snapshot == second.snapshot
        assert reader.opened == 1
        await engine.run(reset=True)
        assert reader.opened == 2
        await engine.catalog.edit("repo", SourceChange(branch="next"))
        await engine.run()
        assert reader.opened == 3


class MeetingReader(UnreliableReader):
    """A reader of sources, of which each waits until four are read together. `looking` are those read now."""

    looking = 0

    async def look(self, source: Source) -> str:
        self.looking += 1
        assert self.looking <= 4
        if self.looking == 4:
            self.reached.set()
        await self.reached.wait()
        await give_way()
        self.looking -= 1
        return self.text


@pytest.mark.proves("S25")
async def test_four_sources_are_read_at_the_same_time(tmp_path: Path) -> None:
    names = ("five", "four", "one", "six", "three", "two")
    async with KnowledgeFixture(tmp_path, {SourceKind.GIT: MeetingReader()}) as engine:
        for name in names:
            await engine.add(f"owner/{name}")
        with anyio.fail_after(HANG_LIMIT_S):
            assert (await engine.run()).changed == names


@pytest.mark.proves("S25")
@pytest.mark.parametrize("failures", [3, 4])
async def test_publishing_is_tried_three_times_more(
    engine: KnowledgeFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    publish, tried = engine.library.publish, 0

    async def fail(parts: Sequence[SnapshotPart], *, now: datetime, anew: bool = False) -> Snapshot:
        nonlocal tried
        tried += 1
        if tried <= failures:
            raise Unavailable("The disk does not answer.")
        return await publish(parts, now=now, anew=anew)

    await engine.add(write(tmp_path / "notes", {"a.md": "A"}))
    monkeypatch.setattr(engine.library, "publish", fail)
    if failures == 3:
        assert (await engine.run()).status is SyncStatus.DONE
        assert engine.files() == {"docs/notes/a.md": "A"}
    else:
        with pytest.raises(Unavailable):
            await engine.run()
    assert (tried, engine.clock.sleeps) == (4, [2, 4, 6])


async def test_a_sync_that_cannot_publish_or_breaks_while_it_reads_ends_as_failed_with_the_reason(
    engine: KnowledgeFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> Snapshot:
        raise NeedsAttention("The disk is full.", why="No space left on device", fix="Make room.")

    async def break_down(*_: object, **__: object) -> ReadingOutcome:
        raise ValueError("a bug")

    await engine.add(write(tmp_path / "notes", {"a.md": "A"}))
    await engine.add(tmp_path / "missing")
    for part, method, breaks in ((engine.library, "publish", refuse), (engine.reading, "read", break_down)):
        with monkeypatch.context() as patched:
            patched.setattr(part, method, breaks)
            with pytest.raises(DenizenError) as caught:
                await engine.run()
        ended = (await engine.sync.list_runs())[0]
        assert (ended.status, ended.ended_at) == (SyncStatus.FAILED, engine.clock.now())
        assert caught.value.message in ended.failed["(snapshot)"] and caught.value.fix in ended.failed["(snapshot)"]
        assert ("missing" in ended.failed) is (method == "publish")
        assert engine.sync.progress(ended.id) == {}
        async with aclosing(follow_sync(engine.sync, ended.id, lambda: None, sleep=engine.clock.sleep)) as states:
            assert [state.is_over async for state in states] == [True]


@pytest.mark.proves("S25-limits")
async def test_without_sources_or_a_repository_nothing_is_tried_again(engine: KnowledgeFixture, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nothing to read"):
        await engine.run()
    assert await engine.sync.list_runs() == []
    repository = create_repository(tmp_path / "site", {"a.md": "A"})
    await engine.add(repository.folder, kind=SourceKind.GIT)
    repository.folder.rename(tmp_path / "elsewhere")
    run = await engine.run()
    assert (run.status, list(run.failed)) == (SyncStatus.FAILED, ["site"])
    assert engine.clock.sleeps == []


@pytest.mark.proves("S25")
async def test_a_reset_connection_is_tried_five_times_more_each_after_a_longer_wait(tmp_path: Path) -> None:
    async with KnowledgeFixture(
        tmp_path, {SourceKind.GIT: UnreliableReader(*(reset_connection() for _ in range(5)))}
    ) as engine:
        await engine.add("owner/repo")
        assert (await engine.run()).status is SyncStatus.DONE
        assert engine.clock.sleeps == [2, 4, 6, 8, 10]


@pytest.mark.proves("S25")
async def test_one_that_stays_away_fails_and_spoils_neither_the_others_nor_its_last_good_state(tmp_path: Path) -> None:
    reader = UnreliableReader()
    async with KnowledgeFixture(tmp_path, {SourceKind.GIT: reader}) as engine:
        await engine.add("owner/repo")
        notes = write(tmp_path / "notes", {"n.md": "1"})
        await engine.add(notes)
        await engine.run()
        reader.failures = [reset_connection() for _ in range(6)]
        write(notes, {"n.md": "22"})
        run = await engine.run()
        assert run.status is SyncStatus.PARTIAL
        assert run.failed == {"repo": "The repository could not be read. Connection reset by peer."}
        assert engine.files() == {"docs/notes/n.md": "22", "docs/repo/a.md": "text"}
        state = (await engine.catalog.get("repo")).state
        assert state is not None and state.error and state.taken is not None
        assert (await engine.snapshots.status()).why == "The source 'repo' could not be read the last time."
        assert (await engine.run()).failed == {}


async def test_what_fails_says_what_why_and_how_to_fix_it_wherever_it_is_told(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    site = create_repository(tmp_path / "site", {"a.md": "A"})
    await engine.add(site.folder, "site", kind=SourceKind.GIT, branch="next")
    await engine.add(write(tmp_path / "code", {"main.py": "no"}), "code")
    await engine.add(tmp_path / "code/main.py", "file")
    await engine.add(write(tmp_path / "pictures", {"a.md": "\0", "b.md": "\0"}), "pictures")
    failed = (await engine.run()).failed
    assert failed["site"].endswith(f"no branch or tag 'next'. `git ls-remote {site.folder}` lists what it has.")
    assert "Kept are Markdown" in failed["code"] and "Look at the location" in failed["code"]
    assert "2 left out: a.md (no text in it); b.md (no text in it). Save what" in failed["pictures"]
    assert failed["file"] == f"{tmp_path}/code/main.py is a file, not a folder. Name the folder that it is in."
    state = (await engine.catalog.get("file")).state
    assert state is not None and state.error == failed["file"]
    assert (await engine.snapshots.status()).why == "The source 'code' could not be read the last time."


async def test_a_missing_repository_folder_branch_or_readme_fails_at_once(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    repository = create_repository(tmp_path / "site", {"a.md": "A", "b/readme.txt": "no"})
    await engine.add("file:///nonexistent/repo.git", "gone")
    await engine.add("/nonexistent/folder", "folder")
    await engine.add(repository.folder, "branch", kind=SourceKind.GIT, branch="nope")
    await engine.add(repository.folder, "path", kind=SourceKind.GIT, content_path="nope")
    await engine.add(repository.folder, "readme", kind=SourceKind.GIT, readme_only=True)
    run = await engine.run()
    assert run.status is SyncStatus.FAILED
    assert sorted(run.failed) == ["branch", "folder", "gone", "path", "readme"]
    assert (run.snapshot, engine.clock.sleeps) == ("", [])
    codes = {known.source.id: known.state.error_code for known in await engine.catalog.list_known() if known.state}
    assert codes == {
        "gone": "source_missing",
        "folder": "source_missing",
        "branch": "branch_missing",
        "path": "source_empty",
        "readme": "source_empty",
    }


async def test_a_sync_without_sources_fails_before_it_begins(engine: KnowledgeFixture) -> None:
    with pytest.raises(InvalidInput, match="nothing to read") as refused:
        await engine.run()
    assert refused.value.code == "no_sources" and "denizen sources add" in refused.value.fix
    assert await engine.sync.list_runs() == []


async def test_only_the_sources_that_were_named_are_read_and_the_time_counts_all_the_same(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    await engine.add(write(tmp_path / "one", {"a.md": "A"}))
    await engine.add(write(tmp_path / "two", {"b.md": "B"}))
    run = await engine.run("two")
    assert run.sources == ("two",) and engine.files() == {"docs/two/b.md": "B"}
    assert (await engine.snapshots.status()).last_sync_at == run.ended_at
    with pytest.raises(NotFound):
        await engine.run("three")


@pytest.mark.proves("S26-readme", "SW7")
async def test_of_a_source_for_the_readme_only_that_is_read(engine: KnowledgeFixture, tmp_path: Path) -> None:
    repository = create_repository(tmp_path / "site", {"Readme.md": "# Hi", "b/readme.md": "no", "c.md": "no"})
    await engine.add(repository.folder, kind=SourceKind.GIT, readme_only=True)
    await engine.run()
    assert engine.files() == {"docs/site/Readme.md": "# Hi"}
    repository.git("rm", "--quiet", "Readme.md")
    repository.commit()
    assert "no README" in (await engine.run()).failed["site"]
    assert engine.files() == {"docs/site/Readme.md": "# Hi"}


@pytest.mark.proves("S25")
async def test_a_process_that_dies_while_it_reads_is_followed_by_one_that_goes_on_with_the_rest(tmp_path: Path) -> None:
    reader = UnreliableReader()
    reader.waits = anyio.Event()
    log = MemoryLog()
    engine = KnowledgeFixture(tmp_path, {SourceKind.GIT: reader}, durable=MemoryDurable(log))
    await engine.durable.start()
    notes = write(tmp_path / "notes", {"n.md": "1"})
    await engine.add(notes, "a-notes")
    await engine.add("owner/repo")
    run = await engine.sync.start()
    with anyio.fail_after(HANG_LIMIT_S):
        await reader.reached.wait()
        while (
            engine.sync.progress(run.id).get("a-notes") is None
            or engine.sync.progress(run.id)["a-notes"].stage != "read"
        ):
            await give_way()
    await engine.durable.crash()
    write(notes, {"n.md": "changed since"})

    reader.waits.set()
    restarted = KnowledgeFixture(tmp_path, {SourceKind.GIT: reader}, engine.store, engine.clock, MemoryDurable(log))
    await restarted.durable.start()
    restarted.durable.rescue()
    with anyio.fail_after(HANG_LIMIT_S):
        ended = await restarted.sync.wait(run)
    assert ended.status is SyncStatus.DONE and ended.changed == ("a-notes", "repo")
    assert restarted.files() == {"docs/a-notes/n.md": "1", "docs/repo/a.md": "text"}
    assert [each.id for each in await restarted.sync.list_runs()] == [run.id]
    await restarted.durable.aclose()


@pytest.mark.proves("S-kv-last-sync", "SW7")
async def test_the_time_of_the_last_sync_is_that_of_its_end(tmp_path: Path) -> None:
    reader = UnreliableReader()
    reader.waits = anyio.Event()
    async with KnowledgeFixture(tmp_path, {SourceKind.GIT: reader}) as engine:
        await engine.add("owner/repo")
        await engine.add(write(tmp_path / "one", {"a.md": "A"}))
        started = await engine.sync.start()
        with anyio.fail_after(HANG_LIMIT_S):
            await reader.reached.wait()
            engine.clock.advance(minutes=2)
            assert (await engine.snapshots.status()).last_sync_at is None
            reader.waits.set()
            run = await engine.sync.wait(started)
        assert await engine.sync.list_runs() == [run]
        assert run.ended_at is not None and run.ended_at >= run.started_at + timedelta(minutes=2)
        assert (await engine.snapshots.status()).last_sync_at == run.ended_at
        one = await engine.run("one")
        assert one.ended_at is not None and one.ended_at > run.ended_at
        assert (await engine.snapshots.status()).last_sync_at == one.ended_at


@pytest.mark.proves("S-kv-status-cache")
async def test_the_status_is_found_out_once_a_minute_and_after_each_change(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    assert not (await engine.snapshots.status()).needs_sync
    source = await engine.add(write(tmp_path / "zero", {"a.md": "A"}))
    assert (await engine.snapshots.status()).needs_sync
    await engine.catalog.remove(source.id)
    assert not (await engine.snapshots.status()).needs_sync
    source = await engine.add(write(tmp_path / "one", {"a.md": "A"}))
    assert (await engine.snapshots.status()).why == "The source 'one' was not read yet."
    await engine.run()
    status = await engine.snapshots.status()
    assert (status.needs_sync, status.current) == (False, status.latest)
    await engine.catalog.edit(source.id, SourceChange(label="One"))
    assert await engine.snapshots.status() is not status
    await engine.snapshots.clear()
    assert not (await engine.snapshots.status()).current
    await engine.snapshots.publish()
    assert (await engine.snapshots.status()).current == status.current
    other = await engine.add(write(tmp_path / "two", {"a.md": "A"}))
    assert (await engine.snapshots.status()).needs_sync
    await engine.catalog.remove(other.id)
    status = await engine.snapshots.status()
    assert not status.needs_sync
    async with engine.store.work() as work:  # as another process does
        await work.sources.remove(source.id)
    engine.clock.advance(59)
    assert await engine.snapshots.status() is status
    engine.clock.advance(1)
    assert (await engine.snapshots.status()).why == "What was read is not published yet."


@pytest.mark.proves("S-kv-status-cache")
async def test_who_asks_at_the_same_time_is_told_one_status_and_a_change_meanwhile_is_noticed(
    engine: KnowledgeFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_snapshots, asked, reached, released = engine.library.list_snapshots, 0, anyio.Event(), anyio.Event()
    told: list[SnapshotStatus] = []

    async def list_slowly() -> Sequence[Snapshot]:
        nonlocal asked
        asked += 1
        reached.set()
        await released.wait()
        return await list_snapshots()

    async def ask() -> None:
        told.append(await engine.snapshots.status())

    monkeypatch.setattr(engine.library, "list_snapshots", list_slowly)
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        released.set()
    assert (asked, len({id(each) for each in told})) == (1, 1)
    engine.clock.advance(60)
    reached, released = anyio.Event(), anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await reached.wait()
        await engine.add(write(tmp_path / "one", {"a.md": "A"}))
        released.set()
    assert not told[-1].needs_sync, "it looked before the change"
    assert (await engine.snapshots.status()).needs_sync


@pytest.mark.proves("SW7")
async def test_a_snapshot_that_is_gone_from_the_disk_is_noticed_and_made_again(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    await engine.add(write(tmp_path / "one", {"a.md": "A"}))
    run = await engine.run()
    engine.clock.advance(days=8)
    assert (await engine.snapshots.status()).current == run.snapshot, "the current one does not expire"
    folder = engine.library.current_folder()
    assert folder is not None
    folder.rename(tmp_path / "away")
    engine.clock.advance(minutes=1)
    status = await engine.snapshots.status()
    assert (status.current, status.needs_sync) == ("", True)
    await engine.run()
    status = await engine.snapshots.status()
    assert (status.current, status.needs_sync) == (run.snapshot, False)
    assert engine.files() == {"docs/one/a.md": "A"}


@pytest.mark.proves("S24")
async def test_an_earlier_snapshot_is_there_for_seven_days_and_no_longer(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    one = write(tmp_path / "one", {"a.md": "1"})
    await engine.add(one)
    first = (await engine.run()).snapshot
    for days, text, is_there in ((0, "22", True), (6.9, "333", True), (0.2, "4444", False)):
        engine.clock.advance(days=days)
        write(one, {"a.md": text})
        await engine.run()
        assert (first in [each.id for each in await engine.snapshots.list_snapshots()]) is is_there, days


@pytest.mark.proves("S24", "SW7")
async def test_a_snapshot_is_kept_for_seven_days_and_the_current_one_and_one_that_is_read_for_longer(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    one = write(tmp_path / "one", {"a.md": "1", "same.md": "same"})
    await engine.add(one)
    held_id = (await engine.run()).snapshot
    async with engine.library.hold() as held:
        assert held is not None
        write(one, {"a.md": "22"})
        middle = (await engine.run()).snapshot
        engine.clock.advance(days=8)
        write(one, {"a.md": "333"})
        last = (await engine.run()).snapshot
        assert [each.id for each in await engine.snapshots.list_snapshots()] == [last, held_id]
        assert (held / "docs/one/a.md").read_text() == "1"
        assert not (held.parent / middle).exists()
    engine.clock.advance(days=8)
    await engine.run()
    assert [each.id for each in await engine.snapshots.list_snapshots()] == [last]
    assert await engine.snapshots.verify() == []
    assert engine.files() == {"docs/one/a.md": "333", "docs/one/same.md": "same"}
    objects = [path for path in (tmp_path / "library/objects").rglob("*") if path.is_file()]
    assert b"1" not in {path.read_bytes() for path in objects}


async def test_what_somebody_changed_in_a_snapshot_is_told_and_a_reset_makes_it_anew(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    await engine.add(write(tmp_path / "one", {"a.md": "A", "b.md": "B"}))
    await engine.run()
    root = engine.library.current_folder()
    assert root is not None
    (root / "docs/one/a.md").unlink()
    (root / "docs/one/new.md").write_text("x")
    (root / "docs/one/b.md").write_text("changed")
    assert sorted(await engine.snapshots.verify()) == [
        "docs/one/a.md is missing.",
        "docs/one/b.md was changed.",
        "docs/one/new.md does not belong to it.",
    ]
    await engine.run(reset=True)
    assert await engine.snapshots.verify() == []
    assert engine.files() == {"docs/one/a.md": "A", "docs/one/b.md": "B"}


async def test_a_folder_that_holds_denizens_home_or_is_in_its_library_is_refused(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    write(tmp_path, {"home/secrets.txt": "key"})
    await engine.add(tmp_path, "all")
    await engine.add(write(tmp_path / "one", {"a.md": "A"}), output_path="a")
    assert "home folder" in (await engine.run()).failed["all"]
    root = engine.library.current_folder()
    assert root is not None
    await engine.add(root / "docs", "again")
    assert "library" in (await engine.run()).failed["again"]


async def test_a_folder_may_be_named_by_a_link_but_no_link_below_it_is_followed(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    write(tmp_path / "real", {"in/a.md": "A"})
    (tmp_path / "named").symlink_to("real", target_is_directory=True)
    (tmp_path / "real/out").symlink_to(tmp_path, target_is_directory=True)
    await engine.add(tmp_path / "named")
    write(tmp_path / "elsewhere", {"b.md": "B"})
    await engine.add(tmp_path / "real", "end", content_path="out")
    await engine.add(tmp_path / "real", "way", content_path="out/elsewhere")
    run = await engine.run()
    assert engine.files() == {"docs/named/in/a.md": "A"}
    assert set(run.failed) == {"end", "way"}
    assert all("link" in why for why in run.failed.values())


async def test_what_is_in_a_snapshot_can_be_read_by_everybody_and_is_a_plain_file(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", {"a/b.md": "B"})
    (notes / "a/b.md").chmod(0o600)
    (notes / "link.md").symlink_to("/etc/passwd")
    (notes / "out").symlink_to("/etc", target_is_directory=True)
    os.mkfifo(notes / "pipe.md")
    await engine.add(notes)
    before = os.umask(0o077)
    try:
        await engine.run()
    finally:
        os.umask(before)
    root = engine.library.current_folder()
    assert root is not None
    modes = {path.relative_to(root).as_posix(): path.lstat().st_mode for path in root.rglob("*")}
    assert modes == {"docs": 0o40755, "docs/notes": 0o40755, "docs/notes/a": 0o40755, "docs/notes/a/b.md": 0o100644}


async def test_all_sources_are_read_again_when_it_is_time_whoever_asked_the_last_time(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    every: list[timedelta | None] = [timedelta(hours=1)]
    regular = SyncSchedule(
        engine.sync, engine.catalog, engine.clock, lambda: every[0], NO_TALK, sleep=engine.clock.sleep
    )
    assert not await regular.list_due()
    await engine.add(write(tmp_path / "one", {"a.md": "A"}))
    assert await regular.list_due()
    async with anyio.create_task_group() as group:
        group.start_soon(regular.run)
        with anyio.fail_after(HANG_LIMIT_S):
            while len(await engine.sync.list_runs()) < 3:
                await give_way()
        group.cancel_scope.cancel()
    newest, before, *_ = await engine.sync.list_runs()
    assert newest.started_at - before.started_at >= timedelta(hours=1)
    await engine.run()
    assert not await regular.list_due()
    engine.clock.advance(hours=2)
    every[0] = None
    assert not await regular.list_due()


async def test_a_source_with_a_schedule_of_its_own_is_read_by_that_and_the_others_by_the_common_one(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    every: list[timedelta | None] = [timedelta(hours=1)]
    regular = SyncSchedule(engine.sync, engine.catalog, engine.clock, lambda: every[0], NO_TALK)
    for name, minutes in (("common", 0), ("often", 10), ("rarely", 120)):
        await engine.add(write(tmp_path / name, {"a.md": "A"}), sync_every_minutes=minutes)
    assert await regular.list_due() == ["common", "often", "rarely"]
    await engine.run()
    found: list[tuple[int, str]] = []
    for minute in range(1, 131):
        engine.clock.advance(minutes=1)
        if due := await regular.list_due():
            found.append((minute, " ".join(due)))
            await engine.sync.wait(await engine.sync.start(due))
    assert [each for each in found if each[1] != "often"] == [(60, "common often"), (120, "common often rarely")]
    assert [minute for minute, _ in found] == list(range(10, 131, 10))
    every[0] = None
    engine.clock.advance(hours=3)
    assert await regular.list_due() == ["often", "rarely"]


async def test_a_reader_of_a_sync_that_comes_late_sees_how_far_it_is_and_then_its_end(tmp_path: Path) -> None:
    reader = UnreliableReader()
    reader.waits = anyio.Event()
    async with KnowledgeFixture(tmp_path, {SourceKind.GIT: reader}) as engine:
        await engine.add("nuxt/docs")
        await engine.add(write(tmp_path / "notes", {"a.md": "A"}))
        run = await engine.sync.start()
        with anyio.fail_after(HANG_LIMIT_S):
            await reader.reached.wait()
            states: list[SyncState] = []
            async with aclosing(follow_sync(engine.sync, run.id, lambda: None, sleep=engine.clock.sleep)) as told:
                async for state in told:
                    states.append(state)
                    if state.progress.get("notes") == ReadingProgress("read", 1, 1):
                        reader.waits.set()
        assert states[0].progress["docs"] == ReadingProgress("looking")
        assert all(state.run.ended_at is None for state in states[:-1])
        assert states[-1].run.status is SyncStatus.DONE and states[-1].run.changed == ("docs", "notes")
        with pytest.raises(NotFound):
            await engine.sync.get("sync_none")


async def test_a_sync_is_found_however_many_began_after_it(engine: KnowledgeFixture) -> None:
    await engine.add(write(engine.root / "notes", {"a.md": "A"}))
    run = await engine.run()
    async with engine.store.work() as work:
        for number in range(60):
            await work.sources.put_sync(SyncRun(id=f"sync_{number}", sources=("notes",), started_at=engine.clock.time))
    assert await engine.sync.get(run.id) == run
    states = [state async for state in follow_sync(engine.sync, run.id, lambda: None, sleep=engine.clock.sleep)]
    assert [state.run for state in states] == [run]


async def test_the_reader_of_a_sync_sees_how_far_its_index_is_before_the_end(engine: KnowledgeFixture) -> None:
    await engine.add(write(engine.root / "notes", {"a.md": "A"}))
    run = await engine.run()
    steps = iter([ReadingProgress("indexing", 0, 2), ReadingProgress("indexing", 1, 2), None])
    states = [state async for state in follow_sync(engine.sync, run.id, lambda: next(steps), sleep=engine.clock.sleep)]
    assert [state.progress.get(INDEX) for state in states] == [
        ReadingProgress("indexing", 0, 2),
        ReadingProgress("indexing", 1, 2),
        None,
    ]
    assert [state.is_over for state in states] == [False, False, True]
