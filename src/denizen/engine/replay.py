"""A turn once more, without side effects: on another model or agent, with the question and history of then (promise 4).

Tools do not run: a call that was recorded with the same arguments gets the recorded result, any other an error that
says so. Nothing is written: no message, no turn, no usage, nothing in a budget. The request to the model is a real one
and is paid for. Called by `denizen replay`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import anyio

from denizen.domain.errors import Conflict, NotFound, Unavailable
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.json import Json
from denizen.domain.message import Message, Role
from denizen.domain.mirror import FORGOTTEN
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import CallRecord, Step
from denizen.domain.usage import Usage
from denizen.domain.verdict import Decision, Verdict
from denizen.engine.arguments import ArgumentsError, check_arguments
from denizen.engine.budgets import Payment
from denizen.engine.gate.decide import Judge
from denizen.engine.gate.door import Gate
from denizen.engine.gate.policy import GatePolicy
from denizen.engine.gather import gather, model_of
from denizen.engine.history import Past
from denizen.engine.live import Live
from denizen.engine.opening import Opened, load_turn
from denizen.engine.prompt.session import without_dead_images
from denizen.engine.runtime import Generation, Runtime
from denizen.engine.services import Services, TurnContext
from denizen.engine.steps import Steps
from denizen.engine.trace import Trace, load_trace
from denizen.engine.turn import find_answer, render
from denizen.ports.model import ModelRequest
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope, Toolset

NEAR = 500
"""How many messages behind the question the turn's own first one is looked for: others may have asked meanwhile."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of it. `unrecorded` are the calls for which there was no result."""

    recorded: Trace
    agent: AgentName
    model: str
    reply: str
    usage: Usage
    steps: Sequence[Step]
    calls: Sequence[CallRecord]
    unrecorded: Sequence[ToolCall]


async def replay(runtime: Runtime, services: Services, turn_id: TurnId, *, agent: str = "", model: str = "") -> Replay:
    """Runs it with that agent and model, or with those of then. Raises NotFound for a turn, agent or model that is not
    there (any more), Conflict for a turn that cannot be repeated, and what the model raises.
    """
    recorded = await load_trace(services.store, turn_id)
    async with runtime.lease() as leased:
        opened = _changed(await load_turn(services.store, turn_id), agent, model)
        generation = await services.configured(leased, opened.turn.agent)
        _check(opened, generation, was_named=bool(agent), has_model=bool(model))
        results = _Results(recorded.calls)
        without_tools = replace(
            generation, toolsets=tuple(_Recorded(each, results) for each in generation.toolsets), programs=None
        )
        past = Past(await _end_of_history(services.store, opened), services.clock.now())
        opened = replace(opened, trigger=without_dead_images(opened.trigger, past.now))
        context, history = await gather(services.store, opened, without_tools, past, keeper=services.memories)
        alone = replace(services, live=Live(), gate=Gate(services.clock, _Yes(services.clock)))
        steps = FreeSteps(context, alone)
        try:
            with anyio.fail_after(context.agent.limits.turn_timeout_s):
                text = await find_answer(context, steps, history)
        except TimeoutError as error:
            raise Unavailable("This took too long, so I stopped.", code="turn_timeout") from error
    return Replay(
        recorded,
        context.agent.name,
        steps.answered_by,
        render(text),
        steps.usage,
        steps.steps,
        steps.calls,
        results.missing,
    )


def _changed(opened: Opened, agent: str, model: str) -> Opened:
    """With that agent and model. The model of then holds for its own agent only."""
    turn = opened.turn
    options, route = dict(turn.options), turn.route
    if model:
        options["model"] = model
    elif agent:
        options.pop("model", None)
        route = None
    return replace(opened, turn=replace(turn, agent=AgentName(agent or turn.agent), options=options, route=route))


def _check(opened: Opened, generation: Generation, *, was_named: bool, has_model: bool) -> None:
    turn, trigger = opened.turn, opened.trigger
    if not turn.status.is_final:
        raise Conflict("The turn has not ended yet.", code="turn_open", fix="Wait for its end.")
    if trigger.parts == FORGOTTEN:
        raise Conflict("The question of this turn was forgotten.", code="turn_forgotten")
    if trigger.session_id is None:
        raise Conflict(
            "The question of this turn was asked anew, and has left its session.",
            code="turn_superseded",
            fix="Replay the turn that answered its last form.",
        )
    try:
        agent = generation.agent(turn.agent)
    except NotFound as error:
        if was_named:
            raise
        raise NotFound(
            f"The agent '{turn.agent}' of this turn is not configured any more.",
            code="agent_unknown",
            fix="Name another with --agent.",
        ) from error
    wanted = model_of(turn, agent)
    try:
        generation.models.get(wanted)
    except NotFound as error:
        if has_model:
            raise
        raise NotFound(
            f"The model '{wanted}' of this turn is not configured any more.",
            code=error.code,
            fix="Name another with --model.",
        ) from error


