"""The port that the server listens on."""

from __future__ import annotations

import socket

import pytest

from denizen.app.serve import listen
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
