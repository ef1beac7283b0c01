"""Replays of a turn without side effects, on another model or agent; and the request that a message would send.

A planned request takes the real steps of a turn up to the first answer that they need, on a model that gives none. A
replay takes the results of tools from the record. Nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import cast

import anyio

from denizen.domain.errors import Conflict, InvalidInput, NotFound, Unavailable
from denizen.domain.evidence import READ
from denizen.domain.ids import AgentName, ConversationId, TurnId
from denizen.domain.json import Json
from denizen.domain.message import Message, Role
from denizen.domain.mirror import FORGOTTEN
from denizen.domain.prompt_messages import drop_dead_images
from denizen.domain.record import record
from denizen.domain.room import RoomKind
from denizen.domain.routing import FALLBACK
from denizen.domain.taint import QUOTED
from denizen.domain.tool import Origin, Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import CallRecord, ReplyTarget, Step, TurnRequest
from denizen.domain.usage import Usage
from denizen.domain.verdict import Decision, Verdict
from denizen.domain.workflow_run import STARTED
from denizen.engine.budget.budgets import Payment
from denizen.engine.configuration.generation import CustomCommandSet, Generation, Runtime
from denizen.engine.configuration.tool_policy import GatePolicy, ToolRule
from denizen.engine.events.live_events import LiveEvents
from denizen.engine.gate.decision import PolicyEngine
from denizen.engine.gate.executor import ToolExecutor
from denizen.engine.hooks.runner import restore_preface
from denizen.engine.inspection.queries import TurnTrace, load_trace
from denizen.engine.intake.opening import OpenTurn, load_turn, plan_turn
from denizen.engine.knowledge.proof import TurnProofs
from denizen.engine.loop.outcome import open_proofs
from denizen.engine.loop.routing import ModelRouter
from denizen.engine.loop.services import EngineServices
from denizen.engine.loop.step_record import SHOWN
from denizen.engine.loop.steps import TurnSteps
from denizen.engine.prompt.context import TurnContext, build_context, choose_model_name
from denizen.engine.prompt.pictures import load_uploads
from denizen.engine.prompt.session_history import HistoryCutoff
from denizen.engine.tools.arguments import ArgumentsError, check_arguments
from denizen.engine.tools.toolbox import list_all
from denizen.engine.turn import find_answer, render_answer
from denizen.ports.model import Capabilities, Model, ModelEvent, ModelInfo, ModelRequest, Models
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope, Toolset

NOT_SENT = "not_sent"
ONLY_SHOWN = "the request is only shown"
NEWEST = "9" * 20
"""Stands for the id of a post that is newer than any other."""


@record
class PlannedRequest:
    """A request and the model that it is for."""

    model: str
    request: ModelRequest


async def plan_requests(
    runtime: Runtime, services: EngineServices, turn_request: TurnRequest, conversation: ConversationId | None = None
) -> list[PlannedRequest]:
    """The first request of the turn; where tools are planned, also that for an answer without any; where the model is
    chosen for the question, before them the request that sorts it, as if that had no answer. With a `conversation` as
    if it were asked there. Raises what would keep the turn from being opened.
    """
    if not turn_request.parts:
        raise InvalidInput("The message is empty.", code="message_empty", fix="Write something to answer.")
    async with runtime.lease() as leased:
        generation = await services.configured(leased, leased.agent(turn_request.agent).name)
        # Nothing is done for it but reading.
        acting = [name for name, tool in (await list_all(generation.toolsets)).items() if not tool.spec.read_only]
        denials = [ToolRule(name, Decision.DENY, reason=ONLY_SHOWN) for name in acting]
        rules = (*denials, *generation.policy.rules)  # the first one that fits decides
        generation = replace(generation, policy=replace(generation.policy, rules=rules))
        agent = generation.agent(turn_request.agent)
        turn_request, now = replace(turn_request, agent=agent.name), services.clock.now()
        if conversation is not None:
            turn_request = await _moved(services.store, turn_request, conversation)
        opened = await plan_turn(services.store, agent, turn_request, now=now)
        silent = _SilentModels(generation.models)
        sorting = await ModelRouter(services).plan_request(opened, generation)
        if sorting is not None:
            silent.unsent.append(PlannedRequest(sorting[0].name, sorting[1]))
            opened = replace(opened, turn=replace(opened.turn, route=FALLBACK))
        past = HistoryCutoff(opened.trigger.sequence, now)
        context, history = await build_context(
            services.store, opened, replace(generation, models=silent), past, keeper=services.memories
        )
        with suppress(_NotSent):
            if context.model.capabilities.images:
                history = await load_uploads(history, services.load_upload)
            proofs = open_proofs(services.prover, context, history)
            steps = FreeSteps(context, replace(services, live=LiveEvents()), proofs=proofs)
            await find_answer(context, steps, history)
    return silent.unsent


async def _moved(store: Store, turn_request: TurnRequest, conversation: ConversationId) -> TurnRequest:
    """As if said there; where a room of a platform is mirrored, with what was said in it. Raises NotFound."""
    async with store.work(write=False) as work:
        place = (await work.conversations.get(conversation)).place
        room = await work.archive.find_room(place.platform, place.thread or place.channel)
    if room is None:
        return replace(turn_request, place=place)
    shared = room.kind is not RoomKind.DIRECT
    owed = ReplyTarget(turn_request.agent, reply_to=NEWEST)
    return replace(turn_request, place=place, shared=shared, owed=owed, platform_id=NEWEST)


class _NotSent(Unavailable):
    """Raised by the model that sends nothing."""


@dataclass(slots=True)
class _SilentModels:
    """`denizen.ports.model.Models` whose models keep what they should send."""

    models: Models
    unsent: list[PlannedRequest] = field(default_factory=list[PlannedRequest])

    def get(self, name: str) -> Model:
        return _SilentModel(self.models.get(name), self.unsent)

    def list_models(self) -> Sequence[ModelInfo]:
        return self.models.list_models()

    async def warm(self) -> None:
        """Nothing is sent."""

    async def aclose(self) -> None:
        """The generation's own models stay open."""


