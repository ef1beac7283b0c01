"""A server behind a web address: reached, called, started anew, taken away; headers sent with every request."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from denizen.adapters.mcp import McpPool, McpServerPhase, McpToolset
from denizen.domain.clock import SystemClock
from denizen.domain.errors import Unavailable
from tests.adapters.mcp.mcp_fixture import HERE, TRUSTED, call, names, open_toolset, site, starts
from tests.ports import hold_unused_port
from tests.timing import HANG_LIMIT_S

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("mcp")]


@contextmanager
def listening(port: int = 0) -> Generator[socket.socket]:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        yield listener


@contextmanager
def running(listener: socket.socket, home: Path) -> Generator[subprocess.Popen[bytes]]:
    """The small server on this socket; who connects before it is up waits in the socket's queue."""
    (home / "starts.txt").touch()
    descriptor = listener.fileno()
    process = subprocess.Popen(
        [sys.executable, str(HERE / "small_server.py"), str(descriptor)],
        pass_fds=[descriptor],
        env={"STARTS": str(home / "starts.txt"), "PATH": "/usr/bin:/bin"},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def url(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"


async def test_a_server_over_http_is_listed_and_called(tmp_path: Path):
    with listening() as listener, running(listener, tmp_path):
        async with open_toolset(site(url(listener))) as toolset:
            assert "small_roll" in await names(toolset)
            assert (await call(toolset, "small_roll", {"sides": 6})).text.startswith("6: ")
            assert (await call(toolset, "small_fail")).is_error
            heard: list[str] = []
            with anyio.CancelScope() as scope:
                await call(toolset, "small_fall", report=lambda text: (heard.append(text), scope.cancel())[0])
            assert heard == ["begun (25%)"]
            assert (await call(toolset, "small_wipe")).text == "gone"


@pytest.mark.proves("LW6")
async def test_an_http_server_that_was_started_anew_is_called_as_before(tmp_path: Path):
    with listening() as listener:
        async with open_toolset(site(url(listener))) as toolset:
            with running(listener, tmp_path):
                first = (await call(toolset, "small_pid")).text
            with running(listener, tmp_path):
                again = (await call(toolset, "small_wipe")).text
                second = (await call(toolset, "small_pid")).text
    assert again == "gone"
    assert first != second
    assert starts(tmp_path) == ["start", "start", "wipe"]


@pytest.mark.proves("LW6")
async def test_an_http_server_that_is_away_fails_the_call_and_is_back_for_the_next_one(tmp_path: Path):
    with hold_unused_port() as port, listening(port) as listener, running(listener, tmp_path):
        with anyio.fail_after(HANG_LIMIT_S):
            async with McpPool(SystemClock()) as pool:
                (toolset,) = pool.open({site(url(listener)): TRUSTED})
                first = (await call(toolset, "small_pid")).text
                listener.close()
                with pytest.raises(Unavailable, match=r"cannot be reached|unknown"):
                    await _fail(toolset, first)
                with listening(port) as fresh, running(fresh, tmp_path):
                    assert (await call(toolset, "small_wipe")).text == "gone"
                    assert toolset.server.state.phase is McpServerPhase.UP


async def _fail(toolset: McpToolset, pid: str) -> None:
    os.kill(int(pid), signal.SIGKILL)
    while True:
        await call(toolset, "small_wipe")


async def test_headers_go_with_every_request_and_are_shown_nowhere(tmp_path: Path):
    with listening() as listener, running(listener, tmp_path):
        spec = site(f"{url(listener)}?key=secret-in-url", Authorization="Bearer secret-header")
        async with open_toolset(spec) as toolset:
            assert (await call(toolset, "small_who")).text == "Bearer secret-header"
    assert "secret" not in repr(spec)
