"""The store's promises about reminders."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName
from denizen.domain.reminder import Reminder
from denizen.ports.store import Store
from denizen.testing.store_records import AGENT, PLACE, PLATFORM, at

ANA, BOB = "platform_user:discord:1", "platform_user:discord:2"
OTHER = AgentName("other")


def reminder_of(key: str, hours: float, *, asker: str = ANA) -> Reminder:
    """Asked for at noon, due so many hours later."""
    return Reminder(key, AGENT, asker, PLACE, f"text of {key}", at(hours), at(0))


async def fill(store: Store, *rows: Reminder) -> None:
    async with store.work() as work:
        for row in rows:
            assert await work.reminders.add(row)


@pytest.mark.anyio
class ReminderContract:
    async def test_reminders_come_back_as_they_were_set_the_next_one_first(self, store: Store) -> None:
        late, soon = reminder_of("a", 5), replace(reminder_of("b", 1), text="tea \x00 \ud800")
        same = replace(reminder_of("c", 1), place=Place(PLATFORM, "12", "t"), account=OTHER)
        await fill(store, late, soon, same, reminder_of("d", 0, asker=BOB))
        async with store.work(write=False) as work:
            assert await work.reminders.list_for(ANA) == [soon, same, late]
            assert await work.reminders.list_for(ANA, limit=1) == [soon]
            assert await work.reminders.list_for("nobody") == []

    async def test_a_reminder_set_again_is_the_first_one(self, store: Store) -> None:
        await fill(store, reminder_of("a", 1))
        async with store.work() as work:
            assert not await work.reminders.add(reminder_of("a", 2))
            assert await work.reminders.list_for(ANA) == [reminder_of("a", 1)]

    async def test_what_is_due_is_listed_for_its_account_and_platform(self, store: Store) -> None:
        mine = [reminder_of("a", 2), reminder_of("b", 1), reminder_of("c", 3)]
        elsewhere = replace(reminder_of("d", 1), place=Place("web", "general"))
        await fill(store, *mine, elsewhere, replace(reminder_of("e", 1), account=OTHER))
        async with store.work(write=False) as work:
            due = await work.reminders.list_due(AGENT, PLATFORM, now=at(2))
            assert [row.id for row in due] == ["b", "a"]
            assert [row.id for row in await work.reminders.list_due(AGENT, PLATFORM, now=at(2), limit=1)] == ["b"]
            assert await work.reminders.list_due(AGENT, PLATFORM, now=at(0)) == []

    async def test_the_next_time_is_that_of_the_first_that_is_not_due(self, store: Store) -> None:
        async with store.work(write=False) as work:
            assert await work.reminders.find_next_due(after=at(0)) is None
        await fill(store, reminder_of("a", 2), reminder_of("b", 1))
        async with store.work(write=False) as work:
            assert await work.reminders.find_next_due(after=at(0)) == at(1)
            assert await work.reminders.find_next_due(after=at(1)) == at(2)
            assert await work.reminders.find_next_due(after=at(2)) is None

    async def test_a_reminder_is_removed_once_and_for_others_not_at_all(self, store: Store) -> None:
        await fill(store, reminder_of("a", 1), reminder_of("b", 1))
        async with store.work() as work:
            assert not await work.reminders.remove("a", asker=BOB)
            assert await work.reminders.remove("a", asker=ANA)
            assert not await work.reminders.remove("a")
            assert await work.reminders.remove("b")
            assert not await work.reminders.remove("none")
            assert await work.reminders.list_for(ANA) == []

    async def test_who_is_forgotten_leaves_no_reminder_behind(self, store: Store) -> None:
        await fill(store, reminder_of("a", 1), reminder_of("b", 1, asker=BOB), reminder_of("c", 2))
        async with store.work() as work:
            assert await work.reminders.forget_asker(ANA) == 2
            assert await work.reminders.forget_asker(ANA) == 0
            assert [row.id for row in await work.reminders.list_for(BOB)] == ["b"]
