"""A stranger's way into Denizen by clicks alone: from a home that nobody has touched to an answer with its source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from anyio import to_thread
from playwright.async_api import expect

from denizen.testing.model_server import ModelAnswer, model_server
from denizen.testing.model_wire import JsonBody, ModelCall
from tests.e2e.home import Home
from tests.timing import HANG_LIMIT_S
from tests.web.browser.accessibility import find_violations
from tests.web.browser.browser import open_browser
from tests.web.browser.test_accounts import sign_up

pytestmark = [pytest.mark.anyio, pytest.mark.e2e, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)


def answer(body: JsonBody) -> ModelAnswer:
    """What a model says: it searches the documents, and answers from the passage with its citation."""
    last = body["messages"][-1]
    if "Say OK" in str(last):
        return ModelAnswer(text="OK")
    if "title of a chat" in str(body):
        return ModelAnswer(text="Price of a berth")
    if last["role"] != "tool":
        return ModelAnswer(calls=[ModelCall("search_docs", {"query": "price of a berth"})])
    [citation] = re.findall(r"\[\S+harbour\.md:[\d-]+\]", str(last["content"]))
    return ModelAnswer(text=f"A berth is ten euros {citation}.")


async def test_a_stranger_comes_by_clicks_alone_to_a_second_agent_that_answers_from_a_first_source(
    tmp_path: Path,
) -> None:
    home, notes = Home(tmp_path / "home"), tmp_path / "notes"
    notes.mkdir()
    (notes / "harbour.md").write_text("# Harbour\n\nA berth is ten euros.\n")
    done = await to_thread.run_sync(lambda: home.do("setup", "--non-interactive", "--if-missing", "--no-verify"))
    assert done.code == 0
    server = await to_thread.run_sync(home.serve)
    with server:
        async with model_server() as models, open_browser() as browser:
            models.aside = answer
            page = await browser.new_page()
            await page.goto(server.url)
            hint = page.get_by_text("Answers come from the small built-in model.")
            await expect(hint.get_by_role("link", name="connect a provider")).to_be_visible()
            await page.get_by_role("link", name="Settings").click()
            await page.get_by_role("link", name="Make the first account").click()
            await sign_up(page, "ann")
            await expect(page.get_by_role("heading", name="First steps", level=1)).to_be_visible()

            await page.get_by_role("link", name=re.compile("A model")).click()
            await page.get_by_role("link", name=re.compile("openai-compatible")).click()
            await page.get_by_label("Address").fill(models.openai_url)
            await page.get_by_label("Model", exact=True).fill("tiny")
            await page.get_by_role("button", name="Try it and use it").click()
            await expect(page.get_by_role("heading", name="Discord", level=1)).to_be_visible()
            await page.get_by_role("button", name="Leave this out for now").click()

            await page.get_by_role("link", name="Folder of this machine").click()
            await page.get_by_label("Place").fill(str(notes))
            await page.get_by_label("Name to show").fill("Notes")
            await page.get_by_role("button", name="Add it").click()
            await page.get_by_label("Name", exact=True).fill("scribe")
            await page.get_by_label("Persona").fill("You take notes of the harbour.")
            await page.get_by_role("button", name="Add it").click()

            await page.get_by_role("link", name="Talk to your agent").click()
            await page.get_by_label("Agent", exact=True).select_option("scribe")
            await expect(hint).to_be_hidden()
            await expect(page.get_by_text("Documents as of")).to_be_visible()  # the source has been read
            await page.get_by_label("Message", exact=True).fill("What does a berth cost?")
            await page.get_by_role("button", name="Send", exact=True).click()
            said = page.get_by_role("article", name="scribe")
            await expect(said).to_contain_text("A berth is ten euros harbour.md:")
            await expect(page.get_by_role("link", name="Price of a berth")).to_be_visible()
            await expect(said.get_by_role("button", name="Why?")).to_be_visible()
            await said.get_by_role("button", name=re.compile("harbour.md:")).click()
            panel = page.get_by_role("complementary", name=re.compile("harbour.md"))
            await expect(panel).to_contain_text("A berth is ten euros.")
            await expect(panel).to_contain_text("From the source notes.")
            assert await find_violations(page) == []
    assert any("You take notes of the harbour." in str(request.body) for request in models.requests)