@record
class _SilentModel:
    model: Model
    unsent: list[PlannedRequest]

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def capabilities(self) -> Capabilities:
        return self.model.capabilities

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self.unsent.append(PlannedRequest(self.name, request))
        raise _NotSent("Nothing was sent.", code=NOT_SENT)
        yield  # what makes it a generator

    async def estimate_cost_usd(self, input_tokens: int, output_tokens: int) -> Decimal | None:
        return await self.model.estimate_cost_usd(input_tokens, output_tokens)


NEAR = 500
"""How many messages behind the question the turn's own first one is looked for: others may have asked meanwhile."""


@record(kw_only=True)
class ReplayResult:
    """The result of a replay. `unrecorded` are the calls for which there was no result."""

    recorded: TurnTrace
    agent: AgentName
    model: str
    reply: str
    usage: Usage
    steps: Sequence[Step]
    calls: Sequence[CallRecord]
    unrecorded: Sequence[ToolCall]


async def replay_turn(
    runtime: Runtime, services: EngineServices, turn_id: TurnId, *, agent: str = "", model: str = ""
) -> ReplayResult:
    """Runs it with that agent and model, or with those of then. Raises NotFound for a turn, agent or model that is not
    there (any more), Conflict for a turn that cannot be repeated, and what the model raises.
    """
    recorded = await load_trace(services.store, turn_id)
    async with runtime.lease() as leased:
        opened = _changed(await load_turn(services.store, turn_id), agent, model)
        generation = await services.configured(leased, opened.turn.agent)
        _check(opened, generation, was_named=bool(agent), has_model=bool(model))
        own = await _list_own_messages(services.store, opened)
        results = _RecordedResults(recorded.calls, own)
        without_tools = replace(
            generation,
            toolsets=tuple(_RecordedToolset(each, results) for each in generation.toolsets),
            commands=CustomCommandSet(),
        )
        past = HistoryCutoff(
            min((message.sequence for message in own), default=opened.trigger.sequence), services.clock.now()
        )
        opened = replace(opened, trigger=drop_dead_images(opened.trigger, past.now))
        preface = restore_preface(opened.turn, recorded.calls)
        context, history = await build_context(
            services.store, opened, without_tools, past, keeper=services.memories, preface=preface
        )
        alone = replace(services, live=LiveEvents(), gate=ToolExecutor(services.clock, _ApprovingPolicy()))
        if context.model.capabilities.images:
            history = await load_uploads(history, services.load_upload)
        proofs = open_proofs(services.prover, context, history)
        steps = FreeSteps(context, alone, proofs=proofs)
        try:
            with anyio.fail_after(context.agent.limits.turn_timeout_s):
                text = await find_answer(context, steps, history)
        except TimeoutError as error:
            raise Unavailable("This took too long, so I stopped.", code="turn_timeout") from error
        _, reply = await render_answer(context, steps, proofs, text)
    return ReplayResult(
        recorded=recorded,
        agent=context.agent.name,
        model=steps.answered_by,
        reply=reply,
        usage=steps.usage,
        steps=steps.steps,
        calls=steps.calls,
        unrecorded=results.missing,
    )


