"""Texts to vectors by a server with OpenAI's embeddings API."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from denizen.adapters.embed import EmbedServer, ServedEmbedder
from denizen.domain.errors import NeedsAttention, Unavailable
from denizen.ports.embed import EmbedKind

pytestmark = pytest.mark.anyio


@dataclass
class Server:
    """Answers with the length of each text as its vector, the last text first, until it is told otherwise."""

    url: str = ""
    status: int = 200
    body: object = None
    asked: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)

    def answer(self, texts: list[str]) -> object:
        rows = [{"index": index, "embedding": [len(text), 1]} for index, text in enumerate(texts)]
        return {"data": rows[::-1]}


@pytest.fixture
def server() -> Generator[Server]:
    found = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            found.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            answer = found.body if found.body is not None else found.answer(body["input"])
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(found.status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_request(self, code: object = "-", size: object = "-") -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        found.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
        yield found
        http.shutdown()
        thread.join()


def embedder_of(server: Server, **more: Any) -> ServedEmbedder:
    return ServedEmbedder(EmbedServer("acme", server.url, "small", **more))


async def test_vectors_come_in_the_order_of_the_texts_in_bounded_requests(server: Server) -> None:
    embedder = embedder_of(server, api_key=lambda: "sk-1", headers={"x-team": "blue"})
    texts = ["x" * number for number in range(1, 101)]
    vectors = await embedder.embed(texts, EmbedKind.DOCUMENT)
    assert [vector[0] for vector in vectors] == list(range(1, 101))
    assert [len(body["input"]) for _, _, body in server.asked] == [64, 36]
    path, headers, body = server.asked[0]
    assert (path, body["model"], headers["authorization"], headers["x-team"]) == (
        "/v1/embeddings", "small", "Bearer sk-1", "blue",
    )  # fmt: skip
    assert embedder.name == "acme/small"
    await embedder.aclose()


@pytest.mark.parametrize("status", [401, 404])
async def test_a_refusal_is_for_the_operator_and_tells_what_the_server_said(server: Server, status: int) -> None:
    server.status, server.body = status, {"error": "no such model"}
    embedder = embedder_of(server)
    with pytest.raises(NeedsAttention) as caught:
        await embedder.embed(["a"], EmbedKind.QUERY)
    assert "no such model" in caught.value.why and str(status) in caught.value.why
    await embedder.aclose()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b"oops"),
        (200, b"<html>"),
        (200, {"data": [{"index": 0, "embedding": []}]}),
        (200, {"data": []}),
        (200, []),
    ],
)
async def test_what_is_no_answer_is_unavailable(server: Server, status: int, body: object) -> None:
    server.status, server.body = status, body
    embedder = embedder_of(server)
    with pytest.raises(Unavailable):
        await embedder.embed(["a"], EmbedKind.QUERY)
    await embedder.aclose()


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    embedder = ServedEmbedder(EmbedServer("acme", "http://127.0.0.1:9/v1", "small"))
    with pytest.raises(Unavailable) as caught:
        await embedder.embed(["a"], EmbedKind.QUERY)
    assert caught.value.why == "ConnectError"
    await embedder.aclose()
