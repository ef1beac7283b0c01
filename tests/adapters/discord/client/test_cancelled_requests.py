"""A request that is cancelled does not keep later ones waiting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import discord
import pytest
from discord.http import handle_message_parameters

from denizen.domain.delivery import MessageContent
from denizen.domain.errors import Unavailable
from tests.adapters.discord.account_fixture import AccountFixture, running
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


async def test_a_request_that_is_cancelled_during_a_rate_limit_does_not_hold_up_the_next(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        sim.discord.limits.strike(method="POST", route="/messages", retry_after_s=30, everywhere=True)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_when_refused, sim, scope)
                await account.post(sim.place(), MessageContent("never mind"), nonce="n1")
        with anyio.fail_after(HANG_LIMIT_S):
            await account.post(sim.place(), MessageContent("next"), nonce="n2")
    assert [each.content for each in sim.mine()] == ["next"]


async def test_a_request_that_is_cancelled_on_its_way_does_not_hold_up_the_next(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        held = sim.discord.faults.hold("POST", "/messages", times=1)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(account.post, sim.place(), MessageContent("never mind"), nonce="n1"))
                await held.wait_reached()
                scope.cancel()
        with anyio.fail_after(HANG_LIMIT_S):
            await account.post(sim.place(), MessageContent("next"), nonce="n2")
    assert sim.mine()[-1].content == "next"


async def test_a_request_that_is_cancelled_before_it_begins_is_never_sent(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await account.post(sim.place(), MessageContent("never mind"), nonce="n1")
        await account.post(sim.place(), MessageContent("next"), nonce="n2")
    assert [each.content for each in sim.mine()] == ["next"]


async def test_whoever_waits_for_a_request_hears_that_the_account_has_ended(sim: AccountFixture) -> None:
    room_id = int(sim.place().channel)
    clients: list[discord.Client] = []
    async with anyio.create_task_group() as tasks, running(sim) as (account, _):
        clients.append(account._get_login().client)
        held = sim.discord.faults.hold("POST", "/messages", times=1)
        tasks.start_soon(_post_until_the_end, partial(_post, clients[0], room_id))
        await held.wait_reached()
    with pytest.raises(Unavailable, match="has just ended"):
        await _post(clients[0], room_id)


async def _post(client: discord.Client, room_id: int) -> object:
    with handle_message_parameters(content="hello") as params:
        return await client.http.send_message(room_id, params=params)


async def _post_until_the_end(post: Callable[[], Awaitable[object]]) -> None:
    with anyio.fail_after(HANG_LIMIT_S), pytest.raises(Unavailable, match="has just ended"):
        await post()


async def _cancel_when_refused(sim: AccountFixture, scope: anyio.CancelScope) -> None:
    await sim.discord.until(lambda: sim.discord.limits.refused)
    await anyio.wait_all_tasks_blocked()
    scope.cancel()
