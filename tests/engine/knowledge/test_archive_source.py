"""Channels of the archive as sources: only what everybody may read, and nothing that somebody took back (promise 3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from denizen.domain.archiving import ArchivePolicy, OptOuts
from denizen.domain.errors import NotAllowed, Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.room import Post, Room, RoomKind
from denizen.domain.snapshot import Remote
from denizen.domain.source import SourceKind, SyncStatus
from denizen.engine.knowledge.regular import RegularSync
from denizen.engine.knowledge.sources import Change
from denizen.ports.archive import OptOutKind
from denizen.testing.memory_channel import MemoryChannel
from denizen.testing.memory_platform import MemoryPlatform
from tests.engine.knowledge.house import House, write
from tests.engine.knowledge.test_sync import Moody
from tests.repository import Repository

pytestmark = pytest.mark.anyio


class Square(House):
    """A house on a square where people talk; what they say is mirrored at once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.platform = MemoryPlatform()
        self.general = self.platform.add_room("general", room_id="10")
        for name in ("ana", "ben"):
            self.platform.add_person(name, name.title())
        self.account = MemoryChannel(self.platform, AgentName("ada"))
        self.channels.add(self.account)
        self.regular = RegularSync(self.sync, self.catalog, self.clock, lambda: None, self.talk.is_urgent)

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
        files = (path for path in (self.root / "library").rglob("*") if path.is_file())
        return [path.name for path in files if text.encode() in path.read_bytes()]


@pytest.fixture
async def square(tmp_path: Path) -> AsyncIterator[Square]:
    square = Square(tmp_path)
    await square.durable.start()
    yield square
    await square.durable.aclose()


async def test_what_was_said_in_an_open_channel_and_its_public_threads_becomes_documents(square: Square) -> None:
    post = await square.say("Who can sew?")
    await square.say("I can.", who="ben", reply_to=post.id)
    thread = square.platform.add_room("Sails", RoomKind.THREAD, parent=square.general, room_id="11")
    await square.say("Bring cloth.", room=thread)
    await square.add("discord:10", "harbour")
    run = await square.run()
    assert (run.status, run.failed, run.changed) == (SyncStatus.DONE, {}, ("harbour",))
    found = square.files()
    assert list(found) == [
        "archive/harbour/2026/2026-11-01.md", "archive/harbour/index.md", "archive/harbour/threads/11-sails.md",
    ]  # fmt: skip
    assert "> Who can sew?" in found["archive/harbour/2026/2026-11-01.md"]
    assert "in reply to Ana" in found["archive/harbour/2026/2026-11-01.md"]
    assert (await square.run()).changed == ()


async def test_a_channel_that_not_everybody_may_read_is_refused_and_so_is_everything_private(square: Square) -> None:
    staff = square.platform.add_room("staff", readers=["ana", "bot-ada"], room_id="20")
    inside = square.platform.add_room("inside", RoomKind.PRIVATE_THREAD, parent=square.general, room_id="21")
    direct = square.platform.add_room("", RoomKind.DIRECT, readers=["ana", "bot-ada"], room_id="22")
    thread = square.platform.add_room("public", RoomKind.THREAD, parent=square.general, room_id="23")
    for room in (staff, inside, direct, thread):
        await square.say("the heron", room=room)
        await square.add(f"discord:{room.id}", f"s{room.id}")
    await square.add("discord:99", "unknown")
    run = await square.run()
    assert sorted(run.failed) == ["s20", "s21", "s22", "s23", "unknown"]
    assert "Not everybody" in run.failed["s20"]
    assert square.library.current_folder() is None
    await square.say("hello")
    await square.add("discord:10", "harbour")
    await square.run()
    assert "hello" in square.words() and square.words().count("the heron") == 1  # that of the public thread
    assert not any("inside" in name for name in square.files())


