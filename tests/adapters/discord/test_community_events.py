"""Events of Discord besides talk, as the engine is told of them."""

from __future__ import annotations

import pytest

from denizen.adapters.discord.gateway.community_events import CHANNEL, JOIN, LEAVE, ROLE, THREAD
from denizen.domain.cloud_event import COMMUNITY_FIELDS
from denizen.ports.channel import CommunityEvent
from denizen.testing.discord.state.changes import ChannelChanged, RoleChanged, ThreadChanged
from tests.adapters.discord.account_fixture import AccountFixture, RecordingListener, running
from tests.event_paths import list_paths

pytestmark = pytest.mark.anyio


AWAITED = frozenset({JOIN, LEAVE, ROLE, CHANNEL, THREAD})


async def hear(heard: RecordingListener, count: int) -> list[CommunityEvent]:
    await heard.until(lambda: len(heard.events) >= count)
    return heard.events


async def test_members_roles_channels_and_threads_are_told_of_to_who_waits_for_them(sim: AccountFixture) -> None:
    heard = RecordingListener()
    heard.awaited = AWAITED
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
    told_of = {
        kind: {path for each in events if each.kind == kind for path in list_paths(each.data)} for kind in AWAITED
    }
    assert told_of == {kind: COMMUNITY_FIELDS[kind] for kind in AWAITED}


@pytest.mark.proves("V30-discord")
async def test_what_is_renamed_archived_taken_or_deleted_is_told_of(sim: AccountFixture) -> None:
    role, channel = sim.guild.add_role("Sailor"), sim.guild.add_channel("harbour")
    thread, cem = sim.world.open_thread(sim.ana, sim.general, "Moorings"), sim.world.add_person("Cem")
    heard = RecordingListener()
    heard.awaited = frozenset({JOIN, ROLE, CHANNEL, THREAD})
    async with running(sim, heard):
        tell = sim.world.store.tell
        sim.guild.join(cem, [role])
        await hear(heard, 1)
        sim.guild.set_roles(cem, [])
        role.name, channel.name, thread.name = "Captain", "haven", "Anchors"
        await hear(heard, 2)
        tell(RoleChanged(sim.guild, role, "updated"))
        tell(ChannelChanged(channel, "updated"))
        tell(ThreadChanged(thread, "updated"))
        await hear(heard, 5)
        sim.world.archive(sim.ana, thread)
        await hear(heard, 6)
        sim.world.archive(sim.ana, thread, archived=False)
        await hear(heard, 7)
        del sim.guild.roles[role.id]
        tell(RoleChanged(sim.guild, role, "deleted"))
        sim.world.delete_channel(thread)
        sim.world.delete_channel(channel)
        _, *events = await hear(heard, 10)
    told = [(each.kind, each.data.get("change"), each.subject) for each in events]
    assert told == [
        (ROLE, "taken", str(role.id)),
        (ROLE, "renamed", str(role.id)),
        (CHANNEL, "renamed", str(channel.id)),
        (THREAD, "renamed", str(thread.id)),
        (THREAD, "archived", str(thread.id)),
        (THREAD, "reopened", str(thread.id)),
        (ROLE, "deleted", str(role.id)),
        (THREAD, "deleted", str(thread.id)),
        (CHANNEL, "deleted", str(channel.id)),
    ]


async def test_what_nobody_waits_for_is_not_told(sim: AccountFixture) -> None:
    async with running(sim) as (_, heard):
        sim.guild.join(sim.world.add_person("Cem"))
        sim.guild.add_role("Sailor")
        sim.say("hello")
        await heard.until(heard.texts)
        assert heard.events == []
