"""Settings of agents by the SDK, on the real routes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
import pytest

from denizen.testing.scripted_model import ScriptedModel
from denizen_sdk import ApiError, DenizenClient
from tests.web_fixture import ADA, AGENTS_WITH_SETTINGS, ANN, LOCAL, open_web

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def open_clients() -> AsyncGenerator[tuple[DenizenClient, DenizenClient]]:
    """An admin and a member."""
    async with open_web(ScriptedModel(), keys=(ADA, ANN), agents=AGENTS_WITH_SETTINGS) as web:
        transport = httpx2.ASGITransport(web.app)
        admin = DenizenClient(LOCAL, "key-of-ada", transport=transport)
        async with admin, DenizenClient(LOCAL, "key-of-ann", transport=transport) as member:
            yield admin, member


async def test_settings_are_saved_in_sets_of_which_one_is_active() -> None:
    async with open_clients() as (admin, _):
        before = await admin.get_agent_config()
        assert (before.agent, before.name, before.additional_prompt) == ("denizen", "", "Mention cats.")
        saved = await admin.save_agent_config({"language": "de", "temperature": 0.5})
        assert (saved.name, saved.language, saved.changed) == ("default", "de", ("language", "temperature"))
        await admin.save_agent_config({"language": "fr"}, name="a/b c", activate=False)
        assert (await admin.get_agent_config()).language == "de"
        assert (await admin.activate_agent_config_set("a/b c")).language == "fr"
        sets = {each.name: each for each in await admin.list_agent_config_sets()}
        assert {name: (each.is_active, each.changed) for name, each in sets.items()} == {
            "default": (False, ("language", "temperature")),
            "a/b c": (True, ("language",)),
        }
        assert (await admin.reset_agent_config(name="a/b c")).changed == ()
        await admin.remove_agent_config_set("a/b c")
        assert await admin.get_agent_config() == before
        assert [each.name for each in await admin.list_agent_config_sets()] == ["default"]


@pytest.mark.proves("S-sdk-client")
async def test_settings_of_another_agent_and_what_members_see() -> None:
    async with open_clients() as (admin, member):
        await admin.save_agent_config({"search_instructions": "Look in the attic."}, agent="scribe")
        assert (await admin.get_agent_config("scribe")).search_instructions == "Look in the attic."
        assert (await member.get_agent_config("scribe")).search_instructions is None
        assert await admin.list_agent_config_sets() == []
        assert (await admin.reset_agent_config(agent="scribe")).search_instructions is None
        assert (await admin.activate_agent_config_set("default", agent="scribe")).agent == "scribe"
        await admin.remove_agent_config_set("default", agent="scribe")
        with pytest.raises(ApiError) as refused:
            await member.save_agent_config({"language": "de"})
        with pytest.raises(ApiError) as wrong:
            await admin.save_agent_config({"langauge": "de"})
        with pytest.raises(ApiError) as gone:
            await admin.remove_agent_config_set("default", agent="scribe")
    assert [each.value.status for each in (refused, wrong, gone)] == [403, 400, 404]
