"""Channels of the archive as sources: only what everybody may read, and nothing that somebody took back (promise 3)."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest

from denizen.domain.archiving import ArchivePolicy, OptOuts
from denizen.domain.errors import Conflict, NotAllowed, Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.room import Post, Room, RoomKind
from denizen.domain.snapshot import RemoteRepository
from denizen.domain.source import Source, SourceChange, SourceKind, SyncStatus
from denizen.engine.archive.removal import ArchiveRemoval
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.knowledge.index import DocumentIndexer, DocumentSearch
from denizen.engine.knowledge.reading import Sleep
from denizen.engine.knowledge.schedule import QUIET_S, SyncSchedule, WithheldTalkRefresh
from denizen.ports.archive import OptOutKind
from denizen.ports.source import ReportProgress, SourceTree
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, ThemeEmbedder, UnreliableReader, give_way, write
from tests.memory_channel import MemoryChannel
from tests.memory_platform import MemoryPlatform
from tests.repository import Repository
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


class ArchiveSourceFixture(KnowledgeFixture):
    """Knowledge with a platform where people talk; their messages are mirrored at once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.platform = MemoryPlatform()
        self.general = self.platform.add_room("general", room_id="10")
        for name in ("ana", "ben"):
            self.platform.add_person(name, name.title())
        self.account = MemoryChannel(self.platform, AgentName("ada"))
        self.channels.add(self.account)
        self.regular = self.open_regular(self.clock.sleep)

    def open_regular(self, sleep: Sleep) -> SyncSchedule:
        care = WithheldTalkRefresh(self.talk.is_urgent, self.snapshots.settle, [self.mirror.withheld])
        return SyncSchedule(self.sync, self.catalog, self.clock, lambda: None, care, sleep=sleep)

    async def say(self, text: str, *, who: str = "ana", room: Room | None = None, reply_to: str = "") -> Post:
        post = self.platform.write(room or self.general, who, text, reply_to=reply_to)
        await self.mirror.rooms([room or self.general])
        await self.mirror.keep([post], await self.account.find_roles(post.room, {who}))
        return post

    async def run_due(self) -> list[str]:
        due = await self.regular.list_due()
        if due:
            await self.run(*due)
        return due

    def words(self) -> str:
        """Everything that agents see."""
        return "\n".join(self.files().values())

    def on_disk(self, text: str) -> list[str]:
        """Every file of the library with this text, whatever it is for."""
        found: list[str] = []
        for folder, _, names in os.walk(self.root / "library"):  # unlike `rglob` it bears that folders go meanwhile
            for name in names:
                with suppress(FileNotFoundError):
                    found += [name] if text.encode() in Path(folder, name).read_bytes() else []
        return found

    def lose(self, text: str) -> None:
        """As if somebody had removed the file with this text from the library; snapshots have it still."""
        for path in (self.root / "library" / "objects").rglob("*"):
            if path.is_file() and path.read_bytes() == text.encode():
                path.unlink()


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[ArchiveSourceFixture]:
    async with ArchiveSourceFixture(tmp_path) as engine:
        yield engine


async def test_what_was_said_in_an_open_channel_and_its_public_threads_becomes_documents(
    engine: ArchiveSourceFixture,
) -> None:
    post = await engine.say("Who can sew?")
    await engine.say("I can.", who="ben", reply_to=post.id)
    thread = engine.platform.add_room("Sails", RoomKind.THREAD, parent=engine.general, room_id="11")
    await engine.say("Bring cloth.", room=thread)
    await engine.add("discord:10", "harbour")
    run = await engine.run()
    assert (run.status, run.failed, run.changed) == (SyncStatus.DONE, {}, ("harbour",))
    found = engine.files()
    assert list(found) == [
        "archive/harbour/2026/2026-11-01.md",
        "archive/harbour/index.md",
        "archive/harbour/threads/11-sails.md",
    ]
    assert "> Who can sew?" in found["archive/harbour/2026/2026-11-01.md"]
    assert "in reply to Ana" in found["archive/harbour/2026/2026-11-01.md"]
    assert (await engine.run()).changed == ()


