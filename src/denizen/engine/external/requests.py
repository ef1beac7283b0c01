"""One tool call that a program asks for itself, outside of any turn: `/api/sandbox/shell` and `/mcp`.

It passes the same gate as a model's call, with `Origin.API`, and stands in the audit log. Nobody waits in front of a
screen here, so a call that people have to decide about is refused; the agent can ask them in a turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import field

from denizen.domain.agent import Agent
from denizen.domain.approval import has_role
from denizen.domain.conversation import Place, own_place
from denizen.domain.errors import DenizenError, InvalidInput, LimitExceeded, NeedsApproval, NotAllowed, NotFound
from denizen.domain.events import Notice, ToolFinished, ToolStarted, TurnFinished
from denizen.domain.hook import SKIPPED
from denizen.domain.ids import CallId, TurnId, derive, fresh
from denizen.domain.json import Json, JsonObject
from denizen.domain.message import Author, TextPart
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.tool import Origin, ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import Sender, TurnFailure, TurnRequest, TurnStatus
from denizen.domain.verdict import Decision, Verdict
from denizen.engine.configuration.generation import Runtime
from denizen.engine.configuration.tool_policy import may_run_unasked
from denizen.engine.gate.decision import RATE_LIMIT
from denizen.engine.gate.executor import NOBODY_TO_ASK
from denizen.engine.loop.services import EngineServices
from denizen.engine.tools.arguments import ArgumentsError, check_arguments
from denizen.engine.tools.toolbox import list_allowed
from denizen.engine.turn import TurnRunner
from denizen.ports.external import ExternalCaller, ReportLine
from denizen.ports.sandbox import ShellReply
from denizen.ports.toolset import CallOptions, CallScope

API_PLATFORM, THREAD = "api", "direct calls"
"""Where such a call is made: a place of the caller's own, which no platform has and no archive knows."""

_log = logging.getLogger("denizen.direct")


def _tell_nobody(text: str) -> None:
    del text


@record
class DirectCall:
    """A tool call that a program asks for. An empty `agent` is the default one. `shell_session` names the session of
    the shell that the caller goes on with; one that is not the caller's own does not count. `report` takes a line on
    how far the call is.
    """

    principal: Principal
    tool: str
    args: JsonObject
    agent: str = ""
    shell_session: str = ""
    report: Callable[[str], None] = field(default=_tell_nobody, compare=False)


@record
class DirectCallResult:
    """The result of a call that the gate let through. `shell` is what the shell itself answered, when the
    tool used it.
    """

    result: ToolResult
    shell: ShellReply | None = None


class DirectCalls:
    """One for a process."""

    def __init__(self, runtime: Runtime, services: EngineServices) -> None:
        self._runtime = runtime
        self._services = services

    async def list_tools(self, agent: str = "") -> Sequence[ToolSpec]:
        """Those that the agent may use, in its own order. Raises NotFound for an unknown agent."""
        async with self._runtime.lease() as generation:
            found = await list_allowed(generation.agent(agent), generation.toolsets)
            return [tool.spec for tool in found.values()]

    async def make(self, wanted: DirectCall) -> DirectCallResult:
        """Makes the call and returns the tool's result, also where that is an error for whoever called.

        Raises NotFound for an agent, or a tool that it may not use, InvalidInput for arguments that do not fit; and
        what the gate refuses as NotAllowed, LimitExceeded (its rate limit) or NeedsApproval.
        """
        async with self._runtime.lease() as generation:
            agent = generation.agent(wanted.agent)
            bound = (await list_allowed(agent, generation.toolsets)).get(wanted.tool)
            if bound is None:
                raise NotFound(
                    f"The agent '{agent.name}' has no tool '{wanted.tool}'.",
                    code="tool_unknown",
                    fix="GET /api/tools?agent=NAME lists what an agent has. Tools for documents are there once it has "
                    "some: `denizen sources add`, then `denizen sources sync`.",
                )
            try:
                args = check_arguments(bound.spec, wanted.args)
            except ArgumentsError as problem:
                raise InvalidInput(str(problem), code="arguments_invalid") from problem
            call = ToolCall(CallId(fresh("call")), wanted.tool, args, Origin.API)
            scope = await self._scope(wanted, agent, call)
            outcome = await self._services.gate.run(bound, call, scope, generation.policy)
        verdict = outcome.verdict
        _log.info(
            "direct call",
            extra={
                "tool": call.tool,
                "agent": agent.name,
                "principal": wanted.principal.key,
                "call": call.id,
                "decision": verdict.decision.value,
                "tier": int(verdict.tier),
                "decided_by": verdict.decided_by,
                "is_error": outcome.result.is_error,
                "duration_ms": outcome.duration_ms,
            },
        )
        if verdict.decision is not Decision.APPROVE:
            raise _refusal(call.tool, verdict)
        return DirectCallResult(outcome.result, scope.trail.shell)

    async def _scope(self, wanted: DirectCall, agent: Agent, call: ToolCall) -> CallScope:
        """The session is there for tools that write down where they were called."""
        now, place = self._services.clock.now(), Place(API_PLATFORM, wanted.principal.key, THREAD)
        async with self._services.store.work() as work:
            here = await work.conversations.put(place, now=now)
            session = await work.sessions.current(here.id, agent.name, now=now)
        return CallScope(
            agent=agent.name,
            principal=wanted.principal,
            place=place,
            session_id=session.id,
            turn_id=TurnId(derive("turn", "direct", call.id)),
            options=CallOptions(
                idempotency_key=derive("call", "direct", call.id),
                shell_session=wanted.shell_session,
                report=wanted.report,
            ),
        )


