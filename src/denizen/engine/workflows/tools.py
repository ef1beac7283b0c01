"""The tool calls that nodes stand for. All of them pass the gate like the calls of a model.

Most nodes are short for a tool that agents have, too, and need an agent that has it. Two tools are only for workflows:
one posts in a channel, one emits an event. Where the definition itself names the channel, whoever wrote it has decided
where the text goes; a channel that a run finds is a destination like any other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from denizen.domain.authored_text import forget_author
from denizen.domain.clock import Clock
from denizen.domain.cloud_event import EMITTED, EVENT_NAME, MAX_DEPTH, CloudEvent, check_nesting
from denizen.domain.comparison import find_number
from denizen.domain.errors import InvalidInput, LimitExceeded, NotAllowed
from denizen.domain.ids import derive, fresh
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import PrincipalKind
from denizen.domain.record import record
from denizen.domain.tool import DataFlow, Effect, Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.workflow import WorkflowNode
from denizen.domain.workflow_run import STARTED, start_from_json
from denizen.domain.workflow_values import list_all_places, list_mentioned, show
from denizen.engine.gate.executor import BoundTool
from denizen.engine.outbox.answer_target import AnswerTargets
from denizen.engine.outbox.outbox import DeliveryOutbox
from denizen.engine.outbox.plan import Announcement, plan_announcement
from denizen.ports.toolset import CallScope

SOURCE = "workflow"
POST, POST_TO, EMIT = "workflow_post", "workflow_post_to", "workflow_emit"
EVENT_SOURCE = "/workflows"

PublishEvent = Callable[[CloudEvent], Awaitable[bool]]


@record
class NodeCall:
    """The call that a node stands for."""

    tool: str
    args: JsonObject


def plan_call(node: WorkflowNode, given: Mapping[str, Json], scope: Mapping[str, Json]) -> NodeCall:
    """Returns the call of a node with these settings, which were filled from that scope."""
    texts = {name: show(value) for name, value in given.items()}
    match node.type:
        case "call_tool":
            args = forget_author(given["args"])
            return NodeCall(texts["tool"], dict(args) if isinstance(args, Mapping) else {})
        case "ask_agent":
            return NodeCall("delegate", {"agent": texts["agent"], "task": texts["task"]})
        case "send_message":
            is_fixed = not any(list_all_places(node.settings["channel"]))
            pings: list[Json] = list(list_mentioned(show(node.settings["text"]), scope))
            posted: JsonObject = {"channel": texts["channel"], "text": texts["text"], "pings": pings}
            return NodeCall(POST if is_fixed else POST_TO, posted)
        case "direct_message":
            return NodeCall("send_direct_message", {"member": texts["member"], "text": texts["text"]})
        case "add_role" | "remove_role":
            return NodeCall(node.type, {name: texts[name] for name in ("member", "role", "reason")})
        case "react":
            return NodeCall("react", {name: texts[name] for name in ("message", "emoji", "channel")})
        case "open_thread":
            args = {name: texts[name] for name in ("name", "text", "message", "channel")}
            return NodeCall("create_thread", {**args, "private": given["private"] is True})
        case "fetch":
            return NodeCall("fetch_url", {"url": texts["url"]})
        case "create_task":
            args = {name: texts[name] for name in ("project", "title", "description")}
            return NodeCall("tasks", {"action": "create", **args})
        case "emit_event":
            data = forget_author(given["data"])
            return NodeCall(EMIT, {"name": texts["name"], "data": dict(data) if isinstance(data, Mapping) else {}})
        case _:
            raise AssertionError(f"{node.type} is no action")


def _spec(name: str, about: str, properties: JsonObject, required: Sequence[Json], flow: DataFlow) -> ToolSpec:
    return ToolSpec(
        name,
        about,
        {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False},
        tier=Tier.LIMITED,
        idempotent=True,
        source=SOURCE,
        flow=flow,
    )


_TEXT: JsonObject = {"type": "string", "minLength": 1, "maxLength": 20_000}
_CHANNEL: JsonObject = {"type": "string", "pattern": "^[0-9]{1,20}$"}
_PINGS: JsonObject = {"type": "array", "items": {"type": "string"}, "description": "ids of people who are pinged"}
_POSTED: JsonObject = {"channel": _CHANNEL, "text": _TEXT, "pings": _PINGS}
_SPECS = (
    _spec(POST, "Posts in the channel that a workflow names.", _POSTED, ["channel", "text"], DataFlow()),
    _spec(
        POST_TO,
        "Posts in a channel that a run of a workflow has found.",
        _POSTED,
        ["channel", "text"],
        DataFlow(effects=frozenset({Effect.SEND}), destinations=("channel",), here_by_default=False),
    ),
    _spec(
        EMIT,
        "Emits an event.",
        {"name": {"type": "string", "minLength": 1, "maxLength": 400}, "data": {"type": "object"}},
        ["name"],
        DataFlow(),
    ),
)


def list_own_specs() -> Mapping[str, ToolSpec]:
    """Returns the tools that only workflows have."""
    return {spec.name: spec for spec in _SPECS}


class WorkflowTools:
    """The toolset of workflows. No agent has it, so that no model can call it."""

    def __init__(
        self, targets: AnswerTargets, outbox: DeliveryOutbox, clock: Clock, publish: PublishEvent, *, platform: str
    ) -> None:
        self._platform = platform
        self._targets = targets
        self._outbox = outbox
        self._clock = clock
        self._publish = publish
        self._store = targets.store

    @property
    def name(self) -> str:
        return SOURCE

    @property
    def bound(self) -> Mapping[str, BoundTool]:
        return {spec.name: BoundTool(spec, self) for spec in _SPECS}

    async def list_tools(self) -> Sequence[ToolSpec]:
        return _SPECS

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        if call.tool == EMIT:
            return await self._emit(call, scope)
        return await self._post(call, scope)

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _post(self, call: ToolCall, scope: CallScope) -> ToolResult:
        """Owes the post to the outbox. The same call again owes the same post."""
        target = await self._targets.find_room(scope.agent, self._platform, str(call.args["channel"]))
        channel = target.channel
        assert channel is not None  # as `find_room` returns it
        asker = scope.principal
        if asker.kind is PrincipalKind.PLATFORM_USER and not await channel.may_write(target.place, asker):
            raise NotAllowed("Whoever started this run may not write there.", code="workflow_post", fix="Ask there.")
        now = self._clock.now()
        policy = self._targets.runtime.current.account_policy_for(self._platform, scope.agent)
        said = Announcement(target.place, "", str(call.args["text"]), key=scope.options.idempotency_key)
        pings = frozenset(map(str, cast("list[Json]", call.args.get("pings") or [])))
        pieces = [
            replace(each, content=replace(each.content, ping_users=pings))
            for each in plan_announcement(said, channel, policy, now=now)
        ]
        if not pieces:
            raise InvalidInput("There is nothing to post.", code="post_empty", fix="Give the node a text.")
        async with self._store.work() as work:
            await work.outbox.add(pieces)
        self._outbox.wake(self._platform, scope.agent)
        return ToolResult("Posted.", is_own=True)

    async def _emit(self, call: ToolCall, scope: CallScope) -> ToolResult:
        name, data = str(call.args["name"]), cast("JsonObject", call.args.get("data") or {})
        if not EVENT_NAME.fullmatch(name):
            raise InvalidInput(
                f"'{name[:60]}' cannot be the name of an event.",
                code="event_name",
                fix="Use lower-case letters, digits, _ and -, in up to five parts with dots, such as order.paid.",
            )
        check_nesting(data)
        cause, depth = await self._find_cause(scope)
        if depth > MAX_DEPTH:
            raise LimitExceeded(
                f"More than {MAX_DEPTH} events follow from each other, so this one is not emitted.",
                code="event_depth",
                why="a workflow that emits the event which starts it would never end",
                fix="Emit an event with another name, or add a condition before it.",
            )
        event = CloudEvent(
            id=derive("emit", scope.options.idempotency_key or fresh("emit")),
            source=EVENT_SOURCE,
            type=f"{EMITTED}{name}",
            time=self._clock.now(),
            actor=scope.principal.key,
            data=data,
            cause=cause,
            depth=depth,
        )
        await self._publish(event)
        return ToolResult(f"Emitted {event.type}.", is_own=True)

    async def _find_cause(self, scope: CallScope) -> tuple[str, int]:
        """Returns the key of the event for which the run is, and how many events stand before one that follows."""
        async with self._store.work(write=False) as work:
            turn = await work.turns.get(scope.turn_id)
        start = start_from_json(turn.options.get(STARTED))
        event = start.scope.get("event") if start else None
        if not isinstance(event, Mapping):
            return "", 0
        depth = find_number(event.get("@depth"))
        return show(event.get("@key")), (depth if isinstance(depth, int) else 0) + 1