async def test_a_channel_that_is_closed_is_gone_within_a_look_and_no_older_snapshot_keeps_it(
    square: Square, tmp_path: Path
) -> None:
    await square.say("the heron")
    await square.add("discord:10", "harbour")
    await square.add(write(tmp_path / "notes", {"a.md": "A"}))
    first = await square.run()
    await square.say("the crane")
    second = await square.run()
    assert first.snapshot != second.snapshot
    assert await square.run_due() == []
    square.platform.set_readers(square.general, ["ana"])
    assert await square.run_due() == ["harbour"]
    assert list(square.files()) == ["docs/notes/a.md"]
    assert len(await square.library.list_snapshots()) == 1
    assert square.on_disk("the heron") == square.on_disk("the crane") == []
    assert await square.run_due() == []
    square.platform.set_readers(square.general, None)
    square.clock.time += timedelta(minutes=31)
    assert await square.run_due() == ["harbour"]
    assert "the crane" in square.words()


async def test_a_deleted_message_is_dropped_by_the_next_reading_and_by_kept_snapshots(square: Square) -> None:
    post = await square.say("the heron")
    await square.say("the crane")
    await square.add("discord:10", "harbour")
    await square.run()
    await square.mirror.delete("discord", [post.id])
    square.clock.time += timedelta(minutes=29)
    assert await square.run_due() == []
    square.clock.time += timedelta(minutes=2)
    assert await square.run_due() == ["harbour"]
    assert "the crane" in square.words()
    assert square.on_disk("the heron") == []


@pytest.mark.parametrize("how", ["forget_user", "opt_out_user"])
async def test_what_a_person_said_is_in_no_snapshot_once_they_are_forgotten(square: Square, how: str) -> None:
    await square.say("the heron", who="ana")
    await square.say("the crane", who="ben")
    await square.add("discord:10", "harbour")
    await square.run()
    assert square.on_disk("the heron")
    await getattr(square.privacy, how)("discord", "ana")
    assert square.on_disk("the heron") == [] and square.files() == {}
    assert await square.run_due() == ["harbour"]
    assert "the crane" in square.words() and "the heron" not in square.words() and "Ana" not in square.words()


async def test_a_channel_that_is_opted_out_is_gone_at_once_and_stays_away(square: Square) -> None:
    await square.say("the heron")
    await square.add("discord:10", "harbour")
    await square.run()
    await square.privacy.opt_out_channel("discord", "10")
    assert square.on_disk("the heron") == []
    assert await square.run_due() == ["harbour"]
    assert square.files() == {}


async def test_posts_of_those_who_opted_out_are_left_out_even_where_they_are_kept_still(square: Square) -> None:
    square.platform.add_role("7", "shy")
    square.platform.add_person("cleo", "Cleo", roles=["7"])
    for who in ("ana", "ben", "cleo"):
        await square.say(f"words of {who}", who=who)
    await square.add("discord:10", "harbour")
    square.policy = ArchivePolicy(opt_outs=OptOuts(users=frozenset({"ana"}), roles=frozenset({"7"})))
    await square.run()
    assert "words of ben" in square.words()
    assert "words of ana" not in square.words() and "words of cleo" not in square.words()
    async with square.store.work() as work:
        await work.archive.opt_out("discord", OptOutKind.USER, "ben", now=square.clock.now())
    square.clock.time += timedelta(minutes=31)
    await square.run_due()
    assert square.files() == {}  # nothing is left of it


async def test_an_archive_that_is_switched_off_is_no_source_and_retention_counts_before_it_swept(
    square: Square,
) -> None:
    await square.say("the heron")
    await square.add("discord:10", "harbour")
    await square.run()
    square.policy = ArchivePolicy(retention_days=1)
    await square.run()
    assert square.files() == {}
    square.policy = ArchivePolicy()
    await square.run()
    assert "the heron" in square.words()
    square.policy = ArchivePolicy(enabled=False)
    await square.run()
    assert square.on_disk("the heron") == []


async def test_where_no_account_is_connected_a_channel_is_skipped_and_read_once_one_is(square: Square) -> None:
    await square.say("the heron")
    await square.add("discord:10", "harbour")
    await square.run()
    square.channels.remove(square.account)
    run = await square.run()
    assert (run.status, list(run.skipped)) == (SyncStatus.DONE, ["harbour"])
    assert "the heron" in square.words()
    assert await square.run_due() == []
    square.channels.add(square.account)
    assert await square.run_due() == ["harbour"]


