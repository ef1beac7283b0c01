"""Sources from the command line and the server: added, read, published, and read on after a kill."""

from __future__ import annotations

import json
import signal
import socket
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.adapters.documents.pdf_files import make_pdf
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.repository import Repository, create_repository
from tests.timing import HANG_LIMIT_S, wait_until
from tests.youtube import KEY, open_youtube

pytestmark = pytest.mark.e2e


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return create_repository(tmp_path / "site", {"guide/a.md": "# Roses", "guide/b.py": "no"}).folder


def agents_see(home: Home) -> dict[str, str]:
    current = json.loads((home.folder / "knowledge-snapshots/current.json").read_text())["id"]
    root = home.folder / "knowledge-snapshots/kept" / current
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_a_folder_may_be_named_as_it_is_here_unless_it_may_be_a_repository_on_github(
    home: Home, tmp_path: Path
) -> None:
    for folder in ("notes/club", "docs", "my notes/club"):
        (tmp_path / folder).mkdir(parents=True)
    here = f"import os; os.chdir({str(tmp_path)!r})"
    for given, path in (("notes", "notes"), ("docs/", "docs"), ("my notes/club", "my notes/club")):
        assert f"folder {tmp_path}/{path}," in home.do("sources", "add", given, before=here).out
    refused = home.do("sources", "add", "notes/club", before=here)
    assert refused.code == 2 and "./notes/club" in refused.err and "https://github.com/notes/club.git" in refused.err


@pytest.mark.parametrize("is_file", [False, True])
def test_a_path_where_no_folder_is_is_refused(is_file: bool, home: Home, tmp_path: Path) -> None:
    path, other = tmp_path / "notse", tmp_path / "other"
    other.mkdir()
    if is_file:
        path.write_text("# Notes")
    assert home.do("sources", "add", str(other)).code == 0
    for args in (("add", str(path)), ("add", str(path), "--kind", "git"), ("edit", "other", "--location", str(path))):
        refused = home.do("sources", *args)
        assert (refused.code, refused.told[0]) == (2, f"error: There is no folder {path}.")
        assert refused.told[-1].startswith("fix: ")
    assert len(home.do("sources", "list").out.splitlines()) == 1


def test_a_mistyped_name_of_a_folder_here_is_told_as_such_with_the_nearest_one(home: Home, tmp_path: Path) -> None:
    (tmp_path / "handbook/policies").mkdir(parents=True)
    here = f"import os; os.chdir({str(tmp_path)!r})"
    near = (("handbook/policy", "handbook/policies"), ("hanbook", "handbook"), ("./hanbook", "handbook"))
    for given, meant in near:
        refused = home.do("sources", "add", given, before=here)
        assert (refused.code, refused.told[0]) == (2, f"error: There is no folder {given}.")
        assert f"Did you mean {meant}?" in refused.err
    refused = home.do("sources", "add", "handbook/policy", before=here)
    assert "--kind git or https://github.com/handbook/policy.git" in refused.err
    added = home.do("sources", "add", "handbook/policy", "--kind", "git", before=here)
    assert "git https://github.com/handbook/policy.git," in added.out
    assert (
        "git https://github.com/example/handbook.git," in home.do("sources", "add", "example/handbook", before=here).out
    )


