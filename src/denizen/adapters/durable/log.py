"""The log of runs, kept by DBOS. Everything that touches DBOS is here; DBOS allows one log per process.

DBOS gives us recorded runs and steps, replay, and a token (`owner_xid`) by which a process that lost a run can record
nothing more of it. Its queues, schedules, recovery by executor and console are not used: a run that was handed in has
the name of a queue, but `claim` takes it up, which keeps the runs of a lane together and in order. Called by `durable`
on the event loop and by `recovery` in its thread; imported when the log is opened, because DBOS is slow to import.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, cast

import sqlalchemy as sa
from anyio import from_thread
from dbos import (
    DBOS,
    DBOSConfig,
    Serializer,
    SetWorkflowID,
    StepReservation,
    _serialization,  # pyright: ignore[reportPrivateUsage]
)
from dbos._core import WorkflowHandleAsyncTask, execute_dequeued_workflow
from dbos._enqueue_options import EnqueueOptions, build_enqueue_status
from dbos._error import (
    DBOSAwaitedWorkflowCancelledError,
    DBOSAwaitedWorkflowMaxRecoveryAttemptsExceeded,
    DBOSConflictingWorkflowError,
    DBOSException,
    DBOSNonExistentWorkflowError,
    DBOSUnexpectedStepError,
    DBOSWorkflowCancelledError,
    DBOSWorkflowConflictIDError,
)
from dbos._outcome import NoResult
from dbos._sys_db import SystemDatabase
from sqlalchemy.exc import SQLAlchemyError

from denizen.adapters.durable.database import CLOSED, DurableDatabase, explain
from denizen.adapters.durable.run import RecordedValue, cancelled, decode, decode_error, encode, encode_error
from denizen.domain.errors import Conflict, DenizenError, NeedsAttention, NotFound
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.domain.store_move import STORE_MOVED
from denizen.ports.durable import RunLane

_ERROR_MARK = "!"
"""Starts the text of an error, since DBOS reads values and errors with one method. No JSON text starts so."""


_UNREADABLE = (ValueError, KeyError, TypeError)


class UnrecordableError(Exception):  # DBOS and `log` see it, nobody else
    """Raised while a database fault is handled; the fault is its context.

    When the outcome of a step or run cannot be written, DBOS takes the fault for the outcome and writes that instead,
    which may well succeed: a full disk has room for a short text. The fault is no outcome, so it has no text. Nor has
    the error that says that the store has moved.
    """


class JsonSerializer(Serializer):
    """Stores everything as JSON, never as pickle, which would run code from the database."""

    def name(self) -> str:
        """Returns the name stored with each value. Another format needs another name."""
        return "denizen_json_1"

    def serialize(self, data: object) -> str:
        if isinstance(data, DenizenError):
            if data.code == STORE_MOVED:  # what was begun goes on where the store is
                raise UnrecordableError from data
            return _ERROR_MARK + encode_error(data)
        if isinstance(data, _UNREADABLE):
            # What DBOS read from its own tables makes no sense; it has logged that.
            return _ERROR_MARK + encode_error(DenizenError("Something inside Denizen went wrong.", code="internal"))
        if isinstance(data, BaseException):
            raise UnrecordableError
        return encode(data)

    def deserialize(self, serialized_data: str) -> object:
        if serialized_data.startswith(_ERROR_MARK):
            return decode_error(serialized_data[len(_ERROR_MARK) :])
        return decode(serialized_data)


class _Noise(logging.Filter):
    """Drops messages of DBOS that look like trouble and are none: recorded and raised failures, and shutting down."""

    _EXPECTED = ("Asyncio task cancelled for workflow or step", "DBOS failed to launch", CLOSED)

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        message = record.getMessage()
        return not isinstance(error, DenizenError) and not any(text in message for text in self._EXPECTED)


_noise = _Noise()


class _NoPickle(Serializer):
    """Replaces DBOS's pickle reader, which reads rows that say they are pickles.

    Whoever can write to the database must not be able to run code with such a row.
    """

    def name(self) -> str:
        return "py_pickle"

    def serialize(self, data: object) -> str:
        raise TypeError("nothing is stored as pickle")

    def deserialize(self, serialized_data: str) -> object:
        raise TypeError("a pickle in the log is not read")


def forbid_pickle() -> None:
    """Turns off reading pickles, for the whole process."""
    _serialization.DBOSDefaultSerializer = _NoPickle()


def quieten() -> None:
    """Sends the warnings of DBOS to the application's handlers; without one, DBOS would write to the console."""
    logger = logging.getLogger("dbos")
    logger.setLevel(logging.WARNING)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.addFilter(_noise)


APP_NAME = "denizen"
"""Stored with each run. Runs of other applications in the same database are left alone."""

