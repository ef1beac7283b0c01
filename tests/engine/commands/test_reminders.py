"""/reminders: one's own, seen by oneself only."""

from __future__ import annotations

from datetime import timedelta

import pytest

from denizen.domain.agent import Agent, HistorySettings, TimestampPolicy
from denizen.domain.reminder import Reminder
from tests.engine.commands.command_fixture import (
    ADA,
    ANA,
    BEN,
    BOB,
    DIRECT,
    NOW,
    ROOM,
    CommandFixture,
    Person,
    open_commands,
)

pytestmark = pytest.mark.anyio


async def plan(engine: CommandFixture, key: str, text: str, who: Person = ANA, *, hours: int = 1) -> None:
    due_at = NOW + timedelta(hours=hours)
    async with engine.store.work() as work:
        await work.reminders.add(
            Reminder(
                id=key,
                account=ADA,
                asker=engine.principal(who).key,
                place=ROOM.place,
                text=text,
                due_at=due_at,
                created_at=NOW,
            )
        )


async def test_one_sees_ones_own_in_the_agents_zone_and_only_where_nobody_else_reads() -> None:
    agents = [Agent(ADA, history=HistorySettings(timestamps=TimestampPolicy("Europe/Rome"))), Agent(BOB)]
    async with open_commands(agents=agents) as engine:
        await plan(engine, "rem_2", "later\nline", hours=30)
        await plan(engine, "rem_1", "tea")
        await plan(engine, "rem_3", "mud", BEN)
        assert (await engine.give("/reminders list", room=DIRECT)).text.splitlines() == [
            "- `rem_1` 2026-05-01 15:00 Europe/Rome: tea",
            "- `rem_2` 2026-05-02 20:00 Europe/Rome: later line",
            "/reminders cancel reminder: ID cancels one.",
        ]
        refused = await engine.give("/reminders list")
        assert refused.is_failure and "tea" not in refused.text


async def test_a_full_list_fits_one_message() -> None:
    async with open_commands() as engine:
        for number in range(20):
            await plan(engine, f"rem_{number:010}", "x" * 500)
        told = (await engine.give("/reminders list", room=DIRECT)).text
    assert len(told) <= engine.account_policy.style.message_limit
    assert told.count("rem_") == 20


async def test_ones_own_are_suggested_and_cancelled_and_nobody_elses() -> None:
    async with open_commands() as engine:
        await plan(engine, "rem_1", "tea")
        await plan(engine, "rem_3", "mud", BEN)
        [choice] = await engine.suggest("reminders", "cancel", "reminder", "te")
        assert choice == "rem_1 tea"
        refused = await engine.slash("reminders", "cancel", {"reminder": "rem_3"})
        assert refused.is_failure and "You have no pending reminder" in refused.text
        assert (await engine.slash("reminders", "cancel", {"reminder": choice})).text == "Cancelled."
        assert (await engine.give("/reminders list", room=DIRECT)).text == "You have no reminders."
        assert "mud" in (await engine.give("/reminders list", BEN, room=DIRECT)).text


async def test_memory_shows_how_many_there_are_and_forgetting_ends_them() -> None:
    async with open_commands() as engine:
        await plan(engine, "rem_1", "tea")
        await plan(engine, "rem_3", "mud", BEN)
        assert "- reminders: 1 pending" in (await engine.give("/memory show")).text
        await engine.give("/memory forget confirm: yes")
        assert "- reminders: 0 pending" in (await engine.give("/memory show")).text
        assert "- reminders: 1 pending" in (await engine.give("/memory show", BEN)).text
