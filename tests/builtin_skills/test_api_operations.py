"""APIs that are imported from OpenAPI documents, called on real servers of this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from denizen.adapters.fetch import WebFetcher
from denizen.app import openapi
from denizen.app.openapi import OpenApiReader
from denizen.builtin_skills.apis import skill
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import CallId
from denizen.domain.json import Json
from denizen.domain.tool import Effect, Taint, Tier, ToolCall, ToolResult
from denizen.skill import SkillToolset
from tests.local_server import Answer, LocalServer, serve
from tests.skill_fixture import ServicesFixture, scope

pytestmark = pytest.mark.anyio

SHOP = """
openapi: 3.0.3
info: {title: Shop, version: "1"}
servers: [{url: /v1}]
components:
  securitySchemes: {token: {type: apiKey, in: query, name: token}}
  schemas:
    Item:
      type: object
      required: [name]
      properties:
        name: {type: string, nullable: true}
        price: {type: number, minimum: 0, exclusiveMinimum: true}
        parts: {type: array, items: {$ref: "#/components/schemas/Item"}}
paths:
  /items/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get:
      operationId: getItem
      summary: Returns an item.
      parameters:
        - {name: fields, in: query, schema: {type: array, items: {type: string}}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: X-HTTP-Method-Override, in: header, schema: {type: string}}
      responses: {200: {description: fine}}
  /items:
    post:
      operationId: addItem
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: "#/components/schemas/Item"}}}
      responses: {201: {description: made}}
