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
from denizen.engine.archive.backfill import Progress
from tests.engine.archive_house import BOB, DISCORD, Archived, Crash, DyingStore
from tests.memory_channel import MemoryChannel

pytestmark = pytest.mark.anyio


def write(house: Archived, room: Room, posts: int) -> list[str]:
    return [house.platform.write(room, "kim", f"{room.name} {number}").text for number in range(posts)]


async def fetched(house: Archived, room: Room) -> int:
    async with house.store.work(write=False) as work:
        row = await work.archive.find_backfill(DISCORD, room.id)
    return 0 if row is None else row.fetched


async def test_everything_is_fetched_newest_first_and_the_liveliest_room_first() -> None:
    house = Archived()
    staff = write(house, house.staff, 10)
    general = write(house, house.general, 230)
    reports = await house.backfill()
    assert await house.listed(house.general) == general
    assert await house.listed(house.staff) == staff
    assert [report.posts for report in reports][:5] == [0, 100, 200, 230, 230]
    assert reports[-1] == Progress(rooms_total=4, rooms_done=4, posts=240, is_over=True)
    assert house.ada.asked.count("list_posts") == 4 + 2 + 1 + 1
    assert set(house.clock.naps) == {0.1}


async def test_a_finished_room_is_not_asked_for_again_until_a_rebuild_is_forced() -> None:
    house = Archived()
    write(house, house.general, 5)
    await house.backfill()
    house.ada.asked.clear()
    assert (await house.backfill())[-1] == Progress(0, is_over=True)
    assert house.ada.asked == []
    await house.backfiller.restart(DISCORD)
    assert (await house.backfill())[-1].posts == 5
    assert len(await house.listed(house.general)) == 5


@pytest.mark.parametrize("dies_at", range(1, 9))
async def test_a_process_that_dies_at_any_writing_is_followed_by_one_that_goes_on_there(dies_at: int) -> None:
    house = Archived()
    general, staff = write(house, house.general, 310), write(house, house.staff, 105)
    house.restart(DyingStore(house.store, dies_at))
    with pytest.raises(Crash):
        await house.backfill()
    pages_kept = await fetched(house, house.general) + await fetched(house, house.staff)
    assert pages_kept == len(await house.listed(house.general)) + len(await house.listed(house.staff))
    house.restart()
    reports = await house.backfill()
    assert reports[-1].posts == 415 - pages_kept
    assert await house.listed(house.general) == general
    assert await house.listed(house.staff) == staff


@pytest.mark.parametrize("naps", range(1, 8))
async def test_a_process_that_is_cancelled_after_any_page_goes_on_there(naps: int) -> None:
    house = Archived()
    general = write(house, house.general, 310)
    with anyio.CancelScope() as scope:

        def report(progress: Progress) -> None:
            if len(house.clock.naps) == naps:
                scope.cancel()

        await house.backfiller.run(house.ada, house.rooms(), report, roles_of=house.ada.find_roles)
    house.restart()
    await house.backfill()
    assert await house.listed(house.general) == general
    assert await fetched(house, house.general) == 310


async def test_an_unavailable_platform_is_waited_for_ever_longer_and_as_long_as_it_says() -> None:
    house = Archived()
    general = write(house, house.general, 3)
    house.ada.fail("list_posts", Unavailable("the platform is down"), times=8)
    house.ada.fail("list_posts", Unavailable("too fast", retry_after_s=7.5))
    await house.backfill()
    assert await house.listed(house.general) == general
    assert house.clock.naps[:9] == [1, 2, 4, 8, 16, 32, 60, 60, 7.5]
    assert house.clock.naps[9] == 0.1


async def test_a_slow_platform_is_given_as_much_rest_as_it_took() -> None:
    house = Archived()
    write(house, house.general, 1)
    ask = house.ada.list_posts

    class Slow(MemoryChannel):
        async def list_posts(self, room_id: str, *, before: str = "", after: str = "", limit: int = 100):
            house.clock.move(s=3)
            return await ask(room_id, before=before, after=after, limit=limit)

    await house.backfill(Slow(house.platform, house.ada.agent, user_id=house.ada.user_id))
    assert set(house.clock.naps) == {3}


async def test_a_room_that_one_account_may_not_read_is_reported_and_taken_by_another() -> None:
    house = Archived()
    bob = MemoryChannel(house.platform, BOB)
    staff = write(house, house.staff, 120)
    rooms = house.rooms()
    house.platform.set_readers(house.staff, ["bea", "kim", bob.user_id])
    reports: list[Progress] = []
    await house.backfiller.run(house.ada, rooms, reports.append, roles_of=house.ada.find_roles)
    assert set(reports[-1].refused) == {house.staff.id, house.plans.id}
    assert reports[-1].is_over
    assert await house.listed(house.staff) == []
    assert (await house.backfill(bob))[-1].refused == ()
    assert await house.listed(house.staff) == staff


