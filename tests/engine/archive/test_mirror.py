"""What the mirror keeps, and what it leaves out because somebody opted out or the policy says so."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import anyio
import anyio.lowlevel
import pytest

from denizen.domain.archiving import ArchivePolicy, OptOuts
from denizen.domain.ids import MessageId
from denizen.domain.message import Author, Message, Role, TextPart
from denizen.domain.room import RoomKind
from denizen.domain.speech_notice import write_speech_notice
from denizen.engine.archive.removal import ArchiveRetention
from denizen.ports.archive import OptOutKind
from tests.engine.archive.archive_fixture import ADA, DISCORD, ArchiveFixture
from tests.memory_platform import START

pytestmark = pytest.mark.anyio


async def test_posts_are_kept_with_their_earlier_texts_and_their_deletion() -> None:
    engine = ArchiveFixture()
    first = engine.platform.write(engine.general, "ana", "The door is blue.")
    second = engine.platform.write(engine.general, "kim", "It is.")
    assert await engine.mirror.keep([first, second]) == 2
    assert await engine.mirror.keep([engine.platform.edit(first.id, "The door is red.")]) == 0
    assert await engine.mirror.delete(DISCORD, [second.id, "no such post"]) == 1
    assert await engine.listed(engine.general) == ["The door is red."]
    assert await engine.versions(first) == ["The door is blue."]
    gone = await engine.find(second)
    assert gone is not None
    assert (gone.text, gone.changes.deleted_at) == ("It is.", engine.clock.now())


async def test_a_deletion_that_comes_before_its_post_deletes_it() -> None:
    engine = ArchiveFixture()
    post = engine.platform.write(engine.general, "ana", "Never mind.")
    assert await engine.mirror.delete(DISCORD, [post.id]) == 0
    await engine.mirror.keep([post])
    assert await engine.listed(engine.general) == []


async def test_a_room_that_is_deleted_takes_its_posts_and_those_of_its_threads_along_also_late_ones() -> None:
    engine = ArchiveFixture()
    thread = engine.platform.add_room("Roses", RoomKind.THREAD, parent=engine.general)
    posts = [engine.platform.write(room, "ana", "Here.") for room in (engine.general, thread, engine.plans)]
    late = engine.platform.write(thread, "kim", "Me too.")
    await engine.mirror.keep(posts)
    assert await engine.mirror.delete_room(DISCORD, engine.general.id) == 2
    assert await engine.mirror.keep([late]) == 0
    assert await engine.listed(engine.general) == await engine.listed(thread) == []
    assert await engine.listed(engine.plans) == ["Here."]
    gone = await engine.find(posts[1])
    assert gone is not None
    assert gone.changes.deleted_at == engine.clock.now()


async def test_what_an_account_of_ours_understood_of_somebody_is_kept_as_theirs_alone() -> None:
    engine = ArchiveFixture()
    await engine.mirror.note_account(DISCORD, engine.ada.user_id, ADA)
    notice = write_speech_notice("Ana", "the door is blue")
    theirs = engine.platform.write(engine.general, "ana", "the door is blue")
    posts = [engine.platform.write(engine.general, who, notice) for who in (engine.ada.user_id, "kim")]
    assert await engine.mirror.keep([theirs, *posts]) == 2
    ours = replace(theirs, author=posts[0].author, text=notice)
    assert await engine.mirror.keep([ours]) == 0, "it is read again in the room's past"
    assert await engine.listed(engine.general) == ["the door is blue", notice]
    assert await engine.privacy.forget_user(DISCORD, "ana") == 1
    assert await engine.listed(engine.general) == [notice]


async def test_an_old_page_does_not_undo_an_edit() -> None:
    engine = ArchiveFixture()
    old = engine.platform.write(engine.general, "ana", "old")
    await engine.mirror.keep([engine.platform.edit(old.id, "new")])
    await engine.mirror.keep([old])
    assert await engine.listed(engine.general) == ["new"]


@pytest.mark.parametrize(
    "policy",
    [
        ArchivePolicy(enabled=False),
        ArchivePolicy(channels={"discord": frozenset({"another"})}),
        ArchivePolicy(opt_outs=OptOuts(users=frozenset({"kim"}))),
        ArchivePolicy(opt_outs=OptOuts(roles=frozenset({"shy"}))),
        ArchivePolicy(opt_outs=OptOuts(channels=frozenset({"c1"}))),
        ArchivePolicy(retention_days=1),
    ],
)
async def test_what_the_policy_does_not_admit_is_left_out(policy: ArchivePolicy) -> None:
    engine = ArchiveFixture(policy)
    engine.clock.advance(days=2)
    channel = engine.platform.add_room("c1", room_id="c1")
    thread = engine.platform.add_room("topic", RoomKind.THREAD, parent=channel)
    posts = [engine.platform.write(room, "kim", "hello") for room in (channel, thread)]
    assert await engine.mirror.keep(posts, {"kim": frozenset({"shy"})}) == 0
    assert await engine.listed(channel) == await engine.listed(thread) == []


async def test_a_permitted_channel_admits_its_threads() -> None:
    engine = ArchiveFixture()
    engine.policy = ArchivePolicy(channels={"discord": frozenset({engine.staff.id})}, retention_days=1)
    posts = [engine.platform.write(room, "kim", room.name) for room in (engine.general, engine.staff, engine.plans)]
    await engine.mirror.keep(posts)
    assert await engine.listed(engine.staff) + await engine.listed(engine.plans) == ["staff", "plans"]
    assert await engine.listed(engine.general) == []


async def test_while_a_role_is_opted_out_authors_of_unknown_roles_are_left_out() -> None:
    engine = ArchiveFixture()
    await engine.privacy.opt_out_role(DISCORD, "shy")
    known = engine.platform.write(engine.general, "ana", "known")
    unknown = engine.platform.write(engine.general, "kim", "unknown")
    direct = engine.platform.write(engine.direct, "ana", "no roles here")
    await engine.mirror.keep([known, unknown, direct], {"ana": frozenset({"loud"})})
    assert await engine.listed(engine.general) == ["known"]
    assert await engine.listed(engine.direct) == ["no roles here"]
    await engine.privacy.opt_in_role(DISCORD, "shy")
    await engine.mirror.keep([unknown])
    assert await engine.listed(engine.general) == ["known", "unknown"]


async def test_who_opts_out_is_forgotten_at_once_and_not_kept_until_they_opt_in() -> None:
    engine = ArchiveFixture()
    old = engine.platform.write(engine.general, "kim", "old")
    await engine.mirror.keep([old, engine.platform.write(engine.general, "ana", "hers")])
    assert await engine.privacy.opt_out_user(DISCORD, "kim") == 1
    await engine.mirror.keep([old, engine.platform.write(engine.general, "kim", "while out")])
    assert await engine.listed(engine.general) == ["hers"]
    await engine.privacy.opt_in_user(DISCORD, "kim")
    engine.platform.skip(days=1)
    await engine.mirror.keep([old, engine.platform.write(engine.general, "kim", "back")])
    assert await engine.listed(engine.general) == ["hers", "back"]


async def test_an_opt_out_by_another_process_counts_within_half_a_minute() -> None:
    engine = ArchiveFixture()
    await engine.mirror.keep([engine.platform.write(engine.general, "kim", "one")])
    async with engine.store.work() as work:
        await work.archive.opt_out(DISCORD, OptOutKind.USER, "kim", now=engine.clock.now())
    engine.clock.advance(31)
    await engine.mirror.keep([engine.platform.write(engine.general, "kim", "two")])
    assert await engine.listed(engine.general) == ["one"]


async def test_what_was_forgotten_leaves_no_version_and_no_copy_and_does_not_come_back() -> None:
    engine = ArchiveFixture()
    post = engine.platform.write(engine.general, "kim", "my secret")
    await engine.mirror.keep([post])
    await engine.mirror.keep([engine.platform.edit(post.id, "hidden")])
    async with engine.store.work() as work:
        now, place = engine.clock.now(), engine.general.place
        conversation = await work.conversations.put(place, now=now)
        session = await work.sessions.current(conversation.id, ADA, now=now)
        message = Message(
            id=MessageId("m1"),
            conversation_id=conversation.id,
            role=Role.USER,
            author=Author("kim", "Kim"),
            parts=(TextPart("my secret"),),
            created_at=now,
            session_id=session.id,
            platform_id=post.id,
        )
        await work.messages.add(message)
    assert await engine.privacy.forget_user(DISCORD, "kim") == 1
    assert await engine.find(post) is None
    assert await engine.versions(post) == []
    async with engine.store.work(write=False) as work:
        assert "secret" not in (await work.messages.get(message.id)).text
    engine.restart()
    await engine.backfill()
    assert await engine.listed(engine.general) == []
    engine.platform.skip(days=1)
    await engine.mirror.keep([engine.platform.write(engine.general, "kim", "a new day")])
    assert await engine.listed(engine.general) == ["a new day"]


async def test_a_channel_that_opts_out_loses_its_posts_and_those_of_its_threads() -> None:
    engine = ArchiveFixture()
    for room in (engine.general, engine.staff, engine.plans):
        engine.platform.write(room, "kim", room.name)
    await engine.backfill()
    assert await engine.privacy.opt_out_channel(DISCORD, engine.staff.id) == 2
    await engine.mirror_all()
    await engine.backfill()
    assert await engine.listed(engine.staff) == await engine.listed(engine.plans) == []
    assert await engine.listed(engine.general) == ["general"]
    await engine.privacy.opt_in_channel(DISCORD, engine.staff.id)
    await engine.backfill()
    assert await engine.listed(engine.staff) + await engine.listed(engine.plans) == ["staff", "plans"]


async def test_deletions_are_remembered_in_bounds() -> None:
    engine = ArchiveFixture()
    await engine.mirror.delete(DISCORD, [str(number) for number in range(30_000)])
    assert len(engine.mirror._deleted) == 10_000
    assert (DISCORD, "29999") in engine.mirror._deleted


async def test_retention_deletes_piece_by_piece_and_again_every_hour() -> None:
    engine = ArchiveFixture(ArchivePolicy(retention_days=0))
    for number in range(450):
        engine.platform.write(engine.general, "ana", str(number))
    await engine.mirror_all()
    assert await engine.retention.sweep(DISCORD) == 0
    engine.policy = ArchivePolicy(retention_days=7)
    engine.clock.time = engine.platform.list_posts(engine.general.id)[430].created_at + timedelta(days=7)
    assert await engine.retention.sweep(DISCORD) == 430
    assert len(engine.clock.sleeps) == 2
    assert await engine.listed(engine.general) == [str(number) for number in range(430, 450)]


async def test_retention_sweeps_at_start_and_every_hour_until_it_is_cancelled() -> None:
    engine = ArchiveFixture(ArchivePolicy(retention_days=1))
    left: list[list[str]] = []
    with anyio.CancelScope() as scope:

        async def sleep(delay_s: float) -> None:
            assert delay_s == 3600
            left.append(await engine.listed(engine.general))
            engine.clock.advance(delay_s)
            if len(left) == 3:
                scope.cancel()
            await anyio.lowlevel.checkpoint()

        engine.platform.write(engine.general, "ana", "first")
        engine.platform.skip(s=3600)
        engine.platform.write(engine.general, "ana", "second")
        await engine.mirror_all()
        engine.clock.time = START + timedelta(days=1)
        retention = ArchiveRetention(engine.store, lambda: engine.policy, engine.clock, sleep=sleep)
        await retention.run([DISCORD])
    assert left == [["first", "second"], ["second"], []]


async def test_what_the_configuration_opts_out_later_goes_with_the_next_sweep() -> None:
    engine = ArchiveFixture()
    for room, author in ((engine.general, "kim"), (engine.general, "ana"), (engine.plans, "bea")):
        engine.platform.write(room, author, author)
    await engine.mirror_all()
    engine.policy = ArchivePolicy(opt_outs=OptOuts(users=frozenset({"kim"}), channels=frozenset({engine.staff.id})))
    assert await engine.retention.sweep(DISCORD) == 2
    assert await engine.retention.sweep(DISCORD) == 0
    assert await engine.listed(engine.general) == ["ana"]
    assert await engine.listed(engine.plans) == []
