"""The pages of agents, on a server whose configuration cannot be edited."""

from __future__ import annotations

import re

import pytest

from denizen.domain.agent import Agent, AgentInstructions, ToolAccess
from denizen.domain.ids import AgentName
from denizen.testing.scripted_model import ScriptedModel
from tests.web.knowledge_web_fixture import OWNER
from tests.web.test_source_pages import Browser
from tests.web_fixture import ADA, ANN, open_web

pytestmark = pytest.mark.anyio

ADA_AGENT = Agent(
    AgentName("ada"),
    "Knows <b>boats</b>.",
    instructions=AgentInstructions(persona=(("IDENTITY.md", "You are Ada of the harbour."),)),
)
BEA = Agent(AgentName("bea"), tool_access=ToolAccess(tools=()))


async def test_agents_are_listed_with_what_they_are_made_of() -> None:
    async with open_web(keys=[ADA, ANN], agents=[ADA_AGENT, BEA]) as web, web.client() as client:
        page = await Browser(client, "key-of-ada").read("/admin/agents")
        assert re.findall(r'<a href="/admin/agents/(\w+)"', page) == ["ada", "bea"]
        assert page.count(">default</span>") == 1
        assert ("&lt;b&gt;boats" in page, "<b>boats" in page, "scripted/model" in page) == (True, False, True)
        assert (await client.get("/admin/agents", headers={"x-api-key": "key-of-ann"})).status_code == 403


async def test_an_agents_page_shows_tools_and_limits_and_the_prompt_by_segment_with_tokens_and_sends_nothing() -> None:
    model = ScriptedModel()
    async with open_web(model, keys=[ADA, OWNER], agents=[ADA_AGENT, BEA]) as web, web.client() as client:
        page = await Browser(client, "key-of-ada").read("/admin/agents/ada?q=Where+is+<the>+pier?")
        shown = re.sub(r"<[^>]*>", " ", page[page.index('id="prompt"') :])
        assert "1 tools" in page
        assert re.search(r"persona\s+\w+\s+about \d+ tokens\s+You are Ada of the harbour\.", shown)
        assert ("Where is &lt;the&gt; pier?" in page, "Steps of a turn" in page) == (True, True)
        assert re.search(r"To\s+scripted/model\s*: about \d+ tokens", shown)
        assert (model.requests, await web.turns()) == ([], [])
        assert "Change it" not in await Browser(client, "key-of-olga").read("/admin/agents/ada")
        missing = await client.get("/admin/agents/nobody", headers={"x-api-key": "key-of-ada"})
        assert missing.status_code == 404
