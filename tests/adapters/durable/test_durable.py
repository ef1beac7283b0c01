"""Durable execution on DBOS: what is special about it. What it shares with the one in memory is in the contract."""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import psycopg
import pytest
import sqlalchemy as sa
from anyio import to_thread
from sqlalchemy import event

from denizen.adapters.durable import recovery
from denizen.adapters.durable.durable import DbosExecution
from denizen.adapters.durable.open_runs import count_open_runs
from denizen.adapters.durable.settings import DurableSettings
from denizen.domain.errors import Conflict, DenizenError, InvalidInput, NeedsAttention, NotFound, Unavailable
from denizen.domain.json import Json, JsonObject
from denizen.domain.store_move import STORE_MOVED
from denizen.ports.durable import OnFault, RunLane, Workflow
from tests.contracts.durable.processes import BlockingAction, get_failure, return_value, wait_for_result
from tests.timing import HANG_LIMIT_S, poll

pytestmark = pytest.mark.anyio
pytest_plugins = ["tests.postgres"]

NEVER_S = 10_000.0
PATIENCE_S = 0.3

Open = Callable[..., Awaitable[DbosExecution]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "durable.db"


@pytest.fixture
async def opened(path: Path) -> AsyncGenerator[Open]:
    """Opens a log that knows the workflow, with rounds of recovery only when a test asks for one."""
    made: list[DbosExecution] = []

    async def open_(
        workflow: Workflow, *, name: str = "work", on_fault: OnFault | None = None, **settings: object
    ) -> DbosExecution:
        values: dict[str, object] = {"database": path, "heartbeat_s": NEVER_S, **settings}
        durable = DbosExecution(DurableSettings(**values))  # pyright: ignore[reportArgumentType]
        durable.register(name, workflow, on_fault)
        made.append(durable)
        await durable.start()
        return durable

    yield open_
    for durable in made:
        await durable.aclose()


async def run_recovery_round(durable: DbosExecution) -> None:
    """Runs one round of recovery now."""
    assert durable._open is not None
    await to_thread.run_sync(durable._open.recovery._round)


def query(path: Path, text: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        with connection:
            return connection.execute(text).fetchall()
    finally:
        connection.close()


async def done(_payload: JsonObject) -> Json:
    return "done"


# --- one in a process ------------------------------------------------------------------------------------------------


async def test_a_second_log_in_one_process_is_refused_until_the_first_is_closed(opened: Open, tmp_path: Path) -> None:
    first = await opened(done)
    error = await get_failure(opened(done, database=tmp_path / "other.db"))
    assert isinstance(error, Conflict)
    assert error.code == "durable_open"
    await first.submit("work", "run", {})
    assert await wait_for_result(first, "run") == "done"
    await first.aclose()
    second = await opened(done, database=tmp_path / "other.db")
    assert isinstance(await get_failure(second.wait("run")), NotFound)


async def test_threads_of_the_event_loop_work_while_it_is_open_and_after(opened: Open) -> None:
    durable = await opened(done)
    await durable.submit("work", "run", {})
    assert await asyncio.to_thread(lambda: 1) == 1
    await durable.aclose()
    assert await asyncio.to_thread(lambda: 2) == 2


def test_nothing_heavy_is_imported_before_a_log_is_opened() -> None:
    code = "import sys, denizen.adapters.durable.durable; print({'dbos', 'sqlalchemy', 'psycopg'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


async def test_a_database_that_is_neither_a_file_nor_postgres_is_refused(opened: Open) -> None:
    error = await get_failure(opened(done, database="mysql://somewhere/durable"))
    assert isinstance(error, InvalidInput)


# --- what is stored --------------------------------------------------------------------------------------------------


async def test_all_that_is_stored_is_json_and_errors_are_marked(opened: Open, path: Path) -> None:
    async def fail() -> Json:
        raise NotFound("No.", code="gone")

    async def work(payload: JsonObject) -> Json:
        await durable.step("value", lambda: return_value(payload["n"]))
        await durable.step("fails", fail)
        return None

    durable = await opened(work)
    await durable.submit("work", "run", {"n": [1, "two"]})
    assert isinstance(await get_failure(durable.wait("run")), NotFound)
    error = '!{"family":"NotFound","code":"gone","message":"No.","why":"","fix":""}'
    assert query(path, "SELECT inputs FROM workflow_input") == [('{"args":[{"n":[1,"two"]}],"kwargs":{}}',)]
    assert query(path, "SELECT output, error, serialization FROM operation_outputs ORDER BY function_id") == [
        ('[1,"two"]', None, "denizen_json_1"),
        (None, error, "denizen_json_1"),
    ]
    assert query(path, "SELECT output, error FROM workflow_output") == [(None, error)]
    assert query(path, "SELECT status, name, application_version FROM workflow_status") == [("ERROR", "work", "1")]
    assert query(path, "PRAGMA journal_mode") == [("wal",)]
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.glob("durable.db*") if file.is_file()} == {0o600}


async def test_a_recorded_failure_is_not_logged_as_trouble(
    opened: Open, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    hold = BlockingAction()

    async def fail() -> Json:
        raise NotFound("No.")

    async def work(payload: JsonObject) -> Json:
        return await durable.step("step", hold if payload["hold"] else fail)

    caplog.set_level(logging.INFO)
    durable = await opened(work)
    await durable.submit("work", "fails", {"hold": False})
    await get_failure(durable.wait("fails"))
    await durable.submit("work", "stays", {"hold": True})
    await hold.reached()
    await durable.aclose()
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


async def test_runs_that_ended_long_ago_are_forgotten(opened: Open, path: Path) -> None:
    hold = BlockingAction()

    async def work(payload: JsonObject) -> Json:
        return await durable.step("hold", hold) if payload["hold"] else "done"

    durable = await opened(work)
    for run_id in ("old", "new", "open"):
        await durable.submit("work", run_id, {"hold": run_id == "open"})
    await wait_for_result(durable, "old")
    await wait_for_result(durable, "new")
    await hold.reached()
    query(path, "UPDATE workflow_status SET completed_at = completed_at - 31 * 86400000 WHERE workflow_uuid = 'old'")
    query(path, "UPDATE workflow_status SET created_at = 0")
    assert durable._open is not None
    durable._open.recovery._forgot_s -= NEVER_S
    await run_recovery_round(durable)
    assert isinstance(await get_failure(durable.wait("old")), NotFound)
    assert await wait_for_result(durable, "new") == "done"
    hold.go()
    assert await wait_for_result(durable, "open") == 1


@pytest.mark.parametrize("in_step", [True, False])
async def test_a_run_that_finds_its_store_moved_leaves_and_does_the_same_again_in_another_process(
    opened: Open, path: Path, caplog: pytest.LogCaptureFixture, *, in_step: bool
) -> None:
    is_there, moved = False, list[str]()

    async def write() -> Json:
        if not is_there:
            raise Unavailable("The data is elsewhere.", code=STORE_MOVED)
        return "written"

    async def work(_payload: JsonObject) -> Json:
        return await executing[-1].step("write", write) if in_step else await write()

    executing = [await opened(work)]
    executing[0].on_moved = lambda: moved.append("told")
    await executing[0].submit("work", "run", {})
    failure = await get_failure(executing[0].wait("run"))
    assert failure.code == STORE_MOVED
    with anyio.fail_after(HANG_LIMIT_S):
        while not moved:
            await anyio.lowlevel.checkpoint()
    assert query(path, "SELECT status FROM workflow_status") == [("PENDING",)]
    assert query(path, "SELECT output, error FROM operation_outputs") == []
    await executing[0].aclose()
    is_there = True
    executing.append(await opened(work))
    assert await wait_for_result(executing[1], "run") == "written"
    assert not [each for each in caplog.records if each.exc_info]


# --- recovery ---------------------------------------------------------------------------------------------------------


async def leave_run(opened: Open, name: str) -> None:
    """A run of a process that is no more."""
    hold = BlockingAction()

    async def work(_payload: JsonObject) -> Json:
        return await hold()

    durable = await opened(work, name=name)
    await durable.submit(name, "run", {})
    await hold.reached()
    await durable.aclose()


async def test_a_short_command_leaves_the_runs_of_others_alone(opened: Open) -> None:
    await leave_run(opened, "work")
    command = await opened(done, rescue=False)
    await run_recovery_round(command)
    await command.submit("work", "own", {})
    assert await wait_for_result(command, "own") == "done"
    assert await command.pending() == ["run"]
    await command.aclose()
    assert await wait_for_result(await opened(done), "run") == "done"


async def test_a_run_of_a_workflow_that_is_unknown_here_waits_for_a_process_that_knows_it(opened: Open) -> None:
    await leave_run(opened, "elsewhere")
    durable = await opened(done)
    await run_recovery_round(durable)
    assert await durable.pending() == ["run"]
    await durable.aclose()
    assert await wait_for_result(await opened(done, name="elsewhere"), "run") == "done"


async def test_a_run_that_cannot_be_read_fails_and_does_not_block_others(
    opened: Open, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hold = BlockingAction()

    async def work(_payload: JsonObject) -> Json:
        return await hold()

    durable = await opened(work)
    for run_id in ("broken", "sound"):
        await durable.submit("work", run_id, {})
    await durable.aclose()
    query(path, "UPDATE workflow_input SET inputs = '{' WHERE workflow_uuid = 'broken'")
    later = await opened(done)
    assert await wait_for_result(later, "sound") == "done"
    assert (await get_failure(later.wait("broken"))).code == "internal"
    assert "run broken (work) cannot be resumed" in caplog.text


# --- a database in trouble -------------------------------------------------------------------------------------------


async def test_work_that_cannot_be_recorded_stays_pending_and_goes_on_when_there_is_room_again(
    opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []

    def action(name: str, size: int) -> Callable[[], Awaitable[Json]]:
        async def act() -> Json:
            ran.append(name)
            return "x" * size

        return act

    async def work(_payload: JsonObject) -> Json:
        await durable.step("small", action("small", 1))
        try:
            await durable.step("big", action("big", 1_000_000))
        except DenizenError:
            return "a workflow must not take this for a failed step"
        return "done"

    faults: list[tuple[str, str]] = []

    def hear(run_id: str, error: DenizenError) -> None:
        faults.append((run_id, error.code))

    durable = await opened(work, on_fault=hear)
    assert durable._open is not None
    room = "page_count"

    def limit(connection: sqlite3.Connection, *_: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0] if room == "page_count" else room
        connection.execute(f"PRAGMA max_page_count = {pages}")

    event.listen(durable._open.database.engine, "checkout", limit)
    await durable.submit("work", "run", {})
    error = await get_failure(durable.wait("run"))
    assert isinstance(error, NeedsAttention)
    assert error.code == "disk_full"
    assert faults == [("run", "disk_full")]
    assert "a step of run run could not be recorded" in caplog.text
    assert await durable.pending() == ["run"]
    room = "1000000"
    await run_recovery_round(durable)
    assert await wait_for_result(durable, "run") == "done"
    assert ran == ["small", "big", "big"]


async def test_a_run_whose_end_cannot_be_recorded_ends_later(
    opened: Open, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []

    async def act() -> Json:
        ran.append("step")
        return 1

    async def work(_payload: JsonObject) -> Json:
        return await durable.step("step", act)

    durable = await opened(work)
    # A failure could still be written: it must not be taken for the end of the run.
    query(
        path,
        "CREATE TRIGGER full BEFORE INSERT ON workflow_output WHEN NEW.output IS NOT NULL"
        " BEGIN SELECT RAISE(ABORT, 'no'); END",
    )
    await durable.submit("work", "run", {})
    assert isinstance(await get_failure(durable.wait("run")), NeedsAttention)
    assert "the end of run run could not be recorded" in caplog.text
    assert await durable.pending() == ["run"]
    query(path, "DROP TRIGGER full")
    await run_recovery_round(durable)
    assert await wait_for_result(durable, "run") == 1
    assert ran == ["step"]


async def test_a_run_that_fails_to_be_recorded_again_waits_longer(
    opened: Open, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "_RETRY_FIRST_S", NEVER_S)  # longer than any machine takes for the rounds below
    ran: list[str] = []

    async def work(_payload: JsonObject) -> Json:
        ran.append("run")
        return 1

    durable = await opened(work)
    query(path, "CREATE TRIGGER full BEFORE INSERT ON workflow_output BEGIN SELECT RAISE(ABORT, 'no'); END")
    await durable.submit("work", "run", {})
    await get_failure(durable.wait("run"))
    for _ in range(3):
        await run_recovery_round(durable)
        await durable._settle_all(20)
    assert ran == ["run", "run"]


async def test_a_submit_that_waits_too_long_says_so_and_the_run_starts_when_it_can(opened: Open, path: Path) -> None:
    durable = await opened(done)
    patient = durable._settings
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    durable._settings = replace(patient, patience_s=PATIENCE_S)
    error = await get_failure(durable.submit("work", "run", {}))
    durable._settings = patient
    assert isinstance(error, Unavailable)
    assert error.code == "durable_slow"
    other.rollback()
    other.close()
    assert await wait_for_result(durable, "run") == "done"


async def test_a_log_that_is_locked_does_not_open(opened: Open, path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("BEGIN EXCLUSIVE")
    error = await get_failure(opened(done, patience_s=PATIENCE_S))
    assert isinstance(error, Unavailable)
    assert error.code == "durable_locked"
    other.rollback()
    other.close()
    durable = await opened(done)
    await durable.submit("work", "run", {})
    assert await wait_for_result(durable, "run") == "done"


async def test_a_log_of_a_newer_version_is_refused(opened: Open, path: Path) -> None:
    await (await opened(done)).aclose()
    query(path, "UPDATE dbos_migrations SET version = version + 1")
    error = await get_failure(opened(done))
    assert isinstance(error, NeedsAttention)
    assert error.code == "durable_newer"


async def test_a_damaged_log_is_refused(opened: Open, path: Path) -> None:
    path.write_bytes(b"this is not a database, " * 100)
    error = await get_failure(opened(done))
    assert isinstance(error, NeedsAttention)
    assert error.code == "durable_damaged"


async def test_a_folder_that_cannot_be_written_is_refused(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    error = await get_failure(opened(done, database=tmp_path / "file" / "durable.db"))
    assert isinstance(error, NeedsAttention)
    assert error.code == "durable_unusable"


async def test_a_server_that_does_not_answer_is_unavailable(opened: Open) -> None:
    error = await get_failure(opened(done, database="postgresql://nobody@127.0.0.1:1/nothing"))
    assert isinstance(error, Unavailable)
    assert error.code == "durable_unreachable"


@pytest.mark.xdist_group("postgres")
async def test_a_server_that_refuses_needs_attention(postgres_url: str, opened: Open) -> None:
    error = await get_failure(opened(done, database=postgres_url.replace("?", "-missing?")))
    assert isinstance(error, NeedsAttention)
    assert error.code == "durable_refused"


@pytest.mark.xdist_group("postgres")
async def test_a_log_of_a_newer_version_on_a_server_is_refused(postgres_url: str, opened: Open) -> None:
    await (await opened(done, database=postgres_url)).aclose()
    engine = sa.create_engine(sa.make_url(postgres_url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE denizen_durable.dbos_migrations SET version = version + 1"))
    engine.dispose()
    error = await get_failure(opened(done, database=postgres_url))
    assert isinstance(error, NeedsAttention)
    assert error.code == "durable_newer"


@pytest.mark.xdist_group("postgres")
async def test_broken_connections_are_replaced(postgres_url: str, opened: Open) -> None:
    hold = BlockingAction()

    async def work(_payload: JsonObject) -> Json:
        return await durable.step("hold", hold)

    durable = await opened(work, database=postgres_url)
    await durable.submit("work", "run", {})
    await hold.reached()
    engine = sa.create_engine(sa.make_url(postgres_url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(
            sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'denizen-durable'")
        )
    engine.dispose()
    hold.go()
    assert await wait_for_result(durable, "run") == 1
    await run_recovery_round(durable)
    assert hold.count == 1


@pytest.mark.xdist_group("postgres")
async def test_it_closes_although_its_database_has_gone(postgres_server: str, opened: Open) -> None:
    from tests.postgres import new_database

    with new_database(postgres_server) as url:
        durable = await opened(done, database=url)
    await durable.aclose()
    later = await opened(done)
    await later.submit("work", "run", {})
    assert await wait_for_result(later, "run") == "done"


@pytest.mark.xdist_group("postgres")
async def test_runs_that_were_handed_in_begin_in_the_order_of_their_lanes_where_they_are_claimed(
    postgres_url: str, opened: Open
) -> None:
    begun: list[Json] = []

    async def work(payload: JsonObject) -> Json:
        begun.append(payload["n"])
        return payload["n"]

    front = await opened(work, database=postgres_url, execute=False, rescue=False)
    told: list[int] = []
    front.on_hand_in = lambda: told.append(1)
    slow, urgent = RunLane("a", is_urgent=False), RunLane("b")
    for number, lane in enumerate([slow, urgent, urgent, slow]):
        await front.submit("work", f"run-{number}", {"n": number}, lane=lane)
    await front.submit("work", "run-0", {"n": 0}, lane=slow)  # once more: it is one run
    assert (begun, len(told)) == ([], 5)
    assert await front.pending() == [f"run-{number}" for number in range(4)]
    await front.aclose()
    back = await opened(work, database=postgres_url, claims=True)
    assert [await back.wait(f"run-{number}") for number in range(4)] == [0, 1, 2, 3]
    assert begun.index(1) < begun.index(2)
    assert begun.index(0) < begun.index(3)
    assert begun[0] == 1


@pytest.mark.xdist_group("postgres")
async def test_a_person_behind_a_schedule_waits_for_it_and_makes_their_lane_urgent(
    postgres_url: str, opened: Open
) -> None:
    begun: list[Json] = []

    async def work(payload: JsonObject) -> Json:
        begun.append(payload["n"])
        return payload["n"]

    front = await opened(work, database=postgres_url, execute=False, rescue=False)
    lanes = [RunLane("a", is_urgent=False), RunLane("b", is_urgent=False), RunLane("b")]
    for number, lane in enumerate(lanes):
        await front.submit("work", f"run-{number}", {"n": number}, lane=lane)
    await front.aclose()
    back = await opened(work, database=postgres_url, claims=True)
    assert [await back.wait(f"run-{number}") for number in range(3)] == [0, 1, 2]
    assert begun == [1, 0, 2]


def give_to(url: str, executor: str, run_id: str) -> None:
    """Makes it look as if another process had claimed the run."""
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(
            "UPDATE denizen_durable.workflow_status SET status = 'PENDING', executor_id = %s WHERE workflow_uuid = %s",
            [executor, run_id],
        )


@pytest.mark.xdist_group("postgres")
async def test_a_process_that_claims_leaves_its_own_run_to_the_one_that_has_the_lane(
    postgres_url: str, opened: Open
) -> None:
    begun: list[Json] = []

    async def work(payload: JsonObject) -> Json:
        begun.append(payload["n"])
        return payload["n"]

    front = await opened(work, database=postgres_url, execute=False, rescue=False)
    await front.submit("work", "run-0", {"n": 0}, lane=RunLane("a"))
    await front.aclose()
    give_to(postgres_url, "other", "run-0")
    worker = await opened(work, database=postgres_url, claims=True, rescue=False)
    await worker.submit("work", "run-1", {"n": 1}, lane=RunLane("a"))
    await worker.submit("work", "run-2", {"n": 2}, lane=RunLane("b"))
    await worker.submit("work", "run-3", {"n": 3})
    assert [await worker.wait(run) for run in ("run-2", "run-3")] == [2, 3]
    assert sorted(begun, key=str) == [2, 3]
    assert await worker.pending() == ["run-0", "run-1"]


@pytest.mark.xdist_group("postgres")
async def test_a_run_that_was_taken_up_and_has_not_begun_is_not_taken_up_again(postgres_url: str, opened: Open) -> None:
    begun: list[Json] = []

    async def work(payload: JsonObject) -> Json:
        begun.append(payload["n"])
        await anyio.lowlevel.checkpoint()
        return "done"

    front = await opened(work, database=postgres_url, execute=False, rescue=False)
    await front.submit("work", "run-0", {"n": 0})
    await front.aclose()
    worker = await opened(work, database=postgres_url, claims=True, max_claimed=0)
    assert worker._open is not None
    taken = worker._open.recovery
    give_to(postgres_url, taken._context.executor, "run-0")
    taken._note_taken("run-0")  # as if the event loop were too busy to begin it
    for _ in range(2):
        await run_recovery_round(worker)
    with psycopg.connect(postgres_url) as other:
        query = "SELECT recovery_attempts FROM denizen_durable.workflow_status"
        assert other.execute(query).fetchall() == [(0,)]
    taken.note_begun("run-0")
    await run_recovery_round(worker)
    assert await worker.wait("run-0") == "done"
    assert begun == [0]


@pytest.mark.xdist_group("postgres")
async def test_a_process_that_has_a_run_anew_ends_what_it_did_before(postgres_url: str, opened: Open) -> None:
    ends: list[str] = []
    begun = [anyio.Event(), anyio.Event()]

    async def work(_payload: JsonObject) -> Json:
        number = sum(each.is_set() for each in begun)
        begun[number].set()
        if number:
            return "done"
        try:
            await anyio.sleep_forever()
        finally:
            ends.append("first")
            assert not begun[1].is_set()

    worker = await opened(work, database=postgres_url, claims=True)
    await worker.submit("work", "run-0", {}, lane=RunLane("a"))
    await begun[0].wait()
    assert worker._open is not None
    await to_thread.run_sync(worker._open.log.hand_back, [worker._open.recovery._context.executor])
    worker.look()
    with anyio.fail_after(HANG_LIMIT_S):
        await begun[1].wait()
    assert await worker.wait("run-0") == "done"
    assert ends == ["first"]


@pytest.mark.xdist_group("postgres")
async def test_a_process_that_may_be_taken_for_dead_begins_no_step_until_it_knows(
    postgres_url: str, opened: Open
) -> None:
    begun, may_go_on, acts = anyio.Event(), anyio.Event(), list[str]()

    async def act(name: str) -> Json:
        acts.append(name)
        return None

    async def work(payload: JsonObject) -> Json:
        await worker.step("first", partial(act, f"{payload['n']}: first"))
        begun.set()
        await may_go_on.wait()
        await worker.step("second", partial(act, f"{payload['n']}: second"))
        return "done"

    worker = await opened(work, database=postgres_url, claims=True)
    for number, lost in enumerate((False, True)):
        await worker.submit("work", f"run-{number}", {"n": number})
        await begun.wait()
        assert worker._open is not None
        worker._open.recovery._renewed_s = -math.inf
        if lost:
            give_to(postgres_url, "another", f"run-{number}")
            with psycopg.connect(postgres_url, autocommit=True) as other:
                other.execute("UPDATE denizen_durable.workers SET executor_id = 'another'")
        may_go_on.set()
        await anyio.wait_all_tasks_blocked()
        assert acts[-1] == f"{number}: first"
        await run_recovery_round(worker)
        if not lost:
            assert await worker.wait("run-0") == "done"
            assert acts[-1] == "0: second"
        begun, may_go_on = anyio.Event(), anyio.Event()
    await poll(lambda: _is_idle(worker))
    assert acts == ["0: first", "0: second", "1: first"]


async def _is_idle(durable: DbosExecution) -> bool:
    return durable.count_runs() == 0


@pytest.mark.xdist_group("postgres")
async def test_runs_of_a_dead_process_go_back_to_their_places_in_their_lanes(postgres_url: str, opened: Open) -> None:
    begun: list[Json] = []

    async def work(payload: JsonObject) -> Json:
        begun.append(payload["n"])
        return payload["n"]

    front = await opened(work, database=postgres_url, execute=False, rescue=False)
    for number in range(3):
        await front.submit("work", f"run-{number}", {"n": number}, lane=RunLane("a"))
    await front.aclose()
    give_to(postgres_url, "dead", "run-0")
    give_to(postgres_url, "dead", "run-1")
    worker = await opened(work, database=postgres_url, claims=True)
    assert [await worker.wait(f"run-{number}") for number in range(3)] == [0, 1, 2]
    assert begun == [0, 1, 2]


@pytest.mark.xdist_group("postgres")
async def test_a_process_that_ends_hands_its_runs_back_and_takes_no_more(postgres_url: str, opened: Open) -> None:
    begun = anyio.Event()

    async def hang(_payload: JsonObject) -> Json:
        begun.set()
        await anyio.sleep_forever()

    worker = await opened(hang, database=postgres_url, claims=True)
    await worker.submit("work", "run-0", {}, lane=RunLane("a"))
    await begun.wait()
    worker.stop_claiming()
    await worker.submit("work", "run-1", {}, lane=RunLane("b"))
    await worker.aclose()
    with psycopg.connect(postgres_url) as other:
        found = other.execute("SELECT status, executor_id FROM denizen_durable.workflow_status").fetchall()
    assert found == [("ENQUEUED", None)] * 2
    # Nothing is found dead here: no round of recovery runs.
    back = await opened(done, database=postgres_url, claims=True, rescue=False)
    assert [await back.wait(f"run-{number}") for number in range(2)] == ["done", "done"]


@pytest.mark.xdist_group("postgres")
async def test_a_process_that_is_alone_ends_what_a_fleet_has_left(postgres_url: str, opened: Open) -> None:
    begun, ended = anyio.Event(), list[Json]()

    async def hang(_payload: JsonObject) -> Json:
        begun.set()
        await anyio.sleep_forever()

    async def work(payload: JsonObject) -> Json:
        ended.append(payload["n"])
        return payload["n"]

    worker = await opened(hang, database=postgres_url, claims=True)
    for number, lane in enumerate("aab"):
        await worker.submit("work", f"run-{number}", {"n": number}, lane=RunLane(lane))
    await begun.wait()
    await worker.aclose()
    command = await opened(work, database=postgres_url, rescue=False)
    assert len(await command.pending()) == 3
    await command.aclose()
    alone = await opened(work, database=postgres_url)
    with anyio.fail_after(HANG_LIMIT_S):
        assert [await alone.wait(f"run-{number}") for number in range(3)] == [0, 1, 2]
    assert ended.index(0) < ended.index(1)


@pytest.mark.xdist_group("postgres")
async def test_runs_that_only_wait_leave_room_for_others(postgres_url: str, opened: Open) -> None:
    begun, approved = anyio.Event(), anyio.Event()

    async def work(payload: JsonObject) -> Json:
        if payload["n"] == 0:
            begun.set()
            await approved.wait()
        return payload["n"]

    worker = await opened(work, database=postgres_url, claims=True, max_claimed=1)
    await worker.submit("work", "run-0", {"n": 0}, lane=RunLane("a"))
    await begun.wait()
    worker.count_idle = lambda: 1
    await worker.submit("work", "run-1", {"n": 1}, lane=RunLane("b"))
    assert await worker.wait("run-1") == 1
    approved.set()
    assert await worker.wait("run-0") == 0


@pytest.mark.xdist_group("postgres")
async def test_open_runs_are_counted_with_any_driver_and_a_log_that_cannot_be_read_is_told_without_a_password(
    postgres_url: str,
) -> None:
    assert count_open_runs(postgres_url.replace("postgresql:", "postgresql+psycopg:")) == 0
    for url in (f"postgresql:///no_such?{postgres_url.partition('?')[2]}", "postgresql://den:s3cr@127.0.0.1:1/db"):
        with pytest.raises((NeedsAttention, Unavailable)) as caught:
            count_open_runs(url)
        assert "s3cr" not in f"{caught.value.explain()} {caught.value.fields}"