def _changed(opened: OpenTurn, agent: str, model: str) -> OpenTurn:
    """With that agent and model. The model of then holds for its own agent only."""
    turn = opened.turn
    options, route = dict(turn.options), turn.route
    if model:
        options["model"] = model
    elif agent:
        options.pop("model", None)
        route = None
    return replace(opened, turn=replace(turn, agent=AgentName(agent or turn.agent), options=options, route=route))


def _check(opened: OpenTurn, generation: Generation, *, was_named: bool, has_model: bool) -> None:
    turn, trigger = opened.turn, opened.trigger
    if not turn.status.is_final:
        raise Conflict("The turn has not ended yet.", code="turn_open", fix="Wait for its end.")
    if STARTED in turn.options:
        raise Conflict(
            "This turn ran a workflow, which asked no model here.",
            code="turn_of_workflow",
            fix="Run it again with `denizen workflows rerun`, or on its page.",
        )
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
    wanted = choose_model_name(turn, agent)
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


async def _list_own_messages(store: Store, opened: OpenTurn) -> list[Message]:
    """The turn's own messages behind the question. Before the first of them is what the turn saw of the session."""
    turn, asked_at = opened.turn, opened.trigger.sequence
    async with store.work(write=False) as work:
        near: Sequence[Message] = await work.messages.list_tail(
            turn.session_id, limit=NEAR + 1, before=asked_at + NEAR + 1
        )
    return [m for m in near if m.turn_id == turn.id and m.role is not Role.USER and m.sequence > asked_at]


class _DirectSteps:
    """Steps that are taken and not recorded: `denizen.ports.durable.StepRunner`."""

    async def step(self, name: str, action: Callable[[], Awaitable[Json]]) -> Json:
        del name
        return await action()

    async def gather(self, *steps: tuple[str, Callable[[], Awaitable[Json]]]) -> list[Json]:
        return [await action() for _, action in steps]


class FreeSteps(TurnSteps):
    """Steps that leave nothing behind: they hold everything to the end and write nothing of it."""

    def __init__(self, context: TurnContext, services: EngineServices, *, proofs: TurnProofs | None = None) -> None:
        super().__init__(context, services, _DirectSteps(), proofs=proofs)

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


class _RecordedResults:
    """The results that tools gave when the turn ran. Of several results for the same call the first comes first, and
    the last stays. Their data, such as the places that were read, is in the turn's own messages.
    """

    def __init__(self, calls: Sequence[CallRecord], messages: Sequence[Message]) -> None:
        self._data: dict[str, dict[str, Json]] = {}
        for message in messages:
            shown = cast("Mapping[str, Mapping[str, Json]]", message.meta.get(SHOWN, {}))
            read = cast("Mapping[str, Json]", message.meta.get(READ, {}))
            for call, data in (*shown.items(), *((call, {READ: places}) for call, places in read.items())):
                self._data[call] = {**self._data.get(call, {}), **data}
        asked = (each for each in calls if each.tool_call.origin is not Origin.HOOK and not each.cached)
        ran = (each for each in asked if each.outcome.verdict.decision is Decision.APPROVE)
        self._left = list(ran)
        self.missing: list[ToolCall] = []

    def take(self, call: ToolCall, spec: ToolSpec) -> ToolResult:
        same = [
            each
            for each in self._left
            if each.tool_call.tool == call.tool and _canonical_args(each.tool_call, spec) == _key(call.args)
        ]
        if not same:
            self.missing.append(call)
            return ToolResult("This call was not recorded, and nothing runs in a replay.", is_error=True)
        if len(same) > 1:
            self._left.remove(same[0])
        found = same[0].outcome.result
        data = self._data.get(same[0].tool_call.id, {})
        return replace(found, data=data, is_own=QUOTED not in found.text)


def _canonical_args(call: ToolCall, spec: ToolSpec) -> str:
    """As they were handed to the tool: the record has them as the model wrote them."""
    try:
        return _key(check_arguments(spec, call.args))
    except ArgumentsError:  # the tool has changed since
        return _key(call.args)


def _key(args: Mapping[str, Json]) -> str:
    return json.dumps(args, sort_keys=True)


class _ApprovingPolicy(PolicyEngine):
    """There is nothing to decide: what was denied then has no result, and nothing runs."""

    async def decide(
        self, spec: ToolSpec, call: ToolCall, scope: CallScope, policy: GatePolicy, *, floor: Tier = Tier.HARMLESS
    ) -> Verdict:
        del call, scope
        return Verdict(Decision.APPROVE, max(policy.tier(spec), floor), "it ran then", "replay_turn")


class _RecordedToolset:
    """The tools of a toolset, answering with what was recorded: `denizen.ports.toolset.Toolset`. None of them runs."""

    def __init__(self, toolset: Toolset, results: _RecordedResults) -> None:
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
