"""The store's promises about settings of assistants: named sets, of which one is active."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.agent import CitationFormat, ResponseStyle
from denizen.domain.agent_settings import AgentOverrides, SettingsSet
from denizen.domain.ids import AgentName
from denizen.ports.store import Store
from denizen.testing.store_records import AGENT, at

EVERYTHING = AgentOverrides(
    "Be kind.\x00 \ud800", ResponseStyle.TECHNICAL, "de", "quality", 1.5, 0.25, "Search twice.", CitationFormat.NONE
)
USUAL = SettingsSet(AGENT, "usual", at(0), at(0), EVERYTHING, is_active=True)
EXAM = SettingsSet(AGENT, "exam", at(1), at(1), AgentOverrides(temperature=0.0))
OTHERS = SettingsSet(AgentName("ada"), "usual", at(1), at(1), is_active=True)


@pytest.mark.anyio
class AssistantContract:
    @pytest.mark.proves("S-data-agent-config")
    async def test_sets_are_kept_by_agent_and_name_and_one_of_an_agent_is_active(self, store: Store) -> None:
        async with store.work() as work:
            assert await work.agent_settings.find_active(AGENT) is None
            for each in (USUAL, EXAM, OTHERS):
                await work.agent_settings.put(each)
        async with store.work() as work:
            assert await work.agent_settings.list_sets(AGENT) == [EXAM, USUAL]
            assert await work.agent_settings.find_active(AGENT) == USUAL
            await work.agent_settings.put(replace(EXAM, is_active=True, created_at=at(9), updated_at=at(2)))
        async with store.work(write=False) as work:
            active = replace(EXAM, is_active=True, updated_at=at(2))
            assert await work.agent_settings.find_active(AGENT) == active
            assert await work.agent_settings.list_sets(AGENT) == [active, replace(USUAL, is_active=False)]
            assert await work.agent_settings.find_active(OTHERS.agent) == OTHERS

    async def test_a_set_that_is_removed_is_gone_and_another_of_that_name_stays(self, store: Store) -> None:
        async with store.work() as work:
            await work.agent_settings.put(USUAL)
            await work.agent_settings.put(OTHERS)
        async with store.work() as work:
            assert await work.agent_settings.remove(AGENT, "usual")
            assert not await work.agent_settings.remove(AGENT, "usual")
            assert await work.agent_settings.find_active(AGENT) is None
            assert await work.agent_settings.list_sets(OTHERS.agent) == [OTHERS]

    async def test_a_set_can_be_put_to_rest_with_none_in_its_place(self, store: Store) -> None:
        async with store.work() as work:
            await work.agent_settings.put(USUAL)
            await work.agent_settings.put(replace(USUAL, is_active=False))
            assert await work.agent_settings.find_active(AGENT) is None