async def _end_of_history(store: Store, opened: Opened) -> int:
    """The sequence before which the turn saw the session: that of its own first message behind the question."""
    turn, asked_at = opened.turn, opened.trigger.sequence
    async with store.work(write=False) as work:
        near: Sequence[Message] = await work.messages.list_tail(
            turn.session_id, limit=NEAR + 1, before=asked_at + NEAR + 1
        )
    own = [m.sequence for m in near if m.turn_id == turn.id and m.role is not Role.USER and m.sequence > asked_at]
    return min(own, default=asked_at)


class _Direct:
    """Steps that are taken and not recorded: `denizen.ports.durable.StepRunner`."""

    async def step(self, name: str, action: Callable[[], Awaitable[Json]]) -> Json:
        del name
        return await action()

    async def gather(self, *steps: tuple[str, Callable[[], Awaitable[Json]]]) -> list[Json]:
        return [await action() for _, action in steps]


class FreeSteps(Steps):
    """Steps that leave nothing behind: they hold everything to the end and write nothing of it."""

    def __init__(self, context: TurnContext, services: Services) -> None:
        super().__init__(context, services, _Direct())

    async def save(self) -> None:
        """A replay has no place in the session."""

    async def settle(self) -> None:
        """Whose money it is nobody knows: the operator asks, and not who asked then."""

    @asynccontextmanager
    async def _paying(self, request: ModelRequest) -> AsyncGenerator[Payment]:
        yield Payment(self._context.model, request, "")

    @property
    def steps(self) -> Sequence[Step]:
        return tuple(self._steps)

    @property
    def calls(self) -> Sequence[CallRecord]:
        return tuple(self._calls)


class _Results:
    """What tools gave when the turn ran. Of several results for the same call the first comes first, and the last
    stays.
    """

    def __init__(self, calls: Sequence[CallRecord]) -> None:
        ran = (each for each in calls if each.verdict.decision is Decision.APPROVE and not each.cached)
        self._left = list(ran)
        self.missing: list[ToolCall] = []

    def take(self, call: ToolCall, spec: ToolSpec) -> ToolResult:
        same = [each for each in self._left if each.tool == call.tool and _args_of(each, spec) == _key(call.args)]
        if not same:
            self.missing.append(call)
            return ToolResult("This call was not recorded, and nothing runs in a replay.", is_error=True)
        if len(same) > 1:
            self._left.remove(same[0])
        return ToolResult(same[0].result, is_error=same[0].is_error)


def _args_of(record: CallRecord, spec: ToolSpec) -> str:
    """As they were handed to the tool: the record has them as the model wrote them."""
    try:
        return _key(check_arguments(spec, dict(record.args)))
    except ArgumentsError:  # the tool has changed since
        return _key(record.args)


def _key(args: Mapping[str, Json]) -> str:
    return json.dumps(args, sort_keys=True)


class _Yes(Judge):
    """There is nothing to decide: what was denied then has no result, and nothing runs."""

    async def judge(
        self, spec: ToolSpec, call: ToolCall, scope: CallScope, policy: GatePolicy, *, floor: Tier = Tier.HARMLESS
    ) -> Verdict:
        del call, scope
        return Verdict(Decision.APPROVE, max(policy.tier(spec), floor), "it ran then", "replay")


class _Recorded:
    """The tools of a toolset, answering with what was recorded: `denizen.ports.toolset.Toolset`. None of them runs."""

    def __init__(self, toolset: Toolset, results: _Results) -> None:
        self._toolset = toolset
        self._results = results
        self._specs: dict[str, ToolSpec] = {}

    @property
    def name(self) -> str:
        return self._toolset.name

    async def list_tools(self) -> Sequence[ToolSpec]:
        specs = await self._toolset.list_tools()
        self._specs.update((spec.name, spec) for spec in specs)
        return specs

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        del scope
        return self._results.take(call, self._specs[call.tool])

    async def aclose(self) -> None:
        """The generation's own toolset stays open."""
