"""Loading the members of a guild over the gateway."""

from __future__ import annotations

from datetime import timedelta

import pytest

from denizen.adapters.discord.account import DiscordAccount
from denizen.testing.discord import open_discord
from tests.adapters.discord.account_fixture import AccountFixture, running
from tests.clock import ManualClock

pytestmark = pytest.mark.anyio


def knows_everybody(account: DiscordAccount, sim: AccountFixture) -> bool:
    login = account._login
    guild = login.client.get_guild(sim.guild.id) if login is not None else None
    return guild is not None and guild.chunked


async def test_members_are_asked_for_again_when_discord_says_that_it_was_too_early() -> None:
    clock = ManualClock()
    async with open_discord(clock=clock) as discord:
        sim = AccountFixture(discord)
        discord.world.rules.member_pause = timedelta(seconds=0.02)
        async with running(sim) as (account, _):
            await discord.until(lambda: knows_everybody(account, sim))
        async with running(sim) as (account, _):  # the clock stands still, so this login is too early
            session = discord.get_session("Ada")

            def told() -> list[dict[str, object]]:
                return [each.body for each in session.events if each.name == "RATE_LIMITED"]

            await discord.until(lambda: len(told()) == 2)
            assert not knows_everybody(account, sim)
            clock.advance(1)
            await discord.until(lambda: knows_everybody(account, sim))
    assert told()[0]["opcode"] == 8
    assert told()[0]["retry_after"] == pytest.approx(0.02)
    assert told()[0]["meta"] == told()[1]["meta"]


async def test_a_limit_on_something_else_is_not_taken_for_one_on_members(sim: AccountFixture) -> None:
    async with running(sim) as (account, heard):
        await sim.discord.until(lambda: knows_everybody(account, sim))
        session = sim.discord.get_session("Ada")
        session.push("RATE_LIMITED", {"opcode": 31, "retry_after": 0.0, "meta": {}})
        session.push("RATE_LIMITED", {"opcode": 8, "retry_after": 0.0, "meta": {"guild_id": "1", "nonce": "other"}})
        sim.say("still there?")
        await heard.until(lambda: heard.texts() == ["still there?"])
    assert sum(each.name == "GUILD_MEMBERS_CHUNK" for each in session.events) == 1
