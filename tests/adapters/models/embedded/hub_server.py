"""A model hub on the loopback address: serves one file with ranges, and fails as it is told."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.local_server import run_in_thread


class Hub(ThreadingHTTPServer):
    """`cuts` and `statuses` are for the requests to come, in order: after how many bytes to hang up, what to answer."""

    daemon_threads = True

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = content
        self.ranges = True
        self.cuts: list[int] = []
        self.statuses: list[int] = []
        self.asked: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub  # type: ignore[assignment]

    def do_GET(self) -> None:
        wanted = self.headers["Range"]
        if not self.path.startswith("/cdn"):
            self.send_response(302)
            self.send_header("Location", f"/cdn{self.path}")
            self.end_headers()
            return
        self.server.asked.append((self.path.removeprefix("/cdn"), wanted))
        if self.server.statuses:
            self.send_error(self.server.statuses.pop(0))
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.ranges else 0
        body = self.server.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header(
                "Content-Range", f"bytes {start}-{len(self.server.content) - 1}/{len(self.server.content)}"
            )
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):  # the client may have seen enough
            self.wfile.write(body[: self.server.cuts.pop(0)] if self.server.cuts else body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the overridden method
        """Keeps quiet."""


@contextmanager
def running_hub(content: bytes) -> Generator[Hub]:
    hub = Hub(content)
    with run_in_thread(hub):
        yield hub
