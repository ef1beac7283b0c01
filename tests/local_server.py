"""A real HTTP server on loopback for tests: paths to functions that write the answer.

What it was asked is in `requests`. Threads end with the server; an answer that must hang waits for `closing`.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

Answer = Callable[["Exchange"], None]


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One request as the server got it. A body that is no text has its bytes as surrogates; see `data`."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]
    method: str = "GET"
    body: str = ""

    @property
    def data(self) -> bytes:
        return self.body.encode(errors="surrogateescape")


@dataclass(slots=True)
class LocalServer:
    port: int
    host: str = "127.0.0.1"
    scheme: str = "http"
    requests: list[ReceivedRequest] = field(default_factory=list[ReceivedRequest])
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def url(self, path: str) -> str:
        return f"{self.scheme}://{self.address}{path}"


class Exchange(BaseHTTPRequestHandler):
    """One request being answered. `say` is all that most answers need."""

    server_version = "Local"
    local: LocalServer
    routes: Mapping[str, Answer]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0))).decode(errors="surrogateescape")
        query = dict(parse_qsl(parts.query))
        self.local.requests.append(ReceivedRequest(parts.path, query, headers, self.command, body))
        answer = self.routes.get(parts.path)
        if answer is None:
            self.say("nothing here", status=404)
        else:
            answer(self)

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_PROPFIND = do_GET  # noqa: N815 - http.server calls them so

    def say(
        self, body: str | bytes, *, status: int = 200, kind: str = "text/plain; charset=utf-8", **headers: str
    ) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def redirect(self, location: str, *, status: int = 302) -> None:
        self.say("", status=status, Location=location)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Tests read `requests` instead."""


class QuietServer(ThreadingHTTPServer):
    """A server whose clients may hang up early."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing is printed."""


@contextmanager
def run_in_thread(server: ThreadingHTTPServer) -> Generator[int]:
    """The server answers within the block, on the port that is given."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def serve(routes: Mapping[str, Answer], *, tls: ssl.SSLContext | None = None) -> Generator[LocalServer]:
    """Answers on a free port of loopback until the block ends."""

    class Handler(Exchange):
        pass

    Handler.routes = routes
    server = QuietServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    local = Handler.local = LocalServer(server.server_address[1], scheme="https" if tls else "http")
    with run_in_thread(server):
        try:
            yield local
        finally:
            local.closing.set()