async def test_what_agents_posted_is_in_no_document_but_what_people_quote_of_it_is(
    engine: ArchiveSourceFixture,
) -> None:
    former = MemoryChannel(engine.platform, AgentName("eva"))
    await engine.mirror.note_account("discord", former.user_id, former.agent)  # it is not connected any more
    await engine.say("What is the alarm code?")
    answer = await engine.say("The code is 12345.", who=engine.account.user_id)
    thread = engine.platform.add_room("Alarm", RoomKind.THREAD, parent=engine.general, room_id="11")
    await engine.say("The code is 67890.", who=former.user_id, room=thread)
    await engine.say("Ada told me a code.", who="ben", reply_to=answer.id)
    engine.platform.add_person("feed", "Feed", is_bot=True)
    await engine.say("The tide is high at nine.", who="feed")
    await engine.add("discord:10", "harbour")
    await engine.run()
    assert list(engine.files()) == ["archive/harbour/2026/2026-11-01.md", "archive/harbour/index.md"]
    assert "12345" not in engine.words() and "67890" not in engine.words()
    assert "messages: 3" in engine.words() and "in reply to a message that is not here" in engine.words()
    assert "> Ada told me a code." in engine.words() and "> The tide is high at nine." in engine.words()
    await engine.say("It said: The code is 12345.", who="ben")
    await engine.run()
    assert engine.words().count("12345") == 1


async def test_documents_that_hold_what_an_agent_posted_lose_it_with_the_next_sync(
    engine: ArchiveSourceFixture,
) -> None:
    await engine.say("What is the alarm code?")
    await engine.say("The code is 12345.", who=engine.account.user_id)
    await engine.say("Who can sew?")
    await engine.add("discord:10", "harbour")
    other = MemoryChannel(engine.platform, AgentName("eva"))
    engine.channels.remove(engine.account)  # so it is nobody that is known
    engine.channels.add(other)
    await engine.run()
    assert "12345" in engine.words()
    engine.channels.add(engine.account)
    await engine.run()
    assert "Who can sew?" in engine.words()
    assert engine.on_disk("12345") == []


@pytest.mark.proves("P3")
async def test_a_channel_that_not_everybody_may_read_is_refused_and_so_is_everything_private(
    engine: ArchiveSourceFixture,
) -> None:
    staff = engine.platform.add_room("staff", readers=["ana", "bot-ada"], room_id="20")
    inside = engine.platform.add_room("inside", RoomKind.PRIVATE_THREAD, parent=engine.general, room_id="21")
    direct = engine.platform.add_room("", RoomKind.DIRECT, readers=["ana", "bot-ada"], room_id="22")
    thread = engine.platform.add_room("public", RoomKind.THREAD, parent=engine.general, room_id="23")
    for room in (staff, inside, direct, thread):
        await engine.say("the heron", room=room)
        await engine.add(f"discord:{room.id}", f"s{room.id}")
    await engine.add("discord:99", "unknown")
    run = await engine.run()
    assert sorted(run.failed) == ["s20", "s21", "s22", "s23", "unknown"]
    assert "Not everybody" in run.failed["s20"]
    assert engine.library.current_folder() is None
    await engine.say("hello")
    await engine.add("discord:10", "harbour")
    await engine.run()
    assert "hello" in engine.words() and engine.words().count("the heron") == 1  # that of the public thread
    assert not any("inside" in name for name in engine.files())


async def test_a_channel_that_is_closed_is_gone_within_a_look_and_no_older_snapshot_keeps_it(
    engine: ArchiveSourceFixture, tmp_path: Path
) -> None:
    await engine.say("the heron")
    await engine.add("discord:10", "harbour")
    await engine.add(write(tmp_path / "notes", {"a.md": "A"}))
    first = await engine.run()
    await engine.say("the crane")
    second = await engine.run()
    assert first.snapshot != second.snapshot
    assert await engine.run_due() == []
    engine.platform.set_readers(engine.general, ["ana"])
    assert await engine.run_due() == ["harbour"]
    assert list(engine.files()) == ["docs/notes/a.md"]
    assert len(await engine.library.list_snapshots()) == 1
    assert engine.on_disk("the heron") == engine.on_disk("the crane") == []
    assert await engine.run_due() == []
    engine.platform.set_readers(engine.general, None)
    engine.clock.advance(minutes=31)
    assert await engine.run_due() == ["harbour"]
    assert "the crane" in engine.words()


