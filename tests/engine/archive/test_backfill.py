"""Backfill: everything is fetched once, in a polite order, whatever fails in between."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count

import anyio
import pytest

from denizen.domain.archiving import ArchivePolicy
from denizen.domain.errors import Unavailable
from denizen.domain.room import Room, RoomKind
from denizen.engine.archive.backfill import BackfillProgress
from tests.engine.archive.archive_fixture import BOB, DISCORD, ArchiveFixture, CrashError, CrashingArchiveStore
from tests.memory_channel import MemoryChannel

pytestmark = pytest.mark.anyio


def write(engine: ArchiveFixture, room: Room, posts: int) -> list[str]:
    return [engine.platform.write(room, "kim", f"{room.name} {number}").text for number in range(posts)]


async def count_fetched(engine: ArchiveFixture, room: Room) -> int:
    async with engine.store.work(write=False) as work:
        row = await work.archive.find_backfill(DISCORD, room.id)
    return 0 if row is None else row.fetched


@pytest.mark.proves("C6")
async def test_everything_is_fetched_newest_first_and_the_liveliest_room_first() -> None:
    engine = ArchiveFixture()
    staff = write(engine, engine.staff, 10)
    general = write(engine, engine.general, 230)
    reports = await engine.backfill()
    assert await engine.listed(engine.general) == general
    assert await engine.listed(engine.staff) == staff
    assert [report.posts for report in reports][:5] == [0, 100, 200, 230, 230]
    assert reports[-1] == BackfillProgress(rooms_total=4, rooms_done=4, posts=240, is_over=True)
    assert engine.ada.asked.count("list_posts") == 4 + 2 + 1 + 1
    assert set(engine.clock.sleeps) == {0.1}


@pytest.mark.proves("C2")
async def test_a_finished_room_is_not_asked_for_again_until_a_rebuild_is_forced() -> None:
    engine = ArchiveFixture()
    write(engine, engine.general, 5)
    await engine.backfill()
    engine.ada.asked.clear()
    assert (await engine.backfill())[-1] == BackfillProgress(0, is_over=True)
    assert engine.ada.asked == []
    await engine.backfiller.restart(DISCORD)
    assert (await engine.backfill())[-1].posts == 5
    assert len(await engine.listed(engine.general)) == 5


@pytest.mark.parametrize("dies_at", range(1, 9))
async def test_a_process_that_dies_at_any_writing_is_followed_by_one_that_goes_on_there(dies_at: int) -> None:
    engine = ArchiveFixture()
    general, staff = write(engine, engine.general, 310), write(engine, engine.staff, 105)
    engine.restart(CrashingArchiveStore(engine.store, dies_at))
    with pytest.raises(CrashError):
        await engine.backfill()
    pages_kept = await count_fetched(engine, engine.general) + await count_fetched(engine, engine.staff)
    assert pages_kept == len(await engine.listed(engine.general)) + len(await engine.listed(engine.staff))
    engine.restart()
    reports = await engine.backfill()
    assert reports[-1].posts == 415 - pages_kept
    assert await engine.listed(engine.general) == general
    assert await engine.listed(engine.staff) == staff


@pytest.mark.parametrize("pauses", range(1, 8))
async def test_a_process_that_is_cancelled_after_any_page_goes_on_there(pauses: int) -> None:
    engine = ArchiveFixture()
    general = write(engine, engine.general, 310)
    with anyio.CancelScope() as scope:

        def report(progress: BackfillProgress) -> None:
            if len(engine.clock.sleeps) == pauses:
                scope.cancel()

        await engine.backfiller.run(engine.ada, engine.rooms(), report, roles_of=engine.ada.find_roles)
    engine.restart()
    await engine.backfill()
    assert await engine.listed(engine.general) == general
    assert await count_fetched(engine, engine.general) == 310


async def test_an_unavailable_platform_is_waited_for_ever_longer_and_as_long_as_it_says() -> None:
    engine = ArchiveFixture()
    general = write(engine, engine.general, 3)
    engine.ada.fail("list_posts", Unavailable("the platform is down"), times=8)
    engine.ada.fail("list_posts", Unavailable("too fast", retry_after_s=7.5))
    await engine.backfill()
    assert await engine.listed(engine.general) == general
    assert engine.clock.sleeps[:9] == [1, 2, 4, 8, 16, 32, 60, 60, 7.5]
    assert engine.clock.sleeps[9] == 0.1


async def test_a_slow_platform_is_given_as_much_rest_as_it_took() -> None:
    engine = ArchiveFixture()
    write(engine, engine.general, 1)
    ask = engine.ada.list_posts

    class SlowChannel(MemoryChannel):
        async def list_posts(self, room_id: str, *, before: str = "", after: str = "", limit: int = 100):
            engine.clock.advance(3)
            return await ask(room_id, before=before, after=after, limit=limit)

    await engine.backfill(SlowChannel(engine.platform, engine.ada.agent, user_id=engine.ada.user_id))
    assert set(engine.clock.sleeps) == {3}


@pytest.mark.proves("C2")
async def test_a_room_that_one_account_may_not_read_is_reported_and_taken_by_another() -> None:
    engine = ArchiveFixture()
    bob = MemoryChannel(engine.platform, BOB)
    staff = write(engine, engine.staff, 120)
    rooms = engine.rooms()
    engine.platform.set_readers(engine.staff, ["bea", "kim", bob.user_id])
    reports: list[BackfillProgress] = []
    await engine.backfiller.run(engine.ada, rooms, reports.append, roles_of=engine.ada.find_roles)
    assert set(reports[-1].refused) == {engine.staff.id, engine.plans.id}
    assert reports[-1].is_over
    assert await engine.listed(engine.staff) == []
    assert (await engine.backfill(bob))[-1].refused == ()
    assert await engine.listed(engine.staff) == staff


async def test_two_accounts_share_the_work_and_fetch_nothing_twice() -> None:
    engine = ArchiveFixture()
    bob = MemoryChannel(engine.platform, BOB)
    engine.platform.set_readers(engine.staff, None)
    rooms = [engine.platform.add_room(f"room {number}") for number in range(6)]
    texts = [write(engine, room, 150) for room in rooms]
    async with anyio.create_task_group() as group:
        group.start_soon(engine.backfill, engine.ada)
        group.start_soon(engine.backfill, bob)
    assert [await engine.listed(room) for room in rooms] == texts
    asked = Counter(engine.ada.asked) + Counter(bob.asked)
    assert asked["list_posts"] == 6 * 3 + 4
    assert min(engine.ada.asked.count("list_posts"), bob.asked.count("list_posts")) >= 6


async def test_a_room_is_fetched_to_its_limit_and_further_when_the_limit_grows() -> None:
    engine = ArchiveFixture(ArchivePolicy(backfill_limit_per_room=130))
    general = write(engine, engine.general, 300)
    await engine.backfill()
    assert await engine.listed(engine.general) == general[-130:]
    await engine.backfill()
    assert await engine.listed(engine.general) == general[-130:]
    engine.policy = ArchivePolicy(backfill_limit_per_room=0)
    await engine.backfill()
    assert await engine.listed(engine.general) == general


async def test_what_is_older_than_the_retention_is_not_fetched() -> None:
    engine = ArchiveFixture(ArchivePolicy(retention_days=1))
    write(engine, engine.general, 450)
    engine.platform.skip(days=3)
    new = write(engine, engine.general, 150)
    engine.clock.advance(days=3)
    await engine.backfill()
    assert await engine.listed(engine.general) == new
    assert await count_fetched(engine, engine.general) == 200


@pytest.mark.parametrize("policy", [ArchivePolicy(backfill=False), ArchivePolicy(enabled=False)])
async def test_nothing_is_asked_where_the_policy_wants_none(policy: ArchivePolicy) -> None:
    engine = ArchiveFixture(policy)
    write(engine, engine.general, 3)
    assert (await engine.backfill())[-1].posts == 0
    assert engine.ada.asked == []


async def test_a_policy_that_changes_meanwhile_ends_it_after_the_page() -> None:
    engine = ArchiveFixture()
    write(engine, engine.general, 300)
    reports: list[BackfillProgress] = []

    def report(progress: BackfillProgress) -> None:
        reports.append(progress)
        if progress.posts == 100:
            engine.policy = replace(engine.policy, backfill=False)

    await engine.backfiller.run(engine.ada, engine.rooms(), report, roles_of=engine.ada.find_roles)
    assert reports[-1].posts == 100
    assert reports[-1].is_over


async def test_opted_out_rooms_and_forums_are_not_asked_for_and_opted_out_people_not_kept() -> None:
    engine = ArchiveFixture()
    engine.platform.add_room("ideas", RoomKind.FORUM)
    write(engine, engine.staff, 3)
    engine.platform.write(engine.general, "ana", "hers")
    engine.platform.write(engine.general, "kim", "his")
    await engine.privacy.opt_out_channel(DISCORD, engine.staff.id)
    await engine.privacy.opt_out_user(DISCORD, "kim")
    reports = await engine.backfill()
    assert reports[-1].rooms_total == 2
    assert await engine.listed(engine.general) == ["hers"]
    assert await engine.listed(engine.staff) == []


async def test_a_role_that_opted_out_is_honoured_by_asking_who_has_it() -> None:
    engine = ArchiveFixture()
    engine.platform.add_person("kim", "Kim", roles=["shy"])
    await engine.privacy.opt_out_role(DISCORD, "shy")
    write(engine, engine.general, 2)
    engine.platform.write(engine.general, "ana", "hers")
    await engine.backfill()
    assert await engine.listed(engine.general) == ["hers"]


async def test_posts_that_come_meanwhile_are_neither_lost_nor_twice_there() -> None:
    engine = ArchiveFixture()
    general = write(engine, engine.general, 250)
    numbers = count()

    async def sleep(delay_s: float) -> None:
        number = next(numbers)
        if number < 3:
            post = engine.platform.write(engine.general, "ana", f"live {number}")
            general.append(post.text)
            await engine.mirror.keep([post], {"ana": frozenset()})
        await engine.clock.sleep(delay_s)

    engine.backfiller._sleep = sleep
    await engine.backfill()
    assert await engine.listed(engine.general) == general


async def test_it_tells_how_far_it_is_every_half_minute_and_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    engine = ArchiveFixture()
    write(engine, engine.general, 300)
    engine.ada.fail("list_posts", Unavailable("down"), times=6)
    caplog.set_level("INFO", logger="denizen.archive")
    await engine.backfill()
    told = [(record.message, record.__dict__["posts"]) for record in caplog.records]
    assert told == [("backfill goes on", 100), ("backfill is over", 300)]
