"""What the gateway tells, and in which order it is heard."""

from __future__ import annotations

import anyio.lowlevel
import pytest

from denizen.adapters.discord.messages.conversion import list_readable
from denizen.domain.room import RoomKind
from tests.adapters.discord.account_fixture import AccountFixture, RecordingListener, running, waiting_for
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

_BEHIND = "a room has more messages than are kept; catching up later"


async def test_messages_edits_and_deletions_are_heard_in_order(sim: AccountFixture) -> None:
    async with running(sim) as (_, heard):
        message = sim.say("one")
        sim.world.edit(message, "two")
        sim.world.delete(message)
        await heard.until(lambda: len(heard.log) == 4)
    assert heard.log == ["ready", "message one", "edit two", f"delete {sim.general.id} {message.id}"]


async def test_messages_from_before_the_login_can_be_edited_and_deleted(sim: AccountFixture) -> None:
    early = sim.say("early")
    async with running(sim) as (_, heard):
        sim.world.edit(early, "corrected")
        sim.world.delete(early)
        await heard.until(lambda: len(heard.log) == 3)
    assert heard.log[1:] == ["edit corrected", f"delete {sim.general.id} {early.id}"]


async def test_a_bulk_deletion_is_heard_once(sim: AccountFixture) -> None:
    messages = [sim.say(str(number)) for number in range(3)]
    async with running(sim) as (_, heard):
        sim.world.delete_many(sim.ana, messages)
        await heard.until(lambda: len(heard.log) == 2)
    assert heard.log[1] == f"delete {sim.general.id} " + " ".join(str(each.id) for each in messages)


async def test_what_discord_itself_says_is_not_heard(sim: AccountFixture) -> None:
    async with running(sim) as (_, heard):
        sim.world.pin(sim.ana, sim.say("keep this"))
        sim.say("after")
        await heard.until(lambda: "after" in heard.texts())
    assert heard.texts() == ["keep this", "after"]


async def test_a_direct_message_is_heard(sim: AccountFixture) -> None:
    async with running(sim) as (_, heard):
        talk = sim.world.open_dm(sim.ana, sim.ada.user)
        sim.say("psst", talk)
        await heard.until(lambda: heard.arrivals)
    assert heard.arrivals[0].room.kind is RoomKind.DIRECT
    assert heard.arrivals[0].room.id == str(talk.id)


async def test_a_message_in_an_archived_thread_is_heard(sim: AccountFixture) -> None:
    thread = sim.world.open_thread(sim.ana, sim.say("begin"), "Old talk")
    sim.world.archive(sim.ana, thread)
    async with running(sim) as (_, heard):
        assert "Old talk" not in [room.name for room in heard.ready[0]]
        sim.say("it goes on", thread)
        await heard.until(lambda: heard.arrivals)
    assert heard.arrivals[0].room.place.thread == str(thread.id)
    assert heard.arrivals[0].room.parent == str(sim.general.id)


async def test_rooms_that_come_change_and_go_are_heard(sim: AccountFixture) -> None:
    async with running(sim) as (_, heard):
        garden = sim.guild.add_channel("garden")
        await heard.until(lambda: "room garden" in heard.log)
        sim.guild.add_channel("secret", private_to=[sim.ben])
        thread = sim.world.open_thread(sim.ana, garden, "Roses")
        await heard.until(lambda: "room Roses" in heard.log)
        sim.world.delete_channel(thread)
        await heard.until(lambda: f"deleted {thread.id}" in heard.log)
        sim.world.delete_channel(garden)
        await heard.until(lambda: f"deleted {garden.id}" in heard.log)
    assert "room secret" not in heard.log
    assert heard.rooms[-1].parent == str(garden.id)


async def test_a_room_that_opens_to_the_account_is_heard_of(sim: AccountFixture) -> None:
    crew = sim.guild.add_role("crew")
    sim.guild.add_channel("cabin", private_to=[crew])
    async with running(sim) as (_, heard):
        assert [room.name for room in heard.ready[0]] == ["general"]
        sim.guild.set_roles(sim.ada.user, [crew])
        await heard.until(lambda: heard.rooms)
    assert [room.name for room in heard.rooms] == ["cabin"]


async def test_a_new_guild_makes_the_account_ready_with_its_rooms(sim: AccountFixture) -> None:
    async with running(sim) as (_, heard):
        other = sim.world.add_guild("Mill", owner=sim.ben)
        wheel = other.add_channel("wheel")
        other.join(sim.ada.user)
        await heard.until(lambda: len(heard.ready) == 2)
        assert {room.name for room in heard.ready[1]} == {"general", "wheel"}
        other.leave(sim.ada.user)
        await heard.until(lambda: f"gone {wheel.id}" in heard.log)


async def test_a_room_is_heard_one_after_another_and_others_do_not_wait(sim: AccountFixture) -> None:
    slow = sim.guild.add_channel("slow")
    release, active = anyio.Event(), 0
    heard = RecordingListener()

    async def hear(arrival: object) -> None:
        nonlocal active
        if arrival.room.id == str(slow.id):  # pyright: ignore[reportAttributeAccessIssue]
            active += 1
            assert active == 1
            await release.wait()
            active -= 1

    heard.on["message"] = hear
    async with running(sim, heard):
        for number in range(3):
            sim.say(f"slow {number}", slow)
        for number in range(50):
            sim.say(f"fast {number}")
        await heard.until(lambda: len(heard.texts(str(sim.general.id))) == 50)
        assert heard.texts(str(slow.id)) == ["slow 0"]
        release.set()
        await heard.until(lambda: len(heard.arrivals) == 53)
    assert heard.texts(str(slow.id)) == ["slow 0", "slow 1", "slow 2"]
    assert heard.texts(str(sim.general.id)) == [f"fast {number}" for number in range(50)]


async def test_a_room_that_gets_more_than_is_kept_is_caught_up_with_in_order(
    sim: AccountFixture, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("denizen.adapters.discord.gateway.events.CATCH_UP_PAUSE_S", 0.01)
    sim.discord.faults.fail("GET", "/messages", status=503, times=2)
    release = anyio.Event()
    heard = RecordingListener()
    heard.on["message"] = waiting_for(release)
    async with running(sim, heard, room_limit=5):
        for number in range(250):
            sim.say(str(number))
        with anyio.fail_after(HANG_LIMIT_S):
            while _BEHIND not in caplog.messages:
                await anyio.lowlevel.checkpoint()
        release.set()
        await heard.until(lambda: "249" in heard.texts())
        sim.say("after")
        await heard.until(lambda: "after" in heard.texts())
    assert list(dict.fromkeys(heard.texts())) == [*map(str, range(250)), "after"]


async def test_looking_at_very_many_rooms_leaves_time_for_others(sim: AccountFixture) -> None:
    for number in range(1500):
        if number % 3:
            sim.guild.add_channel(f"channel-{number}", private_to=[sim.ben])
        else:
            sim.guild.add_channel(f"channel-{number}")
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with running(sim) as (account, heard):
        assert len(heard.ready[0]) == 501
        client = account._get_login().client
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take_turns)
            await list_readable(client)
            tasks.cancel_scope.cancel()
    assert turns >= 1500 // 100 - 1, "others get a turn after every 100 channels at the latest"