async def test_a_deleted_message_is_out_of_all_snapshots_until_its_channel_is_read_again_and_then_too(
    engine: ArchiveSourceFixture,
) -> None:
    post = await engine.say("the heron")
    await engine.say("the crane")
    await engine.add("discord:10", "harbour")
    await engine.run()
    await engine.mirror.delete("discord", [post.id])
    assert await engine.snapshots.settle()
    assert engine.files() == {} and engine.on_disk("the heron") == []
    assert not await engine.snapshots.settle()
    assert await engine.run_due() == ["harbour"]
    assert "the crane" in engine.words()
    assert engine.on_disk("the heron") == []
    assert await engine.run_due() == []


async def test_a_message_that_is_deleted_before_it_was_read_leaves_the_documents_as_they_are(
    engine: ArchiveSourceFixture,
) -> None:
    await engine.say("the crane")
    await engine.add("discord:10", "harbour")
    await engine.run()
    engine.platform.skip(days=30)
    post = await engine.say("the heron")
    await engine.mirror.delete("discord", [post.id])
    assert not await engine.snapshots.settle()
    assert await engine.run_due() == []
    assert "the crane" in engine.words()


async def test_many_deletions_are_one_reading_once_no_more_follow(engine: ArchiveSourceFixture) -> None:
    posts = [await engine.say(f"the heron {number}") for number in range(6)]
    await engine.say("the crane")
    await engine.add("discord:10", "harbour")
    await engine.run()
    before = len(await engine.sync.list_runs())
    pauses = 0

    async def sleep(seconds: float) -> None:
        nonlocal pauses
        if seconds != QUIET_S:
            await anyio.sleep_forever()
        pauses += 1
        if pauses < 3:
            await engine.mirror.delete("discord", [posts.pop().id])
            await engine.mirror.delete("discord", [posts.pop().id])

    regular = engine.open_regular(sleep)
    async with anyio.create_task_group() as group:
        group.start_soon(regular.run)
        with anyio.fail_after(HANG_LIMIT_S):
            await anyio.wait_all_tasks_blocked()
            await engine.mirror.delete("discord", [posts.pop().id, posts.pop().id])
            while not any(run.ended_at for run in (await engine.sync.list_runs())[:-before]):
                await give_way()
        group.cancel_scope.cancel()
    assert (len(await engine.sync.list_runs()), pauses) == (before + 1, 3)
    assert "the crane" in engine.words() and "the heron" not in engine.words()


@pytest.mark.parametrize("where", ["10", "11"])
async def test_what_was_said_in_a_channel_or_thread_that_is_deleted_is_out_at_once(
    engine: ArchiveSourceFixture, where: str
) -> None:
    thread = engine.platform.add_room("Sails", RoomKind.THREAD, parent=engine.general, room_id="11")
    await engine.say("the crane")
    await engine.say("the heron", room=thread)
    await engine.add("discord:10", "harbour")
    await engine.run()
    await engine.mirror.delete_room("discord", where)
    assert await engine.snapshots.settle()
    assert engine.on_disk("the heron") == []
    assert await engine.run_due() == ["harbour"]
    assert ("the crane" in engine.words()) is (where == "11")


async def test_a_channel_of_a_server_that_the_account_left_is_shown_to_nobody_until_somebody_can_tell(
    engine: ArchiveSourceFixture,
) -> None:
    await engine.say("the heron")
    await engine.add("discord:10", "harbour")
    await engine.run()
    await engine.mirror.close_room("discord", "10")
    assert await engine.snapshots.settle()
    engine.account.fail("is_open", Unavailable("The server cannot be reached."), times=6)
    assert await engine.run_due() == ["harbour"]
    assert engine.on_disk("the heron") == []
    engine.clock.advance(minutes=31)
    assert await engine.run_due() == ["harbour"]
    assert "the heron" in engine.words()


