"""What the mirror keeps, and what it leaves out because somebody opted out or the policy says so."""

from __future__ import annotations

from datetime import timedelta

import anyio
import anyio.lowlevel
import pytest

from denizen.domain.archiving import ArchivePolicy, OptOuts
from denizen.domain.ids import MessageId
from denizen.domain.message import Author, Message, Role, TextPart
from denizen.domain.room import RoomKind
from denizen.engine.archive.retention import Retention
from denizen.ports.archive import OptOutKind
from tests.engine.archive_house import ADA, DISCORD, Archived
from tests.memory_platform import START

pytestmark = pytest.mark.anyio


async def test_posts_are_kept_with_their_earlier_texts_and_their_deletion() -> None:
    house = Archived()
    first = house.platform.write(house.general, "ana", "The door is blue.")
    second = house.platform.write(house.general, "kim", "It is.")
    assert await house.mirror.keep([first, second]) == 2
    assert await house.mirror.keep([house.platform.edit(first.id, "The door is red.")]) == 0
    assert await house.mirror.delete(DISCORD, [second.id, "no such post"]) == 1
    assert await house.listed(house.general) == ["The door is red."]
    assert await house.versions(first) == ["The door is blue."]
    gone = await house.find(second)
    assert gone is not None
    assert (gone.text, gone.deleted_at) == ("It is.", house.clock.now())


async def test_a_deletion_that_comes_before_its_post_deletes_it() -> None:
    house = Archived()
    post = house.platform.write(house.general, "ana", "Never mind.")
    assert await house.mirror.delete(DISCORD, [post.id]) == 0
    await house.mirror.keep([post])
    assert await house.listed(house.general) == []


async def test_a_room_that_is_deleted_takes_its_posts_and_those_of_its_threads_along_also_late_ones() -> None:
    house = Archived()
    thread = house.platform.add_room("Roses", RoomKind.THREAD, parent=house.general)
    posts = [house.platform.write(room, "ana", "Here.") for room in (house.general, thread, house.plans)]
    late = house.platform.write(thread, "kim", "Me too.")
    await house.mirror.keep(posts)
    assert await house.mirror.delete_room(DISCORD, house.general.id) == 2
    assert await house.mirror.keep([late]) == 0
    assert await house.listed(house.general) == await house.listed(thread) == []
    assert await house.listed(house.plans) == ["Here."]
    gone = await house.find(posts[1])
    assert gone is not None
    assert gone.deleted_at == house.clock.now()


async def test_an_old_page_does_not_undo_an_edit() -> None:
    house = Archived()
    old = house.platform.write(house.general, "ana", "old")
    await house.mirror.keep([house.platform.edit(old.id, "new")])
    await house.mirror.keep([old])
    assert await house.listed(house.general) == ["new"]


@pytest.mark.parametrize(
    "policy",
    [
        ArchivePolicy(enabled=False),
        ArchivePolicy(channels=frozenset({"another"})),
        ArchivePolicy(opt_outs=OptOuts(users=frozenset({"kim"}))),
        ArchivePolicy(opt_outs=OptOuts(roles=frozenset({"shy"}))),
        ArchivePolicy(opt_outs=OptOuts(channels=frozenset({"c1"}))),
        ArchivePolicy(retention_days=1),
    ],
)
async def test_what_the_policy_does_not_admit_is_left_out(policy: ArchivePolicy) -> None:
    house = Archived(policy)
    house.clock.move(days=2)
    channel = house.platform.add_room("c1", room_id="c1")
    thread = house.platform.add_room("topic", RoomKind.THREAD, parent=channel)
    posts = [house.platform.write(room, "kim", "hello") for room in (channel, thread)]
    assert await house.mirror.keep(posts, {"kim": frozenset({"shy"})}) == 0
    assert await house.listed(channel) == await house.listed(thread) == []


async def test_a_permitted_channel_admits_its_threads() -> None:
    house = Archived()
    house.policy = ArchivePolicy(channels=frozenset({house.staff.id}), retention_days=1)
    posts = [house.platform.write(room, "kim", room.name) for room in (house.general, house.staff, house.plans)]
    await house.mirror.keep(posts)
    assert await house.listed(house.staff) + await house.listed(house.plans) == ["staff", "plans"]
    assert await house.listed(house.general) == []


async def test_while_a_role_is_opted_out_authors_of_unknown_roles_are_left_out() -> None:
    house = Archived()
    await house.privacy.opt_out_role(DISCORD, "shy")
    known = house.platform.write(house.general, "ana", "known")
    unknown = house.platform.write(house.general, "kim", "unknown")
    direct = house.platform.write(house.direct, "ana", "no roles here")
    await house.mirror.keep([known, unknown, direct], {"ana": frozenset({"loud"})})
    assert await house.listed(house.general) == ["known"]
    assert await house.listed(house.direct) == ["no roles here"]
    await house.privacy.opt_in_role(DISCORD, "shy")
    await house.mirror.keep([unknown])
    assert await house.listed(house.general) == ["known", "unknown"]


