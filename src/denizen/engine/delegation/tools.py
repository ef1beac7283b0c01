"""The tools by which a model hands tasks to other agents, `delegate`, `task_status` and `cancel_task`, and by which it
hands a room over, `hand_over`.

Only agents whose owner lists others under `delegates_to` have them, and no turn that was delegated itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC

from denizen.domain.agent import Agent
from denizen.domain.delegation import (
    CANCEL_TASK,
    DELEGATE,
    MAX_RESULT_CHARS,
    MAX_TASK_CHARS,
    TASK_STATUS,
    BackgroundTask,
    TaskState,
)
from denizen.domain.errors import InvalidInput
from denizen.domain.handover import (
    DEFAULT_MESSAGES,
    DEFAULT_MINUTES,
    HAND_OVER,
    MAX_MESSAGES,
    MAX_MINUTES,
    is_own_session,
)
from denizen.domain.ids import AgentName
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import PrincipalKind
from denizen.domain.tool import DataFlow, Effect, Taint, Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.words import truncate
from denizen.engine.delegation.delegations import DelegatedTask, Delegations, no_such_task
from denizen.ports.toolset import CallScope
from denizen.skill import quote_untrusted

SOURCE = "delegation"
MAX_SHOWN_TASK_CHARS = 100

TIMEOUT_S = 86_400.0
"""A guard only: a delegated turn has limits of its own, and a turn that waits for one stands still."""

_TASK_ID: JsonObject = {"type": "string", "maxLength": 40}


def _spec(name: str, description: str, properties: JsonObject, required: Sequence[Json], tier: Tier) -> ToolSpec:
    # None of them is read-only: the same call may have another answer later in the same turn.
    return ToolSpec(
        name,
        description,
        {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False},
        tier=tier,
        idempotent=True,
        timeout_s=TIMEOUT_S if name == DELEGATE else 30.0,
        source=SOURCE,
    )


_STATUS = _spec(
    TASK_STATUS,
    "Lists the background tasks of the user, or shows one with its result.",
    {"action": {"type": "string", "enum": ["list", "status"]}, "task_id": _TASK_ID},
    ["action"],
    Tier.HARMLESS,
)
_CANCEL = _spec(CANCEL_TASK, "Stops a background task of the user.", {"task_id": _TASK_ID}, ["task_id"], Tier.LIMITED)


def _delegate(agents: Mapping[str, str]) -> ToolSpec:
    known = "; ".join(f"{name}: {about.rstrip('.')}" if about else name for name, about in agents.items())
    return _spec(
        DELEGATE,
        f"Gives a task to another agent and returns its result. It sees nothing of this talk. {known}.",
        {
            "agent": {"type": "string", "enum": list(agents)},
            "task": {
                "type": "string",
                "description": "all it has to know",
                "minLength": 1,
                "maxLength": MAX_TASK_CHARS,
            },
            "async": {"type": "boolean", "description": "do not wait: returns a task id", "default": False},
        },
        ["agent", "task"],
        Tier.LIMITED,
    )


def _hand_over(agents: Sequence[str]) -> ToolSpec:
    return ToolSpec(
        HAND_OVER,
        "Lets another agent answer in this room in your place for a while, when what people want is its business. It "
        "does not know what was said before.",
        {
            "type": "object",
            "properties": {
                "agent": {"type": "string", "enum": list(agents)},
                "minutes": {"type": "integer", "minimum": 1, "maximum": MAX_MINUTES, "default": DEFAULT_MINUTES},
                "messages": {"type": "integer", "minimum": 1, "maximum": MAX_MESSAGES, "default": DEFAULT_MESSAGES},
            },
            "required": ["agent"],
            "additionalProperties": False,
        },
        tier=Tier.LIMITED,
        idempotent=True,
        source=SOURCE,
        # Whoever wrote what was read must not choose who answers from then on.
        flow=DataFlow(effects=frozenset({Effect.SCHEDULE})),
    )


class DelegationTools:
    """Implements `Toolset` and `AgentToolset`. `agents` are the agents of the configuration."""

    def __init__(self, delegations: Delegations, agents: Mapping[AgentName, Agent]) -> None:
        self._delegations = delegations
        self._agents = agents

    @property
    def name(self) -> str:
        return SOURCE

    async def list_tools(self) -> Sequence[ToolSpec]:
        about = {str(name): agent.description for name, agent in self._agents.items()}
        return (_delegate(about), _STATUS, _CANCEL, _hand_over([*about]))

    async def list_tools_for(self, agent: Agent) -> Sequence[ToolSpec]:
        others = [
            self._agents[name]
            for name in agent.tool_access.delegates_to
            if name in self._agents and name != agent.name and self._agents[name].enabled
        ]
        if not others:
            return ()
        about = {str(each.name): each.description for each in others}
        return (_delegate(about), _STATUS, _CANCEL, _hand_over([*about]))

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        match call.tool:
            case "delegate":
                return await self._delegate(call.args, scope)
            case "hand_over":
                return await self._hand_over(call.args, scope)
            case "task_status":
                return await self._show(call.args, scope)
            case _:
                task = await self._find(str(call.args["task_id"]), scope)
                await self._delegations.cancel(task.id, scope.principal.key)
                return ToolResult(f"{task.id} is stopped.", is_own=True)

    async def _delegate(self, args: JsonObject, scope: CallScope) -> ToolResult:
        task = DelegatedTask(AgentName(str(args["agent"])), str(args["task"]), is_background=args.get("async") is True)
        if not task.is_background:
            return await self._delegations.run(scope, task)
        key = await self._delegations.submit(scope, task)
        return ToolResult(f"{key}: {task.agent} works on it. {TASK_STATUS} shows how far it is.", is_own=True)

    async def _hand_over(self, args: JsonObject, scope: CallScope) -> ToolResult:
        agent = AgentName(str(args["agent"]))
        minutes = int(str(args.get("minutes", DEFAULT_MINUTES)))
        messages = int(str(args.get("messages", DEFAULT_MESSAGES)))
        await self._delegations.hand_over(scope, agent, minutes=minutes, messages=messages)
        told = "The user" if is_own_session(scope.place) else "The room"
        return ToolResult(f"{agent} answers here from the next message on. {told} was told.", is_own=True)

    async def _show(self, args: JsonObject, scope: CallScope) -> ToolResult:
        if args["action"] == "list":
            return await self._list(scope)
        if not args.get("task_id"):
            raise InvalidInput("`status` needs a task_id.", code="task_id_missing", fix="Take it from `list`.")
        task = await self._find(str(args["task_id"]), scope)
        read = await self._delegations.read_result_taint(task)
        return _quote(scope, read, "\n".join((_line(task), truncate(task.result, MAX_RESULT_CHARS))))

    async def _list(self, scope: CallScope) -> ToolResult:
        tasks = await self._delegations.list_tasks(scope.principal.key)
        here = [task for task in tasks if _is_for(task, scope)]
        # Others may read this room: what was asked for elsewhere is only counted.
        away = len([task for task in tasks if task.delegator == scope.agent]) - len(here)
        note = f"\nElsewhere: {away}." if away else ""
        if not here:
            return ToolResult(f"There are no background tasks here.{note}", is_own=True)
        # Of each task only its words are shown, which the agent that gave it away has chosen.
        read = frozenset[Taint]().union(*(task.parent.taint for task in here))
        return ToolResult(_quote(scope, read, "\n".join(map(_line, here))).text + note)

    async def _find(self, key: str, scope: CallScope) -> BackgroundTask:
        task = await self._delegations.get_task(key, scope.principal.key)
        if not _is_for(task, scope):
            raise no_such_task(key)
        return task

    async def aclose(self) -> None:
        """Nothing is open."""


def _is_for(task: BackgroundTask, scope: CallScope) -> bool:
    """Whether the task may be told of: to the agent that gave it away, on a platform where it was asked for only."""
    is_here = scope.principal.kind is not PrincipalKind.PLATFORM_USER or task.parent.place == scope.place
    return task.delegator == scope.agent and is_here


def _quote(scope: CallScope, read: frozenset[Taint], text: str) -> ToolResult:
    """Returns a text that draws on what was `read`: then whoever is shown it has read that, too."""
    scope.trail.taint |= read
    return ToolResult(quote_untrusted(text, source=SOURCE) if read else text)


def _line(task: BackgroundTask) -> str:
    ended = f" at {task.finished_at.astimezone(UTC):%H:%M} UTC" if task.finished_at else ""
    words = truncate(" ".join(task.task.split()), MAX_SHOWN_TASK_CHARS)
    state = "running" if task.state is TaskState.RUNNING else f"{task.state.value}{ended}"
    return f"{task.id}, {task.agent}, {state}: {words}"
