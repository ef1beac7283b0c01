"""The page of an assistant's settings."""

from __future__ import annotations

import re

import pytest

from denizen.domain.ids import AgentName
from denizen.engine.configuration.agent_settings import AgentSettingsOverlay
from tests.web.test_source_pages import Browser
from tests.web_fixture import ADA, AGENTS_WITH_SETTINGS, ANN, WebFixture, open_web

pytestmark = pytest.mark.anyio

PAGE = "/admin/assistant"
FULL = {
    "language": "de",
    "default_model": "auto",
    "response_style": "friendly",
    "citation_format": "footnote",
    "temperature": "0,4",
    "max_steps_multiplier": "2",
    "additional_prompt": "Say <b>hello</b>.",
    "search_instructions": "Look in rules first.",
}


def open_overlay(web: WebFixture) -> AgentSettingsOverlay:
    return AgentSettingsOverlay(web.store, web.clock)


@pytest.mark.proves("S-admin-assistant")
async def test_the_page_sets_everything_about_how_an_agent_answers_and_tells_what_differs() -> None:
    aliases = ("quality", "fast", "balanced")
    async with open_web(keys=[ADA, ANN], agents=AGENTS_WITH_SETTINGS, aliases=aliases) as web, web.client() as client:
        ada = Browser(client, "key-of-ada")
        page = await ada.read(PAGE)
        assert "Nothing differs: denizen answers as configured." in page
        offered = set(re.findall(r'<(?:input|select|textarea) id="(\w+)"', page))
        assert offered >= FULL.keys()
        options = re.findall(
            r'<option value="(\w*)"', page[page.index('id="default_model"') :].partition("</select>")[0]
        )
        assert options[:5] == ["", "auto", "fast", "balanced", "quality"]
        for model in ("fast", "balanced", "quality"):
            await ada.send(PAGE, agent="denizen", name="calm", activate="yes", default_model=model)
            active = await open_overlay(web).load_active(AgentName("denizen"))
            assert active is not None and active.chosen.default_model == model
        saved = await ada.send(PAGE, agent="denizen", name="calm", activate="yes", **FULL)
        assert saved.headers["location"] == f"{PAGE}?agent=denizen&set=calm&done=saved"
        active = await open_overlay(web).load_active(AgentName("denizen"))
        assert active is not None
        chosen = active.chosen
        assert (active.name, chosen.language, chosen.default_model, chosen.temperature) == ("calm", "de", "auto", 0.4)
        assert (chosen.response_style, chosen.citation_format) == ("friendly", "footnote")
        assert (chosen.max_steps_multiplier, chosen.additional_prompt) == (2.0, "Say <b>hello</b>.")
        assert chosen.search_instructions == "Look in rules first."
        page = await ada.read(f"{PAGE}?agent=denizen")
        differing = page[page.index("Differs now") : page.index("<h2>Sets</h2>")]
        for label in ("Language", "Model", "Tone", "Citations", "Creativity", "Depth", "Instructions", "How to search"):
            assert label in differing
        assert ("Mention cats." in differing, "&lt;b&gt;hello" in page, "<b>hello" in page) == (True, True, False)


async def test_an_emptied_field_is_as_configured_and_a_wrong_one_is_told_with_what_was_typed() -> None:
    async with open_web(keys=[ADA], agents=AGENTS_WITH_SETTINGS) as web, web.client() as client:
        ada = Browser(client, "key-of-ada")
        await ada.send(PAGE, name="calm", activate="yes", language="de", temperature="1")
        await ada.send(PAGE, name="calm", activate="yes", language="de")
        active = await open_overlay(web).load_active(AgentName("denizen"))
        assert active is not None
        assert active.chosen.names == ("language",)
        for field, value, why in (
            ("language", "klingon!", "it is no language code"),
            ("temperature", "hot", "is no number"),
            ("max_steps_multiplier", "99", "is out of range"),
            ("name", "x" * 61, "A set&#39;s name has 1 to 60"),
        ):
            wrong = await ada.send(PAGE, **({"name": "calm"} | {field: value}))
            assert (wrong.status_code, why in wrong.text, f'value="{value}"' in wrong.text) == (400, True, True), field


async def test_sets_are_used_reset_and_removed() -> None:
    async with open_web(keys=[ADA, ANN], agents=AGENTS_WITH_SETTINGS) as web, web.client() as client:
        ada, overlay = Browser(client, "key-of-ada"), open_overlay(web)
        for name, language in (("calm", "de"), ("loud", "fr")):
            await ada.send(PAGE, agent="scribe", name=name, activate="yes", language=language)
        assert "loud" in (await ada.read(f"{PAGE}?agent=scribe&set=loud"))
        await ada.send(f"{PAGE}/activate", agent="scribe", name="calm")
        active = await overlay.load_active(AgentName("scribe"))
        assert active is not None
        assert active.name == "calm"
        await ada.send(f"{PAGE}/reset", agent="scribe", name="calm")
        assert "Nothing differs: scribe answers as configured." in await ada.read(f"{PAGE}?agent=scribe")
        for name in ("calm", "loud"):
            await ada.send(f"{PAGE}/remove", agent="scribe", name=name)
        assert await overlay.list_sets(AgentName("scribe")) == []
        assert (await ada.send(f"{PAGE}/remove", agent="scribe", name="calm")).status_code == 404
        assert (await client.get(PAGE, headers={"x-api-key": "key-of-ann"})).status_code == 403
