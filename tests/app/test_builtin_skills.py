"""The built-in skills of a whole Denizen: each tool has the service that it needs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from denizen.app.build import Denizen, OpenOptions, open_denizen
from denizen.app.configuration import HomeConfiguration
from denizen.app.event_configuration import HomeEvents
from denizen.app.model_choice import ModelChoice
from denizen.app.reload import Reloader
from denizen.app.skill_loading.editor import python_example
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, CallId
from denizen.domain.json import JsonObject
from denizen.domain.tool import ToolCall, ToolResult
from denizen.domain.turn import TurnStatus
from denizen.testing.model_server import ModelAnswer, model_server
from tests.app.home_folder import LAB, Home, make_request, open_home
from tests.embedding_server import serve_embeddings
from tests.local_server import Exchange, serve
from tests.skill_fixture import scope

pytestmark = pytest.mark.anyio

ALL_ON = """
tools:
  system: {enabled: true, allow: [printf]}
  skill_manager: {enabled: true}
  skill_agent: {enabled: true}
  server: {enabled: true}
"""
BY_MEANING = """
models:
  providers:
    lab: {{kind: openai-compatible, base_url: "{models}"}}
    vectors: {{kind: openai-compatible, base_url: "{vectors}"}}
  aliases: {{balanced: lab/one}}
embeddings: {{provider: vectors, model: small, similarity: 0.999}}
"""


async def run(denizen: Denizen, tool: str, args: JsonObject) -> ToolResult:
    """Calls a tool for the operator, past the gate."""
    where = replace(scope(), agent=AgentName("denizen"), principal=denizen.operator, place=Place("terminal", "test"))
    for toolset in denizen.runtime.current.toolsets:
        if tool in {spec.name for spec in await toolset.list_tools()}:
            return await toolset.call(ToolCall(CallId("1"), tool, args), where)
    raise AssertionError(f"there is no tool {tool}")


INTEGRATIONS = """
tools:
  apis: {{enabled: true, server: "{server}"}}
  feeds: {{enabled: true}}
  github: {{enabled: true, server: "{server}"}}
  event_system: {{enabled: true}}
"""


@pytest.mark.proves("V-skill-integrations")
async def test_a_denizen_with_these_skills_reaches_apis_feeds_webhooks_and_github(home: Home) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.say('{"full_name": "club/site"}', kind="application/json")

    with serve({"/v1/items": answer, "/repos/club/site": answer}) as server:
        async with open_home(home, LAB + INTEGRATIONS.format(server=server.url(""))) as denizen:
            files = HomeConfiguration(denizen, Reloader(denizen))
            denizen.generation_deps.skills.events.open_configuration(HomeEvents(files))
            await run(denizen, "register_api", {"name": "items", "base_url": server.url("/v1")})
            calls: dict[str, tuple[JsonObject, str]] = {
                "call_api": ({"name": "items", "path": "items"}, "200 application/json"),
                "read_github": ({"repository": "club/site", "what": "repository"}, "club/site"),
                "subscribe_feed": ({"url": "https://example.org/feed"}, "channel on Discord"),
                "set_webhook": ({"name": "shop", "action": "log"}, "shop:"),
            }
            for tool, (args, said) in calls.items():
                result = await run(denizen, tool, args)
                assert said in result.text, (tool, result.text)
            assert "shop" in (denizen.runtime.current.events.routes or {})


@pytest.mark.proves(
    "V-skill-system", "V-skill-skill-manager", "V-skill-memory", "V-skill-utility", "V-skill-server-management", "VW5"
)
async def test_each_tool_has_its_service(home: Home) -> None:
    calls: dict[str, tuple[JsonObject, str]] = {
        "exec": ({"command": "printf hi"}, "hi"),
        "download_file": ({"url": "http://127.0.0.1/x.png"}, "127.0.0.1 may not be fetched"),
        "create_emoji": ({"name": "anchor", "url": "http://127.0.0.1/x.png"}, "can only be asked for on a platform"),
        "credits": ({}, "Today: $0.0000"),
        "cache_statistics": ({}, "Last 7 days: 0 tokens in"),
        "restart_denizen": ({}, "nothing to restart"),
        "list_skills": ({}, "There are no skills yet."),
        "search_log": ({}, "No earlier call is in the log."),
        "fetch_url": ({"url": "http://127.0.0.1/"}, "127.0.0.1 may not be fetched"),
    }
    async with open_home(home, LAB + ALL_ON) as denizen:
        said = {tool: (await run(denizen, tool, args)).text for tool, (args, _) in calls.items()}
    for tool, (_, words) in calls.items():
        assert words in said[tool], tool


@pytest.mark.proves("V-skill-skill-agent")
async def test_the_agents_model_writes_a_skill_which_waits_disabled_in_the_home(home: Home) -> None:
    async with model_server() as server:
        server.script(ModelAnswer(text=json.dumps(python_example("dice"))))
        lab = LAB.replace("http://127.0.0.1:9/v1", server.openai_url)
        async with open_home(home, lab + ALL_ON) as denizen:
            done = await run(denizen, "write_skill", {"name": "dice", "description": "Rolls dice."})
    assert "passes the check. It is disabled" in done.text
    assert (home.path / "skills" / "dice" / "skill.py").exists()


@pytest.mark.proves("V-skill-semantic-memory", "V8", "V27")
async def test_with_embeddings_in_the_configuration_memories_are_found_by_meaning(home: Home) -> None:
    """To this server texts of the same length mean the same."""
    async with model_server() as server:
        with serve_embeddings() as vectors:
            config = BY_MEANING.format(models=server.openai_url, vectors=vectors.url)
            home.write(config)
            async with open_denizen(home.path, OpenOptions(ModelChoice())) as denizen:
                for text in ("Has a cat", "Drinks a great deal of coffee"):
                    assert not (await run(denizen, "remember", {"text": text})).is_error
                found = (await run(denizen, "recall", {"words": "Any pets?"})).text
                server.script(ModelAnswer(text="Yes."))
                done = await denizen.turns.ask(make_request(denizen, "Any pets?"))
    assert "Has a cat" in found and "coffee" not in found
    assert done.status is TurnStatus.DONE
    told = json.dumps(server.bodies[-1]["messages"])
    assert "Has a cat" in told and "coffee" not in told
