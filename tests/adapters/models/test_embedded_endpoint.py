"""A server that has to be started first is asked for before each request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
import pytest

from denizen.adapters.models.catalog import ModelCatalog, ModelsSpec, build_models
from denizen.adapters.models.providers import ProviderSpec
from denizen.domain.errors import InvalidInput, NeedsAttention, Unavailable
from denizen.ports.model import ModelNotice
from denizen.testing.model_server import FailedAnswer, ModelAnswer, ModelServer
from tests.adapters.models.wire_fixture import RecordingSleep, StreamRecord, make_request, read_stream
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


@dataclass
class Address:
    base_url: str
    api_key: str = "local-key-123"
    model: str = "weights.gguf"


@dataclass
class EndpointFixture:
    """An endpoint source that a test steers."""

    addresses: list[Address | Exception]
    asked: int = 0
    ready: anyio.Event = field(default_factory=anyio.Event)

    async def endpoint(self) -> Address:
        self.asked += 1
        await self.ready.wait()
        found = self.addresses.pop(0) if len(self.addresses) > 1 else self.addresses[0]
        if isinstance(found, Exception):
            raise found
        return found


def models_over(endpoint: EndpointFixture, total_timeout_s: float | None = None) -> ModelCatalog:
    provider = ProviderSpec(name="built-in", kind="embedded", total_timeout_s=total_timeout_s)
    return build_models(ModelsSpec(providers=[provider]), endpoints={"built-in": endpoint}, pace=RecordingSleep().pace)


def notices(heard: StreamRecord, wanted: Callable[[str], bool] = lambda _: True) -> int:
    return sum(isinstance(event, ModelNotice) and wanted(event.text) for event in heard.events)


async def test_the_endpoint_is_used_as_it_is_now(server: ModelServer) -> None:
    endpoint = EndpointFixture(
        [Address(f"{server.url}/v1"), Address(f"{server.url}/v1", "second-key-456", "other.gguf")]
    )
    endpoint.ready.set()
    models = models_over(endpoint)
    server.script(ModelAnswer(text="one"), ModelAnswer(text="two"))
    first = await read_stream(models.get("built-in/default"), make_request("hi"))
    second = await read_stream(models.get("built-in/default"), make_request("hi"))
    assert (first.text, second.text) == ("one", "two")
    assert [body["model"] for body in server.bodies] == ["weights.gguf", "other.gguf"]
    assert [request.headers["authorization"] for request in server.requests] == [
        "Bearer local-key-123",
        "Bearer second-key-456",
    ]
    assert first.reply.model == "built-in/default"
    assert first.reply.usage.cost_usd == 0
    await models.aclose()


async def test_each_request_has_a_connection_of_its_own(server: ModelServer) -> None:
    """llama.cpp closes after each stream what it had promised to keep: the next request must not go in there."""
    endpoint = EndpointFixture([Address(f"{server.url}/v1")])
    endpoint.ready.set()
    models = models_over(endpoint)
    server.script(ModelAnswer(text="one"), ModelAnswer(text="two"))
    await read_stream(models.get("built-in/default"), make_request("hi"))
    await read_stream(models.get("built-in/default"), make_request("hi"))
    first, second = (request.client_port for request in server.requests)
    assert first != second
    await models.aclose()


async def test_people_are_told_while_the_model_gets_ready(server: ModelServer) -> None:
    endpoint = EndpointFixture([Address(f"{server.url}/v1")])
    models = models_over(endpoint)
    server.script(ModelAnswer(text="awake"), ModelAnswer(text="still awake"))
    stream = aiter(models.get("built-in/default").stream(make_request("hi")))
    assert isinstance(await anext(stream), ModelNotice)
    assert endpoint.asked == 0
    endpoint.ready.set()
    assert [event async for event in stream][-1]
    assert notices(await read_stream(models.get("built-in/default"), make_request("hi"))) == 0
    await models.aclose()


async def test_a_server_that_died_is_asked_for_again(server: ModelServer, unused_port: int) -> None:
    dead = Address(f"http://127.0.0.1:{unused_port}/v1")
    endpoint = EndpointFixture([dead, Address(f"{server.url}/v1")])
    endpoint.ready.set()
    models = models_over(endpoint)
    server.script(ModelAnswer(text="back again"))
    heard = await read_stream(models.get("built-in/default"), make_request("hi"))
    assert heard.text == "back again"
    assert endpoint.asked == 2
    assert notices(heard, lambda text: "getting ready" in text) == 2
    await models.aclose()


async def test_a_request_that_is_refused_does_not_make_it_start_again(server: ModelServer) -> None:
    endpoint = EndpointFixture([Address(f"{server.url}/v1")])
    endpoint.ready.set()
    models = models_over(endpoint)
    server.script(FailedAnswer(400, "No."), ModelAnswer(text="ok"))
    with pytest.raises(InvalidInput):
        await read_stream(models.get("built-in/default"), make_request("hi"))
    assert notices(await read_stream(models.get("built-in/default"), make_request("hi"))) == 0
    await models.aclose()


async def test_what_keeps_it_from_starting_is_told_as_it_is() -> None:
    endpoint = EndpointFixture([NeedsAttention("No weights.", code="no_weights", fix="Get some.")])
    endpoint.ready.set()
    models = models_over(endpoint)
    with pytest.raises(NeedsAttention) as caught:
        await read_stream(models.get("built-in/default"), make_request("hi"))
    assert caught.value.code == "no_weights"


async def test_waiting_for_it_has_an_end() -> None:
    models = models_over(EndpointFixture([Address("http://127.0.0.1:1/v1")]), total_timeout_s=0.05)
    with anyio.fail_after(HANG_LIMIT_S), pytest.raises(Unavailable) as caught:
        await read_stream(models.get("built-in/default"), make_request("hi"))
    assert caught.value.code == "model_timeout"
