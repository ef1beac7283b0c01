"""Settings of agents over HTTP: who may do what, and what comes of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from denizen.web.http.auth import ApiKey
from denizen_sdk.agents import AgentConfig, AgentConfigSet
from denizen_sdk.records import from_json
from tests.web_fixture import ADA, AGENTS_WITH_SETTINGS, ANN, WebFixture, open_web

pytestmark = pytest.mark.anyio

FILE = {
    "agent": "denizen",
    "name": "",
    "response_style": "concise",
    "language": "en",
    "default_model": "balanced",
    "max_steps_multiplier": 1.0,
    "citation_format": "inline",
    "temperature": None,
    "additional_prompt": "Mention cats.",
    "search_instructions": None,
    "changed": [],
}

EVERYTHING: dict[str, Any] = {
    "response_style": "friendly",
    "language": "pt-BR",
    "default_model": "quality",
    "max_steps_multiplier": 2.0,
    "citation_format": "none",
    "temperature": 0.5,
    "additional_prompt": "Mention dogs.",
    "search_instructions": "Look in the attic.",
}


class AgentConfigFixture:
    """A site with an admin and a member."""

    def __init__(self, web: WebFixture, client: httpx2.AsyncClient) -> None:
        self.web = web
        self._client = client

    async def ask(self, method: str, path: str, key: str = "key-of-ada", **body: Any) -> tuple[int, Any]:
        answer = await self._client.request(
            method, f"/api/agent-config{path}", headers={"x-api-key": key}, json=body or None
        )
        return answer.status_code, answer.json() if answer.content else None


@asynccontextmanager
async def open_agent_config(model: ScriptedModel | None = None) -> AsyncGenerator[AgentConfigFixture]:
    async with (
        open_web(model or ScriptedModel(), keys=(ADA, ANN), agents=AGENTS_WITH_SETTINGS) as web,
        web.client() as client,
    ):
        yield AgentConfigFixture(web, client)


@pytest.mark.proves("S-http-agent-config-get")
async def test_an_admin_reads_what_holds() -> None:
    async with open_agent_config() as server:
        assert await server.ask("GET", "") == (200, FILE)
        _, scribe = await server.ask("GET", "?agent=scribe")
        assert (scribe["agent"], scribe["default_model"]) == ("scribe", "auto")
        status, error = await server.ask("GET", "?agent=scrib")
        assert (status, error["error"]["fix"]) == (404, "Did you mean 'scribe'?")


@pytest.mark.proves("S-http-agent-config-put", "S-config-save")
async def test_what_an_admin_saves_holds_at_once() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("ok"))
    async with open_agent_config(model) as server:
        status, config = await server.ask("PUT", "", temperature=0.2, language="de")
        assert (status, config["name"], config["changed"]) == (200, "default", ["language", "temperature"])
        _, config = await server.ask("PUT", "", language=None, response_style="technical")
        assert config == {
            **FILE,
            "name": "default",
            "temperature": 0.2,
            "response_style": "technical",
            "changed": ["response_style", "temperature"],
        }
        assert from_json(AgentConfig, config).changed == ("response_style", "temperature")
        async with server.web.client() as client:
            said = {"message": "hello"}
            await client.post("/api/chat", json=said, headers={"x-api-key": "key-of-ann"})
    assert model.requests[0].sampling.temperature == 0.2
    assert "for readers who know the subject" in str(model.requests[0].segments)


@pytest.mark.proves("S-http-agent-config-put")
async def test_what_cannot_be_is_refused_with_why_and_fix_and_nothing_changes() -> None:
    async with open_agent_config() as server:
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"temperature": 2.5}, "0 to 2"),
            ({"max_steps_multiplier": 4}, "0.5 to 3"),
            ({"langauge": "de"}, "'language'"),
            ({"response_style": "rude", "language": "de"}, "concise"),
        ]
        for body, fix in wrong:
            status, answer = await server.ask("PUT", "", **body)
            assert (status, fix in answer["error"]["fix"]) == (400, True)
        assert await server.ask("GET", "") == (200, FILE)


@pytest.mark.proves("S-http-agent-config-reset-post")
async def test_a_reset_brings_the_configured_values_back() -> None:
    async with open_agent_config() as server:
        await server.ask("PUT", "", additional_prompt="Be kind.", temperature=1)
        assert (await server.ask("POST", "/reset")) == (200, {**FILE, "name": "default"})


@pytest.mark.proves("S-http-agent-config-public-get", "S-http-agent-config-put")
async def test_everybody_reads_how_the_agent_answers_but_not_its_texts() -> None:
    async with open_agent_config() as server:
        await server.ask("PUT", "", **EVERYTHING)
        _, in_full = await server.ask("GET", "/public")
        assert in_full == {**FILE, **EVERYTHING, "name": "default", "changed": in_full["changed"]}
        assert set(in_full["changed"]) == set(EVERYTHING)
        without_texts = in_full | {"additional_prompt": None, "search_instructions": None}
        assert await server.ask("GET", "/public", key="key-of-ann") == (200, without_texts)
        assert (await server.ask("GET", "/public", key="wrong"))[0] == 401
        async with server.web.client() as browser:
            await browser.post("/login", data={"key": "key-of-ann"})
            assert (await browser.get("/api/agent-config/public")).json() == without_texts
        server.web.keys.append(ApiKey.from_text("olga", "key-of-olga", ("owner",)))
        assert await server.ask("GET", "/public", key="key-of-olga") == (200, in_full)
        server.web.keys.clear()
        async with server.web.client() as stranger:
            assert (await stranger.get("/api/agent-config/public")).status_code == 200, "where nobody needs a key"


@pytest.mark.proves("S-http-agent-config-get", "S-http-agent-config-put", "S-http-agent-config-reset-post")
async def test_only_admins_read_or_change_settings_of_agents() -> None:
    async with open_agent_config() as server:
        for method, path in (
            ("GET", ""),
            ("PUT", ""),
            ("POST", "/reset"),
            ("GET", "/sets"),
            ("POST", "/sets/default/activate"),
            ("DELETE", "/sets/default"),
        ):
            status, answer = await server.ask(method, path, key="key-of-ann")
            assert (status, answer["error"]["code"]) == (403, "admin_only")


@pytest.mark.proves("S-data-agent-config")
async def test_sets_are_made_listed_activated_and_deleted_by_name() -> None:
    async with open_agent_config() as server:
        await server.ask("PUT", "", language="de")
        _, config = await server.ask("PUT", "", name="exam", activate=False, temperature=0)
        assert (config["name"], config["language"], config["temperature"]) == ("default", "de", None)
        _, rows = await server.ask("GET", "/sets")
        sets = [from_json(AgentConfigSet, row) for row in rows]
        assert [(each.name, each.is_active, each.changed) for each in sets] == [
            ("default", True, ("language",)),
            ("exam", False, ("temperature",)),
        ]
        status, config = await server.ask("POST", "/sets/exam/activate")
        assert (status, config["name"], config["temperature"]) == (200, "exam", 0.0)
        assert (await server.ask("DELETE", "/sets/exam"))[0] == 204
        assert await server.ask("GET", "") == (200, FILE)
        status, answer = await server.ask("DELETE", "/sets/exam")
        assert (status, answer["error"]["fix"]) == (404, "There are: default.")


async def test_settings_of_one_agent_are_none_of_another() -> None:
    async with open_agent_config() as server:
        await server.ask("PUT", "", agent="scribe", language="de")
        assert await server.ask("GET", "") == (200, FILE)
        assert (await server.ask("GET", "?agent=scribe"))[1]["language"] == "de"
