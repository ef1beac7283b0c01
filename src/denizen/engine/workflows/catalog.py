"""The door to workflows for commands, pages, programs and tools: what there is, starting runs, and what became of them.

Changing the files of workflows is another matter (`denizen.ports.workflow_configuration`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from denizen.domain.approval import AskerReach
from denizen.domain.conversation import Place, own_place
from denizen.domain.errors import Conflict, InvalidInput, NotFound
from denizen.domain.ids import TurnId, fresh, turn_id
from denizen.domain.json import Json, JsonObject
from denizen.domain.message import Author, TextPart
from denizen.domain.principal import Principal
from denizen.domain.prompt_messages import agent_timezone
from denizen.domain.record import record
from denizen.domain.turn import ReplyTarget, RequestOptions, Sender, SessionChoice, Turn, TurnRequest
from denizen.domain.workflow import BrokenWorkflow, Workflow, WorkflowNode
from denizen.domain.workflow_compute import NodeInput
from denizen.domain.workflow_run import (
    STARTED,
    PlannedNode,
    WorkflowRun,
    WorkflowRunListing,
    WorkflowStart,
    start_from_json,
    start_to_json,
)
from denizen.domain.workflow_sizes import check_inputs
from denizen.engine.configuration.generation import Runtime
from denizen.engine.loop.services import EngineServices
from denizen.engine.tools.toolbox import list_allowed
from denizen.engine.workflows.dry_run import DryRun, DryRunSetting
from denizen.engine.workflows.history import keep_version, run_unknown
from denizen.engine.workflows.tools import list_own_specs
from denizen.ports.store import Store, UnitOfWork
from denizen.ports.workflows import RunSearch

WORKFLOWS = "workflow"
"""The platform of sessions of runs, in which no person talks."""

SubmitTurn = Callable[[TurnRequest], Awaitable[Turn]]


@record(kw_only=True)
class RunOrder:
    """An order to start a run. The same `key` again is the same run. `place` and `owed` are where it is answered, where
    that is on a platform. `budget_usd` is the most that the run may cost.
    """

    key: str
    by: Principal
    name: str = ""
    reach: AskerReach = AskerReach.ELSEWHERE
    place: Place | None = None
    owed: ReplyTarget | None = None
    author: Author | None = None
    budget_usd: Decimal | None = None


def plan_run(workflow: Workflow, start: WorkflowStart, order: RunOrder) -> TurnRequest:
    """Returns the message whose turn is the run. Each run has a session of its own, so that none waits for another."""
    home = own_place(WORKFLOWS, workflow.name, order.key)
    author = order.author or Author(order.by.key, order.name or order.by.name)
    return TurnRequest(
        agent=workflow.agent,
        place=order.place or home,
        sender=Sender(author, order.by, order.reach),
        parts=(TextPart(f"Run of the workflow {workflow.name}."),),
        platform_id=order.key,
        owed=order.owed,
        session=SessionChoice(home if order.place is not None else None),
        options=RequestOptions(workflow=start_to_json(start), budget_usd=order.budget_usd),
    )


async def submit_run(
    store: Store, submit: SubmitTurn, workflow: Workflow, start: WorkflowStart, order: RunOrder, *, now: datetime
) -> Turn:
    """Keeps the definition and opens the turn of the run. Raises as `TurnRunner.submit`."""
    async with store.work() as work:
        await keep_version(work, workflow, now)
    return await submit(plan_run(workflow, start, order))


class Workflows:
    """One for a process. The workflows are those in force at the moment."""

    def __init__(self, runtime: Runtime, services: EngineServices, submit: SubmitTurn) -> None:
        self._runtime = runtime
        self._services = services
        self._submit = submit

    @property
    def _store(self) -> Store:
        return self._services.store

    def list_workflows(self) -> Sequence[Workflow]:
        return sorted(self._runtime.current.workflows.values(), key=lambda each: each.name)

    def get(self, name: str) -> Workflow:
        """Raises NotFound, naming the nearest, and InvalidInput for one that cannot be used."""
        return self._runtime.current.get_workflow(name)

    def list_broken(self) -> Sequence[BrokenWorkflow]:
        return sorted(self._runtime.current.broken_workflows.values(), key=lambda each: each.name)

    def find_broken(self, name: str) -> BrokenWorkflow | None:
        return self._runtime.current.broken_workflows.get(name)

    # --- starting ----------------------------------------------------------------------------------------------------

    async def start(self, name: str, given: Mapping[str, Json], order: RunOrder, *, trigger: str = "") -> Turn:
        """Starts a run by hand: at the named trigger, or else at a `manual` one. At a trigger for events, what is given
        is the data of the event.

        Raises NotFound, InvalidInput for inputs that the workflow does not have, Conflict for one that is off and for a
        key that another run has, and as `TurnRunner.submit`.
        """
        workflow = self.get(name)
        if not workflow.enabled:
            raise Conflict(f"The workflow '{name}' is off.", code="workflow_off", fix="Switch it on first.")
        node = find_trigger(workflow, trigger)
        start = WorkflowStart(name=name, digest=workflow.digest, trigger=node.id, scope=plan_scope(node, given))
        return await self._start(workflow, start, order)

    async def plan(
        self, name: str, given: Mapping[str, Json], by: Principal, *, trigger: str = ""
    ) -> Sequence[PlannedNode]:
        """Returns what a run would do, without doing it. Raises as `start`, but takes a workflow that is off, too."""
        workflow, generation = self.get(name), self._runtime.current
        node = find_trigger(workflow, trigger)
        agent = generation.agent(workflow.agent)
        allowed = await list_allowed(agent, generation.toolsets)
        setting = DryRunSetting(
            generation=generation,
            tools={**list_own_specs(), **{name: tool.spec for name, tool in allowed.items()}},
            given=NodeInput(
                settings={},
                scope={},
                now=self._services.clock.now(),
                zone=agent_timezone(agent),
                roles=frozenset(map(str, by.roles)),
            ),
            is_for_event=node.type in ("on_event", "on_webhook", "on_reaction"),
        )
        return await DryRun(setting).plan(workflow, node.id, plan_scope(node, given))

    async def rerun(self, key: TurnId, order: RunOrder, *, from_node: str = "") -> Turn:
        """Runs a run once more, with what it was given and the definition that it had. With a node, only that one and
        what it leads to run again; the outputs of the others are taken over.

        Raises NotFound, Conflict for a run that has not ended and as `start`, and InvalidInput for a node that it does
        not have.
        """
        async with self._store.work(write=False) as work:
            run = await self._get_run(work, key)
            turn = await work.turns.find(key)
            version = await work.workflows.find_version(run.digest)
        if turn is not None and not turn.status.is_final:
            raise Conflict("This run has not ended yet.", code="workflow_running", fix="Wait for it, or stop it.")
        current = self._runtime.current.workflows.get(run.workflow)
        if version is None:
            raise NotFound("The definition of this run is not kept any more.", code="workflow_version_unknown")
        if from_node:
            self._check_node(version.tree, from_node)
        start = WorkflowStart(
            name=run.workflow,
            digest=run.digest,
            trigger=run.trigger,
            scope=run.scope,
            rerun_of=run.id,
            from_node=from_node,
        )
        agent = current.agent if current else run.agent
        home = Workflow(name=run.workflow, description="", agent=agent, nodes={}, digest=run.digest, tree=version.tree)
        return await self._start(home, start, order)

    def _check_node(self, tree: Mapping[str, Json], node: str) -> None:
        nodes = tree.get("nodes")
        if not isinstance(nodes, Mapping) or node not in nodes:
            known = ", ".join(nodes) if isinstance(nodes, Mapping) else ""
            raise InvalidInput(
                f"The run has no node '{node[:64]}'.", code="workflow_node", fix=f"Its nodes are: {known}."
            )

    async def _start(self, workflow: Workflow, start: WorkflowStart, order: RunOrder) -> Turn:
        own = replace(workflow, agent=self._runtime.current.agent(workflow.agent).name)
        keys = [turn_id(each, WORKFLOWS, order.key) for each in self._runtime.current.agents]
        async with self._store.work(write=False) as work:
            for known in await work.turns.find_many(keys):
                _check_same(known, start)
        turn = await submit_run(self._store, self._submit, own, start, order, now=self._services.clock.now())
        _check_same(turn, start)  # the other one may have come in between
        return turn

    # --- runs --------------------------------------------------------------------------------------------------------

    async def list_runs(self, wanted: RunSearch) -> Sequence[WorkflowRunListing]:
        """Returns runs, the newest first, without their nodes."""
        async with self._store.work(write=False) as work:
            runs = await work.workflows.list_runs(wanted)
            turns = {turn.id: turn for turn in await work.turns.find_many([each.id for each in runs])}
        return [_list_run(each, turns[each.id]) for each in runs if each.id in turns]

    async def get_run(self, key: TurnId) -> WorkflowRunListing:
        """Returns a run with its nodes. Raises NotFound."""
        async with self._store.work(write=False) as work:
            run = await self._get_run(work, key)
            turn, nodes = await work.turns.find(key), await work.workflows.list_nodes(key)
        if turn is None:
            raise run_unknown(key)
        return replace(_list_run(run, turn), nodes=tuple(nodes))

    async def _get_run(self, work: UnitOfWork, key: TurnId) -> WorkflowRun:
        run = await work.workflows.find_run(key)
        if run is None:
            raise run_unknown(key)
        return run


def _check_same(turn: Turn, start: WorkflowStart) -> None:
    """Raises Conflict for the run of another order with the same key. The definition may have changed meanwhile."""
    known = start_from_json(turn.options.get(STARTED))
    if known is None or replace(known, digest=start.digest) != start:
        raise Conflict(
            "This Idempotency-Key stands for another run.",
            code="idempotency_conflict",
            why="what was started with it before is another workflow, or was given something else",
            fix="Send a new key with each order, and the same one only with the same order.",
        )


def new_key(by: Principal) -> str:
    """Returns a key for a run that somebody starts once."""
    return fresh(f"run-{by.kind}")


def plan_scope(trigger: WorkflowNode, given: Mapping[str, Json]) -> JsonObject:
    """Returns what places can name in a run that is started by hand. Raises InvalidInput for unknown inputs, and as
    `check_inputs`.
    """
    check_inputs(given)
    if trigger.type not in ("manual", "on_command", "on_schedule"):
        return {"event": dict(given)}
    known = trigger.settings.get("input")
    if trigger.type == "manual" and isinstance(known, Mapping):
        unknown = [each for each in given if each not in known]
        if unknown and known:
            raise InvalidInput(
                f"This workflow has no input '{unknown[0][:60]}'.",
                code="workflow_input",
                fix=f"Its inputs are: {', '.join(known)}.",
            )
        return {"input": {**known, **given}}
    return {"input": dict(given)}


def find_trigger(workflow: Workflow, wanted: str) -> WorkflowNode:
    names = ", ".join(f"{each.id} ({each.type})" for each in workflow.triggers)
    if wanted:
        found = next((each for each in workflow.triggers if each.id == wanted), None)
        if found is None:
            raise NotFound(
                f"'{workflow.name}' has no trigger '{wanted[:64]}'.", code="workflow_trigger", fix=f"It has: {names}."
            )
        return found
    manual = workflow.find_trigger("manual")
    if manual is None and len(workflow.triggers) > 1:
        raise InvalidInput(
            f"'{workflow.name}' has several triggers, none of them `manual`.",
            code="workflow_trigger",
            fix=f"Name the one to start at: {names}.",
        )
    return manual or workflow.triggers[0]


def _list_run(run: WorkflowRun, turn: Turn) -> WorkflowRunListing:
    failure = turn.result.failure
    return WorkflowRunListing(
        run=run,
        status=turn.status,
        reply=turn.result.reply,
        failure=failure.message if failure else "",
        family=failure.family if failure else "",
        ended_at=turn.closed_at,
    )