async def test_talk_of_which_nobody_made_sure_for_a_day_is_not_published_any_more(square: Square) -> None:
    await square.say("the heron")
    await square.add("discord:10", "harbour")
    await square.run()
    square.account.fail("is_open", Unavailable("The server cannot be reached."), times=100)
    assert "cannot be reached" in (await square.run()).failed["harbour"]
    assert "the heron" in square.words()
    square.clock.time += timedelta(days=1)
    await square.run()
    assert square.on_disk("the heron") == []


async def test_one_account_that_is_away_does_not_hide_what_another_knows(square: Square) -> None:
    await square.say("the heron")
    other = MemoryChannel(square.platform, AgentName("bob"))
    square.channels.add(other)
    await square.add("discord:10", "harbour")
    square.account.fail("is_open", Unavailable("Away."), times=100)
    await square.run()
    assert "the heron" in square.words()
    other.fail("is_open", NotAllowed("No."), times=1)
    assert await square.run_due() == ["harbour"]


async def test_what_is_taken_back_while_a_channel_is_read_is_not_published(square: Square) -> None:
    post = await square.say("the heron")
    await square.say("the crane")
    source = await square.add("discord:10", "harbour")
    with anyio.fail_after(20), pytest.raises(Unavailable) as changed:
        async with square.talk.open(source, lambda _: None):
            await square.mirror.delete("discord", [post.id])
    assert changed.value.code == "archive_changed"


async def test_talk_is_not_pushed_to_the_remote(square: Square, tmp_path: Path) -> None:
    square.remote = Remote(str(tmp_path / "mirror"))
    await square.say("the heron")
    await square.add("discord:10", "harbour", output_path="har*bour/x")
    await square.add(write(tmp_path / "notes", {"archive/harbour/a.md": "A"}))
    assert (await square.run()).failed == {}
    assert "the heron" in square.words()
    mirror = Repository(tmp_path / "mirror")
    listed = mirror.git("ls-tree", "-r", "--name-only", "main").splitlines()
    assert listed == [".denizen-snapshot", "docs/notes/archive/harbour/a.md"]


async def test_a_sync_that_is_forced_waits_for_no_schedule_and_the_own_schedule_of_a_channel_counts(
    square: Square,
) -> None:
    await square.say("the heron")
    await square.add("discord:10", "harbour", sync_every_minutes=10)
    await square.run_due()
    square.clock.time += timedelta(minutes=9)
    assert await square.run_due() == []
    square.clock.time += timedelta(minutes=2)
    assert await square.run_due() == ["harbour"]


async def test_a_source_that_becomes_another_leaves_no_talk_behind(square: Square, tmp_path: Path) -> None:
    await square.say("the heron")
    await square.add("discord:10", "harbour")
    await square.run()
    await square.catalog.edit("harbour", Change(label="The harbour"))
    assert "the heron" in square.words()
    await square.catalog.edit("harbour", Change(location=str(tmp_path / "nowhere")))
    assert square.on_disk("the heron") == []
    assert "no folder" in (await square.run()).failed["harbour"]


async def test_talk_is_looked_at_while_something_large_is_read(tmp_path: Path) -> None:
    moody = Moody()
    moody.waits = anyio.Event()
    square = Square(tmp_path, {SourceKind.GIT: moody})
    await square.durable.start()
    await square.say("the heron")
    await square.add("discord:10", "harbour")
    await square.run()
    for number in range(5):
        await square.add(f"nuxt/docs{number}", sync_every_minutes=1)
    square.platform.set_readers(square.general, ["ana"])

    async def never_again(seconds: float) -> None:
        await anyio.sleep_forever()

    regular = RegularSync(
        square.sync, square.catalog, square.clock, lambda: None, square.talk.is_urgent, sleep=never_again
    )
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(regular.run)
            await moody.reached.wait()
            while len([run for run in await square.sync.list_runs() if run.ended_at]) < 2:
                await anyio.lowlevel.checkpoint()
            assert square.on_disk("the heron") == []
            moody.waits.set()
            group.cancel_scope.cancel()
    await square.durable.aclose()