"""
NOTES: dict[str, Json] = {
    "openapi": "3.1.0",
    "servers": [
        {"url": "https://a.example.org"},
        {"url": "https://b.example.org/{v}", "variables": {"v": {"default": "2"}}},
    ],
    "paths": {
        "/notes": {"get": {"parameters": [{"name": "page", "in": "query", "schema": {"type": ["integer", "null"]}}]}},
        "/upload": {"post": {"requestBody": {"required": True, "content": {"image/png": {}}}}},
    },
}


class ImportFixture:
    def __init__(self, root: Path, server: LocalServer | None = None, **key: str) -> None:
        self.fixture = ServicesFixture(root)
        self.folder = root / "apis"
        self.settings: dict[str, Json] = {}
        if key:
            self.settings["keys"] = {"shop": {"host": "127.0.0.1", **key}}
        if server is not None:
            self.settings["server"] = server.url("")
        self.fetcher = WebFetcher(allow_private=[server.address] if server else [], backoff_s=(0.0,))

    async def call(self, tool: str, **args: Json) -> ToolResult:
        services = self.fixture.services()
        folders = replace(services.folders, shared={"apis": self.folder}.get)
        services = replace(services, folders=folders, send_request=self.fetcher.send, api_documents=OpenApiReader())
        return await SkillToolset(skill, services, self.settings).call(ToolCall(CallId("c"), tool, args), scope())

    async def use(self, tool: str, operation: str, **arguments: Json) -> ToolResult:
        return await self.call(tool, name="shop", operation=operation, arguments=arguments)


def routes() -> Mapping[str, Answer]:
    return {
        "/openapi.yaml": lambda exchange: exchange.say(SHOP, kind="application/yaml"),
        "/v1/items/a%20b": lambda exchange: exchange.say("found"),
        "/v1/items/a b": lambda exchange: exchange.say("found"),
        "/v1/items": lambda exchange: exchange.say("made"),
    }


@pytest.mark.proves("V32-openapi", "V-skill-integrations")
async def test_an_api_is_imported_and_its_operations_are_listed_described_and_called(tmp_path: Path) -> None:
    with serve(routes()) as server:
        apis = ImportFixture(tmp_path, server, query="token", value="s3cret")
        done = await apis.call("import_api", name="shop", document=server.url("/openapi.yaml"), key="shop")
        assert done.text == "Registered shop with 2 operations."
        listed = await apis.call("find_operations", name="shop", words="RETURNS item")
        assert "getItem: GET /items/{id} Returns an item." in listed.text
        assert "addItem" not in listed.text
        described = await apis.call("find_operations", name="shop", words="addItem")
        assert described.text.startswith("<untrusted")
        assert '"price"' in described.text
        read = await apis.use("call_operation", "getItem", id="a b", fields=["x", "y"], **{"X-Trace": "t"})
        assert read.text.startswith("200"), read.text
        assert server.requests[-1].headers["x-trace"] == "t"
        body: Json = {"name": None, "parts": [{"name": "wheel", "price": 1}]}
        sent = await apis.use("send_operation", "addItem", body=body)
        assert sent.text.startswith("200"), sent.text
        assert json.loads(server.requests[-1].body) == body
        assert server.requests[-1].query == {"token": "s3cret"}
        assert "s3cret" not in sent.text
        await apis.call("delete_api", name="shop")
        assert not list(apis.folder.glob("*.openapi.json"))


@pytest.mark.proves("V32-openapi")
@pytest.mark.parametrize(
    ("tool", "operation", "arguments", "said"),
    [
        ("call_operation", "getItem", {}, "'id' is a required property"),
        ("call_operation", "getItem", {"id": "a", "other": 1}, "other"),
        ("call_operation", "getItem", {"id": ".."}, "cannot stand in a path"),
        ("call_operation", "getItem", {"id": "a%2f..%2fb"}, "cannot stand in a path"),
        ("call_operation", "getItem", {"id": "a", "X-Trace": "a\r\nHost: b"}, "cannot stand in a header"),
        ("call_operation", "getItem", {"id": "a", "X-HTTP-Method-Override": "DELETE"}, "X-HTTP-Method-Override"),
        ("send_operation", "addItem", {"body": {"name": "x", "price": 0}}, "price"),
        ("send_operation", "addItem", {"body": {"name": "x", "parts": [{}]}}, "'name' is a required property"),
        ("send_operation", "getItem", {"id": "a"}, "Use call_operation"),
        ("call_operation", "addItem", {"body": {"name": "x"}}, "Use send_operation"),
        ("call_operation", "gone", {}, "no operation 'gone'"),
    ],
)
async def test_wrong_arguments_are_named_and_nothing_is_sent(
    tmp_path: Path, tool: str, operation: str, arguments: dict[str, Json], said: str
) -> None:
    with serve(routes()) as server:
        apis = ImportFixture(tmp_path, server)
        await apis.call("import_api", name="shop", document=server.url("/openapi.yaml"))
        before = len(server.requests)
        refused = await apis.use(tool, operation, **arguments)
        assert refused.is_error
        assert said in refused.text
        assert len(server.requests) == before


async def test_one_of_several_servers_is_chosen_and_what_cannot_be_called_is_left_out(tmp_path: Path) -> None:
    apis = ImportFixture(tmp_path)
    unsaid = await apis.call("import_api", name="notes", document=json.dumps(NOTES))
    assert "<untrusted" in unsaid.text.partition("https://b.example.org/2")[0]
    done = await apis.call("import_api", name="notes", document=json.dumps(NOTES), server="https://b.example.org/2")
    assert done.text == "Registered notes with 1 operations, 1 left out that cannot be called."


def _document(**more: Json) -> str:
    return json.dumps({**NOTES, "servers": [{"url": "https://a.example.org"}], **more})


def _with_schema(schema: Json, **schemas: Json) -> str:
    post: Json = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    return _document(paths={"/x": {"post": post}}, components={"schemas": schemas})


def _repeat_large_parameter() -> Json:
    large: Json = {"parameters": [{"name": "q", "in": "query", "schema": {"const": "x" * 100_000}}], "get": {}}
    return {"/large": large, **{f"/{number}": {"$ref": "#/paths/~1large"} for number in range(60)}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"swagger": "2.0"}', "swagger2openapi"),
        ('{"openapi": "4.0.0"}', "3.0 or 3.1"),
        ("a: [", "neither JSON nor YAML"),
        ("a: &a [1]\nb: [*a, *a]", "aliases"),
        ("[" * 20_000, "nested too deeply"),  # not ended: refused before more is read
        ('{"a": ' * 100 + "1" + "}" * 100, "nested too deeply"),
        ("%YAML 1.1\n---\na: 1:1", "%YAML"),
        (_with_schema({"$ref": "https://evil.example.org/x.json"}), "refers to 'https://evil"),
        (_with_schema({"$ref": "#/components/schemas/Gone"}), "has no '#/components/schemas/Gone'"),
        (_document(paths={"/x": {"$ref": "#/paths/~1x"}}), "no end"),
        (_document(paths={f"/{number}": {"get": {}} for number in range(1001)}), "more than 1000"),
        (_document(paths=_repeat_large_parameter()), "too large"),
        ("http://a.example.org/openapi.yaml", "needs https"),
        ("https://a:b@a.example.org/openapi.yaml", "no user name"),
        (_document(servers=[{"url": "http://169.254.169.254"}]), "needs https"),
        (_document(servers=[{"url": "/relative"}]), "needs https"),
    ],
)
async def test_a_document_that_cannot_be_used_is_refused_with_words(tmp_path: Path, text: str, said: str) -> None:
    apis = ImportFixture(tmp_path)
    refused = await apis.call("import_api", name="x", document=text)
    assert refused.is_error
    assert said in refused.text
    assert not (apis.folder / "apis.json").exists()


async def test_yaml_of_many_values_is_refused_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openapi, "MAX_EVENTS", 1000)
    with pytest.raises(InvalidInput, match="too many values"):
        OpenApiReader().read("a: [" + "[], " * 1000, "")


async def test_a_schema_that_refers_to_itself_alone_ends_in_an_error(tmp_path: Path) -> None:
    apis = ImportFixture(tmp_path)
    text = _with_schema({"$ref": "#/components/schemas/A"}, A={"$ref": "#/components/schemas/A"})
    assert not (await apis.call("import_api", name="shop", document=text)).is_error
    refused = await apis.use("send_operation", "post /x", body={})
    assert "its schema has no end" in refused.text


async def test_a_key_must_be_sent_as_the_document_says(tmp_path: Path) -> None:
    with serve(routes()) as server:
        apis = ImportFixture(tmp_path, server, value="Bearer s3cret")
        refused = await apis.call("import_api", name="shop", document=server.url("/openapi.yaml"), key="shop")
        assert "query: token" in refused.text
        assert "s3cret" not in refused.text


async def test_the_parameter_of_a_key_is_not_said_by_a_model_and_a_key_in_an_answer_is_masked(tmp_path: Path) -> None:
    secret = "a/b c+é"
    said = f"{secret} {quote(secret)} {quote_plus(secret).lower()}"
    paths: Json = {"/echo": {"get": {"parameters": [{"name": "token", "in": "query"}]}}}
    with serve({"/echo": lambda exchange: exchange.say(said)}) as server:
        apis = ImportFixture(tmp_path, server, query="token", value=secret)
        text = _document(paths=paths, servers=[{"url": server.url("")}])
        assert not (await apis.call("import_api", name="shop", document=text, key="shop")).is_error
        for tool, args in (
            ("call_operation", {"operation": "get /echo", "arguments": {"token": "mine"}}),
            ("call_api", {"path": "echo", "query": {"token": ""}}),
        ):
            assert "'token' is the parameter of the key" in (await apis.call(tool, name="shop", **args)).text
        assert server.requests == []
        assert "\n*** *** ***\n" in (await apis.use("call_operation", "get /echo")).text
        assert server.requests[0].query == {"token": secret}


def test_operations_that_change_something_are_never_done_without_a_person_and_documents_are_foreign() -> None:
    tools = {tool.name: tool for tool in skill.tools}
    assert (tools["send_operation"].tier, tools["send_operation"].destructive) == (Tier.DANGEROUS, True)
    assert tools["send_operation"].flow.effects == {Effect.SEND}
    assert tools["call_operation"].tier is Tier.LIMITED
    for name in ("import_api", "find_operations", "call_operation", "send_operation"):
        assert Taint.WEB in tools[name].flow.reads
