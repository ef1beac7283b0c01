"""An action goes through the account of the agent that was asked, and waits a while for it to connect."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from denizen.domain.errors import InvalidInput, NotAllowed, Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.principal import Principal, PrincipalKind
from denizen.engine.accounts.connected_accounts import ConnectedAccounts, PlatformActionRunner
from denizen.ports.toolset import CallScope
from tests.memory_channel import MemoryChannel, enter_at_once
from tests.memory_platform import MemoryPlatform
from tests.skill_fixture import scope

pytestmark = pytest.mark.anyio

ADA = AgentName("ada")


def make_scope(account: MemoryChannel) -> CallScope:
    place = replace(scope().place, platform=account.platform)
    return replace(scope(), place=place, account=ADA)


async def test_a_call_that_comes_before_its_account_is_connected_waits_for_it() -> None:
    channels, account = ConnectedAccounts(), MemoryChannel(MemoryPlatform(), ADA)
    platform = PlatformActionRunner(channels, enter_at_once).open(make_scope(account))
    answers: list[str] = []

    async def act() -> None:
        with pytest.raises(InvalidInput) as caught:
            await platform.act("wave")
        answers.append(caught.value.code)

    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(act)
        await anyio.wait_all_tasks_blocked()
        assert answers == []
        channels.add(account)
    assert answers == ["memory_no_action"] * 2


async def test_an_account_that_stays_away_is_an_error_after_a_while() -> None:
    account = MemoryChannel(MemoryPlatform(), ADA)
    runner = PlatformActionRunner(ConnectedAccounts(), enter_at_once, patience_s=0)
    with pytest.raises(Unavailable, match="not connected"):
        await runner.open(make_scope(account)).act("wave")


async def test_nobody_acts_who_is_not_on_a_platform() -> None:
    channels, account = ConnectedAccounts(), MemoryChannel(MemoryPlatform(), ADA)
    channels.add(account)
    local = replace(make_scope(account), principal=Principal(PrincipalKind.LOCAL, "operator", "operator"))
    for where in (local, replace(make_scope(account), account=None)):
        with pytest.raises(NotAllowed, match="on a platform"):
            await PlatformActionRunner(channels, enter_at_once).open(where).act("wave")