APP_VERSION = "1"
"""Stored with each run and compared before it is resumed, so it never changes with the program.

A workflow that can no longer replay its old records says so itself.
"""

_MAX_THREADS = 16
RUNS_AT_ONCE = 500
"""The number of runs that are deleted at a time: a statement has so many parameters at most."""
_UNUSED_POLL_S = 3600.0
"""The interval of a DBOS poller that is not used here."""
_CLOSING_POLL_S = 0.05
"""The interval of a poller that nothing can wake, so closing waits for it. A round costs microseconds."""

_UNFINISHED = ("PENDING", "ENQUEUED", "DELAYED")
_QUEUE = "denizen"
"""The queue in which runs stand that were handed in."""
_IN_NO_HURRY = 10

WorkflowBody = Callable[[str, JsonObject | RecordedValue], Awaitable[RecordedValue]]
"""The function that runs a registered workflow, from the run's id and the payload."""


class RunLostError(Exception):  # workflows never see it
    """Stops a run here: another process has it now, it was cancelled, or (with `error`) it cannot be recorded."""

    def __init__(self, error: DenizenError | None = None) -> None:
        super().__init__(error)
        self.error = error


@record
class PendingRun:
    """A run that has not ended, and the process that has it; the `queue` of its lane where it was handed in."""

    id: str
    name: str
    executor: str
    queue: str = ""


@record
class RunResult:
    """The value of a run that has ended."""

    value: Json


