"""Events of Discord besides talk, as the engine is told of them."""

from __future__ import annotations

import pytest

from denizen.adapters.discord.gateway.community_events import CHANNEL, JOIN, LEAVE, ROLE, THREAD
from denizen.ports.channel import CommunityEvent
from tests.adapters.discord.account_fixture import AccountFixture, RecordingListener, running

pytestmark = pytest.mark.anyio


async def hear(heard: RecordingListener, count: int) -> list[CommunityEvent]:
    await heard.until(lambda: len(heard.events) >= count)
    return heard.events


async def test_members_roles_channels_and_threads_are_told_of_to_who_waits_for_them(sim: AccountFixture) -> None:
    heard = RecordingListener()
    heard.awaited = frozenset({JOIN, LEAVE, ROLE, CHANNEL, THREAD})
    async with running(sim, heard):
        cem = sim.world.add_person("Cem")
        sim.guild.join(cem)
        [join] = await hear(heard, 1)
        assert (join.kind, join.guild, join.user_id) == (JOIN, str(sim.guild.id), str(cem.id))
        assert join.data["user"] == {
            "id": str(cem.id),
            "name": "Cem",
            "mention": f"<@{cem.id}>",
            "is_bot": False,
            "roles": [],
        }
        role = sim.guild.add_role("Sailor")
        sim.guild.set_roles(cem, [role])
        await hear(heard, 3)
        channel = sim.guild.add_channel("harbour")
        thread = sim.world.open_thread(sim.ana, sim.general, "Moorings")
        await hear(heard, 5)
        sim.guild.leave(cem)
        events = await hear(heard, 6)
    told = [(each.kind, each.data.get("change"), each.subject) for each in events[1:]]
    assert told == [
        (ROLE, "created", str(role.id)),
        (ROLE, "given", str(role.id)),
        (CHANNEL, "created", str(channel.id)),
        (THREAD, "created", str(thread.id)),
        (LEAVE, None, str(cem.id)),
    ]
    assert events[0].id and events[-1].id and events[0].id != events[-1].id


async def test_what_nobody_waits_for_is_not_told(sim: AccountFixture) -> None:
    async with running(sim) as (_, heard):
        sim.guild.join(sim.world.add_person("Cem"))
        sim.guild.add_role("Sailor")
        sim.say("hello")
        await heard.until(heard.texts)
        assert heard.events == []
