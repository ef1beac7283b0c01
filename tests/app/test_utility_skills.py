"""When the skills `reminders`, `web_search` and `cards` are there, and what their settings show."""

from __future__ import annotations

import pytest

from denizen.adapters.fetch import WebFetcher
from denizen.app.build import OpenOptions, open_denizen
from denizen.app.settings import render_settings
from denizen.app.toolsets import build_skill_services
from denizen.builtin_skills import load_builtin
from denizen.cli.main import run
from denizen.domain.errors import InvalidInput, NotAllowed
from tests.app.home_folder import LAB, Home

pytestmark = pytest.mark.anyio

KEY = "BSA-key-of-a-test"
BRAVE = LAB + "tools: {web_search: {provider: brave, api_key: '${BRAVE_API_KEY}'}}\n"


async def load_tool_names(home: Home, config: str) -> set[str]:
    home.write(config)
    async with open_denizen(home.path, OpenOptions(durable=False)) as denizen:
        return {tool.spec.name for tool in await denizen.queries.list_tools()}


async def test_a_plain_installation_pays_for_none_of_them(home: Home) -> None:
    assert not {"remind", "web_search", "make_embed"} & await load_tool_names(home, LAB)


async def test_reminders_are_there_where_there_is_a_discord_account(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISCORD_TOKEN", "a.b.c")
    account = LAB + "channels: {discord: {accounts: {denizen: '${DISCORD_TOKEN}'}}}\n"
    assert {"remind", "list_reminders", "cancel_reminder"} <= await load_tool_names(home, account)
    assert "remind" not in await load_tool_names(home, account + "tools: {reminders: {enabled: false}}\n")


async def test_web_search_is_there_with_a_provider_and_cards_when_they_are_enabled(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAVE_API_KEY", KEY)
    assert "web_search" in await load_tool_names(home, BRAVE)
    assert "web_search" not in await load_tool_names(home, BRAVE.replace("provider:", "enabled: false, provider:"))
    assert "make_embed" in await load_tool_names(home, LAB + "tools: {cards: {enabled: true}}\n")


async def test_a_skill_that_an_agent_names_is_there_and_says_itself_what_it_lacks(home: Home) -> None:
    named = LAB + "agents: {ada: {tools: [web_search, remind, calculator]}}\n"
    assert {"web_search", "remind"} <= await load_tool_names(home, named)


async def test_a_provider_without_its_key_is_a_fault_of_the_configuration_that_says_how(home: Home) -> None:
    with pytest.raises(InvalidInput) as caught:
        await load_tool_names(home, LAB + "tools: {web_search: {provider: brave}}\n")
    assert "BRAVE_API_KEY" in caught.value.explain()


async def test_a_search_that_is_switched_on_without_a_provider_is_a_fault_that_says_how(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.write(LAB + "tools: {web_search: {enabled: true}}\n")
    assert run(["--home", str(home.path), "config", "check"]) == 2
    said = capsys.readouterr().err
    assert "tools.web_search.enabled: a search needs a provider." in said
    assert "Write `tools.web_search.provider`: brave or searxng." in said


async def test_a_time_zone_that_is_none_is_refused(home: Home) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_builtin("reminders").read_settings({"timezone": "Mars/Base"})
    assert "Europe/Rome" in caught.value.explain()


async def test_the_key_of_the_search_is_shown_nowhere_and_masked_in_logs(home: Home) -> None:
    settings = home.load(BRAVE, BRAVE_API_KEY=KEY)
    assert settings.tools["web_search"].options["api_key"] == KEY
    assert KEY not in render_settings(settings)
    assert KEY not in repr(settings)
    assert settings.secrets.mask(f"sent {KEY}") == settings.secrets.mask(f"sent {KEY}").replace(KEY, "")
    assert "api_key" in home.refuse(BRAVE.replace("'${BRAVE_API_KEY}'", KEY)).explain()


async def test_the_key_goes_to_the_search_service_alone(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAVE_API_KEY", KEY)
    home.write(BRAVE)
    async with open_denizen(home.path, OpenOptions(durable=False)) as denizen:
        options = denizen.settings.tools["web_search"].options
        meant = load_builtin("web_search").read_settings(options)
        fetcher = build_skill_services(denizen.settings, denizen.generation_deps.skills, options, meant).fetcher
    assert isinstance(fetcher, WebFetcher)
    assert fetcher._trusted._pairs == {("api.search.brave.com", 443)}
    assert not fetcher._allowed._pairs
    with pytest.raises(NotAllowed):
        await fetcher.fetch("https://elsewhere.example/", headers={"X-Subscription-Token": KEY})
