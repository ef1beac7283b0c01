"""/reminders: one's own, seen by oneself only."""

from __future__ import annotations

from datetime import timedelta

import pytest

from denizen.domain.agent import Agent, Timestamps
from denizen.domain.reminder import Reminder
from tests.engine.commands.command_fixture import (
    ADA,
    ANA,
    BEN,
    BOB,
    DIRECT,
    NOW,
    ROOM,
    CommandHouse,
    Person,
    open_command_house,
)

pytestmark = pytest.mark.anyio


async def plan(house: CommandHouse, key: str, text: str, who: Person = ANA, *, hours: int = 1) -> None:
    due_at = NOW + timedelta(hours=hours)
    async with house.store.work() as work:
        await work.reminders.add(Reminder(key, ADA, house.principal(who).key, ROOM.place, text, due_at, NOW))


async def test_one_sees_ones_own_in_the_agents_zone_and_only_where_nobody_else_reads() -> None:
    agents = [Agent(ADA, timestamps=Timestamps("Europe/Rome")), Agent(BOB)]
    async with open_command_house(agents=agents) as house:
        await plan(house, "rem_2", "later\nline", hours=30)
        await plan(house, "rem_1", "tea")
        await plan(house, "rem_3", "mud", BEN)
        assert (await house.give("/reminders list", room=DIRECT)).text.splitlines() == [
            "- `rem_1` 2026-05-01 15:00 Europe/Rome: tea",
            "- `rem_2` 2026-05-02 20:00 Europe/Rome: later line",
            "/reminders cancel reminder: ID cancels one.",
        ]
        refused = await house.give("/reminders list")
        assert refused.is_failure and "tea" not in refused.text


async def test_a_full_list_fits_one_message() -> None:
    async with open_command_house() as house:
        for number in range(20):
            await plan(house, f"rem_{number:010}", "x" * 500)
        told = (await house.give("/reminders list", room=DIRECT)).text
    assert len(told) <= house.account_policy.style.message_limit
    assert told.count("rem_") == 20


async def test_ones_own_are_suggested_and_cancelled_and_nobody_elses() -> None:
    async with open_command_house() as house:
        await plan(house, "rem_1", "tea")
        await plan(house, "rem_3", "mud", BEN)
        [choice] = await house.suggest("reminders", "cancel", "reminder", "te")
        assert choice == "rem_1 tea"
        refused = await house.slash("reminders", "cancel", {"reminder": "rem_3"})
        assert refused.is_failure and "You have no pending reminder" in refused.text
        assert (await house.slash("reminders", "cancel", {"reminder": choice})).text == "Cancelled."
        assert (await house.give("/reminders list", room=DIRECT)).text == "You have no reminders."
        assert "mud" in (await house.give("/reminders list", BEN, room=DIRECT)).text


async def test_memory_shows_how_many_there_are_and_forgetting_ends_them() -> None:
    async with open_command_house() as house:
        await plan(house, "rem_1", "tea")
        await plan(house, "rem_3", "mud", BEN)
        assert "- reminders: 1 pending" in (await house.give("/memory show")).text
        await house.give("/memory forget confirm: yes")
        assert "- reminders: 0 pending" in (await house.give("/memory show")).text
        assert "- reminders: 1 pending" in (await house.give("/memory show", BEN)).text