class DbosLog:
    """The open log. Methods that are not coroutines wait for the database: call them in a thread."""

    def __init__(self, database: DurableDatabase, *, schema: str, executor: str) -> None:
        self._database = database
        self._schema = schema
        self._executor = executor
        self._workflows: dict[str, Any] = {}
        self._vendor: DBOS | None = None
        self._records: SystemDatabase | None = None
        self.on_take: Callable[[str], None] = lambda _run_id: None
        """Called before a run that was taken up begins on the event loop."""

    # --- opening and closing -----------------------------------------------------------------------------------------

    def open(self, bodies: Mapping[str, WorkflowBody]) -> None:
        """Opens the log and creates or upgrades its schema.

        Call it in a worker thread of anyio; that thread's event loop then runs all workflows.
        """
        quieten()
        forbid_pickle()
        config = DBOSConfig(
            name=APP_NAME,
            application_version=APP_VERSION,
            executor_id=self._executor,
            system_database_url="sqlite://" if self._database.is_sqlite else "postgresql://engine/given",
            system_database_engine=self._database.engine,
            dbos_system_schema=self._schema,
            run_migrations=self._database.needs_migration(),
            serializer=JsonSerializer(),
            use_listen_notify=False,
            enable_otlp=False,
            log_level="WARNING",
            max_executor_threads=_MAX_THREADS,
            scheduler_polling_interval_sec=_UNUSED_POLL_S,
            notification_listener_polling_interval_sec=_CLOSING_POLL_S,
        )
        vendor = self._vendor = DBOS(config=config)
        self._workflows = {name: DBOS.workflow(name=name)(_make_workflow(body)) for name, body in bodies.items()}
        # Otherwise resumed runs would get an event loop and a thread of their own.
        from_thread.run_sync(vendor._background_event_loop.set_main_loop)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        DBOS.launch()
        self._records = vendor._sys_db  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    @staticmethod
    def close() -> None:
        """Ends the threads of DBOS, also after `open` failed half way."""
        DBOS.destroy(destroy_registry=True)

    # --- on the event loop -------------------------------------------------------------------------------------------

    async def start(self, name: str, run_id: str, payload: RecordedValue) -> bool:
        """Records the run and starts it here. False when the id is known already.

        Raises Conflict when that id belongs to another workflow.
        """
        try:
            with SetWorkflowID(run_id):
                handle = await DBOS.start_workflow_async(self._workflows[name], payload)
        except (DBOSException, SQLAlchemyError) as error:
            raise self.explain(run_id, error) from error
        return isinstance(handle, WorkflowHandleAsyncTask)

    @staticmethod
    def reserve() -> StepReservation:
        """Reserves the next step number of the current workflow, for a step that starts later."""
        return DBOS.reserve_step()

    @staticmethod
    async def step(
        name: str, action: Callable[[], Awaitable[RecordedValue | Json]], place: StepReservation | None = None
    ) -> RecordedValue | RunResult:
        """Runs the action and records its value or error, or returns what is recorded already.

        Raises RunLostError, and Conflict when the record belongs to another step.
        """

        async def run() -> RecordedValue | Json:
            return await action()

        try:
            if place is None:
                result = await DBOS.run_step_async({"name": name}, run)
            else:
                result = await place.run_async({"name": name}, run)
        except (DBOSWorkflowConflictIDError, DBOSWorkflowCancelledError) as error:
            raise RunLostError from error
        except (SQLAlchemyError, UnrecordableError) as error:
            raise RunLostError(explain(error)) from error
        except DBOSUnexpectedStepError as error:
            raise Conflict(
                "This work was begun by another version of Denizen and cannot be continued.",
                code="run_changed",
                why=f"Where it now does {name}, the record has another step.",
                fix="Start it again.",
            ) from error
        return result if isinstance(result, RecordedValue) else RunResult(result)

    # --- in a thread -------------------------------------------------------------------------------------------------

    @property
    def _log(self) -> SystemDatabase:
        assert self._records is not None, "the log is open"
        return self._records

    def find_result(self, run_id: str) -> RunResult | None:
        """Returns the result; None while the run has not ended.

        Raises the run's error, Unavailable for a cancelled run, and NotFound.
        """
        try:
            value = self._log.check_workflow_result(run_id, fail_if_missing=True)
        except (DBOSException, SQLAlchemyError) as error:
            raise self.explain(run_id, error) from error
        return None if isinstance(value, NoResult) else RunResult(cast("Json", value))

    def list_unfinished(self) -> list[PendingRun]:
        """Returns the runs that have not ended, oldest first."""
        run = self._log.tables.workflow_status.c
        # SQLite stamps whole seconds on old Pythons; rows of one second are told apart by their order of arrival.
        arrival = sa.text("rowid") if self._database.is_sqlite else run.workflow_uuid
        query = (
            sa.select(run.workflow_uuid, run.name, run.executor_id)
            .where(run.status.in_(_UNFINISHED), run.application_name == APP_NAME)
            .order_by(run.created_at, arrival)
        )
        with self._log.engine.connect() as connection:
            return [PendingRun(row[0], row[1] or "", row[2] or "") for row in connection.execute(query)]

    def hand_in(self, name: str, run_id: str, payload: RecordedValue, lane: RunLane) -> None:
        """Records the run for a process that claims it. A known id changes nothing. Raises Conflict when that id
        belongs to another workflow.
        """
        options: EnqueueOptions = {
            "workflow_name": name,
            "queue_name": _QUEUE,
            "workflow_id": run_id,
            "app_version": APP_VERSION,
            "application_name": APP_NAME,
        }
        if lane.queue:
            options["queue_partition_key"] = lane.queue
        if not lane.is_urgent:
            options["priority"] = _IN_NO_HURRY
        _, status = build_enqueue_status(options, JsonSerializer(), (payload,), {})
        try:
            self._log.init_workflow(status, creator_xid=str(uuid.uuid4()))
        except (DBOSException, SQLAlchemyError) as error:
            raise self.explain(run_id, error) from error

    def claim(self, most: int, passed_over: Collection[str]) -> list[PendingRun]:
        """Takes up the first runs that were handed in, and starts them on the event loop: at most one of each lane at a
        time, and none of a lane that another process has or that is `passed_over`. Their `queue` is that lane's. A lane
        is as urgent as the most urgent run in it.
        """
        table = self._log.tables.workflow_status
        run, busy, token = table.c, table.alias("busy"), str(uuid.uuid4())
        now_ms = time.time_ns() // 1_000_000
        lane = sa.func.coalesce(run.queue_partition_key, run.workflow_uuid)
        standing = (
            sa.select(
                run.workflow_uuid,
                run.name,
                run.queue_partition_key,
                run.created_at,
                sa.func.row_number()
                .over(partition_by=lane, order_by=(run.created_at, run.workflow_uuid))
                .label("place"),
                sa.func.min(run.priority).over(partition_by=lane).label("urgency"),
            )
            .where(run.status == "ENQUEUED", run.queue_name == _QUEUE, run.application_name == APP_NAME)
            .subquery()
        )
        first = standing.c
        elsewhere = sa.exists().where(
            busy.c.queue_partition_key == first.queue_partition_key,
            busy.c.status == "PENDING",
            busy.c.executor_id != self._executor,
        )
        wanted = (
            sa.select(first.workflow_uuid, first.name, first.queue_partition_key)
            .where(first.place == 1)
            .where(sa.or_(first.queue_partition_key.is_(None), first.queue_partition_key.not_in(list(passed_over))))
            .where(sa.not_(elsewhere))
            .order_by(first.urgency, first.created_at, first.workflow_uuid)
            .limit(most)
        )
        with self._log.engine.begin() as connection:
            # One at a time, so that no two take runs of the same lane.
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtext(f"claim:{self._schema}"))))
            taken = [
                PendingRun(row[0], row[1] or "", self._executor, row[2] or "") for row in connection.execute(wanted)
            ]
            if taken:
                connection.execute(
                    sa.update(table)
                    .where(run.workflow_uuid.in_([each.id for each in taken]), run.status == "ENQUEUED")
                    .values(
                        status="PENDING",
                        executor_id=self._executor,
                        owner_xid=token,
                        recovery_attempts=run.recovery_attempts + 1,
                        started_at_epoch_ms=now_ms,
                        updated_at=now_ms,
                    )
                )
        for each in taken:
            self._execute(each.id, token)
        return taken

    def hand_back(self, executors: Collection[str]) -> int:
        """Hands in anew, in their old places, the runs of these dead processes that have a lane. Returns how many."""
        table = self._log.tables.workflow_status
        run = table.c
        back = (
            sa.update(table)
            .where(run.status == "PENDING", run.executor_id.in_(list(executors)))
            .where(run.queue_name == _QUEUE, run.queue_partition_key.is_not(None), run.application_name == APP_NAME)
            # With another owner, the process that was taken for dead can record nothing more of them.
            .values(status="ENQUEUED", executor_id=None, owner_xid=str(uuid.uuid4()), started_at_epoch_ms=None)
        )
        with self._log.engine.begin() as connection:
            return connection.execute(back).rowcount

    def take_over(self, run: PendingRun) -> bool:
        """Moves the run to this process and starts it on the event loop. False when another process was faster."""
        table = self._log.tables.workflow_status
        token = str(uuid.uuid4())
        now_ms = time.time_ns() // 1_000_000
        claim = (
            sa.update(table)
            .where(table.c.workflow_uuid == run.id, table.c.status == "PENDING", table.c.executor_id == run.executor)
            .values(
                executor_id=self._executor,
                owner_xid=token,
                recovery_attempts=table.c.recovery_attempts + 1,
                started_at_epoch_ms=now_ms,
                updated_at=now_ms,
            )
        )
        with self._log.engine.begin() as connection:
            if connection.execute(claim).rowcount != 1:
                return False
        self._execute(run.id, token)
        return True

    def _execute(self, run_id: str, token: str) -> None:
        status = self._log.get_workflow_status(run_id)
        assert self._vendor is not None
        assert status is not None, "a run that was just claimed is there"
        self.on_take(run_id)
        execute_dequeued_workflow(self._vendor, status, token)

    def cancel(self, run_id: str) -> None:
        """Ends a run where it runs, at its next step at the latest. Does nothing when it has ended. Raises NotFound."""
        if self._log.get_workflow_status(run_id) is None:
            raise _unknown(run_id)
        self._log.cancel_workflows([run_id])

    def forget(self, *, ended_before_ms: int, limit: int) -> int:
        """Deletes runs that ended long ago and returns how many."""
        run = self._log.tables.workflow_status.c
        query = (
            sa.select(run.workflow_uuid)
            .where(run.completed_at < ended_before_ms, run.application_name == APP_NAME)
            .limit(limit)
        )
        with self._log.engine.connect() as connection:
            ids = list(connection.execute(query).scalars())
        if ids:
            self._log.delete_workflows(ids)
        return len(ids)

    def forget_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes those of these runs that have ended."""
        run = self._log.tables.workflow_status.c
        for start in range(0, len(run_ids), RUNS_AT_ONCE):
            some = run_ids[start : start + RUNS_AT_ONCE]
            query = sa.select(run.workflow_uuid).where(
                run.workflow_uuid.in_(some), run.completed_at.is_not(None), run.application_name == APP_NAME
            )
            with self._log.engine.connect() as connection:
                ids = list(connection.execute(query).scalars())
            if ids:
                self._log.delete_workflows(ids)

    @staticmethod
    def explain(run_id: str, error: BaseException) -> DenizenError:
        """Translates a fault of DBOS or its database to an error for the caller who asked for that run."""
        match error:
            case DBOSNonExistentWorkflowError():
                return _unknown(run_id)
            case DBOSAwaitedWorkflowCancelledError():
                return cancelled(run_id)
            case DBOSConflictingWorkflowError():
                return Conflict(
                    "This id belongs to other work.",
                    code="run_id_taken",
                    why=f"Run {run_id} was started as another workflow.",
                )
            case DBOSAwaitedWorkflowMaxRecoveryAttemptsExceeded():
                return NeedsAttention(
                    "This work was given up: it never came to an end.",
                    code="run_given_up",
                    why=f"Each process that took up run {run_id} ended before the run did.",
                    fix="Find in the log what ends the process, then start the work again.",
                )
            case _:
                return explain(error)


def _unknown(run_id: str) -> NotFound:
    return NotFound("There is no such run.", code="run_unknown", why=f"No run has the id {run_id}.")


def _make_workflow(body: WorkflowBody) -> Callable[[JsonObject | RecordedValue], Awaitable[RecordedValue]]:
    async def workflow(payload: JsonObject | RecordedValue) -> RecordedValue:
        run_id = DBOS.workflow_id
        assert run_id is not None, "DBOS names the run that it calls"
        return await body(run_id, payload)

    return workflow
