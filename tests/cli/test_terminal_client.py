"""A question to the server of its home folder, where that is missing or another one than expected."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import UnixStreamServer

import pytest

from denizen.app.terminal_messages import SOCKET, TerminalMessage
from denizen.cli.terminal_client import TerminalClient, find_server
from denizen.domain.errors import Unavailable

MESSAGE = TerminalMessage(key="k", command="ask", session="s", text="Hello")


@contextmanager
def answering(home: Path, answer: bytes) -> Generator[None]:
    """A server that answers everything with these bytes, and then ends the connection."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.wfile.write(answer)

    with UnixStreamServer(str(home / SOCKET), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def test_a_home_without_a_server_has_none(tmp_path: Path) -> None:
    assert find_server(tmp_path) is None
    assert find_server(tmp_path / ("x" * 120)) is None, "its path is too long for a socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / SOCKET))
    assert find_server(tmp_path) is None


def test_a_server_of_another_version_is_told_and_not_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(tmp_path, b'HTTP/1.0 200 OK\r\n\r\n"0.0.1"'):
        assert find_server(tmp_path) is None
    assert capsys.readouterr().err.startswith("[Denizen 0.0.1 runs on this home, but this is ")


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.0 200 OK\r\n\r\n<html>", b"HTTP/1.0 500 Fault\r\n\r\noh"])
def test_a_server_that_answers_with_something_else_is_an_error_in_words(answer: bytes, tmp_path: Path) -> None:
    with answering(tmp_path, answer):
        with pytest.raises(Unavailable, match="does not answer"):
            find_server(tmp_path)
        with pytest.raises(Unavailable, match="before it had taken the question"):
            list(TerminalClient(tmp_path / SOCKET).stream(MESSAGE))


def test_a_stream_that_breaks_off_names_its_turn(tmp_path: Path) -> None:
    begun = b'HTTP/1.0 200 OK\r\nX-Denizen-Turn: turn_1\r\n\r\nevent: turn\ndata: {"type":"text","text":"Once"}\n\n'
    with answering(tmp_path, begun):
        events = iter(TerminalClient(tmp_path / SOCKET).stream(MESSAGE))
        assert getattr(next(events), "text", "") == "Once"
        with pytest.raises(Unavailable, match="before the answer was complete") as lost:
            next(events)
    assert "denizen trace turn_1" in lost.value.fix
