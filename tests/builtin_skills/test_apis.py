"""APIs of one's own, called on real servers of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from denizen.adapters.fetch import WebFetcher
from denizen.builtin_skills.api_registry import CALLS_PER_MINUTE
from denizen.builtin_skills.apis import skill
from denizen.domain.ids import CallId
from denizen.domain.json import Json
from denizen.domain.tool import Effect, Taint, Tier, ToolCall, ToolResult
from denizen.skill import SkillToolset
from tests.local_server import Answer, LocalServer, serve
from tests.skill_fixture import ServicesFixture, scope

pytestmark = pytest.mark.anyio

SECRET = "Bearer t0p-" + "s3cret"
METHODS = ("POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class ApisFixture:
    """The skill in a home where the operator named that server as one of the own network, or none."""

    def __init__(self, root: Path, server: LocalServer | None = None, *, key_host: str = "127.0.0.1") -> None:
        self.fixture = ServicesFixture(root)
        self.folder = root / "apis"
        self.settings: dict[str, Json] = {"keys": {"tracker": {"host": key_host, "value": SECRET}}}
        if server is not None:
            self.settings["server"] = server.url("")
        self.fetcher = WebFetcher(allow_private=[server.address] if server else [], backoff_s=(0.0,))

    async def call(self, tool: str, **args: Json) -> ToolResult:
        services = self.fixture.services()
        folders = replace(services.folders, shared={"apis": self.folder}.get)
        services = replace(services, folders=folders, send_request=self.fetcher.send)
        return await SkillToolset(skill, services, self.settings).call(ToolCall(CallId("c"), tool, args), scope())

    async def register(self, server: LocalServer, **args: Json) -> None:
        done = await self.call("register_api", name="tracker", base_url=server.url("/v1"), **args)
        assert not done.is_error, done.text


@pytest.mark.proves("V32", "V-skill-integrations")
async def test_an_api_is_registered_called_by_every_method_listed_and_deleted(tmp_path: Path) -> None:
    with serve({"/v1/items": lambda exchange: exchange.say('{"ok": 1}', kind="application/json")}) as server:
        apis = ApisFixture(tmp_path, server)
        await apis.register(server, description="Our tracker")
        read = await apis.call("call_api", name="tracker", path="items", query={"q": "a b&c"})
        assert read.text.startswith("200 application/json\n<untrusted")
        assert '{"ok": 1}' in read.text
        head = await apis.call("call_api", name="tracker", path="/items", method="HEAD")
        assert head.text.startswith("200")
        for method in METHODS:
            done = await apis.call("send_to_api", name="tracker", path="items", method=method, body='{"a": "é"}')
            assert not done.is_error, done.text
        assert [each.method for each in server.requests] == ["GET", "HEAD", *METHODS]
        assert server.requests[0].query == {"q": "a b&c"}
        assert {each.body for each in server.requests[2:]} == {'{"a": "é"}'}
        assert f"tracker: {server.url('/v1')} (key: none) Our tracker" in (await apis.call("list_apis")).text
        assert (await apis.call("delete_api", name="tracker")).text == "Deleted tracker."
        assert (await apis.call("list_apis")).text == "No API is registered."
        assert "There is no API 'tracker'" in (await apis.call("call_api", name="tracker")).text


@pytest.mark.proves("V32")
async def test_an_api_is_called_ten_times_a_minute_at_most_by_all_processes_together(tmp_path: Path) -> None:
    with serve({"/v1": lambda exchange: exchange.say("yes")}) as server:
        apis, another = ApisFixture(tmp_path, server), ApisFixture(tmp_path, server)
        await apis.register(server)
        for number in range(CALLS_PER_MINUTE):
            assert not (await (apis, another)[number % 2].call("call_api", name="tracker")).is_error
        for tool, args in (("call_api", {}), ("send_to_api", {"method": "POST"})):
            refused = await another.call(tool, name="tracker", **args)
            assert refused.is_error
            assert "10 times within a minute" in refused.text
        assert len(server.requests) == CALLS_PER_MINUTE == 10
        another.fixture.clock.advance(seconds=61)
        assert not (await another.call("call_api", name="tracker")).is_error


@pytest.mark.proves("V32", "VW5")
@pytest.mark.parametrize(
    "host", ["10.0.0.1", "192.168.1.1", "172.16.0.1", "127.0.0.1", "169.254.169.254", "169.254.7.7", "[fe80::1]"]
)
async def test_an_api_at_a_private_or_link_local_address_is_never_called(tmp_path: Path, host: str) -> None:
    apis = ApisFixture(tmp_path)
    assert not (await apis.call("register_api", name="inner", base_url=f"https://{host}/v1")).is_error
    for tool, args in (("call_api", {}), ("send_to_api", {"method": "POST"})):
        refused = await apis.call(tool, name="inner", **args)
        assert refused.is_error
        assert "may not be fetched" in refused.text


async def test_a_key_goes_to_its_host_alone_and_is_never_shown(tmp_path: Path) -> None:
    with serve({}) as other:
        routes: Mapping[str, Answer] = {
            "/v1/echo": lambda exchange: exchange.say(f"you sent {exchange.headers['Authorization']}"),
            "/v1/away": lambda exchange: exchange.redirect(other.url("/steal")),
        }
        with serve(routes) as server:
            apis = ApisFixture(tmp_path, server)
            await apis.register(server, key="tracker")
            said = await apis.call("call_api", name="tracker", path="echo")
            assert server.requests[0].headers["authorization"] == SECRET
            assert "you sent ***" in said.text
            assert (await apis.call("call_api", name="tracker", path="away")).text.startswith("302")
            listed = (await apis.call("list_apis")).text
            shown = said.text + listed + "".join(file.read_text() for file in apis.folder.glob("*.json"))
            assert "s3cret" not in shown
            assert other.requests == []
            elsewhere = ApisFixture(tmp_path / "other", server, key_host="api.example.org")
            refused = await elsewhere.call("register_api", name="evil", base_url=server.url("/v1"), key="tracker")
            assert "is not for 127.0.0.1" in refused.text
            moved = ApisFixture(tmp_path, server, key_host="api.example.org")  # registered when it was another
            assert "is not for 127.0.0.1" in (await moved.call("call_api", name="tracker", path="echo")).text


@pytest.mark.parametrize(
    "path", ["../admin", "a/../../b", "%2e%2e/admin", "%252e%252e/x", "a\\..\\b", "x?key=1", "x#y", "a b"]
)
async def test_a_path_does_not_lead_out_of_its_api(tmp_path: Path, path: str) -> None:
    with serve({}) as server:
        apis = ApisFixture(tmp_path, server)
        await apis.register(server)
        refused = await apis.call("call_api", name="tracker", path=path)
        assert "leads out of the API" in refused.text
        assert server.requests == []


@pytest.mark.parametrize(
    "url", ["http://api.example.org", "ftp://a.b", "nonsense", "https://u:p@a.b/", "https://a.b/?x=1", "https://[a/"]
)
async def test_what_is_no_address_of_an_api_is_refused_with_words(tmp_path: Path, url: str) -> None:
    refused = await ApisFixture(tmp_path).call("register_api", name="x", base_url=url)
    assert refused.is_error
    assert "https" in refused.text


async def test_names_are_plain_and_one_api_does_not_take_the_place_of_another(tmp_path: Path) -> None:
    apis = ApisFixture(tmp_path)
    assert "name of an API" in (await apis.call("register_api", name="A B", base_url="https://a.b")).text
    assert not (await apis.call("register_api", name="x", base_url="https://a.b")).is_error
    assert not (await apis.call("register_api", name="x", base_url="https://a.b")).is_error
    assert "is taken" in (await apis.call("register_api", name="x", base_url="https://c.d")).text
    assert "no key 'none'" in (await apis.call("register_api", name="y", base_url="https://a.b", key="none")).text


async def test_a_long_answer_is_cut_and_says_so(tmp_path: Path) -> None:
    with serve({"/v1": lambda exchange: exchange.say("x" * 600_000)}) as server:
        apis = ApisFixture(tmp_path, server)
        await apis.register(server)
        said = (await apis.call("call_api", name="tracker")).text
        assert said.startswith("200 text/plain (cut)")
        assert len(said) < 13_000


def test_calls_that_may_change_something_ask_a_human_and_answers_are_foreign() -> None:
    tools = {tool.name: tool for tool in skill.tools}
    assert tools["call_api"].tier is Tier.LIMITED
    assert tools["register_api"].tier is Tier.SENSITIVE
    assert (tools["send_to_api"].tier, tools["send_to_api"].destructive) == (Tier.DANGEROUS, True)
    assert tools["send_to_api"].flow.effects == {Effect.SEND}
    assert tools["call_api"].flow.reads == tools["send_to_api"].flow.reads == {Taint.WEB}