@pytest.mark.parametrize("how", ["delete", "forget"])
async def test_what_is_taken_back_at_the_very_end_of_a_reading_is_not_published(
    engine: ArchiveSourceFixture, how: str
) -> None:
    post = await engine.say("the heron")
    await engine.say("the crane", who="ben")
    await engine.add("discord:10", "harbour")
    open_talk, reads = engine.talk.open, 0

    @asynccontextmanager
    async def open_and_then(source: Source, report: ReportProgress) -> AsyncGenerator[SourceTree]:
        nonlocal reads
        async with open_talk(source, report) as tree:
            yield tree
        reads += 1
        if reads == 1:  # the reader found that nothing has changed while it read
            if how == "delete":
                await engine.mirror.delete("discord", [post.id])
            else:
                await engine.privacy.forget_user("discord", "ana")

    engine.talk.open = open_and_then
    await engine.run()
    assert reads == 2
    assert "the crane" in engine.words() and "the heron" not in engine.words()


async def test_what_a_process_withheld_before_it_died_is_let_go_by_the_next(engine: ArchiveSourceFixture) -> None:
    await engine.say("the heron")
    await engine.say("the crane", who="ben")
    await engine.add("discord:10", "harbour")
    await engine.run()
    await ArchiveRemoval(engine.mirror, engine.clock).forget_user("discord", "ana")  # and nobody is told
    assert "the heron" in engine.words()
    async with anyio.create_task_group() as group:
        group.start_soon(engine.open_regular(engine.clock.sleep).run)
        with anyio.fail_after(HANG_LIMIT_S):
            while engine.on_disk("the heron") or "the crane" not in engine.words():
                await give_way()
        group.cancel_scope.cancel()


async def test_what_expires_while_a_channel_is_read_that_has_the_same_files_does_not_leave_it_with_holes(
    engine: ArchiveSourceFixture,
) -> None:
    await engine.say("the crane", who="ben")
    engine.platform.skip(days=1)
    post = await engine.say("the heron")
    await engine.add("discord:10", "harbour")
    await engine.run()
    await engine.mirror.delete("discord", [post.id])
    open_talk, reads = engine.talk.open, 0

    @asynccontextmanager
    async def open_and_then(source: Source, report: ReportProgress) -> AsyncGenerator[SourceTree]:
        nonlocal reads
        async with open_talk(source, report) as tree:
            yield tree
        reads += 1
        if reads == 1:
            assert await engine.snapshots.settle()

    engine.talk.open = open_and_then
    run = await engine.run()
    assert (run.status, reads) == (SyncStatus.DONE, 2)
    assert "the crane" in engine.words() and "the heron" not in engine.words()


@pytest.mark.parametrize("lost", ["the lamp", "the rope"])
async def test_what_was_deleted_is_hidden_at_once_though_files_of_another_source_are_gone(
    engine: ArchiveSourceFixture, tmp_path: Path, lost: str
) -> None:
    post = await engine.say("the heron")
    await engine.say("the crane", who="ben")
    await engine.add("discord:10", "harbour")
    await engine.add(write(tmp_path / "notes", {"a.md": "the lamp"}), "notes")
    await engine.run()
    write(tmp_path / "notes", {"b.md": "the rope"})
    await engine.reading.read("notes", lambda _: None)
    engine.lose(lost)
    await engine.mirror.delete("discord", [post.id])
    with pytest.raises(Conflict, match="gone"):
        await engine.snapshots.settle()
    assert engine.on_disk("the heron") == []
    assert engine.library.current_folder() is None if lost == "the lamp" else engine.words() == "the lamp"
    assert not await engine.snapshots.settle()


