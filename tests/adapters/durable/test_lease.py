"""Which processes live, seen from others."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from denizen.adapters.durable.lease import FileLease, ProcessIdentity, TableLease, identify_process, is_gone

pytest_plugins = ["tests.postgres"]

LONG_S = 1000.0


# --- places ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def child() -> Generator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def identify_child(pid: int) -> ProcessIdentity:
    """The place of a child of this process."""
    born = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    return ProcessIdentity(identify_process().realm, pid, born)


def test_a_living_process_is_not_gone(child: subprocess.Popen[bytes]) -> None:
    assert not is_gone(identify_process())
    assert not is_gone(identify_child(child.pid))
    assert not is_gone(replace(identify_process(), born=""))


def test_a_killed_process_is_gone_even_before_its_parent_looks(child: subprocess.Popen[bytes]) -> None:
    place = identify_child(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_gone(place)
    child.wait()
    assert is_gone(place)
    assert is_gone(replace(place, born=""))


def test_a_pid_that_came_back_is_another_process() -> None:
    assert is_gone(replace(identify_process(), born="1"))


def test_a_process_on_another_machine_is_not_known_to_be_gone(child: subprocess.Popen[bytes]) -> None:
    place = replace(identify_child(child.pid), realm="elsewhere")
    child.kill()
    child.wait()
    assert not is_gone(place)


# --- file locks ------------------------------------------------------------------------------------------------------


def test_a_process_lives_while_it_holds_its_lock_file(tmp_path: Path) -> None:
    mine, other = FileLease(tmp_path / "workers", "mine"), FileLease(tmp_path / "workers", "other")
    mine.acquire()
    other.acquire()
    assert mine.renew()
    assert mine.find_dead({"other"}) == set()
    assert mine.find_dead({"other", "never-there", "../strange name"}) == {"never-there", "../strange name"}
    other.release()
    assert mine.find_dead({"other"}) == {"other"}
    mine.release()
    assert list((tmp_path / "workers").iterdir()) == []


def test_what_a_dead_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "dead.lock").touch()
    lease = FileLease(tmp_path, "mine")
    lease.acquire()
    assert [path.name for path in tmp_path.iterdir()] == ["mine.lock"]
    lease.release()


def test_a_lock_is_not_passed_on_to_child_processes(tmp_path: Path) -> None:
    lease = FileLease(tmp_path, "mine")
    lease.acquire()
    code = "print('here', flush=True); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, close_fds=False) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"here\n"
        held = os.open(tmp_path / "mine.lock", os.O_RDWR)
        lease.release()
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(held)
        child.communicate(b"\n")


# --- rows ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def engine(postgres_url: str) -> Generator[sa.Engine]:
    engine = sa.create_engine(sa.make_url(postgres_url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE SCHEMA durable"))
    yield engine
    engine.dispose()


def row_lease(engine: sa.Engine, executor: str, *, expiry_s: float = LONG_S) -> TableLease:
    lease = TableLease(engine, schema="durable", executor=executor, expiry_s=expiry_s)
    lease.acquire()
    return lease


def move_to_other_machine(engine: sa.Engine, executor: str, *, silent_s: float = 0.0) -> None:
    """Makes it look as if that process ran on another machine, and was last heard of some time ago."""
    with engine.begin() as connection:
        connection.execute(
            sa.text(
                "UPDATE durable.workers SET realm = 'elsewhere', seen_at = now() - make_interval(secs => :silent_s)"
                " WHERE executor_id = :executor"
            ),
            {"executor": executor, "silent_s": silent_s},
        )


@pytest.mark.xdist_group("postgres")
def test_a_process_lives_until_it_releases_its_lease(engine: sa.Engine) -> None:
    mine, other = row_lease(engine, "mine"), row_lease(engine, "other")
    assert mine.find_dead({"other", "never-there"}) == {"never-there"}
    assert mine.find_dead(set()) == set()
    other.release()
    assert mine.find_dead({"other"}) == {"other"}
    assert mine.renew()


@pytest.mark.xdist_group("postgres")
def test_a_process_that_is_silent_for_the_expiry_is_dead_and_learns_it(engine: sa.Engine) -> None:
    mine, other = row_lease(engine, "mine"), row_lease(engine, "other")
    move_to_other_machine(engine, "other", silent_s=LONG_S - 100)
    assert mine.find_dead({"other"}) == set()
    move_to_other_machine(engine, "other", silent_s=LONG_S + 1)
    assert mine.find_dead({"other"}) == {"other"}
    assert not other.renew()
    assert other.renew()
    assert mine.find_dead({"other"}) == set()


@pytest.mark.xdist_group("postgres")
def test_a_process_that_died_on_the_same_machine_is_dead_at_once(
    engine: sa.Engine, child: subprocess.Popen[bytes]
) -> None:
    mine = row_lease(engine, "mine")
    row_lease(engine, "other")
    place = identify_child(child.pid)
    with engine.begin() as connection:
        connection.execute(
            sa.text("UPDATE durable.workers SET pid = :pid, born = :born WHERE executor_id = 'other'"),
            {"pid": place.pid, "born": place.born},
        )
    assert mine.find_dead({"other"}) == set()
    child.kill()
    child.wait()
    assert mine.find_dead({"other"}) == {"other"}


@pytest.mark.xdist_group("postgres")
def test_a_process_that_was_silent_itself_declares_nobody_dead_for_silence_yet(engine: sa.Engine) -> None:
    now_s = 0.0
    mine = TableLease(engine, schema="durable", executor="mine", expiry_s=LONG_S, elapsed_s=lambda: now_s)
    mine.acquire()
    row_lease(engine, "other")
    move_to_other_machine(engine, "other", silent_s=2 * LONG_S)
    now_s = 2 * LONG_S
    mine.renew()
    assert mine.find_dead({"other"}) == set()
    now_s = 3.5 * LONG_S
    assert mine.find_dead({"other"}) == {"other"}