@pytest.mark.proves("SW7")
def test_sources_are_added_listed_changed_read_and_removed(home: Home, docs: Path, tmp_path: Path) -> None:
    refused = home.do("sources", "sync")
    assert (refused.code, refused.out) == (2, "") and "denizen sources add" in refused.err
    added = home.do("sources", "add", str(docs), "--kind", "git", "--content-path", "guide")
    assert added.code == 0 and "Added site: git" in added.out
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/page.html").write_text("<title>T</title><h1>Hi</h1><script>no()</script><p>there")
    (tmp_path / "notes/line\nbreak.md").write_text("x")
    assert home.do("sources", "add", str(tmp_path / "notes"), "--output-path", "my/notes").code == 0
    assert "not read yet" in home.do("sources", "list").out
    done = home.do("sources", "sync")
    assert done.code == 0, done.err
    assert done.out.splitlines()[:2] == [
        "notes: read, 1 file; 1 left out: line\\nbreak.md (its name cannot be kept)",
        "site: read, 1 file",
    ]
    assert agents_see(home) == {"docs/site/a.md": "# Roses", "docs/my/notes/page.html.md": "# Hi\n\nthere\n"}
    assert "1 file (1 left out: line\\nbreak.md (its name cannot be kept))" in home.do("sources", "list").out
    assert "notes: unchanged; 1 left out: line\\nbreak.md" in home.do("sources", "sync", "notes").out
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
        wait_until(lambda: "read_knowledge" in {tool["name"] for tool in server.get("/api/tools").body})


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
        assert self._asked.wait(HANG_LIMIT_S)

    def answer(self) -> None:
        self._answers.set()

    def close(self) -> None:
        self._answers.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(HANG_LIMIT_S)
        self._listener.close()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(ConnectionError):
                    connection.recv(4096)
                    self._asked.set()
                    self._answers.wait(HANG_LIMIT_S)
                    connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def test_of_a_pdf_that_is_too_long_the_text_says_that_there_is_more(home: Home, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/book.pdf").write_bytes(make_pdf([f"page {number}" for number in range(1, 102)]))
    assert home.do("sources", "add", str(tmp_path / "notes")).code == 0
    assert home.do("sources", "sync").code == 0
    said = agents_see(home)["docs/notes/book.pdf.txt"]
    assert said.endswith("page 100\n\n[only 100 of 101 pages were read: it is long]\n")


def test_a_source_that_fails_is_told_once_by_a_sync_and_by_its_log_only_when_asked_for(
    home: Home, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    assert home.do("sources", "add", str(tmp_path / "notes")).code == 0
    (tmp_path / "notes").rmdir()
    failed = home.do("sources", "sync")
    assert failed.code == 4 and failed.out.startswith("notes: not read. ") and failed.err == ""
    assert "a source was not read" in home.do("-v", "sources", "sync").err


def test_an_interrupted_sync_says_what_becomes_of_it(home: Home) -> None:
    with closing(SlowServer()) as slow:
        assert home.do("sources", "add", slow.url, "--id", "slow").code == 0
        with home.start("sources", "sync") as running:
            slow.await_question()
            ended = running.stop(signal.SIGINT)
        slow.answer()
    assert ended.code == 130 and ended.out == ""
    assert "Sources that were read stay so; `denizen sources sync` goes on with the others." in ended.err


@pytest.mark.proves("S25")
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
            wait_until(lambda: first.get("/api/sync").body[0]["progress"].get("site", {}).get("stage") == "read")
            assert first.running.kill().code == -signal.SIGKILL
        assert not (home.folder / "knowledge-snapshots/current.json").exists()
        slow.answer()
        with home.serve() as second:
            wait_until(lambda: second.get("/api/sync").body[0]["ended_at"] is not None)
            [ended] = second.get("/api/sync").body
    assert (ended["id"], ended["status"]) == (run, "partial")
    assert ended["changed"] in ([], ["site"])  # read and not noted yet, it is found unchanged
    assert list(ended["failed"]) == ["slow"]
    assert agents_see(home) == {"docs/site/guide/a.md": "# Roses"}


YOUTUBE = """knowledge:
  # Talks of the harbour.
  youtube: {{api_key: "${{YOUTUBE_API_KEY}}", api_url: "{api}", site_url: "{site}"}}  # the real one is the default
  remote: {{branch: kept}}
"""


@pytest.mark.proves("S27", "S28")
def test_a_sync_of_a_youtube_channel_that_was_killed_goes_on_with_the_videos_it_had_not_come_to(
    home: Home, provider: Provider
) -> None:
    with open_youtube() as youtube:
        for number in range(4):
            youtube.add(f"v{number}", f"Talk {number}", f"Words of {number}.")
        home.configure(provider.server.openai_url, rest=YOUTUBE.format(api=youtube.api_url, site=youtube.url))
        (home.folder / "secrets.env").write_text(f"YOUTUBE_API_KEY={KEY}\n")
        assert home.do("sources", "add", "@harbour", "--max-videos", "3").code == 0
        youtube.hanging.add("v2")
        with home.start("sources", "sync") as first:
            assert youtube.reached.wait(HANG_LIMIT_S)
            assert first.kill().code == -signal.SIGKILL
        assert youtube.fetched() == ["v3", "v2"]
        youtube.hanging.clear()
        done = home.do("sources", "sync")
        assert (done.code, done.out.splitlines()[0]) == (0, "harbour: read, 4 files"), done.err
        assert youtube.fetched() == ["v3", "v2", "v2", "v1"]
        assert sorted(agents_see(home)) == [
            "youtube/harbour/index.md",
            "youtube/harbour/v1_________-talk-1.md",
            "youtube/harbour/v2_________-talk-2.md",
            "youtube/harbour/v3_________-talk-3.md",
        ]
        assert "Words of 2." in agents_see(home)["youtube/harbour/v2_________-talk-2.md"]
        assert home.do("sources", "sync").out.startswith("harbour: unchanged\n")
        youtube.add("v4", "Talk 4", "Words.")
        assert home.do("sources", "sync").out.startswith("harbour: read,")
        assert youtube.fetched()[4:] == ["v4"]
    for file in (path for path in home.folder.rglob("*") if path.is_file() and path.name != "secrets.env"):
        assert KEY.encode() not in file.read_bytes(), file


@pytest.mark.proves("S25-limits")
def test_without_a_key_a_channel_is_skipped_with_a_note_and_nothing_fails(home: Home, docs: Path) -> None:
    assert home.do("sources", "add", str(docs), "--kind", "git").code == 0
    assert home.do("sources", "add", "https://youtube.com/@harbour").code == 0
    assert home.do("sources", "add", "discord:123", "--id", "talk").code == 0
    done = home.do("sources", "sync")
    assert done.code == 0
    assert "harbour: skipped." in done.out and "knowledge.youtube.api_key" in done.out
    assert "talk: skipped." in done.out and "site: read" in done.out
    assert "it was skipped" in home.do("sources", "list").out


@pytest.mark.proves("S24", "S29", "S30", "S-http-snapshot-config-get", "S-http-snapshot-config-put")
def test_the_remote_is_changed_over_http_and_the_configuration_keeps_its_comments(
    home: Home, provider: Provider, docs: Path, tmp_path: Path
) -> None:
    rest = YOUTUBE.format(api="http://127.0.0.1:9/x", site="http://127.0.0.1:9").replace("${YOUTUBE_API_KEY}", "")
    home.configure(provider.server.openai_url, rest=rest)
    other = create_repository(tmp_path / "other", {"precious.txt": "x"})
    assert home.do("sources", "add", str(docs), "--kind", "git").code == 0
    with home.serve() as server:
        refused = server.put("/api/snapshot/config", repository=str(other.folder))
        assert (refused.status, refused.body["error"]["code"]) == (409, "remote_unmarked")
        assert server.get("/api/snapshot/config").body["repository"] == ""
        told = server.put("/api/snapshot/config", repository=str(tmp_path / "mirror"))
        assert (told.status, told.body["branch"]) == (200, "kept")
        wait_until(lambda: any(run["ended_at"] for run in server.get("/api/sync").body))
        [run] = server.get("/api/sync").body
        assert (run["id"], run["status"], run["failed"]) == (told.body["run"], "done", {})
        status = server.get("/api/snapshot/status").body
        assert (status["current"], status["latest"], status["needs_sync"]) == (run["snapshot"], run["snapshot"], False)
        assert server.get("/api/snapshot/config").body["repository"] == str(tmp_path / "mirror")
    mirror = Repository(tmp_path / "mirror")
    assert "docs/site/guide/a.md" in mirror.git("ls-tree", "-r", "--name-only", "kept").splitlines()
    text = home.config.read_text()
    assert "  # Talks of the harbour.\n" in text and "# the real one is the default" in text
    assert f"repository: {tmp_path / 'mirror'}" in text


def test_a_push_has_a_running_server_read_that_source(home: Home, provider: Provider, docs: Path) -> None:
    home.configure(provider.server.openai_url)
    assert home.do("sources", "add", str(docs), "--kind", "git").code == 0
    assert home.do("sources", "webhook", "nothing").code == 2
    with home.serve() as server:
        made = home.do("sources", "webhook", "site")
        assert made.code == 0, made.err
        secret = made.out.splitlines()[1].strip()
        assert "site: ${SYNC_SECRET_SITE}" in home.config.read_text() and secret not in home.config.read_text()
        wrong = server.hook("site", b"{}", "x" * 40)
        assert (wrong.status, wrong.body["error"]["code"]) == (401, "credentials_wrong")
        wait_until(lambda: server.hook("site", b"{}", secret).status == 202)
        wait_until(lambda: agents_see_if_any(home) == {"docs/site/guide/a.md": "# Roses"})
        assert home.do("sources", "webhook", "site", "--remove").code == 0
        wait_until(lambda: server.hook("site", b"{}", secret).status == 401)
        assert "webhooks" not in home.config.read_text()
        assert secret not in (home.folder / "secrets.env").read_text()
        assert secret not in server.running.err.text


def agents_see_if_any(home: Home) -> dict[str, str]:
    return agents_see(home) if (home.folder / "knowledge-snapshots/current.json").exists() else {}
