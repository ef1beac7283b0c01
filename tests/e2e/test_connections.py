"""Clients that hold connections, and a process that runs out of file descriptors: the server goes on."""

from __future__ import annotations

import re
import resource
import signal
import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest

from denizen.testing.model_server import ModelAnswer
from tests.e2e.home import Home, Server, get_completion_text
from tests.e2e.provider import Provider
from tests.timing import HANG_LIMIT_S, wait_until

pytestmark = pytest.mark.e2e

DESCRIPTORS = 300
PARTIAL = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


@contextmanager
def serve_with_few_descriptors(home: Home, provider: Provider) -> Generator[Server]:
    home.configure(provider.server.openai_url)
    before = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({DESCRIPTORS}, {DESCRIPTORS}))"
    with home.start("run", "--port", "0", before=before) as running:
        yield Server(running, running.err.await_text(r"Denizen is ready: (http://\S+)$")[1])


def connect(server: Server, *, source: str = "127.0.0.1") -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection((str(address.hostname), address.port), HANG_LIMIT_S, (source, 0))


def get_status(server: Server, *, source: str = "127.0.0.1") -> int:
    """The status of `/health` for a client at that address; 0 when there is no answer."""
    try:
        with connect(server, source=source) as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            found = re.match(rb"HTTP/1\.1 (\d+) ", client.recv(64))
    except OSError:
        return 0
    return int(found[1]) if found else 0


def test_half_open_connections_beyond_the_descriptors_leave_others_their_answers(
    home: Home, provider: Provider
) -> None:
    with serve_with_few_descriptors(home, provider) as server, ExitStack() as held:
        for _ in range(4 * DESCRIPTORS):
            client = held.enter_context(connect(server))
            client.sendall(PARTIAL)
        assert get_status(server, source="127.0.0.2") == 200
        held.close()
        wait_until(lambda: get_status(server) == 200)
        provider.script(ModelAnswer(text="Still here."))
        assert get_completion_text(server.ask("Hello", key="m1")) == "Still here."
        assert server.running.stop(signal.SIGTERM).code == 0


def test_the_limit_of_open_files_is_raised_at_the_start(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    before = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (400, 800))"
    with home.start("run", "--port", "0", before=before) as running:
        running.err.await_text("Denizen is ready")
        assert resource.prlimit(running.pid, resource.RLIMIT_NOFILE) == (800, 800)


@contextmanager
def without_free_descriptors(pid: int) -> Generator[None]:
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    yield
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def test_without_descriptors_everything_waits_and_goes_on_when_there_are_some(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    provider.script(ModelAnswer(text="Still here."))
    with home.serve() as server:
        with without_free_descriptors(server.running.pid), connect(server) as waiting:
            waiting.sendall(PARTIAL)
            server.running.err.await_text("configuration (cannot be watched now|is read as soon as there are)")
            server.running.err.await_text(r"\w+ ended: ")
        wait_until(lambda: get_status(server) == 200)
        assert get_completion_text(server.ask("Hello", key="m1")) == "Still here."
        home.configure(provider.server.openai_url, rest="default_agent: denizen\n")
        server.running.err.await_text("configuration reloaded")
        ended = server.running.stop(signal.SIGTERM)
    assert ended.code == 0
    assert ended.err.count("cannot be watched") <= 1
