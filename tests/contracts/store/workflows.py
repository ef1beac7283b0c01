"""The contract of the store about workflows: definitions by digest, runs with their nodes, the oldest of which go."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from denizen.adapters.store.workflows import MAX_AGE, MAX_RUNS
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.turn import TurnStatus
from denizen.domain.workflow_run import NodeRun, NodeStatus, WorkflowRun, WorkflowVersion, node_run_id
from denizen.ports.store import Store
from denizen.ports.workflows import RunSearch
from tests.clock import NOON
from tests.contracts.store.records import make_turn, open_conversation

ANA = "platform_user:discord:7"
RUN = WorkflowRun(
    id=TurnId("run_1"),
    workflow="welcome",
    digest="d1",
    trigger="joined",
    scope={"event": {"user": {"id": "7"}}},
    agent=AgentName("denizen"),
    started_by=ANA,
    rerun_of="",
    from_node="",
    started_at=NOON,
)
NODE = NodeRun(
    id=node_run_id(RUN.id, "greet"),
    run=RUN.id,
    path="greet",
    type="template",
    status=NodeStatus.DONE,
    port="then",
    inputs={"text": "Hi"},
    outputs={"text": "Hi"},
    error="",
    started_at=NOON,
    ended_at=NOON,
)


@pytest.mark.anyio
class WorkflowContract:
    async def test_a_definition_stays_as_it_was_first_kept(self, store: Store) -> None:
        kept = WorkflowVersion(digest="d1", workflow="welcome", tree={"nodes": {"a": {"type": "manual"}}}, kept_at=NOON)
        async with store.work() as work:
            await work.workflows.add_version(kept)
            await work.workflows.add_version(replace(kept, tree={}))
        async with store.work(write=False) as work:
            assert await work.workflows.find_version("d1") == kept
            assert await work.workflows.find_version("d2") is None

    async def test_runs_are_listed_newest_first_with_their_nodes(self, store: Store) -> None:
        other = replace(RUN, id=TurnId("run_2"), workflow="other")
        later = replace(RUN, id=TurnId("run_3"))
        async with store.work() as work:
            assert await work.workflows.add_run(RUN)
            assert not await work.workflows.add_run(replace(RUN, workflow="another"))
            assert await work.workflows.add_run(other)
            assert await work.workflows.add_run(later)
            assert await work.workflows.add_node(NODE)
            assert not await work.workflows.add_node(replace(NODE, outputs={}))
        async with store.work(write=False) as work:
            assert await work.workflows.find_run(RUN.id) == RUN
            assert await work.workflows.list_runs(RunSearch()) == [later, other, RUN]
            assert await work.workflows.list_runs(RunSearch(workflow="welcome")) == [later, RUN]
            assert await work.workflows.list_runs(RunSearch(before="run_2")) == [RUN]
            assert await work.workflows.list_runs(RunSearch(limit=1)) == [later]
            assert await work.workflows.list_nodes(RUN.id) == [NODE]
            assert await work.workflows.list_nodes(later.id) == []

    async def test_a_node_that_failed_gives_way_to_its_later_try_and_no_other_does(self, store: Store) -> None:
        failed = replace(NODE, status=NodeStatus.FAILED, error="It is broken.", outputs={})
        async with store.work() as work:
            assert await work.workflows.add_node(failed)
            assert not await work.workflows.add_node(replace(failed, error="Other."))
            assert await work.workflows.add_node(NODE)
            assert not await work.workflows.add_node(failed)
        async with store.work(write=False) as work:
            assert await work.workflows.list_nodes(RUN.id) == [NODE]

    async def test_the_oldest_runs_of_a_workflow_go_with_their_nodes(self, store: Store) -> None:
        other = replace(RUN, id=TurnId("other"), workflow="other")
        async with store.work() as work:
            await work.workflows.add_run(other)
            await work.workflows.add_run(RUN)
            await work.workflows.add_node(NODE)
            for number in range(MAX_RUNS):
                await work.workflows.add_run(replace(RUN, id=TurnId(f"more_{number}")))
        async with store.work(write=False) as work:
            assert await work.workflows.find_run(RUN.id) is None
            assert await work.workflows.list_nodes(RUN.id) == []
            assert await work.workflows.find_run(other.id) == other
            assert len(await work.workflows.list_runs(RunSearch(workflow="welcome", limit=1000))) == MAX_RUNS

    async def test_a_run_that_goes_on_stays_with_the_one_that_it_repeats_and_old_ones_go_when_they_have_ended(
        self, store: Store
    ) -> None:
        _, session = await open_conversation(store)
        turn = make_turn(session, "1")
        first = replace(RUN, id=TurnId("first"))
        again = replace(RUN, id=turn.id, rerun_of=first.id)
        old = replace(RUN, id=TurnId("old"), workflow="other")
        late = replace(RUN, started_at=NOON + MAX_AGE + timedelta(hours=1))
        async with store.work() as work:
            await work.turns.open(turn)
            for run in (old, first, again):
                await work.workflows.add_run(run)
            for number in range(MAX_RUNS):
                await work.workflows.add_run(replace(RUN, id=TurnId(f"more_{number}")))
            assert [await work.workflows.find_run(each.id) for each in (old, first, again)] == [old, first, again]
            await work.workflows.add_run(replace(late, id=TurnId("late")))
            assert [each.id for each in await work.workflows.list_runs(RunSearch())] == ["late", again.id, "first"]
            await work.turns.close(replace(turn, status=TurnStatus.DONE, closed_at=NOON))
            await work.workflows.add_run(replace(late, id=TurnId("later")))
            assert [each.id for each in await work.workflows.list_runs(RunSearch())] == ["later", "late"]

    async def test_the_runs_that_somebody_caused_are_forgotten(self, store: Store) -> None:
        other = replace(RUN, id=TurnId("run_2"), started_by="local:operator")
        async with store.work() as work:
            await work.workflows.add_run(RUN)
            await work.workflows.add_run(other)
            await work.workflows.add_node(NODE)
            assert await work.workflows.forget_starter(ANA) == [RUN.id]
            assert await work.workflows.list_runs(RunSearch()) == [other]
            assert await work.workflows.list_nodes(RUN.id) == []
