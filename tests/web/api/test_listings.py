"""What can be read: agents, models, tools, messages, turns, the health of the server, the description of the API."""

from collections.abc import Mapping

import anyio
import pytest

from denizen.domain.agent import Agent, ToolAccess
from denizen.domain.ids import AgentName
from denizen.domain.tool import ToolSpec
from denizen.ports.model import Capabilities, ModelInfo
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from denizen.web.api.records import agent_to_wire, model_to_wire
from denizen.web.http.dependencies import WebTiming
from tests.web_fixture import ANN, open_web

pytestmark = pytest.mark.anyio


async def test_agents_are_listed_with_their_provider_and_the_default_first() -> None:
    agents = [Agent(AgentName("zoe"), "First."), Agent(AgentName("abe"))]
    async with open_web(ScriptedModel(name="lab/small"), agents=agents) as web, web.client() as client:
        rows = (await client.get("/api/agents")).json()
    assert [(row["name"], row["is_default"]) for row in rows] == [("zoe", True), ("abe", False)]
    assert rows[0]["provider"] == "lab"
    assert rows[0]["description"] == "First."


def test_an_agent_on_the_built_in_model_says_so() -> None:
    agent = Agent(AgentName("zoe"))
    model = ModelInfo("builtin/small", "builtin", (), (), Capabilities(), is_embedded=True)
    assert agent_to_wire(agent, model, is_default=True).is_embedded
    assert model_to_wire(model).is_embedded
    assert not agent_to_wire(agent, None, is_default=True).is_embedded


async def test_models_are_listed() -> None:
    model = ScriptedModel(capabilities=Capabilities(small=True, context_tokens=4096))
    async with open_web(model) as web, web.client() as client:
        [row] = (await client.get("/api/models")).json()
    assert (row["name"], row["is_small"], row["context_tokens"]) == ("scripted/model", True, 4096)


async def test_tools_are_listed_with_the_risk_that_the_gate_sees() -> None:
    agents = [Agent(AgentName("all")), Agent(AgentName("none"), tool_access=ToolAccess(tools=()))]
    async with open_web(agents=agents) as web, web.client() as client:
        [row] = (await client.get("/api/tools")).json()
        assert (await client.get("/api/tools", params={"agent": "none"})).json() == []
        assert (await client.get("/api/tools", params={"agent": "nobody"})).status_code == 404
    assert (row["name"], row["tier"], row["source"], row["read_only"]) == ("weather", 0, "weather", True)
    assert row["parameters"]["required"] == ["city"]


async def test_messages_are_listed_with_their_calls_and_results() -> None:
    model = ScriptedModel(ScriptedReply("Let me look.", calls=[call("weather", city="Oslo")]), ScriptedReply("Sunny."))
    async with open_web(model) as web, web.client() as client:
        await client.post("/api/chat", json={"message": "hi"})
        rows = (await client.get("/api/sessions/default/messages")).json()
        [last] = (await client.get("/api/sessions/default/messages", params={"limit": 1})).json()
    assert [(row["role"], row["text"]) for row in rows] == [
        ("user", "hi"),
        ("assistant", "Let me look."),
        ("assistant", "Sunny."),
    ]
    [used] = rows[1]["calls"]
    assert (used["tool"], used["args"], used["text"], used["is_error"]) == (
        "weather",
        {"city": "Oslo"},
        "Sunny. ",
        False,
    )
    assert last["text"] == "Sunny."


async def test_a_turn_is_shown_with_steps_calls_and_verdicts() -> None:
    model = ScriptedModel(ScriptedReply(calls=[call("weather", city="Oslo")]), ScriptedReply("Sunny."))
    async with open_web(model) as web, web.client() as client:
        answer = await client.post("/api/chat", json={"message": "hi"})
        row = (await client.get(f"/api/turns/{answer.headers['x-denizen-turn']}")).json()
    assert (row["status"], row["reply"], row["error"], row["usage"]["output_tokens"]) == ("done", "Sunny.", None, 10)
    assert [step["number"] for step in row["trace"]["steps"]] == [1, 2]
    [used] = row["trace"]["calls"]
    assert (used["tool"], used["decision"]) == ("weather", "approve")


# --- health and readiness --------------------------------------------------------------------------------------------


@pytest.mark.proves("T-http-health")
async def test_health_tells_status_uptime_provider_model_tools_and_generation() -> None:
    async with open_web() as web, web.client() as client:
        web.clock.advance(seconds=5)
        health = (await client.get("/health")).json()
    assert health.pop("uptime_s") == 5
    assert health == {
        "status": "ok",
        "version": "1.2.3",
        "generation": 7,
        "agents": 2,
        "provider": "scripted",
        "model": "scripted/model",
        "tools": 1,
    }


@pytest.mark.proves("T-http-health", "TW3")
async def test_health_needs_no_key_and_tells_only_those_who_have_one_more_than_that_it_is_alive() -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        response = await client.get("/health")
        known = await client.get("/health", headers={"x-api-key": "key-of-ann"})
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    assert known.json()["generation"] == 7


async def test_health_does_not_wait_for_a_source_of_tools_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang() -> list[ToolSpec]:
        await anyio.sleep_forever()
        return []

    async with open_web(timing=WebTiming(tools_deadline_s=0.0)) as web, web.client() as client:
        monkeypatch.setattr(web.weather, "list_tools", hang)
        health = (await client.get("/health")).json()
    assert (health["status"], health["tools"]) == ("ok", None)


async def test_a_server_is_ready_while_no_part_has_a_problem() -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        response = await client.get("/ready")
    assert (response.status_code, response.json()) == (200, {"status": "ready", "not_ready": [], "reasons": {}})


async def test_the_parts_that_are_not_ready_are_named_and_the_reasons_told_to_those_with_a_key() -> None:
    problems = {"store": "The disk of ann.db is full.", "accounts": "Not connected."}

    async def find_problems() -> Mapping[str, str]:
        return problems

    async with open_web(keys=[ANN], find_problems=find_problems) as web, web.client() as client:
        told = await client.get("/ready")
        known = await client.get("/ready", headers={"x-api-key": "key-of-ann"})
        wrong = await client.get("/ready", headers={"x-api-key": "another"})
    assert (told.status_code, known.status_code, wrong.status_code) == (503, 503, 401)
    assert told.json() == {"status": "not_ready", "not_ready": ["store", "accounts"], "reasons": {}}
    assert known.json() == told.json() | {"reasons": problems}


async def test_a_fault_in_a_listing_is_answered_with_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail() -> list[ToolSpec]:
        raise ZeroDivisionError

    async with open_web() as web, web.client() as client:
        monkeypatch.setattr(web.weather, "list_tools", fail)
        response = await client.get("/api/tools")
    assert (response.status_code, response.json()["error"]["code"]) == (500, "bug")
    assert response.headers["x-content-type-options"] == "nosniff"
