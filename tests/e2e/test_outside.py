"""A server from the outside: the shell by the SDK, and asking and looking up with the official MCP client."""

from __future__ import annotations

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from denizen.testing.model_server import ModelAnswer, ModelCall
from denizen_sdk import ApiError, DenizenClient
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.timing import HANG_LIMIT_S

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

KEY = "a-key-of-enough-characters"
KEYS = 'server:\n  api_keys: [{name: ci, key: "${CI_KEY}"}]\n'


@pytest.fixture
def configured_home(home: Home, provider: Provider) -> Home:
    """A home whose agent knows when tea is."""
    home.variables["CI_KEY"] = KEY
    home.configure(provider.server.openai_url, rest=KEYS)
    (home.folder / "knowledge").mkdir()
    (home.folder / "knowledge" / "rules.md").write_text("Tea at five.\n", encoding="utf-8")
    if "bash" not in home.do("tools").out:
        pytest.skip("nothing shuts programs in here")
    return home


@pytest.mark.proves("S20", "S-http-sandbox-shell-post", "S-sdk-client", "S-sdk-session", "T-config-env")
async def test_a_program_looks_into_the_knowledge_by_the_sdk(configured_home: Home) -> None:
    with configured_home.serve(token=KEY) as server:
        async with DenizenClient(server.url, KEY) as client:
            assert (await client.bash("cat shared/rules.md")).stdout == "Tea at five.\n"
            session = client.session_id
            assert session.startswith("sess_")
            one, two = await client.bash_batch(["ls", "grep -c five -r ."])
            assert (one.stdout, two.stdout) == ("shared\n", "./shared/rules.md:1\n")
            assert client.session_id == session
            with pytest.raises(ApiError) as refused:
                await client.bash("cat ../denizen.yaml")
    assert "leads out of the top folder" in refused.value.problem.why
    assert "bash" in configured_home.do("audit", "list").out


@pytest.mark.proves("SW3", "E2")
@pytest.mark.parametrize("line", ["find . -delete", "echo five & ls", "awk 'BEGIN{system(1)}' shared/rules.md"])
async def test_agents_http_the_sdk_mcp_and_the_command_line_refuse_the_same(
    configured_home: Home, provider: Provider, line: str
) -> None:
    provider.script(ModelAnswer(calls=[ModelCall("bash", {"command": line})]), ModelAnswer(text="I may not."))
    with configured_home.serve(token=KEY) as server:
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {KEY}"}, timeout=HANG_LIMIT_S) as http,
            Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as mcp,
            DenizenClient(server.url, KEY) as sdk,
        ):
            answer = await http.post(f"{server.url}/api/sandbox/shell", json={"command": line})
            with pytest.raises(ApiError) as refused:
                await sdk.bash(line)
            by_mcp = str(await mcp.call_tool("bash", {"command": line}))
            await sdk.ask("Do it.")
    knowledge = str(configured_home.folder / "knowledge")
    by_cli = configured_home.do("shell", "--root", knowledge, "--", line).err
    by_agent = provider.server.bodies[-1]["messages"][-1]["content"]
    why = answer.json()["error"]["why"]
    assert why
    for told in (refused.value.problem.why, by_mcp, by_cli, by_agent):
        assert why in told


async def test_the_mcp_server_can_be_switched_off(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest="channels: {mcp: {enabled: false}}\n")
    with home.serve() as server:
        assert server.post("/mcp").status == 404


async def test_a_client_of_mcp_asks_and_looks_up(configured_home: Home, provider: Provider) -> None:
    provider.script(
        ModelAnswer(calls=[ModelCall("bash", {"command": "cat shared/rules.md"})]), ModelAnswer(text="At five.")
    )
    told: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    with configured_home.serve(token=KEY) as server:
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {KEY}"}, timeout=HANG_LIMIT_S) as http,
            Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as client,
        ):
            names = {tool.name for tool in (await client.list_tools()).tools}
            asked = await client.call_tool("ask", {"question": "When is tea?"}, progress_callback=hear)
            found = await client.call_tool("bash", {"command": "ls"})
            passages = await client.call_tool("search_docs", {"query": "when is tea", "limit": 3})
    assert names == {"ask", "bash", "bash_batch", "search_docs"}
    assert [block.text for block in asked.content if isinstance(block, TextContent)] == ["At five."]
    assert told[0] == "bash is running"
    assert "shared" in str(found.content)
    assert "Tea at five." in str(passages.content)
