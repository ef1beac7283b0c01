"""What a platform says of a member is asked for once, whoever waits for it, and kept for a while."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from denizen.domain.errors import Unavailable
from denizen.domain.ids import AgentName
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.accounts.members import KEPT_S, MemberDirectory
from denizen.testing.temporary_store import TemporaryStore
from tests.clock import ManualClock
from tests.memory_channel import MemoryChannel
from tests.memory_platform import MemoryPlatform

pytestmark = pytest.mark.anyio


class Members:
    """A platform with Bea and Kim, and the directory of its members."""

    def __init__(self, store: TemporaryStore) -> None:
        platform, channels = MemoryPlatform(), ConnectedAccounts()
        for name in ("bea", "kim"):
            platform.add_person(name, name.title())
        platform.add_room("general")
        self.account = MemoryChannel(platform, AgentName("ada"))
        channels.add(self.account)
        self.clock = ManualClock()
        self.directory = MemberDirectory(store, channels, self.clock, platform.name)
        self.complete: list[bool] = []

    @property
    def look_ups(self) -> int:
        return self.account.asked.count("list_memberships")

    async def load(self, user_id: str = "bea") -> None:
        self.complete.append((await self.directory.load(user_id, user_id)).is_complete)

    async def load_at_once(self, *user_ids: str) -> None:
        async with anyio.create_task_group() as group:
            for user_id in user_ids:
                group.start_soon(self.load, user_id)


@asynccontextmanager
async def open_members() -> AsyncGenerator[Members]:
    store = TemporaryStore()
    try:
        yield Members(store)
    finally:
        await store.aclose()


async def test_an_answer_with_something_missing_is_asked_for_again_only_after_a_while() -> None:
    async with open_members() as members:
        members.account.fail("list_memberships", Unavailable("away"))
        for _ in range(3):
            await members.load()
        assert (members.complete, members.look_ups) == ([False] * 3, 1)
        members.clock.advance(KEPT_S + 1)
        await members.load()
    assert (members.complete[-1], members.look_ups) == (True, 2)


@pytest.mark.parametrize("is_away", [False, True])
async def test_all_who_ask_for_a_member_at_once_wait_for_one_look_up(*, is_away: bool) -> None:
    async with open_members() as members:
        if is_away:
            members.account.fail("list_memberships", Unavailable("away"))
        await members.load_at_once(*["bea"] * 5)
        assert (members.complete, members.look_ups) == ([not is_away] * 5, 1)
        await members.load_at_once("bea", "kim")
    assert members.look_ups == 2
