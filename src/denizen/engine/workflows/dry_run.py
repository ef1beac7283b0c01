"""Dry runs: the nodes that a run would come to, with what each would do, and nothing done.

What only computes is computed. A node that would act, ask or wait has no outputs then, so whatever depends on it is not
sure: of a condition that does, all ways are taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from denizen.domain.errors import DenizenError
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.domain.tool import ToolSpec
from denizen.domain.workflow import ANY_PORT, MAX_DEPTH, MAX_STEPS, GraphWalk, Workflow, WorkflowNode
from denizen.domain.workflow_compute import (
    NodeInput,
    NodeResult,
    can_compute,
    compute,
    fill_settings,
    list_items,
    plan_nested_input,
)
from denizen.domain.workflow_nodes import EACH, ON_ERROR, THEN, NodeEffect
from denizen.domain.workflow_run import PlannedNode
from denizen.domain.workflow_sizes import OutputRoom, check_inputs
from denizen.domain.workflow_values import fill, list_all_places, show
from denizen.engine.configuration.generation import Generation
from denizen.engine.configuration.tool_policy import explain_policy
from denizen.engine.workflows.patterns import find_groups
from denizen.engine.workflows.tools import plan_call


@record(kw_only=True)
class DryRunSetting:
    """Everything that a dry run is told besides the workflow: the tools that the agent has, and whose run it would be.
    `given` is what a node computes with, without settings and scope.
    """

    generation: Generation
    tools: Mapping[str, ToolSpec]
    given: NodeInput
    is_for_event: bool


@dataclass(slots=True, kw_only=True)
class _PlannedLevel:
    workflow: Workflow
    among: frozenset[str]
    start: Sequence[str]
    scope: dict[str, Json]
    unknown: set[str] = field(default_factory=set[str])
    """The names in places whose values only a real run has."""
    prefix: str = ""
    depth: int = 0


class DryRun:
    """One dry run."""

    def __init__(self, setting: DryRunSetting) -> None:
        self._setting = setting
        self._planned: list[PlannedNode] = []
        self._is_stopped = False

    async def plan(self, workflow: Workflow, trigger: str, scope: Mapping[str, Json]) -> Sequence[PlannedNode]:
        """Returns the nodes in the order in which a run would come to them."""
        about: JsonObject = {"id": "dry-run", "workflow": workflow.name, "agent": workflow.agent, "started_by": ""}
        level = _PlannedLevel(
            workflow=workflow,
            among=workflow.list_level(),
            start=[trigger],
            scope={"event": {}, "input": {}, **scope, "run": about, "error": ""},
        )
        await self._walk(level)
        return self._planned

    async def _walk(self, level: _PlannedLevel) -> None:
        walk = GraphWalk(level.workflow, level.among, level.start)
        while (ready := walk.list_ready()) and not self._is_stopped and len(self._planned) < MAX_STEPS:
            node = level.workflow.nodes[ready[0]]
            port, outputs = await self._visit(level, node, is_sure=_is_sure(level, node))
            level.scope[node.id] = outputs
            walk.finish(node.id, port)

    async def _visit(
        self, level: _PlannedLevel, node: WorkflowNode, *, is_sure: bool
    ) -> tuple[str, Mapping[str, Json]]:
        effect = gate = error = ""
        port, outputs, inputs = THEN, dict[str, Json](), dict[str, Json]()
        at = len(self._planned)
        try:
            inputs = fill_settings(node, level.scope)
            check_inputs(inputs)
            if node.kind.effect is not NodeEffect.NONE:
                effect, gate = self._describe(node, inputs, level.scope)
                level.unknown.add(node.id)
                port = ANY_PORT if len(node.kind.ports) > 1 else THEN
            elif node.type in ("reply", "log"):
                effect, outputs = f"{node.type}: {show(inputs['text'])}", {"text": inputs["text"]}
            elif node.type == "stop":
                self._is_stopped, port = is_sure, ""
            elif not is_sure and node.type not in ("for_each", "sub_workflow"):
                level.unknown.add(node.id)
                port = ANY_PORT
            else:
                result = await self._compute(level, node, inputs, is_sure=is_sure)
                OutputRoom().take(result.outputs)
                port, outputs = result.port, dict(result.outputs)
        except DenizenError as fault:
            error, port = fault.explain(), ON_ERROR
        self._planned.insert(
            at,
            PlannedNode(
                path=f"{level.prefix}{node.id}",
                type=node.type,
                group=node.kind.group,
                inputs=inputs,
                outputs=outputs,
                effect=effect,
                gate=gate,
                is_sure=is_sure,
                error=error,
            ),
        )
        return port, outputs

    def _describe(self, node: WorkflowNode, inputs: JsonObject, scope: Mapping[str, Json]) -> tuple[str, str]:
        """Returns in words what the node would do, and what the gate would say."""
        match node.kind.effect:
            case NodeEffect.MODEL:
                return f"asks the model: {show(inputs['prompt'])}", ""
            case NodeEffect.WAITS:
                return f"waits {show(inputs['seconds'])} s", ""
            case NodeEffect.PEOPLE:
                return f"asks people: {show(inputs['question'])}", ""
            case _:
                planned = plan_call(node, inputs, scope)
        spec = self._setting.tools.get(planned.tool)
        told = f"calls {planned.tool} with {show(planned.args)}"
        if spec is None:
            return told, f"fails: the agent has no tool '{planned.tool}'"
        policy = self._setting.generation.policy
        outlook = explain_policy(spec, policy, is_observed=bool(policy.observer.model))
        is_asked = self._setting.is_for_event and outlook.mode == "observer"
        return told, f"{'people' if is_asked else outlook.mode}: {outlook.why}"

    async def _compute(
        self, level: _PlannedLevel, node: WorkflowNode, inputs: JsonObject, *, is_sure: bool
    ) -> NodeResult:
        given = self._setting.given
        if can_compute(node):
            return compute(
                node, NodeInput(settings=inputs, scope=level.scope, now=given.now, zone=given.zone, roles=given.roles)
            )
        match node.type:
            case "match" | "extract":
                found = await find_groups(show(inputs["pattern"]), show(inputs["text"]))
                first: Mapping[str, Json] = found[0] if found else {"match": "", "groups": {}}
                port = THEN if found or node.type == "extract" else "else"
                items: list[Json] = [each["match"] for each in found]
                return NodeResult(port=port, outputs={**first, "items": items, "count": len(items)})
            case "for_each":
                return await self._loop(level, node, inputs, is_sure=is_sure)
            case "sub_workflow":
                return await self._nest(level, inputs)
            case "cooldown":
                return NodeResult(port=ANY_PORT)
            case "reply" | "log":
                return NodeResult(outputs={"text": inputs["text"]})
            case _:
                value = level.scope.get("event") or level.scope.get("input")
                return NodeResult(outputs=value if isinstance(value, Mapping) else {})

    async def _loop(self, level: _PlannedLevel, node: WorkflowNode, inputs: JsonObject, *, is_sure: bool) -> NodeResult:
        """Without the items, one round is shown."""
        kept: list[Json] = []
        for index, item in enumerate(list_items(inputs["items"]) if is_sure else [None]):
            within = _PlannedLevel(
                workflow=level.workflow,
                among=level.workflow.list_level(node.id),
                start=node.list_targets(EACH),
                scope={**level.scope, "item": item, "index": index},
                unknown=level.unknown | (set[str]() if is_sure else {"item", "index"}),
                prefix=f"{level.prefix}{node.id}[{index}]/",
                depth=level.depth,
            )
            await self._walk(within)
            collect = node.settings["collect"]
            kept.append(item if collect is None else fill(collect, within.scope))
            if not within.unknown.isdisjoint(place.partition(".")[0] for place in list_all_places(collect)):
                level.unknown.add(node.id)
        return NodeResult(outputs={"items": kept, "count": len(kept)})

    async def _nest(self, level: _PlannedLevel, inputs: JsonObject) -> NodeResult:
        workflow = self._setting.generation.workflows.get(show(inputs["workflow"]))
        if workflow is None or level.depth >= MAX_DEPTH:
            return NodeResult()
        trigger = workflow.find_trigger("manual") or workflow.triggers[0]
        within = _PlannedLevel(
            workflow=workflow,
            among=workflow.list_level(),
            start=[trigger.id],
            scope={
                "event": {},
                "input": plan_nested_input(trigger, inputs["input"]),
                "run": level.scope["run"],
                "error": "",
            },
            prefix=f"{level.prefix}{show(inputs['workflow'])}/",
            depth=level.depth + 1,
        )
        await self._walk(within)
        self._is_stopped = False
        return NodeResult(outputs={"reply": "", "output": {}})


def _is_sure(level: _PlannedLevel, node: WorkflowNode) -> bool:
    """Whether no setting of the node depends on a result that only a real run has."""
    named = {place.partition(".")[0] for value in node.settings.values() for place in list_all_places(value)}
    return named.isdisjoint(level.unknown)