async def test_what_cannot_be_published_keeps_no_other_source_from_being_read(
    engine: ArchiveSourceFixture, tmp_path: Path
) -> None:
    post = await engine.say("the heron")
    await engine.say("the crane", who="ben")
    await engine.add("discord:10", "harbour")
    await engine.add(write(tmp_path / "notes", {"a.md": "the lamp"}), "notes")
    await engine.run()
    engine.lose("the lamp")
    await engine.mirror.delete("discord", [post.id])
    before = len(await engine.sync.list_runs())
    published = ("the crane", "the sail")
    async with anyio.create_task_group() as group:
        group.start_soon(engine.open_regular(engine.clock.sleep).run)
        with anyio.fail_after(HANG_LIMIT_S):
            while engine.library.current_folder() or len(await engine.sync.list_runs()) == before:
                await give_way()
            await engine.catalog.remove("notes")
            await engine.add(write(tmp_path / "more", {"c.md": "the sail"}), "more", sync_every_minutes=1)
            while engine.library.current_folder() is None or not all(each in engine.words() for each in published):
                await give_way()
        group.cancel_scope.cancel()
    assert "the heron" not in engine.words()


async def test_search_does_not_find_what_is_withheld_and_the_rest_keeps_its_meaning(
    engine: ArchiveSourceFixture,
) -> None:
    embedder = ThemeEmbedder()
    budgeted = BudgetedEmbedder(lambda: embedder)
    indexing = DocumentIndexer(engine.store, engine.library, budgeted, engine.clock, sleep=engine.clock.sleep)
    search = DocumentSearch(engine.store, engine.library, budgeted)
    await engine.say("Drinking water is free.", who="ben")
    engine.platform.skip(days=1)
    post = await engine.say("A berth is ten euros.")
    await engine.add("discord:10", "harbour")
    await engine.run()
    await indexing.catch_up()
    await indexing.embed_all()
    assert [each.path[-13:] for each in await search("berth")] == ["2026-11-02.md"]
    made = len(embedder.texts)
    await engine.mirror.delete("discord", [post.id])
    await engine.snapshots.settle()
    assert await search("berth") == await search("water") == []
    async with anyio.create_task_group() as group:
        group.start_soon(indexing.keep_indexed)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    await engine.run_due()
    assert await search("berth") == []  # though it is in the index still
    assert [each.path[-13:] for each in await search("water")] == ["2026-11-01.md"]
    await indexing.catch_up()
    await indexing.embed_all()
    assert await search("berth") == []
    assert not any("Drinking" in text for text in embedder.texts[made:])


async def test_what_the_others_said_keeps_its_meaning_when_somebody_is_forgotten(engine: ArchiveSourceFixture) -> None:
    embedder = ThemeEmbedder()
    indexing = DocumentIndexer(
        engine.store, engine.library, BudgetedEmbedder(lambda: embedder), engine.clock, sleep=engine.clock.sleep
    )
    await engine.say("Drinking water is free.", who="ben")
    engine.platform.skip(days=1)
    await engine.say("A berth is ten euros.", who="ana")
    await engine.add("discord:10", "harbour")
    await engine.run()
    await indexing.catch_up()
    await indexing.embed_all()
    made = len(embedder.texts)
    await engine.privacy.forget_user("discord", "ana")
    await indexing.catch_up()
    assert (await indexing.size()).documents == 0
    assert await engine.run_due() == ["harbour"]
    await indexing.catch_up()
    await indexing.embed_all()
    assert not any("Drinking" in text for text in embedder.texts[made:])
    async with engine.store.work() as work:
        assert await work.documents.sweep_vectors() == 0, "what is gone has no meaning any more"


async def test_other_sources_are_indexed_while_a_channel_is_withheld_and_its_documents_stay(
    engine: ArchiveSourceFixture, tmp_path: Path
) -> None:
    indexing = DocumentIndexer(engine.store, engine.library, BudgetedEmbedder(), engine.clock, sleep=engine.clock.sleep)
    search = DocumentSearch(engine.store, engine.library, BudgetedEmbedder())
    post = await engine.say("A berth is ten euros.")
    await engine.add("discord:10", "harbour")
    await engine.run()
    await indexing.catch_up()
    talk = (await indexing.size()).documents
    await engine.add(write(tmp_path / "notes", {"a.md": "the lamp"}), "notes")
    await engine.mirror.delete("discord", [post.id])
    await engine.run("notes")
    async with anyio.create_task_group() as group:
        group.start_soon(indexing.keep_indexed)
        with anyio.fail_after(HANG_LIMIT_S):
            while not await search("lamp"):
                await give_way()
            assert (await indexing.size()).documents == talk + 1
            assert await engine.run_due() == ["harbour"]
            indexing.hurry()
            while (await indexing.size()).documents != 1:
                await give_way()
        group.cancel_scope.cancel()


