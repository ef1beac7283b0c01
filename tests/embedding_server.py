"""A real server on loopback with OpenAI's embeddings API, for tests."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.local_server import run_in_thread


@dataclass
class EmbeddingServer:
    """Answers with the length of each text as its vector, the last text first, until it is told otherwise."""

    url: str = ""
    status: int = 200
    body: object = None
    asked: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)

    def answer(self, texts: list[str]) -> object:
        rows = [{"index": index, "embedding": [len(text), 1]} for index, text in enumerate(texts)]
        tokens = sum(len(text.split()) for text in texts)
        return {"data": rows[::-1], "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}


@contextmanager
def serve_embeddings() -> Generator[EmbeddingServer]:
    """Until the block ends."""
    found = EmbeddingServer()

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

    with run_in_thread(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        found.url = f"http://127.0.0.1:{port}/v1"
        yield found
