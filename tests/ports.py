"""A port at which nobody answers."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def hold_unused_port() -> Generator[int]:
    """On loopback. It is kept meanwhile: no other process gets it, but who asks for it by number can listen there."""
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        yield kept.getsockname()[1]
