"""The models that providers list."""

from __future__ import annotations

import json

import pytest

from denizen.adapters.models.failures import KEY_REFUSED, UNREACHABLE
from denizen.adapters.models.listing import list_served_models
from denizen.adapters.models.providers import ProviderKind, ProviderSpec
from denizen.domain.errors import NeedsAttention, Unavailable
from tests.local_server import Exchange, serve

pytestmark = pytest.mark.anyio

OPENAI = json.dumps({"data": [{"id": "tiny"}, {"id": "small"}]})
GOOGLE = json.dumps({"models": [{"name": "models/tiny"}, {"name": "models/small"}]})


def make_spec(kind: ProviderKind, base_url: str, key: str = "sk-key") -> ProviderSpec:
    return ProviderSpec(name="lab", kind=kind, base_url=base_url, api_key=lambda: key)


@pytest.mark.parametrize(
    ("kind", "path", "body", "header"),
    [
        ("anthropic", "/v1/models", OPENAI, ("x-api-key", "sk-key")),
        ("openai", "/models", OPENAI, ("authorization", "Bearer sk-key")),
        ("ollama", "/models", OPENAI, ("authorization", "Bearer sk-key")),
        ("google", "/v1beta/models", GOOGLE, ("x-goog-api-key", "sk-key")),
    ],
)
async def test_the_models_are_listed_by_name(kind: ProviderKind, path: str, body: str, header: tuple[str, str]) -> None:
    with serve({path: lambda exchange: exchange.say(body)}) as server:
        assert await list_served_models(make_spec(kind, server.url(""))) == ["small", "tiny"]
    assert server.requests[0].headers[header[0]] == header[1]


@pytest.mark.parametrize("body", ["<html>", "[]", '{"data": [1]}', '{"data": 7}', "{}"])
async def test_a_list_of_another_form_is_told_as_none(body: str) -> None:
    say = pytest.raises(Unavailable, match="does not list its models")
    with serve({"/models": lambda exchange: exchange.say(body)}) as server, say:
        await list_served_models(make_spec("openai-compatible", server.url(""), key=""))
    assert "authorization" not in server.requests[0].headers


async def test_a_key_that_is_refused_is_told_by_its_status_and_never_shown() -> None:
    def refuse(exchange: Exchange) -> None:
        exchange.say("sk-key is wrong", status=401)

    with serve({"/models": refuse}) as server, pytest.raises(NeedsAttention) as caught:
        await list_served_models(make_spec("openai", server.url("")))
    assert (caught.value.code, caught.value.why) == (KEY_REFUSED, "HTTP 401")
    assert "sk-key" not in caught.value.explain()


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("http://me:hidden@127.0.0.1:{port}/v1?key=hidden", "http://127.0.0.1:{port}"),
        ("127.0.0.1:{port}/v1", "127.0.0.1:{port}"),
    ],
)
async def test_an_address_where_nothing_answers_is_named_without_its_secrets(
    address: str, named: str, unused_port: int
) -> None:
    with pytest.raises(Unavailable) as caught:
        await list_served_models(make_spec("openai-compatible", address.format(port=unused_port)))
    assert caught.value.code == UNREACHABLE
    assert caught.value.why.startswith(f"There is no connection to {named.format(port=unused_port)}: ")
    assert "hidden" not in caught.value.explain()