def _refusal(tool: str, verdict: Verdict) -> DenizenError:
    if verdict.decided_by == NOBODY_TO_ASK:
        return NeedsApproval(
            f"People have to decide about '{tool}', and a direct call cannot wait for them.",
            why=verdict.reason,
            fix="Ask the agent to do it in a turn, such as with POST /api/chat: people are asked there.",
        )
    if verdict.decided_by == RATE_LIMIT:
        return LimitExceeded(f"'{tool}' is used up for now.", code="rate_limited", why=verdict.reason, fix="Wait.")
    return NotAllowed(
        f"'{tool}' was denied.", code="call_denied", why=verdict.reason, fix="The owner decides it, under gate.rules."
    )


MCP_PLATFORM = "mcp"
OFFERED = ("bash", "bash_batch", "search_docs")
"""The tools of an agent that programs may call by themselves: those that look things up. The archive has nothing for
them: they read along in no room.
"""
MAX_QUESTION_CHARS = 100_000


class ProgramRequests:
    """`denizen.ports.external.ExternalAccess`. One for a process."""

    def __init__(self, runtime: Runtime, turns: TurnRunner, calls: DirectCalls) -> None:
        self._runtime = runtime
        self._turns = turns
        self._calls = calls

    async def list_tools(self, caller: ExternalCaller) -> Sequence[ToolSpec]:
        found = {spec.name: spec for spec in await self._calls.list_tools(caller.agent)}
        offered = [found[name] for name in OFFERED if name in found]
        return [spec for spec in offered if self._may_run(spec, caller.principal)]

    def _may_run(self, spec: ToolSpec, principal: Principal) -> bool:
        """Whether a call may succeed, as far as that does not depend on its arguments: nobody is asked about it."""
        policy = self._runtime.current.policy
        demanded = policy.find_roles(spec.name)
        is_for_them = not demanded or any(has_role(principal, role) for role in demanded)
        return is_for_them and may_run_unasked(spec, policy)

    async def use(self, caller: ExternalCaller, tool: str, args: JsonObject, tell: ReportLine) -> ToolResult:
        if tool not in OFFERED:
            fix = "Ask the agent to use it in a turn, with the tool ask."
            raise NotFound(f"There is no tool '{tool}' here.", code="tool_unknown", fix=fix)
        done = await self._calls.make(DirectCall(caller.principal, tool, args, caller.agent, report=tell))
        return done.result

    async def ask(self, caller: ExternalCaller, question: str, session: str, tell: ReportLine) -> ToolResult:
        if not question.strip() or len(question) > MAX_QUESTION_CHARS:
            raise InvalidInput(f"A question has 1 to {MAX_QUESTION_CHARS} characters.", code="question_invalid")
        who = caller.principal
        request = TurnRequest(
            agent=self._runtime.current.agent(caller.agent).name,
            place=own_place(MCP_PLATFORM, who.key, session),
            sender=Sender(Author(who.id, who.name), who),
            parts=(TextPart(question),),
            platform_id=fresh("req"),
        )
        end: TurnFinished | None = None
        try:
            async with aclosing(self._turns.stream(request)) as events:
                async for event in events:
                    match event:
                        case ToolStarted():
                            tell(f"{event.tool} is running")
                        case ToolFinished():
                            how = "failed" if event.is_error else "is done"
                            tell(f"{event.tool} {how} after {event.duration_ms} ms")
                        case Notice():
                            tell(event.text)
                        case TurnFinished():
                            end = event
                        case _:
                            pass
        finally:
            if end is None:
                self._turns.cancel_message(request)
        if end is None:
            raise AssertionError("a stream of events ends with TurnFinished")
        if end.status is TurnStatus.DONE:
            pictures: list[Json] = [{"url": url} for url in end.images]
            text = "\n\n".join(filter(None, (end.reply, end.cards)))
            return ToolResult(text, data={"images": pictures} if pictures else {})
        if end.status is TurnStatus.SKIPPED:
            return ToolResult(SKIPPED, is_own=True)
        failure = end.failure or TurnFailure("The turn ended without an answer.")
        text = f"{failure.message}\nfix: {failure.fix}" if failure.fix else failure.message
        return ToolResult(text, is_error=True)
