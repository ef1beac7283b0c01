"""Sources from the command line and the server: added, read, published, and read on after a kill."""

from __future__ import annotations

import json
import signal
import socket
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.e2e.home import Home
from tests.e2e.process import eventually
from tests.e2e.provider import Provider
from tests.repository import create_repository

pytestmark = pytest.mark.e2e


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return create_repository(tmp_path / "site", {"guide/a.md": "# Roses", "guide/b.py": "no"}).folder


def agents_see(home: Home) -> dict[str, str]:
    current = json.loads((home.folder / "knowledge-snapshots/current.json").read_text())["id"]
    root = home.folder / "knowledge-snapshots/kept" / current
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


@pytest.mark.proves("SW7")
def test_sources_are_added_listed_changed_read_and_removed(home: Home, docs: Path, tmp_path: Path) -> None:
    refused = home.do("sources", "sync")
    assert (refused.code, refused.out) == (2, "") and "denizen sources add" in refused.err
    added = home.do("sources", "add", str(docs), "--kind", "git", "--content-path", "guide")
    assert added.code == 0 and "Added site: git" in added.out
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/page.html").write_text("<title>T</title><h1>Hi</h1><script>no()</script><p>there")
    assert home.do("sources", "add", str(tmp_path / "notes"), "--output-path", "my/notes").code == 0
    assert "not read yet" in home.do("sources", "list").out
    done = home.do("sources", "sync")
    assert done.code == 0, done.err
    assert done.out.splitlines()[:2] == ["notes: read", "site: read"]
    assert agents_see(home) == {"docs/site/a.md": "# Roses", "docs/my/notes/page.html.md": "# Hi\n\nthere\n"}
    assert home.do("sources", "sync", "site").out.startswith("site: unchanged\n")
    told = json.loads(home.do("sources", "status", "--verify", "--json").out)
    assert (told["needs_sync"], told["faults"], told["current"] == told["latest"]) == (False, [], True)
    assert home.do("sources", "edit", "site", "--branch", "nope").code == 0
    failed = home.do("sources", "sync")
    assert failed.code == 4 and "site: not read. The repository of 'site' has no branch or tag 'nope'." in failed.out
    assert "docs/site/a.md" in agents_see(home)
    assert "the last attempt failed" in home.do("sources", "list").out
    assert home.do("sources", "remove", "site").code == 0
    assert list(agents_see(home)) == ["docs/my/notes/page.html.md"]
    assert home.do("sources", "show", "site").code == 2


def test_an_agent_of_a_running_server_can_look_things_up_as_soon_as_they_are_read(
    home: Home, provider: Provider, docs: Path
) -> None:
    home.configure(provider.server.openai_url)
    with home.serve() as server:
        assert "read_knowledge" not in {tool["name"] for tool in server.get("/api/tools").body}
        assert home.do("sources", "add", str(docs), "--kind", "git").code == 0
        assert home.do("sources", "sync").code == 0
        eventually(lambda: "read_knowledge" in {tool["name"] for tool in server.get("/api/tools").body})


class SlowServer:
    """Takes connections and does not answer, until it is told to know nothing."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._asked = threading.Event()
        self._answers = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/x.git"

    def await_question(self) -> None:
        assert self._asked.wait(60)

    def answer(self) -> None:
        self._answers.set()

    def close(self) -> None:
        self._answers.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._listener.close()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(ConnectionError):
                    connection.recv(4096)
                    self._asked.set()
                    self._answers.wait(60)
                    connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def test_a_sync_of_a_server_that_was_killed_is_finished_by_the_next_one(
    home: Home, provider: Provider, docs: Path
) -> None:
    home.configure(provider.server.openai_url)
    assert home.do("sources", "add", str(docs), "--kind", "git").code == 0
    with closing(SlowServer()) as slow:
        assert home.do("sources", "add", slow.url, "--id", "slow").code == 0
        with home.serve() as first:
            run = first.post("/api/sync").body["run"]
            slow.await_question()
            eventually(lambda: first.get("/api/sync").body[0]["progress"].get("site", {}).get("stage") == "read")
            assert first.running.kill().code == -signal.SIGKILL
        assert not (home.folder / "knowledge-snapshots/current.json").exists()
        slow.answer()
        with home.serve() as second:
            eventually(lambda: second.get("/api/sync").body[0]["ended_at"] is not None)
            [ended] = second.get("/api/sync").body
    assert (ended["id"], ended["status"], ended["changed"]) == (run, "partial", ["site"])
    assert list(ended["failed"]) == ["slow"]
    assert agents_see(home) == {"docs/site/guide/a.md": "# Roses"}
