"""The store's promises about generations of the configuration and what users chose."""

from __future__ import annotations

import anyio
import pytest

from denizen.domain.json import Json
from denizen.ports.store import ConfigGeneration, Store
from denizen.testing.store_records import at

ANA, BOB = "platform_user:1", "web_user:1"


@pytest.mark.anyio
class SettingsContract:
    async def test_generations_are_numbered_and_the_same_configuration_is_the_same_generation(
        self, store: Store
    ) -> None:
        async with store.work() as work:
            first = await work.generations.add(digest="d1", source="start", now=at(0))
            again = await work.generations.add(digest="d1", source="reload", now=at(1))
            second = await work.generations.add(digest="d2", source="edit\x00", now=at(2))
            back = await work.generations.add(digest="d1", source="undo", now=at(3))
        assert first == again == ConfigGeneration(1, "d1", "start", at(0))
        assert (second.number, back.number) == (2, 3)
        async with store.work(write=False) as work:
            assert await work.generations.list_generations() == [back, second, first]
            assert await work.generations.list_generations(limit=1) == [back]
            assert await work.generations.list_generations(limit=0) == []

    async def test_generations_accepted_at_once_get_numbers_of_their_own(self, store: Store) -> None:
        async def accept(number: int) -> None:
            async with store.work() as work:
                await work.generations.add(digest=f"d{number}", source="edit", now=at(0))

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(accept, number)
        async with store.work(write=False) as work:
            rows = await work.generations.list_generations()
        assert [row.number for row in rows] == list(range(10, 0, -1))

    async def test_a_user_has_settings_of_any_json_and_none_removes_one(self, store: Store) -> None:
        values: dict[str, Json] = {"model": "fast\x00", "deep": {"a": [1, 2.5, None, True]}, "off": False, "zero": 0}
        async with store.work() as work:
            assert await work.user_settings.get(ANA) == {}
            for key, value in values.items():
                await work.user_settings.put(ANA, key, value, now=at(0))
            await work.user_settings.put(ANA, "model", "quality", now=at(1))
            await work.user_settings.put(ANA, "zero", None, now=at(1))
            await work.user_settings.put(ANA, "never", None, now=at(1))
        async with store.work(write=False) as work:
            assert await work.user_settings.get(ANA) == {"model": "quality", "deep": values["deep"], "off": False}

    async def test_what_one_user_chose_is_never_another_users(self, store: Store) -> None:
        async with store.work() as work:
            await work.user_settings.put(ANA, "model", "a", now=at(0))
            await work.user_settings.put(BOB, "model", "b", now=at(0))
            await work.user_settings.put(BOB, "model", None, now=at(0))
            assert await work.user_settings.get(ANA) == {"model": "a"}
            assert await work.user_settings.get(BOB) == {}
