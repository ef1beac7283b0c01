"""Databases that are locked, disks that are full, folders that are read-only: said in words, soon; nothing is lost."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from denizen.domain.message import Role
from denizen.domain.turn import TurnStatus
from denizen.testing.model_server import ModelAnswer
from tests.e2e.home import Home, ServerResponse
from tests.e2e.limited_disk import LimitedDisk, open_limited_disk
from tests.e2e.provider import Provider
from tests.e2e.records import lock_database, read_turns
from tests.timing import wait_until

pytestmark = pytest.mark.e2e
pytest_plugins = ["tests.postgres"]


def test_a_database_that_another_process_holds_is_said_to_be_busy(tmp_path: Path) -> None:
    store, log = Home(tmp_path / "store"), Home(tmp_path / "log")
    for home in (store, log):
        home.configure("http://127.0.0.1:9/v1")
        assert home.do("agents").code == 0
    with (
        lock_database(store.folder / "denizen.db"),
        lock_database(log.folder / "durable.db"),
        store.start("ask", "Hello") as first,
        log.start("ask", "Hello") as second,
    ):
        why = f"why: database is locked ({store.folder / 'denizen.db'})"
        ended = first.finish()
        assert (ended.ending, ended.err.splitlines()[-3:]) == (
            (4, ""),
            ["error: The database is busy.", why, "fix: Try again."],
        )
        ended = second.finish()
    assert ended.ending == (4, "")
    assert ended.told[-3:-1] == [
        "error: The durable log is in use by another process.",
        "why: Another process holds the database locked.",
    ]


@pytest.fixture
def disk(tmp_path: Path) -> Generator[LimitedDisk]:
    with open_limited_disk(tmp_path / "disk", "8m") as opened:
        yield opened


def test_a_disk_that_fills_up_during_a_turn_ends_the_question_and_loses_nothing(
    disk: LimitedDisk, provider: Provider
) -> None:
    home = Home(disk.folder / "home")
    home.configure(provider.server.openai_url)
    answer = provider.hold(ModelAnswer(text="long " * 20_000))
    with home.start("ask", "Hello") as asking:
        provider.requests.await_count(1)
        disk.fill(asking.pid)
        answer.release()
        ended = asking.finish()
    assert ended.ending == (2, "")
    assert "Traceback" not in ended.err
    assert "fix:" in ended.err
    disk.make_room()
    provider.script(ModelAnswer(text="Done."))
    with home.serve() as server:
        provider.requests.await_count(2)
        assert server.get("/health").status == 200
        wait_until(lambda: read_turns(home.store_url)[0][0].status is TurnStatus.DONE)
    assert read_turns(home.store_url)[0][1] == [(Role.USER, "Hello"), (Role.ASSISTANT, "Done.")]


def test_a_server_is_not_ready_while_its_disk_is_full(disk: LimitedDisk) -> None:
    home = Home(disk.folder / "home")
    home.configure("http://127.0.0.1:9/v1")
    with home.serve() as server:
        assert server.get("/ready") == ServerResponse(200, {"status": "ready", "not_ready": [], "reasons": {}})
        disk.fill(server.running.pid)
        wait_until(lambda: "disk" in server.get("/ready").body["not_ready"])  # an answer counts for a second
        assert server.get("/ready").status == 503
        assert server.get("/health").status == 200


def test_a_server_is_not_ready_while_another_process_holds_a_database_locked(home: Home) -> None:
    home.configure("http://127.0.0.1:9/v1")
    with home.serve() as server:
        for file, part in (("denizen.db", "store"), ("durable.db", "durable_log")):
            with lock_database(home.folder / file):
                wait_until(lambda: server.get("/ready").body["not_ready"] == [part])  # noqa: B023
                assert server.get("/ready").status == 503
            wait_until(lambda: server.get("/ready").status == 200)
        assert server.get("/health").status == 200


@pytest.mark.xdist_group("postgres")
def test_a_server_is_not_ready_while_its_postgres_is_gone(home: Home, postgres_server: str) -> None:
    from tests.postgres import new_database

    with new_database(postgres_server) as url:
        home.configure("http://127.0.0.1:9/v1", rest=f"store: {{url: '{url}'}}\n")
        with home.serve() as server:
            assert server.get("/ready").status == 200
            with psycopg.connect(postgres_server, autocommit=True) as connection:
                name = urlsplit(url).path.removeprefix("/")
                connection.execute(SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(Identifier(name)))
                connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            wait_until(lambda: set(server.get("/ready").body["not_ready"]) == {"store", "durable_log"})
            assert server.get("/health").status == 200


HEED_PERMISSIONS = """
import ctypes
if os.geteuid() == 0:
    for may_ignore_them in (1, 2):
        ctypes.CDLL(None).prctl(24, may_ignore_them, 0, 0, 0)
"""
"""Takes from root the capabilities by which nothing is read-only for it (PR_CAPBSET_DROP, CAP_DAC_*)."""


def test_a_home_that_cannot_be_written_is_said_to_be_so(home: Home) -> None:
    home.configure("http://127.0.0.1:9/v1")
    home.folder.chmod(0o500)
    ended = home.do("ask", "Hello", before=HEED_PERMISSIONS)
    home.folder.chmod(0o700)
    assert ended.ending == (2, "")
    assert "cannot be opened or written" in ended.err
    assert "Traceback" not in ended.err