@pytest.mark.parametrize("how", ["forget_user", "opt_out_user"])
async def test_what_a_person_said_is_in_no_snapshot_once_they_are_forgotten(
    engine: ArchiveSourceFixture, how: str
) -> None:
    await engine.say("the heron", who="ana")
    await engine.say("the crane", who="ben")
    await engine.add("discord:10", "harbour")
    await engine.run()
    assert engine.on_disk("the heron")
    await getattr(engine.privacy, how)("discord", "ana")
    assert engine.on_disk("the heron") == [] and engine.files() == {}
    assert await engine.run_due() == ["harbour"]
    assert "the crane" in engine.words() and "the heron" not in engine.words() and "Ana" not in engine.words()


async def test_a_channel_that_is_opted_out_is_gone_at_once_and_stays_away(engine: ArchiveSourceFixture) -> None:
    await engine.say("the heron")
    await engine.add("discord:10", "harbour")
    await engine.run()
    await engine.privacy.opt_out_channel("discord", "10")
    assert engine.on_disk("the heron") == []
    assert await engine.run_due() == ["harbour"]
    assert engine.files() == {}


async def test_posts_of_those_who_opted_out_are_left_out_even_where_they_are_kept_still(
    engine: ArchiveSourceFixture,
) -> None:
    engine.platform.add_role("7", "shy")
    engine.platform.add_person("cleo", "Cleo", roles=["7"])
    for who in ("ana", "ben", "cleo"):
        await engine.say(f"words of {who}", who=who)
    await engine.add("discord:10", "harbour")
    engine.policy = ArchivePolicy(opt_outs=OptOuts(users=frozenset({"ana"}), roles=frozenset({"7"})))
    await engine.run()
    assert "words of ben" in engine.words()
    assert "words of ana" not in engine.words() and "words of cleo" not in engine.words()
    async with engine.store.work() as work:
        await work.archive.opt_out("discord", OptOutKind.USER, "ben", now=engine.clock.now())
    engine.clock.advance(minutes=31)
    await engine.run_due()
    assert engine.files() == {}  # nothing is left of it


async def test_an_archive_that_is_switched_off_is_no_source_and_retention_counts_before_it_swept(
    engine: ArchiveSourceFixture,
) -> None:
    await engine.say("the heron")
    await engine.add("discord:10", "harbour")
    await engine.run()
    engine.policy = ArchivePolicy(retention_days=1)
    await engine.run()
    assert engine.files() == {}
    engine.policy = ArchivePolicy()
    await engine.run()
    assert "the heron" in engine.words()
    engine.policy = ArchivePolicy(enabled=False)
    await engine.run()
    assert engine.on_disk("the heron") == []


async def test_where_no_account_is_connected_a_channel_is_skipped_and_read_once_one_is(
    engine: ArchiveSourceFixture,
) -> None:
    await engine.say("the heron")
    await engine.add("discord:10", "harbour")
    await engine.run()
    engine.channels.remove(engine.account)
    run = await engine.run()
    assert (run.status, list(run.skipped)) == (SyncStatus.DONE, ["harbour"])
    assert "the heron" in engine.words()
    assert await engine.run_due() == []
    engine.channels.add(engine.account)
    assert await engine.run_due() == ["harbour"]


async def test_talk_of_which_nobody_made_sure_for_a_day_is_not_published_any_more(engine: ArchiveSourceFixture) -> None:
    await engine.say("the heron")
    await engine.add("discord:10", "harbour")
    await engine.run()
    engine.account.fail("is_open", Unavailable("The server cannot be reached."), times=100)
    assert "cannot be reached" in (await engine.run()).failed["harbour"]
    assert "the heron" in engine.words()
    engine.clock.advance(days=1)
    await engine.run()
    assert engine.on_disk("the heron") == []