async def test_who_opts_out_is_forgotten_at_once_and_not_kept_until_they_opt_in() -> None:
    house = Archived()
    old = house.platform.write(house.general, "kim", "old")
    await house.mirror.keep([old, house.platform.write(house.general, "ana", "hers")])
    assert await house.privacy.opt_out_user(DISCORD, "kim") == 1
    await house.mirror.keep([old, house.platform.write(house.general, "kim", "while out")])
    assert await house.listed(house.general) == ["hers"]
    await house.privacy.opt_in_user(DISCORD, "kim")
    house.platform.skip(days=1)
    await house.mirror.keep([old, house.platform.write(house.general, "kim", "back")])
    assert await house.listed(house.general) == ["hers", "back"]


async def test_an_opt_out_by_another_process_counts_within_half_a_minute() -> None:
    house = Archived()
    await house.mirror.keep([house.platform.write(house.general, "kim", "one")])
    async with house.store.work() as work:
        await work.archive.opt_out(DISCORD, OptOutKind.USER, "kim", now=house.clock.now())
    house.clock.move(s=31)
    await house.mirror.keep([house.platform.write(house.general, "kim", "two")])
    assert await house.listed(house.general) == ["one"]


async def test_what_was_forgotten_leaves_no_version_and_no_copy_and_does_not_come_back() -> None:
    house = Archived()
    post = house.platform.write(house.general, "kim", "my secret")
    await house.mirror.keep([post])
    await house.mirror.keep([house.platform.edit(post.id, "hidden")])
    async with house.store.work() as work:
        now, place = house.clock.now(), house.general.place
        conversation = await work.conversations.put(place, now=now)
        session = await work.sessions.current(conversation.id, ADA, now=now)
        message = Message(
            MessageId("m1"), conversation.id, Role.USER, Author("kim", "Kim"), (TextPart("my secret"),), now,
            session.id, platform_id=post.id,
        )  # fmt: skip
        await work.messages.add(message)
    assert await house.privacy.forget_user(DISCORD, "kim") == 1
    assert await house.find(post) is None
    assert await house.versions(post) == []
    async with house.store.work(write=False) as work:
        assert "secret" not in (await work.messages.get(message.id)).text
    house.restart()
    await house.backfill()
    assert await house.listed(house.general) == []
    house.platform.skip(days=1)
    await house.mirror.keep([house.platform.write(house.general, "kim", "a new day")])
    assert await house.listed(house.general) == ["a new day"]


async def test_a_channel_that_opts_out_loses_its_posts_and_those_of_its_threads() -> None:
    house = Archived()
    for room in (house.general, house.staff, house.plans):
        house.platform.write(room, "kim", room.name)
    await house.backfill()
    assert await house.privacy.opt_out_channel(DISCORD, house.staff.id) == 2
    await house.mirror_all()
    await house.backfill()
    assert await house.listed(house.staff) == await house.listed(house.plans) == []
    assert await house.listed(house.general) == ["general"]
    await house.privacy.opt_in_channel(DISCORD, house.staff.id)
    await house.backfill()
    assert await house.listed(house.staff) + await house.listed(house.plans) == ["staff", "plans"]


async def test_deletions_are_remembered_in_bounds() -> None:
    house = Archived()
    await house.mirror.delete(DISCORD, [str(number) for number in range(30_000)])
    assert len(house.mirror._deleted) == 10_000
    assert (DISCORD, "29999") in house.mirror._deleted


async def test_retention_deletes_piece_by_piece_and_again_every_hour() -> None:
    house = Archived(ArchivePolicy(retention_days=0))
    for number in range(450):
        house.platform.write(house.general, "ana", str(number))
    await house.mirror_all()
    assert await house.retention.sweep(DISCORD) == 0
    house.policy = ArchivePolicy(retention_days=7)
    house.clock.time = house.platform.list_posts(house.general.id)[430].created_at + timedelta(days=7)
    assert await house.retention.sweep(DISCORD) == 430
    assert len(house.clock.naps) == 2
    assert await house.listed(house.general) == [str(number) for number in range(430, 450)]


async def test_retention_sweeps_at_start_and_every_hour_until_it_is_cancelled() -> None:
    house = Archived(ArchivePolicy(retention_days=1))
    left: list[list[str]] = []
    with anyio.CancelScope() as scope:

        async def sleep(delay_s: float) -> None:
            assert delay_s == 3600
            left.append(await house.listed(house.general))
            house.clock.move(s=delay_s)
            if len(left) == 3:
                scope.cancel()
            await anyio.lowlevel.checkpoint()

        house.platform.write(house.general, "ana", "first")
        house.platform.skip(s=3600)
        house.platform.write(house.general, "ana", "second")
        await house.mirror_all()
        house.clock.time = START + timedelta(days=1)
        retention = Retention(house.store, lambda: house.policy, house.clock, sleep=sleep)
        await retention.run([DISCORD])
    assert left == [["first", "second"], ["second"], []]


async def test_what_the_configuration_opts_out_later_goes_with_the_next_sweep() -> None:
    house = Archived()
    for room, author in ((house.general, "kim"), (house.general, "ana"), (house.plans, "bea")):
        house.platform.write(room, author, author)
    await house.mirror_all()
    house.policy = ArchivePolicy(opt_outs=OptOuts(users=frozenset({"kim"}), channels=frozenset({house.staff.id})))
    assert await house.retention.sweep(DISCORD) == 2
    assert await house.retention.sweep(DISCORD) == 0
    assert await house.listed(house.general) == ["ana"]
    assert await house.listed(house.plans) == []
