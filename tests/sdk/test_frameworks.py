"""The shell's tools in the frameworks that people use: one real run of an agent in each, with a scripted model."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import agents
import pydantic_ai
import pytest
from agents.mcp import MCPServerStreamableHttp, MCPServerStreamableHttpParams
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic import SecretStr
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from denizen.testing.model_server import ModelAnswer, ModelCall, ModelServer, model_server
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from denizen_sdk import ShellTools
from denizen_sdk.frameworks import langchain_tools, openai_agents_tools, pydantic_ai_tools
from denizen_sdk.shell import ToolActivity
from tests.sdk.stub_server import StubServer
from tests.web_fixture import ANN, open_web

pytestmark = pytest.mark.anyio

agents.set_tracing_disabled(disabled=True)

QUESTION = "Which files are there?"


def script_model(server: ModelServer) -> None:
    """The model looks twice, in both ways, and answers."""
    server.script(
        ModelAnswer(calls=[ModelCall("bash", {"command": "ls"}, id="call_a")]),
        ModelAnswer(calls=[ModelCall("bash_batch", {"commands": ["ls", "cat gone"]}, id="call_b")]),
        ModelAnswer(text="A folder named shared."),
    )


def check(server: ModelServer, told: list[ToolActivity]) -> None:
    """Both tools were offered with their words, and what they gave reached the model."""
    first, _, last = (request.body for request in server.requests)
    offered = {tool["function"]["name"]: tool["function"] for tool in first["tools"]}
    assert set(offered) == {"bash", "bash_batch"}
    assert offered["bash"]["description"].startswith("Looks into the knowledge files, read-only")
    assert list(offered["bash"]["parameters"]["properties"]) == ["command"]
    assert offered["bash_batch"]["parameters"]["properties"]["commands"]["type"] == "array"
    results = [message["content"] for message in last["messages"] if message["role"] == "tool"]
    assert results == ["shared", "$ ls\nshared\n\n$ cat gone\ngone\n[exit code 1]"]
    assert [(each.tool, each.state) for each in told] == [
        ("bash", "loading"),
        ("bash", "done"),
        ("bash_batch", "loading"),
        ("bash_batch", "done"),
    ]


@pytest.mark.proves("S-sdk-tools", "S-sdk-usage")
async def test_an_agent_of_pydantic_ai_uses_the_tools() -> None:
    told: list[ToolActivity] = []
    stub = StubServer()
    async with model_server() as server, stub.client() as client:
        script_model(server)
        async with AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=0) as openai:
            model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=openai))
            agent = pydantic_ai.Agent(model, tools=pydantic_ai_tools(ShellTools(client, told.append)))
            result = await agent.run(QUESTION)
        assert result.output == "A folder named shared."
        await client.report_usage(result, model="m")
        check(server, told)
    assert stub.heard[-1][2]["inputTokens"] == result.usage.input_tokens > 0


@pytest.mark.proves("S-sdk-tools", "S-sdk-usage")
async def test_an_agent_of_the_openai_agents_sdk_uses_the_tools() -> None:
    told: list[ToolActivity] = []
    stub = StubServer()
    async with model_server() as server, stub.client() as client:
        script_model(server)
        async with AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=0) as openai:
            model = agents.OpenAIChatCompletionsModel("m", openai)
            tools = openai_agents_tools(ShellTools(client, told.append))
            result = await agents.Runner.run(agents.Agent("reader", model=model, tools=tools), QUESTION)
        assert result.final_output == "A folder named shared."
        await client.report_usage(result, model="m")
        check(server, told)
    assert stub.heard[-1][2]["inputTokens"] == result.context_wrapper.usage.input_tokens > 0


async def test_an_agent_of_the_openai_agents_sdk_asks_denizen_over_mcp() -> None:
    running = open_web(ScriptedModel(ScriptedReply("At five.")), keys=[ANN])
    async with model_server() as server, running as web, web.serve() as url:
        server.script(
            ModelAnswer(calls=[ModelCall("ask", {"question": "When is tea?"})]), ModelAnswer(text="Tea is at five.")
        )
        how = MCPServerStreamableHttpParams(url=f"{url}/mcp", headers={"authorization": "Bearer key-of-ann"})
        async with (
            MCPServerStreamableHttp(how) as denizen,
            AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=0) as openai,
        ):
            model = agents.OpenAIChatCompletionsModel("m", openai)
            result = await agents.Runner.run(agents.Agent("butler", model=model, mcp_servers=[denizen]), "Tea?")
        [turn] = await web.turns()
    assert (result.final_output, turn.result.reply, turn.principal.key) == (
        "Tea is at five.",
        "At five.",
        "api_key:ann",
    )


@pytest.mark.proves("S-sdk-tools", "S-sdk-usage")
async def test_an_agent_of_langchain_uses_the_tools() -> None:
    told: list[ToolActivity] = []
    stub = StubServer()
    async with model_server() as server, stub.client() as client:
        script_model(server)
        async with DefaultAsyncHttpxClient() as http:
            model = ChatOpenAI(
                model="m", base_url=server.openai_url, api_key=SecretStr("k"), max_retries=0, http_async_client=http
            )
            agent: Any = create_agent(model, tools=langchain_tools(ShellTools(client, told.append)))
            result = await agent.ainvoke({"messages": [("user", QUESTION)]})
        assert result["messages"][-1].content == "A folder named shared."
        await client.report_usage(result["messages"][-1], model="m")
        check(server, told)
    assert stub.heard[-1][2]["inputTokens"] > 0


def test_importing_the_adapters_imports_no_framework() -> None:
    code = (
        "import sys, denizen_sdk.frameworks\n"
        "print([name for name in ('pydantic_ai', 'agents', 'langchain_core', 'denizen') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
