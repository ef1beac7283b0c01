"""The MCP server at `/mcp`, with the official client over a connection: asking, looking up, progress, who may."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, ImageContent, Implementation, ResourceLink, TextContent

from denizen.domain.agent import Agent, ToolAccess
from denizen.domain.conversation import Place
from denizen.domain.hook import SKIPPED, Hook, Hooks
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.domain.tool import Origin, Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import TurnStatus
from denizen.domain.verdict import Decision
from denizen.engine.audit.audit_log import read_log
from denizen.engine.configuration.tool_policy import GatePolicy, ObserverPolicy, ToolRule
from denizen.engine.external.requests import ProgramRequests
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from tests.engine.engine_fixture import ToolsetFixture
from tests.timing import HANG_LIMIT_S
from tests.web_fixture import ANN, BEN, WebFixture, open_web

pytestmark = pytest.mark.anyio

_QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
AGENTS = [Agent(AgentName("denizen")), Agent(AgentName("mute"), tool_access=ToolAccess(tools=("weather",)))]


@dataclass
class RecordingToolset:
    """Tools as an agent has them: some that programs may call, and one that they may not."""

    name: str = "tools"
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    scopes: list[CallScope] = field(default_factory=list[CallScope])

    async def list_tools(self) -> Sequence[ToolSpec]:
        reading = [
            ToolSpec(name, f"{name}.", _QUERY, tier=Tier.HARMLESS, read_only=True, timeout_s=5.0)
            for name in ("search_archive", "search_docs", "bash")
        ]
        return [*reading, ToolSpec("ban", "Bans.", _QUERY, tier=Tier.HARMLESS)]

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        self.calls.append(call)
        self.scopes.append(scope)
        scope.options.report("half of it")
        return ToolResult(f"found {call.args['query']}", is_error=call.args["query"] == "nothing")

    async def aclose(self) -> None:
        pass


@dataclass
class McpFixture:
    web: WebFixture
    url: str
    tools: RecordingToolset

    @asynccontextmanager
    async def client(
        self, key: str = "key-of-ann", *, path: str = "/mcp", name: str = "probe", old: bool = False, **headers: str
    ) -> AsyncGenerator[Client]:
        """The official client; `old` makes it speak the protocol that most clients in the field speak."""
        credentials = {"authorization": f"Bearer {key}"} if key else {}
        async with httpx2.AsyncClient(headers={**credentials, **headers}, timeout=HANG_LIMIT_S) as http:
            transport = streamable_http_client(f"{self.url}{path}", http_client=http)
            more: dict[str, Any] = {"mode": "legacy"} if old else {}
            async with Client(transport, client_info=Implementation(name=name, version="1"), **more) as client:
                yield client


@asynccontextmanager
async def open_mcp(
    *models: ScriptedModel, policy: GatePolicy | None = None, agents: Sequence[Agent] = AGENTS
) -> AsyncGenerator[McpFixture]:
    tools = RecordingToolset()
    async with (
        open_web(*models, keys=[ANN, BEN], agents=agents, policy=policy, more=[tools]) as web,
        web.serve() as url,
    ):
        yield McpFixture(web, url, tools)


def get_text(result: CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.parametrize("old", [False, True])
async def test_what_the_agent_has_is_offered_with_hints_and_nothing_that_acts(old: bool) -> None:
    async with open_mcp() as at, at.client(old=old) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == ["ask", "bash", "search_docs"]
    hints = [tool.annotations for tool in tools.values()]
    assert [hint is not None and hint.read_only_hint for hint in hints] == [False, True, True]
    assert tools["search_docs"].input_schema["required"] == ["query"]
    async with open_mcp() as at, at.client(path="/mcp/mute", old=old) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ask"]


@pytest.mark.parametrize(
    ("policy", "offered"),
    [
        (GatePolicy(rules=(ToolRule("bash", Decision.DENY),)), ["search_docs"]),
        (GatePolicy(rules=(ToolRule("bash", Decision.ASK),)), ["search_docs"]),
        (GatePolicy(rules=(ToolRule("bash", Decision.ASK, args={"query": "x"}),)), ["bash", "search_docs"]),
        (GatePolicy(tiers=(("bash", Tier.SENSITIVE),)), ["search_docs"]),
        (GatePolicy(tiers=(("*", Tier.SENSITIVE),), rules=(ToolRule("bash", Decision.APPROVE),)), ["bash"]),
        (GatePolicy(tiers=(("bash", Tier.DANGEROUS),), rules=(ToolRule("bash", Decision.APPROVE),)), ["search_docs"]),
        (GatePolicy(tiers=(("bash", Tier.SENSITIVE),), observer=ObserverPolicy("w")), ["bash", "search_docs"]),
        (GatePolicy(roles=(("bash", frozenset({"judge"})),)), ["search_docs"]),
    ],
)
async def test_only_what_may_succeed_without_a_person_is_offered(policy: GatePolicy, offered: list[str]) -> None:
    async with open_mcp(policy=policy) as at, at.client() as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ask", *offered]


@pytest.mark.parametrize("old", [False, True])
async def test_asking_is_a_turn_and_its_tools_are_told_while_they_run(old: bool) -> None:
    told: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    model = ScriptedModel(ScriptedReply(calls=[call("weather", city="Oslo")]), ScriptedReply("It is sunny."))
    async with open_mcp(model) as at, at.client(old=old) as client:
        result = await client.call_tool("ask", {"question": "Weather?"}, progress_callback=hear)
        [turn] = await at.web.turns()
    assert (get_text(result), result.is_error) == ("It is sunny.", False)
    assert told[0] == "weather is running"
    assert told[1] is not None and told[1].startswith("weather is done after")
    assert (turn.principal.key, turn.agent, turn.status) == ("api_key:ann", "denizen", TurnStatus.DONE)


async def test_a_question_that_a_hook_skips_is_answered_with_a_sentence_and_is_no_error() -> None:
    hooks = Hooks((Hook("bash", {"query": "news"}, "found"),))
    async with open_mcp(agents=[replace(AGENTS[0], hooks=hooks)]) as at, at.client() as client:
        result = await client.call_tool("ask", {"question": "Any news?"})
    assert (get_text(result), result.is_error) == (SKIPPED, False)


async def test_pictures_that_the_model_makes_come_along() -> None:
    model = ScriptedModel(ScriptedReply("A sun.", images=["data:image/png;base64,iVBORw0KGgo="]))
    async with open_mcp(model) as at, at.client() as client:
        result = await client.call_tool("ask", {"question": "Draw the sun."})
    assert result.content[1:] == [ImageContent(data="iVBORw0KGgo=", mime_type="image/png")]


@pytest.mark.proves("L9")
async def test_what_tools_show_comes_along_as_pictures_links_and_text() -> None:
    picture = "data:image/png;base64,iVBORw0KGgo="

    async def draw(asked: ToolCall, scope: CallScope) -> ToolResult:
        images: list[Json] = [{"url": picture}, {"url": "https://cdn.example/2.png"}]
        return ToolResult("drawn", data={"images": images, "embeds": [{"title": "Menu", "text": "Soup"}]})

    model = ScriptedModel(ScriptedReply(calls=[call("look", q="sun")]), ScriptedReply("A sun."))
    async with (
        open_web(model, keys=[ANN], more=[ToolsetFixture(run=draw)]) as web,
        web.serve() as url,
        McpFixture(web, url, RecordingToolset()).client() as client,
    ):
        text, shown, linked = (await client.call_tool("ask", {"question": "Draw the sun."})).content
    assert text == TextContent(text="A sun.\n\n**Menu**  \nSoup")
    assert shown == ImageContent(data="iVBORw0KGgo=", mime_type="image/png")
    assert isinstance(linked, ResourceLink) and linked.uri == "https://cdn.example/2.png"


async def test_a_talk_goes_on_for_each_client_and_each_named_session_and_nobody_elses() -> None:
    async with open_mcp(ScriptedModel(otherwise=ScriptedReply("Yes."))) as at:
        async with at.client(name="editor") as client:
            await client.call_tool("ask", {"question": "one"})
            await client.call_tool("ask", {"question": "two", "session": "trip"})
        async with at.client(name="editor", path="/mcp/mute") as client:
            await client.call_tool("ask", {"question": "three"})
        async with at.client("key-of-ben", name="editor") as client:
            await client.call_tool("ask", {"question": "four"})
        async with at.client(name="editor", old=True) as client:
            await client.call_tool("ask", {"question": "five"})
        turns = await at.web.turns()
    places = [
        Place("mcp", f"api_key:{who}", session).conversation_id
        for who, session in (
            ("ann", "mcp editor"),
            ("ann", "trip"),
            ("ann", "mcp editor"),
            ("ben", "mcp editor"),
            ("ann", "mcp"),
        )
    ]
    assert [turn.conversation_id for turn in turns] == places
    assert [turn.agent for turn in turns] == ["denizen", "denizen", "mute", "denizen", "denizen"]


@pytest.mark.parametrize("old", [False, True])
async def test_a_tool_is_called_through_the_gate_on_behalf_of_the_key(old: bool) -> None:
    told: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with open_mcp() as at, at.client(old=old) as client:
        found = await client.call_tool("search_docs", {"query": "door"}, progress_callback=hear)
        missed = await client.call_tool("search_docs", {"query": "nothing"})
        log = [entry.event async for entry in read_log(at.web.store)]
    assert (get_text(found), found.is_error) == ("found door", False)
    assert missed.is_error
    assert told == ["half of it"]
    assert [(each.actor, each.subject, each.details["origin"]) for each in log] == [
        ("api_key:ann", "search_docs", "api")
    ] * 2
    assert {each.origin for each in at.tools.calls} == {Origin.API}


@pytest.mark.parametrize(
    ("tool", "args", "says"),
    [
        ("ban", {"query": "ann"}, "There is no tool 'ban' here.\nfix: Ask the agent"),
        ("bash_batch", {"commands": ["ls"]}, "has no tool 'bash_batch'"),
        ("search_docs", {"query": 3}, "Wrong arguments for 'search_docs'"),
        ("search_archive", {"query": "x"}, "There is no tool 'search_archive' here.\nfix: Ask the agent"),
        ("search_docs", {"query": "x"}, "'search_docs' was denied.\nwhy: not here"),
        ("bash", {"query": "x"}, "People have to decide about 'bash'"),
        ("ask", {}, "Wrong arguments for 'ask'"),
        ("ask", {"question": " "}, "A question has 1 to"),
        ("ask", {"question": "x", "session": "a\nb"}, "A session's name"),
    ],
)
async def test_what_is_refused_says_why_and_what_to_do(tool: str, args: dict[str, Json], says: str) -> None:
    policy = GatePolicy(
        rules=(ToolRule("search_docs", Decision.DENY, reason="not here"), ToolRule("bash", Decision.ASK))
    )
    async with open_mcp(policy=policy) as at, at.client() as client:
        result = await client.call_tool(tool, args)
    assert result.is_error
    assert says in get_text(result)
    assert at.tools.calls == []


async def test_a_turn_without_an_answer_is_an_error_that_says_why() -> None:
    async with open_mcp(ScriptedModel()) as at, at.client() as client:  # nothing is scripted
        result = await client.call_tool("ask", {"question": "hi"})
    assert result.is_error
    assert get_text(result)


@pytest.mark.parametrize("old", [False, True])
async def test_a_fault_is_told_by_a_reference_and_nothing_from_inside(
    old: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(ProgramRequests, "ask", fail)
    monkeypatch.setattr(ProgramRequests, "list_tools", fail)
    async with open_mcp() as at, at.client(old=old) as client:
        for attempt in (client.list_tools, partial(client.call_tool, "ask", {"question": "hi"})):
            with pytest.raises(MCPError, match=r"Something went wrong inside. Reference: err_") as caught:
                await attempt()
            assert "secret" not in str(caught.value)
    assert [record.getMessage() for record in caplog.records].count("request fault") == 2


async def test_a_client_that_leaves_stops_its_turn() -> None:
    before = ReplyGate()
    async with open_mcp(ScriptedModel(ScriptedReply("Too late.", before=before))) as at:
        async with at.client() as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "ask", {"question": "hi"})
            await before.reached.wait()
            group.cancel_scope.cancel()
        await at.web.ended(TurnStatus.CANCELLED)


async def test_nobody_comes_in_without_a_key_or_for_an_agent_that_is_not_there() -> None:
    async with open_mcp() as at:
        for key in ("", "wrong"):
            async with httpx2.AsyncClient(timeout=HANG_LIMIT_S) as http:
                answer = await http.post(f"{at.url}/mcp", json={}, headers={"x-api-key": key} if key else {})
            assert answer.status_code == 401
            assert answer.json()["error"]["fix"]
        async with at.client(path="/mcp/nobody") as client:
            with pytest.raises(MCPError, match="no agent 'nobody'"):
                await client.list_tools()


async def test_a_page_of_another_site_and_another_host_name_are_refused_without_keys() -> None:
    async with open_web() as web, web.serve() as url, httpx2.AsyncClient(timeout=HANG_LIMIT_S) as http:
        for headers in ({"origin": "https://evil.example"}, {"host": "evil.example"}):
            assert (await http.post(f"{url}/mcp", json={}, headers=headers)).status_code == 403
        assert (await http.get(f"{url}/mcp")).status_code == 405