async def test_one_account_that_is_away_does_not_hide_what_another_knows(engine: ArchiveSourceFixture) -> None:
    await engine.say("the heron")
    other = MemoryChannel(engine.platform, AgentName("bob"))
    engine.channels.add(other)
    await engine.add("discord:10", "harbour")
    engine.account.fail("is_open", Unavailable("Away."), times=100)
    await engine.run()
    assert "the heron" in engine.words()
    other.fail("is_open", NotAllowed("No."), times=1)
    assert await engine.run_due() == ["harbour"]


async def test_what_is_taken_back_while_a_channel_is_read_is_not_published(engine: ArchiveSourceFixture) -> None:
    post = await engine.say("the heron")
    await engine.say("the crane")
    source = await engine.add("discord:10", "harbour")
    with anyio.fail_after(HANG_LIMIT_S), pytest.raises(Unavailable) as changed:
        async with engine.talk.open(source, lambda _: None):
            await engine.mirror.delete("discord", [post.id])
    assert changed.value.code == "archive_changed"


async def test_what_is_said_while_a_channel_is_read_does_not_keep_it_from_being_read(
    engine: ArchiveSourceFixture,
) -> None:
    await engine.say("the crane")
    source = await engine.add("discord:10", "harbour")
    async with engine.talk.open(source, lambda _: None) as tree:
        await engine.say("the heron")
        read = b"".join([file.read() for file in tree.files])
    assert b"the crane" in read and b"the heron" not in read
    await engine.run()
    assert "the heron" in engine.words()


async def test_talk_is_not_pushed_to_the_remote(engine: ArchiveSourceFixture, tmp_path: Path) -> None:
    engine.remote = RemoteRepository(str(tmp_path / "mirror"))
    await engine.say("the heron")
    await engine.add("discord:10", "harbour", output_path="har*bour/x")
    await engine.add(write(tmp_path / "notes", {"archive/harbour/a.md": "A"}))
    assert (await engine.run()).failed == {}
    assert "the heron" in engine.words()
    mirror = Repository(tmp_path / "mirror")
    listed = mirror.git("ls-tree", "-r", "--name-only", "main").splitlines()
    assert listed == [".denizen-snapshot", "docs/notes/archive/harbour/a.md"]


async def test_a_sync_that_is_forced_waits_for_no_schedule_and_the_own_schedule_of_a_channel_counts(
    engine: ArchiveSourceFixture,
) -> None:
    await engine.say("the heron")
    await engine.add("discord:10", "harbour", sync_every_minutes=10)
    await engine.run_due()
    engine.clock.advance(minutes=9)
    assert await engine.run_due() == []
    engine.clock.advance(minutes=2)
    assert await engine.run_due() == ["harbour"]


async def test_a_source_that_becomes_another_leaves_no_talk_behind(
    engine: ArchiveSourceFixture, tmp_path: Path
) -> None:
    await engine.say("the heron")
    await engine.add("discord:10", "harbour")
    await engine.run()
    await engine.catalog.edit("harbour", SourceChange(label="The harbour"))
    assert "the heron" in engine.words()
    await engine.catalog.edit("harbour", SourceChange(location=str(tmp_path / "nowhere")))
    assert engine.on_disk("the heron") == []
    assert "no folder" in (await engine.run()).failed["harbour"]


async def test_talk_is_looked_at_while_something_large_is_read(tmp_path: Path) -> None:
    reader = UnreliableReader()
    reader.waits = anyio.Event()
    async with ArchiveSourceFixture(tmp_path, {SourceKind.GIT: reader}) as engine:
        await engine.say("the heron")
        await engine.add("discord:10", "harbour")
        await engine.run()
        for number in range(5):
            await engine.add(f"nuxt/docs{number}", sync_every_minutes=1)
        engine.platform.set_readers(engine.general, ["ana"])

        async def never_again(seconds: float) -> None:
            await anyio.sleep_forever()

        regular = engine.open_regular(never_again)
        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(regular.run)
                await reader.reached.wait()
                while len([run for run in await engine.sync.list_runs() if run.ended_at]) < 2:
                    await give_way()
                assert engine.on_disk("the heron") == []
                reader.waits.set()
                group.cancel_scope.cancel()
