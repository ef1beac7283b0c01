"""The port that the server listens on."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from denizen.app.serve import is_reachable, listen
from denizen.app.settings.schema import ServerSection
from denizen.domain.errors import NeedsAttention


def test_a_port_that_is_taken_is_refused_unless_another_will_do() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(NeedsAttention, match=f"cannot listen on 127.0.0.1 port {port}") as caught:
            listen("127.0.0.1", port)
        assert "--port" in caught.value.fix
        with listen("127.0.0.1", port, may_move=True) as moved:
            assert moved.getsockname()[1] not in (0, port)
    with listen("127.0.0.1", port, may_move=True) as free:
        assert free.getsockname()[1] == port


def test_an_address_that_is_not_of_this_machine_is_refused_whatever_the_port() -> None:
    with pytest.raises(NeedsAttention, match=r"cannot listen on 192\.0\.2\.1"):
        listen("192.0.2.1", 0, may_move=True)


def test_a_port_is_taken_from_the_beginning() -> None:
    """Two sockets may be bound to a port as long as neither listens."""
    with listen("127.0.0.1", 0) as taken, socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            other.bind(taken.getsockname())


@pytest.mark.parametrize(
    ("host", "section", "reachable"),
    [
        ("127.0.0.1", {}, False),
        ("127.0.0.1", {"public_url": "http://localhost:8650"}, False),
        ("127.0.0.1", {"public_url": "https://denizen.example.org"}, True),
        ("127.0.0.1", {"trusted_proxies": ["10.0.0.0/8"]}, True),
        ("0.0.0.0", {}, True),
    ],
)
def test_a_server_behind_a_proxy_is_open_to_nobody_on_trust(
    host: str, section: dict[str, Any], reachable: bool
) -> None:
    assert is_reachable(ServerSection(**section), host) is reachable
