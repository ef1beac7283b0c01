"""Definitions of workflows, their runs, and the nodes that ran."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import cast

import sqlalchemy as sa

from denizen.adapters.store.columns import EnumValue, EscapedText, JsonText, UtcTime, id_columns, metadata, texts, times
from denizen.adapters.store.events import event_deliveries
from denizen.adapters.store.repository import Row, SqlRepository, insert_row, read_record, write_record
from denizen.adapters.store.turns import turns
from denizen.domain.ids import TurnId
from denizen.domain.json import JsonObject
from denizen.domain.turn import TurnStatus
from denizen.domain.workflow_run import STARTED, NodeRun, NodeStatus, WorkflowRun, WorkflowVersion
from denizen.ports.workflows import RunSearch

MAX_RUNS = 500
"""So many runs of a workflow are kept, and those that go on."""
MAX_AGE = timedelta(days=90)
"""Runs that began longer ago go when they have ended."""

workflow_versions = sa.Table(
    "workflow_versions",
    metadata,
    sa.Column("digest", sa.Text(), primary_key=True),
    *texts("workflow"),
    sa.Column("tree", JsonText(), nullable=False),
    *times("kept_at"),
)
workflow_runs = sa.Table(
    "workflow_runs",
    metadata,
    *id_columns(),
    *texts("workflow", "digest", "trigger", "agent", "started_by", "rerun_of", "from_node"),
    sa.Column("scope", JsonText(), nullable=False),
    *times("started_at"),
    sa.Index("ix_workflow_runs_workflow", "workflow"),
    sa.Index("ix_workflow_runs_started_by", "started_by"),
)
workflow_nodes = sa.Table(
    "workflow_nodes",
    metadata,
    *id_columns(),
    sa.Column("run", sa.Text(), nullable=False),
    *texts("path", "type", "port", "error"),
    sa.Column("status", EnumValue(NodeStatus), nullable=False),
    sa.Column("inputs", JsonText(), nullable=False),
    sa.Column("outputs", JsonText(), nullable=False),
    sa.Column("started_at", UtcTime(), nullable=False),
    sa.Column("ended_at", UtcTime(), nullable=False),
    sa.Index("ix_workflow_nodes_run", "run"),
)

_VERSION = sa.select(workflow_versions).where(workflow_versions.c.digest == sa.bindparam("which"))
_RUN = sa.select(workflow_runs).where(workflow_runs.c.id == sa.bindparam("which"))
_NEWEST = sa.select(workflow_runs).order_by(workflow_runs.c.position.desc()).limit(sa.bindparam("most"))
_OF_WORKFLOW = workflow_runs.c.workflow == sa.bindparam("of_workflow", type_=EscapedText())
_EARLIER = (
    workflow_runs.c.position
    < sa.select(workflow_runs.c.position).where(workflow_runs.c.id == sa.bindparam("before")).scalar_subquery()
)
_NODES = (
    sa.select(workflow_nodes).where(workflow_nodes.c.run == sa.bindparam("of_run")).order_by(workflow_nodes.c.position)
)
_FAILED = sa.update(workflow_nodes).where(
    workflow_nodes.c.id == sa.bindparam("which"), workflow_nodes.c.status == NodeStatus.FAILED
)
_STARTED_BY = workflow_runs.c.started_by == sa.bindparam("whose", type_=EscapedText())
_OF_EVENTS = workflow_runs.c.id.in_(
    sa.select(event_deliveries.c.turn_id).where(event_deliveries.c.event.in_(sa.bindparam("events", expanding=True)))
)
_OPEN = sa.select(turns.c.id).where(turns.c.status == TurnStatus.OPEN)
_going_on = workflow_runs.alias("going_on")
_OLD = sa.and_(
    sa.or_(
        sa.and_(
            _OF_WORKFLOW,
            workflow_runs.c.position
            <= sa.select(workflow_runs.c.position)
            .where(_OF_WORKFLOW)
            .order_by(workflow_runs.c.position.desc())
            .offset(MAX_RUNS)
            .limit(1)
            .scalar_subquery(),
        ),
        workflow_runs.c.started_at < sa.bindparam("begun_before", type_=UtcTime()),
    ),
    workflow_runs.c.id.not_in(_OPEN),
    # A run that repeats another one goes on with its outputs, also after a restart.
    workflow_runs.c.id.not_in(sa.select(_going_on.c.rerun_of).where(_going_on.c.id.in_(_OPEN))),
)


_EMPTY = sa.update(turns).where(turns.c.id == sa.bindparam("of_turn"))


def _read_options(row: Row) -> tuple[str, JsonObject]:
    return row.id, row.options


class SqlWorkflows(SqlRepository):
    """Implements `denizen.ports.workflows.WorkflowRepository`."""

    async def add_version(self, version: WorkflowVersion) -> None:
        await self._execute(insert_row(self._dialect.insert, workflow_versions), write_record(version))

    async def find_version(self, digest: str) -> WorkflowVersion | None:
        return await self._find(partial(read_record, WorkflowVersion), _VERSION, {"which": digest})

    async def add_run(self, run: WorkflowRun) -> bool:
        is_new = await self._add(workflow_runs, write_record(run))
        if is_new:
            await self._remove(_OLD, {"of_workflow": run.workflow, "begun_before": run.started_at - MAX_AGE})
        return is_new

    async def find_run(self, key: TurnId) -> WorkflowRun | None:
        return await self._find(partial(read_record, WorkflowRun), _RUN, {"which": key})

    async def list_runs(self, wanted: RunSearch) -> Sequence[WorkflowRun]:
        statement, bounds = _NEWEST, dict[str, object](most=max(wanted.limit, 0))
        if wanted.workflow:
            statement, bounds["of_workflow"] = statement.where(_OF_WORKFLOW), wanted.workflow
        if wanted.before:
            statement, bounds["before"] = statement.where(_EARLIER), wanted.before
        return await self._list(partial(read_record, WorkflowRun), statement, bounds)

    async def add_node(self, node: NodeRun) -> bool:
        row = write_record(node)
        if await self._add(workflow_nodes, row):
            return True
        return node.status is not NodeStatus.FAILED and bool(
            await self._change(_FAILED.values(row), {"which": node.id})
        )

    async def list_nodes(self, run: TurnId) -> Sequence[NodeRun]:
        return await self._list(partial(read_record, NodeRun), _NODES, {"of_run": run})

    async def forget_starter(self, key: str) -> Sequence[TurnId]:
        return await self._remove(_STARTED_BY, {"whose": key})

    async def forget_events(self, keys: Sequence[str]) -> Sequence[TurnId]:
        return await self._remove(_OF_EVENTS, {"events": list(keys)}) if keys else ()

    async def _remove(self, which: sa.ColumnElement[bool], bounds: dict[str, object]) -> Sequence[TurnId]:
        """Removes runs with their nodes, and what their turns keep of that with which they were started."""
        runs = sa.select(workflow_runs.c.id).where(which)
        found = await self._list(lambda row: TurnId(row.id), runs, bounds)
        begun = sa.select(turns.c.id, turns.c.options).where(turns.c.id.in_(runs))
        for key, options in await self._list(_read_options, begun, bounds):
            emptied: JsonObject = {**options, STARTED: {**cast("JsonObject", options.get(STARTED) or {}), "scope": {}}}
            await self._change(_EMPTY.values(options=emptied), {"of_turn": key})
        await self._change(sa.delete(workflow_nodes).where(workflow_nodes.c.run.in_(runs)), bounds)
        await self._change(sa.delete(workflow_runs).where(which), bounds)
        return found
