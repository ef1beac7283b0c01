"""Workflows on a platform in memory, for tests of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from denizen.domain.approval import AskerReach
from denizen.domain.ids import TurnId, fresh
from denizen.domain.json import Json
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.turn import Turn
from denizen.domain.workflow import Workflow
from denizen.domain.workflow_checks import read_workflow
from denizen.domain.workflow_run import NodeRun, WorkflowRunListing
from denizen.engine.workflows.catalog import RunOrder, Workflows
from denizen.ports.workflows import RunSearch
from tests.engine.platform_fixture import PlatformFixture

OPERATOR = Principal(PrincipalKind.LOCAL, "operator", "operator", frozenset({RoleName.OWNER}))


def make(nodes: Mapping[str, Any], name: str = "flow", **top: Any) -> dict[str, Workflow]:
    """A workflow by its name; `nodes` begin with a manual trigger `start` where they have no trigger."""
    reading = read_workflow(name, {"nodes": dict(nodes), **top})
    assert reading.workflow is not None, reading.problems
    return {name: reading.workflow}


def open_workflows(server: PlatformFixture) -> Workflows:
    return Workflows(server.runtime, server.shared_services.services, server.turns.submit)


async def start(server: PlatformFixture, name: str = "flow", **given: Json) -> Turn:
    order = RunOrder(key=fresh("run"), by=OPERATOR, reach=AskerReach.WAITS)
    return await open_workflows(server).start(name, given, order)


async def finish(server: PlatformFixture, key: TurnId) -> WorkflowRunListing:
    """The run, once it has ended."""
    async for _ in server.turns.watch(key):
        pass
    return await open_workflows(server).get_run(key)


async def run(server: PlatformFixture, name: str = "flow", **given: Json) -> WorkflowRunListing:
    return await finish(server, (await start(server, name, **given)).id)


async def find_newest(server: PlatformFixture, name: str = "") -> WorkflowRunListing:
    """The newest run, once it has ended."""
    [newest] = await open_workflows(server).list_runs(RunSearch(workflow=name, limit=1))
    return await finish(server, newest.run.id)


def outputs(found: WorkflowRunListing) -> dict[str, Mapping[str, Json]]:
    return {each.path: each.outputs for each in found.nodes}


def paths(found: WorkflowRunListing) -> list[str]:
    return [each.path for each in found.nodes]


def node(found: WorkflowRunListing, path: str) -> NodeRun:
    return next(each for each in found.nodes if each.path == path)
