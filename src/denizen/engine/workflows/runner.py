"""Runs workflows. A run is a turn in which the graph takes the place of the model and its answer.

The walk through the graph is deterministic: from the same results it takes the same ways. Results that could differ a
second time (tools, models, times, people) are steps of the turn's durable run. So a run that was killed at any node is
taken up again, and repeats nothing that had ended. The definition is the one that the run began with, by its digest.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import cast

import anyio

from denizen.domain.authored_text import author, author_all, is_authored, join_texts, write_post
from denizen.domain.cloud_event import EMITTED
from denizen.domain.errors import DenizenError, InvalidInput, LimitExceeded, NotFound
from denizen.domain.ids import CallId, derive
from denizen.domain.json import Json, JsonObject
from denizen.domain.message import Role, TextPart, ToolCallPart, ToolResultPart, join_text
from denizen.domain.principal import RoleName
from denizen.domain.prompt import PromptMessage
from denizen.domain.prompt_messages import agent_timezone
from denizen.domain.rate_limit import RateLimit
from denizen.domain.speaker_choice import SILENCE
from denizen.domain.store_move import STORE_MOVED
from denizen.domain.tool import Origin
from denizen.domain.workflow import MAX_DEPTH, MAX_STEPS, GraphWalk, Workflow, WorkflowNode
from denizen.domain.workflow_compute import (
    NodeInput,
    NodeResult,
    can_compute,
    compute,
    fill_settings,
    list_items,
    needs_time,
    plan_nested_input,
    read_json,
)
from denizen.domain.workflow_nodes import EACH, ELSE, ON_ERROR, THEN, NodeEffect
from denizen.domain.workflow_run import (
    MAX_RUN_CHARS,
    MAX_STORED_CHARS,
    STARTED,
    NodeRun,
    NodeStatus,
    WorkflowRun,
    WorkflowStart,
    node_run_id,
    start_from_json,
)
from denizen.domain.workflow_sizes import OutputRoom, check_inputs
from denizen.domain.workflow_values import fill, show, show_parts
from denizen.engine.gate.executor import BoundTool
from denizen.engine.intake.opening import find_reply_target
from denizen.engine.intake.rate_limiter import take_rate
from denizen.engine.loop.services import EngineServices
from denizen.engine.loop.steps import TurnSteps
from denizen.engine.prompt.caching import SHORT_S
from denizen.engine.prompt.context import TurnContext
from denizen.engine.tools.toolbox import Toolbox, list_allowed
from denizen.engine.workflows.history import describe_run, keep_version, load_reused, load_version, require_kept
from denizen.engine.workflows.node_work import (
    DENIED,
    MAX_RATE_WAIT_S,
    MAY_HAVE_ACTED,
    PATIENT,
    STOPPED,
    TOO_OFTEN,
    InnerWorkflow,
    NodeOutcome,
    NodeWait,
    NodeWork,
    RunStopped,
    WalkLevel,
    choose_batch,
    explain_failure,
    find_rate_wait_s,
    is_wanted,
    list_error,
    raise_error,
    read_wait,
)
from denizen.engine.workflows.patterns import find_groups
from denizen.engine.workflows.people import Sleep, WaitingNodes, deadline, node_key
from denizen.engine.workflows.tools import EMIT, WorkflowTools, plan_call
from denizen.ports.toolset import CallOptions

_log = logging.getLogger("denizen.workflows")


class WorkflowRunner:
    """One for a process. Between runs it holds nothing."""

    def __init__(self, services: EngineServices, tools: WorkflowTools, *, sleep: Sleep = anyio.sleep) -> None:
        self.services = services
        self.tools = tools
        self.waiting = WaitingNodes(services, sleep)

    async def run(self, context: TurnContext, steps: TurnSteps) -> str:
        """Runs the graph and returns what it replies. Raises the error of the node that failed."""
        start = start_from_json(context.turn.options.get(STARTED))
        assert start is not None  # the caller has looked
        await self.services.durable.step("begin", partial(self._keep_run, describe_run(context, start)))
        async with self.services.store.work(write=False) as work:
            workflow = await load_version(work, start.digest)
            reused = await load_reused(work, workflow, start)
        text = await _Run(self, context, steps, reused).run(workflow, start)
        if text:
            steps.keep(Role.ASSISTANT, (TextPart(text),))
        return text

    async def _keep_run(self, run: WorkflowRun) -> Json:
        async with self.services.store.work() as work:
            return await work.workflows.add_run(run)


class _Run:
    """One run: it walks levels, runs their nodes, and writes down what each has done."""

    def __init__(
        self, runner: WorkflowRunner, context: TurnContext, steps: TurnSteps, reused: Mapping[str, NodeRun]
    ) -> None:
        self._services = runner.services
        self._tools = runner.tools
        self._waiting = runner.waiting
        self._context = context
        self._steps = steps
        self._reused = reused
        self._ended: dict[str, NodeResult] = {}
        """By path, the nodes within loops and other workflows that have ended: a retry of what is around them goes on
        behind them.
        """
        self._nested: dict[str, InnerWorkflow] = {}
        self._tries = Counter[str]()
        self._waits: dict[str, NodeWait] = {}
        """By path, the nodes that wait, also while others run."""
        self._races = 0
        self._rate_pauses = 0
        self._count = 0
        self._left_chars = MAX_RUN_CHARS
        self._zone = agent_timezone(context.agent)

    async def run(self, workflow: Workflow, start: WorkflowStart) -> str:
        about: JsonObject = {
            "id": self._context.turn.id,
            "workflow": workflow.name,
            "agent": self._context.agent.name,
            "started_by": self._context.turn.principal.name,
        }
        level = WalkLevel(
            workflow=workflow,
            among=workflow.list_level(),
            start=[start.trigger],
            scope={"event": {}, "input": {}, **self._trust_input(start), "run": about, "error": ""},
        )
        said = ""
        try:
            await self._walk(level)
        except RunStopped as stop:
            if stop.is_failed:
                raise InvalidInput(stop.text or "The workflow ended as failed.", code=STOPPED) from None
            said = stop.text
        text, owed = join_texts("\n\n", filter(None, (*level.replies, said))), find_reply_target(self._context.turn)
        if not text:
            return SILENCE if owed is not None and owed.may_be_silent else ""
        return str(text) if owed is None else write_post(text)

    def _trust_input(self, start: WorkflowStart) -> Mapping[str, Json]:
        """Returns what the run was given. What an owner or admin wrote for this very run is as good as the author's."""
        is_trusted = not self._context.turn.principal.roles.isdisjoint((RoleName.OWNER, RoleName.ADMIN))
        if not is_trusted or start.rerun_of or "input" not in start.scope:
            return start.scope
        return {**start.scope, "input": author_all(start.scope["input"])}

    async def _walk(self, level: WalkLevel) -> None:
        walk = GraphWalk(level.workflow, level.among, level.start)
        while ready := walk.list_ready():
            await self._check_not_forgotten()
            batch = choose_batch([level.workflow.nodes[each] for each in ready])
            for node, result in (await self._run_batch(level, batch)).items():
                level.scope[node] = result.outputs
                walk.finish(node, result.port)
                if level.workflow.nodes[node].settings.get("wait_for") == "any":
                    await self._withdraw([f"{level.prefix}{each}" for each in walk.leave_other_ways(node)])

    async def _check_not_forgotten(self) -> None:
        """Raises NotAllowed when the run was removed from under itself."""
        async with self._services.store.work(write=False) as unit:
            require_kept(await unit.workflows.find_run(self._context.turn.id))

    # --- the nodes of a batch ----------------------------------------------------------------------------------------

    async def _run_batch(self, level: WalkLevel, batch: Sequence[WorkflowNode]) -> Mapping[str, NodeResult]:
        """Runs nodes side by side, those that failed again where they are to be retried. Returns the results of those
        that have ended. Raises the first error that no way leads on from.
        """
        known = [each for each in batch if level.path(each) in self._ended or level.path(each) in self._reused]
        if batch[0].kind.effect in PATIENT and not known:
            return await self._run_waits(level, batch)
        batch = known or batch
        works = [self._begin(level, node) for node in batch if level.path(node) not in self._ended]
        outcomes: dict[str, NodeOutcome] = {each.path: each.fault for each in works if each.fault is not None}
        for each in works:
            if (kept := self._reused.get(each.path)) is not None:
                outcomes[each.path] = NodeResult(port=kept.port, outputs=kept.outputs)
        attempt = 0
        while waiting := [each for each in works if is_wanted(each, outcomes.get(each.path), attempt)]:
            if attempt:
                pause_s = max(float(show(each.node.settings["retry_after"])) for each in waiting)
                await self._pause(f"{waiting[0].path}#{attempt}", pause_s)
            for each, outcome in zip(waiting, await self._attempt(level, waiting, attempt), strict=True):
                outcomes[each.path] = outcome
            attempt += 1
        ends = {each.path: await self._end(level, each, outcomes[each.path]) for each in works}
        if level.prefix:
            self._ended |= {path: end for path, end in ends.items() if isinstance(end, NodeResult)}
        paths = {node.id: level.path(node) for node in batch}
        return {key: raise_error(ends[path] if path in ends else self._ended[path]) for key, path in paths.items()}

    def _begin(self, level: WalkLevel, node: WorkflowNode) -> NodeWork:
        self._count += 1
        if self._count > MAX_STEPS:
            raise LimitExceeded(
                f"This run has come to more than {MAX_STEPS} nodes.",
                code="workflow_steps",
                fix="Loop over fewer items, or cut the work into several runs.",
            )
        if self._left_chars < 0:
            raise LimitExceeded(
                f"The outputs of this run have more than {MAX_RUN_CHARS} characters.",
                code="workflow_run_long",
                fix="Loop over fewer items, take a part of what is fetched, or cut the work into several runs.",
            )
        now = self._services.clock.now()
        try:
            inputs = fill_settings(node, level.scope)
            return NodeWork(node, level.path(node), inputs, now, size_chars=check_inputs(inputs))
        except DenizenError as error:
            return NodeWork(node, level.path(node), {}, now, error)

    async def _end(self, level: WalkLevel, work: NodeWork, outcome: NodeOutcome) -> NodeOutcome:
        """Writes down how a node has ended. One that failed leads on by `on_error` where it can. What waits within it
        is not waited for any more.
        """
        await self._withdraw([path for path in self._waits if path.startswith((f"{work.path}/", f"{work.path}["))])
        status, error = NodeStatus.REUSED if work.path in self._reused else NodeStatus.DONE, ""
        if isinstance(outcome, NodeResult):
            try:
                room = OutputRoom()
                room.take(outcome.outputs)
                self._left_chars -= MAX_STORED_CHARS - room.left_chars
            except DenizenError as fault:
                outcome = fault
        result = outcome
        if isinstance(outcome, DenizenError):
            status, error = NodeStatus.FAILED, outcome.explain()
            level.scope["error"] = outcome.message
            if work.node.list_targets(ON_ERROR):
                result = NodeResult(port=ON_ERROR, outputs=list_error(work.node, outcome))
            else:
                result = explain_failure(level.workflow, work.path, outcome)
        await self._write(work, status, result if isinstance(result, NodeResult) else NodeResult(port=""), error)
        return result

    async def _write(self, work: NodeWork, status: NodeStatus, result: NodeResult, error: str = "") -> None:
        """Writes down what a node has done. In a run that is taken up again the first writing counts."""
        ran = NodeRun(
            id=node_run_id(self._context.turn.id, work.path),
            run=self._context.turn.id,
            path=work.path,
            type=work.node.type,
            status=status,
            port=result.port,
            inputs=work.inputs if work.size_chars <= MAX_STORED_CHARS else {},
            outputs=result.outputs,
            error=error,
            started_at=work.started_at,
            ended_at=self._services.clock.now(),
        )
        async with self._services.store.work() as unit:
            require_kept(await unit.workflows.find_run(ran.run))
            await unit.workflows.add_node(ran)

    async def _attempt(self, level: WalkLevel, works: Sequence[NodeWork], attempt: int) -> Sequence[NodeOutcome]:
        match works[0].node.kind.effect:
            case NodeEffect.ACTS:
                return await self._call_tools(level, works)
            case _:
                return [await self._run_alone(level, each, attempt) for each in works]

    # --- tools, people and times -------------------------------------------------------------------------------------

    async def _call_tools(self, level: WalkLevel, works: Sequence[NodeWork]) -> Sequence[NodeOutcome]:
        """Runs the tools of several nodes side by side. Calls that come too often for a limit of the gate are made
        again when it allows that, within `MAX_RATE_WAIT_S`.
        """
        outcomes, left_s = dict[str, NodeOutcome](), MAX_RATE_WAIT_S
        waiting = works
        while waiting:
            outcomes |= dict(zip([each.path for each in waiting], await self._call_once(level, waiting), strict=True))
            waits = {each.path: wait_s for each in works if (wait_s := find_rate_wait_s(outcomes[each.path]))}
            pause_s = max(waits.values(), default=0)
            waiting = [each for each in works if each.path in waits] if pause_s <= left_s else []
            left_s -= pause_s
            if waiting:
                self._rate_pauses += 1
                await self._pause(f"rate:{self._rate_pauses}", pause_s)
        return [outcomes[each.path] for each in works]

    async def _call_once(self, level: WalkLevel, works: Sequence[NodeWork]) -> Sequence[NodeOutcome]:
        generation, agent = self._context.generation, self._context.agent
        toolbox = Toolbox({**self._tools.bound, **await list_allowed(agent, generation.toolsets)})
        calls = [self._plan_call(each, level) for each in works]
        self._steps.begin()
        results = await self._steps.call(calls, toolbox, is_asked=False, origin=Origin.WORKFLOW)
        await self._steps.save()
        ends = zip(works, calls, results, strict=True)
        return [self._read_call(level, each, call, result, toolbox.find(call.tool)) for each, call, result in ends]

    def _plan_call(self, work: NodeWork, level: WalkLevel) -> ToolCallPart:
        """The id of the call, its idempotency key, is the same for every attempt. An agent that is asked again works in
        a further turn: the one that failed has ended.
        """
        planned = plan_call(work.node, work.inputs, level.scope)
        self._tries[work.path] += 1
        attempt = [str(self._tries[work.path])] if work.node.type == "ask_agent" else []
        return ToolCallPart(
            CallId(derive("call", self._context.turn.id, work.path, *attempt)), planned.tool, planned.args
        )

    def _read_call(
        self, level: WalkLevel, work: NodeWork, call: ToolCallPart, result: ToolResultPart, bound: BoundTool | None
    ) -> NodeOutcome:
        if not result.is_error:
            emitted = {"type": author(f"{EMITTED}{call.args['name']}")} if call.tool == EMIT else {}
            return NodeResult(outputs={"text": result.text, "is_error": False, **emitted})
        is_unsent = call.id in self._steps.misfits
        if bound is None and is_unsent:
            return NotFound(
                f"{self._context.agent.name} has no tool '{call.tool}'.",
                code="workflow_tool",
                fix="Name it under the agent's `tools`, with its skill switched on.",
            )
        message, _, fix = result.text.partition("\nfix: ")
        if call.id in self._steps.excess:
            return LimitExceeded(
                message,
                code=TOO_OFTEN,
                fix=f"Give the node `retry` and a long `retry_after`, or raise the limit for '{call.tool}' under "
                "`gate.rate_limits.tool`.",
            )
        if message.startswith("Denied: "):
            return InvalidInput(message, code=DENIED, fix=fix)
        is_safe = is_unsent or (bound is not None and (bound.spec.read_only or bound.spec.idempotent))
        if is_safe or not (work.node.settings["retry"] or level.is_retried):
            return InvalidInput(message, code="workflow_tool", fix=fix)
        return InvalidInput(
            message,
            code=MAY_HAVE_ACTED,
            why=f"'{call.tool}' may have acted, and does not say that the same call again does no harm",
            fix=fix or "Look whether it acted before you run the workflow again from this node.",
        )

    async def _run_waits(self, level: WalkLevel, batch: Sequence[WorkflowNode]) -> Mapping[str, NodeResult]:
        """Waits for people and times side by side until the first wait has ended, which the record keeps. The others
        go on when what follows from it is done. Returns nothing after a failure that is tried again.
        """
        for node in batch:
            if (path := level.path(node)) not in self._waits:
                self._waits[path] = await self._plan_wait(self._begin(level, node))
        waits = {path: self._waits[path] for path in map(level.path, batch)}
        self._races += 1
        named = {path: partial(self._wait, each) for path, each in waits.items()}
        race = partial(self._waiting.race, self._context.scope, named)
        won = cast("Mapping[str, Json]", await self._services.durable.step(f"race:{self._races}", race))
        path = str(won["path"])
        wait = self._waits.pop(path)
        outcome = wait.work.fault or read_wait(wait.work.node, cast("Mapping[str, Json]", won["row"]))
        self._tries[path] += 1
        if is_wanted(wait.work, outcome, self._tries[path]):
            await self._pause(f"{path}#{self._tries[path]}", float(show(wait.work.node.settings["retry_after"])))
            return {}
        end = await self._end(level, wait.work, outcome)
        if level.prefix and isinstance(end, NodeResult):
            self._ended[path] = end
        return {wait.work.node.id: raise_error(end)}

    async def _plan_wait(self, work: NodeWork) -> NodeWait:
        key = node_key(self._context.scope, work.path)
        scope = replace(self._context.scope, taint=self._steps.taint, options=CallOptions(idempotency_key=key))
        if work.fault is not None:
            return NodeWait(work, scope, work.started_at)
        seconds = work.inputs["seconds" if work.node.type == "wait" else "timeout"]
        return NodeWait(work, scope, deadline(await self._tell_time(work.path), seconds))

    async def _wait(self, wait: NodeWait) -> Json:
        if wait.work.fault is not None:
            return {}
        return await self._waiting.wait(wait.work.node.type, wait.scope, wait.work.inputs, wait.until)

    async def _withdraw(self, paths: Sequence[str]) -> None:
        """Takes back what these nodes have asked people, since the run goes on without them."""
        for path in paths:
            wait = self._waits.pop(path, None)
            if wait is not None and wait.work.node.kind.effect is NodeEffect.PEOPLE:
                await self._waiting.withdraw(wait.scope)

    async def _pause(self, path: str, seconds: float) -> None:
        until = deadline(await self._tell_time(path), seconds)

        async def act() -> Json:
            await self._waiting.pause(self._context.scope, until)
            return None

        await self._services.durable.step(f"pause:{path}", act)

    async def _tell_time(self, path: str) -> datetime:
        """Returns the time as it was when the run came here first."""

        async def act() -> Json:
            return self._services.clock.now().isoformat()

        return datetime.fromisoformat(str(await self._services.durable.step(f"time:{path}", act)))

    # --- nodes that run alone ----------------------------------------------------------------------------------------

    async def _run_alone(self, level: WalkLevel, work: NodeWork, attempt: int) -> NodeOutcome:
        try:
            return await self._run_node(level, work, attempt)
        except DenizenError as error:
            # Either the record is of other nodes, or the run goes on where the store is: no way leads on from here.
            if error.code in {"run_changed", STORE_MOVED}:
                raise
            return error

    async def _run_node(self, level: WalkLevel, work: NodeWork, attempt: int) -> NodeResult:
        node, inputs = work.node, work.inputs
        if node.kind.is_trigger:
            given = level.scope.get("event") or level.scope.get("input")
            return NodeResult(outputs=given if isinstance(given, Mapping) else {})
        if can_compute(node):
            now = await self._tell_time(work.path) if needs_time(node) else work.started_at
            roles = frozenset(map(str, self._context.turn.principal.roles))
            return compute(node, NodeInput(settings=inputs, scope=level.scope, now=now, zone=self._zone, roles=roles))
        match node.type:
            case "match" | "extract":
                return await self._find_pattern(work)
            case "cooldown":
                return await self._cool_down(level, work)
            case "reply":
                level.replies.append(show_parts(inputs["text"]))
                return NodeResult(outputs={"text": inputs["text"]})
            case "log":
                number = logging.getLevelNamesMapping()[show(inputs["level"]).upper()]
                about = {"workflow": level.workflow.name, "run": self._context.turn.id, "node": work.path}
                _log.log(number, "%s", show(inputs["text"]), extra=about)
                return NodeResult(outputs={"text": inputs["text"]})
            case "ask_model":
                return await self._ask_model(work, attempt)
            case "for_each":
                return await self._loop(level, work)
            case "sub_workflow":
                return await self._nest(level, work)
            case _:
                await self._write(work, NodeStatus.DONE, NodeResult(port=""))
                raise RunStopped(inputs)

    async def _find_pattern(self, work: NodeWork) -> NodeResult:
        text, pattern = show(work.inputs["text"]), show(work.inputs["pattern"])

        async def act() -> Json:
            return await find_groups(pattern, text)

        found = cast("list[Mapping[str, Json]]", await self._services.durable.step(f"match:{work.path}", act))
        first: Mapping[str, Json] = found[0] if found else {"match": "", "groups": {}}
        if work.node.type == "match":
            return NodeResult(port=THEN if found else ELSE, outputs={"result": bool(found), **first})
        items: list[Json] = [each["match"] for each in found]
        return NodeResult(outputs={**first, "items": items, "count": len(items)})

    async def _cool_down(self, level: WalkLevel, work: NodeWork) -> NodeResult:
        inputs = work.inputs
        limit = RateLimit(int(show(inputs["times"])), float(show(inputs["seconds"])))
        key = f"workflow\x00{level.workflow.name}\x00{work.node.id}\x00{show(inputs['key'])}"

        async def act() -> Json:
            async with self._services.store.work() as unit:
                excess = await take_rate(unit, key, (limit,), now=self._services.clock.now())
            return None if excess is None else round(excess.wait_s, 1)

        left = await self._services.durable.step(f"cooldown:{work.path}", act)
        return NodeResult(port=THEN if left is None else ELSE, outputs={"result": left is None, "wait_s": left or 0})

    async def _ask_model(self, work: NodeWork, attempt: int) -> NodeResult:
        del attempt  # a further request is a further step
        prompt = PromptMessage(Role.USER, (TextPart(show(work.inputs["prompt"])),))
        request = replace(self._context.request([prompt]), tool_choice="none", keep_s=SHORT_S)
        try:
            reply = await self._steps.ask(request, "answer", show=False)
        finally:
            await self._steps.settle()
        text = join_text(reply.parts).strip()
        value = read_json(text) if work.inputs["json"] is True else None
        outputs: JsonObject = {"text": text, "value": value}
        # Nobody but the author has told the model anything.
        is_own = is_authored(show_parts(work.inputs["prompt"])) and not self._context.scope.taint
        return NodeResult(outputs={name: author_all(each) if is_own else each for name, each in outputs.items()})

    # --- levels within -----------------------------------------------------------------------------------------------

    async def _loop(self, level: WalkLevel, work: NodeWork) -> NodeResult:
        node, items = work.node, list_items(work.inputs["items"])
        most = int(show(work.inputs["most"]))
        if len(items) > most:
            raise LimitExceeded(
                f"There are {len(items)} items, and this loop takes {most} at most.",
                code="workflow_items",
                fix="Take fewer with `slice` or `filter`, or raise `most`.",
            )
        kept, room = list[Json](), OutputRoom()
        for index, item in enumerate(items):
            within = WalkLevel(
                workflow=level.workflow,
                among=level.workflow.list_level(node.id),
                start=node.list_targets(EACH),
                scope={**level.scope, "item": item, "index": index},
                prefix=f"{work.path}[{index}]/",
                depth=level.depth,
                is_retried=level.is_retried or bool(node.settings["retry"]),
                replies=level.replies,
            )
            await self._walk(within)
            collect = node.settings["collect"]
            kept.append(item if collect is None else fill(collect, within.scope))
            room.take(kept[-1])
        return NodeResult(outputs={"items": kept, "count": len(kept)})

    async def _nest(self, level: WalkLevel, work: NodeWork) -> NodeResult:
        name = show(work.inputs["workflow"])
        if level.depth >= MAX_DEPTH:
            raise LimitExceeded(
                f"More than {MAX_DEPTH} workflows run within each other.",
                code="workflow_depth",
                fix="Let one emit an event, for which the other waits.",
            )
        if work.path not in self._nested:
            digest = str(await self._services.durable.step(f"workflow:{work.path}", partial(self._keep_version, name)))
            async with self._services.store.work(write=False) as unit:
                self._nested[work.path] = InnerWorkflow(await load_version(unit, digest), [])
        workflow, replies = self._nested[work.path].workflow, self._nested[work.path].replies
        trigger = workflow.find_trigger("manual") or workflow.triggers[0]
        given = plan_nested_input(trigger, work.inputs["input"])
        within = WalkLevel(
            workflow=workflow,
            among=workflow.list_level(),
            start=[trigger.id],
            scope={"event": {}, "input": given, "run": level.scope["run"], "error": ""},
            prefix=f"{work.path}/",
            depth=level.depth + 1,
            is_retried=level.is_retried or bool(work.node.settings["retry"]),
            replies=replies,
        )
        output: Json = {}
        try:
            await self._walk(within)
        except RunStopped as stop:
            if stop.is_failed:
                raise InvalidInput(stop.text or f"'{name}' ended as failed.", code=STOPPED) from None
            output, text = stop.output, stop.text
            within.replies += [text] if text else []
        return NodeResult(outputs={"reply": join_texts("\n\n", within.replies), "output": output})

    async def _keep_version(self, name: str) -> Json:
        """Keeps the definition of a workflow as it is now, and returns its digest."""
        workflow = self._context.generation.get_workflow(name)
        async with self._services.store.work() as work:
            await keep_version(work, workflow, self._services.clock.now())
        return workflow.digest
