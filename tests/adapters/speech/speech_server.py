"""A real server on loopback with OpenAI's audio API, which speaks and recognizes with the models that run here."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anyio

from denizen.adapters.speech import EspeakSynthesizer, PocketsphinxRecognizer
from denizen.adapters.speech.audio import decode_file, encode_wav
from tests.local_server import run_in_thread


@dataclass
class SpeechServer:
    """Answers until it is told otherwise. `asked` has the path, the authorization and the fields of each request."""

    url: str = ""
    status: int = 200
    body: bytes | None = None
    asked: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)

    def answer(self, path: str, fields: dict[str, Any]) -> bytes:
        if path == "/v1/audio/speech":
            return encode_wav(anyio.run(EspeakSynthesizer().synthesize, fields["input"]))
        text = anyio.run(PocketsphinxRecognizer().transcribe, decode_file(fields["file"]))
        return json.dumps({"text": text}).encode()


@contextmanager
def serve_speech() -> Generator[SpeechServer]:
    """Until the block ends."""
    found = SpeechServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            fields = _read_form(self.headers["content-type"], body)
            found.asked.append((self.path, self.headers.get("authorization", ""), fields))
            data = found.body if found.body is not None else found.answer(self.path, fields)
            self.send_response(found.status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_request(self, code: object = "-", size: object = "-") -> None:
            pass

    with run_in_thread(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        found.url = f"http://127.0.0.1:{port}/v1"
        yield found


def _read_form(content_type: str, body: bytes) -> dict[str, Any]:
    if content_type.startswith("application/json"):
        return json.loads(body)
    message = BytesParser().parsebytes(b"content-type: " + content_type.encode() + b"\r\n\r\n" + body)
    fields: dict[str, Any] = {}
    parts: Any = message.get_payload()
    for part in parts:
        name = part.get_param("name", header="content-disposition")
        data = part.get_payload(decode=True)
        fields[str(name)] = data if part.get_filename() else data.decode()
    return fields