async def test_two_accounts_share_the_work_and_fetch_nothing_twice() -> None:
    house = Archived()
    bob = MemoryChannel(house.platform, BOB)
    house.platform.set_readers(house.staff, None)
    rooms = [house.platform.add_room(f"room {number}") for number in range(6)]
    texts = [write(house, room, 150) for room in rooms]
    async with anyio.create_task_group() as group:
        group.start_soon(house.backfill, house.ada)
        group.start_soon(house.backfill, bob)
    assert [await house.listed(room) for room in rooms] == texts
    asked = Counter(house.ada.asked) + Counter(bob.asked)
    assert asked["list_posts"] == 6 * 3 + 4
    assert min(house.ada.asked.count("list_posts"), bob.asked.count("list_posts")) >= 6


async def test_a_room_is_fetched_to_its_limit_and_further_when_the_limit_grows() -> None:
    house = Archived(ArchivePolicy(backfill_limit_per_room=130))
    general = write(house, house.general, 300)
    await house.backfill()
    assert await house.listed(house.general) == general[-130:]
    await house.backfill()
    assert await house.listed(house.general) == general[-130:]
    house.policy = ArchivePolicy(backfill_limit_per_room=0)
    await house.backfill()
    assert await house.listed(house.general) == general


async def test_what_is_older_than_the_retention_is_not_fetched() -> None:
    house = Archived(ArchivePolicy(retention_days=1))
    write(house, house.general, 450)
    house.platform.skip(days=3)
    new = write(house, house.general, 150)
    house.clock.move(days=3)
    await house.backfill()
    assert await house.listed(house.general) == new
    assert await fetched(house, house.general) == 200


@pytest.mark.parametrize("policy", [ArchivePolicy(backfill=False), ArchivePolicy(enabled=False)])
async def test_nothing_is_asked_where_the_policy_wants_none(policy: ArchivePolicy) -> None:
    house = Archived(policy)
    write(house, house.general, 3)
    assert (await house.backfill())[-1].posts == 0
    assert house.ada.asked == []


async def test_a_policy_that_changes_meanwhile_ends_it_after_the_page() -> None:
    house = Archived()
    write(house, house.general, 300)
    reports: list[Progress] = []

    def report(progress: Progress) -> None:
        reports.append(progress)
        if progress.posts == 100:
            house.policy = replace(house.policy, backfill=False)

    await house.backfiller.run(house.ada, house.rooms(), report, roles_of=house.ada.find_roles)
    assert reports[-1].posts == 100
    assert reports[-1].is_over


async def test_opted_out_rooms_and_forums_are_not_asked_for_and_opted_out_people_not_kept() -> None:
    house = Archived()
    house.platform.add_room("ideas", RoomKind.FORUM)
    write(house, house.staff, 3)
    house.platform.write(house.general, "ana", "hers")
    house.platform.write(house.general, "kim", "his")
    await house.privacy.opt_out_channel(DISCORD, house.staff.id)
    await house.privacy.opt_out_user(DISCORD, "kim")
    reports = await house.backfill()
    assert reports[-1].rooms_total == 2
    assert await house.listed(house.general) == ["hers"]
    assert await house.listed(house.staff) == []


async def test_a_role_that_opted_out_is_honoured_by_asking_who_has_it() -> None:
    house = Archived()
    house.platform.add_person("kim", "Kim", roles=["shy"])
    await house.privacy.opt_out_role(DISCORD, "shy")
    write(house, house.general, 2)
    house.platform.write(house.general, "ana", "hers")
    await house.backfill()
    assert await house.listed(house.general) == ["hers"]


async def test_posts_that_come_meanwhile_are_neither_lost_nor_twice_there() -> None:
    house = Archived()
    general = write(house, house.general, 250)
    numbers = count()

    async def sleep(delay_s: float) -> None:
        number = next(numbers)
        if number < 3:
            post = house.platform.write(house.general, "ana", f"live {number}")
            general.append(post.text)
            await house.mirror.keep([post], {"ana": frozenset()})
        await house.clock.sleep(delay_s)

    house.backfiller._sleep = sleep
    await house.backfill()
    assert await house.listed(house.general) == general


async def test_it_tells_how_far_it_is_every_half_minute_and_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    house = Archived()
    write(house, house.general, 300)
    house.ada.fail("list_posts", Unavailable("down"), times=6)
    caplog.set_level("INFO", logger="denizen.archive")
    await house.backfill()
    told = [(record.message, record.__dict__["posts"]) for record in caplog.records]
    assert told == [("backfill goes on", 100), ("backfill is over", 300)]
