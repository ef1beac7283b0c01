"""What programs may ask in a protocol of their own (`ports/outside`): a turn, or a call of a tool that only reads."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from denizen.domain.conversation import own_place
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.events import Notice, ToolFinished, ToolStarted, TurnEvent, TurnFinished
from denizen.domain.ids import fresh
from denizen.domain.json import Json, JsonObject
from denizen.domain.message import Author, TextPart
from denizen.domain.tool import ToolResult, ToolSpec
from denizen.domain.turn import Inbound, TurnStatus
from denizen.engine.direct import DirectCalls, Wanted
from denizen.engine.runtime import Runtime
from denizen.engine.turn import Turns
from denizen.ports.external import ExternalCaller, ReportLine

PLATFORM = "mcp"
OFFERED = ("bash", "bash_batch", "search_docs", "search_archive")
"""What programs may call by themselves, of what the agent has: looking things up. The rest is the agent's to use."""
MAX_QUESTION_CHARS = 100_000


class OutsideDesk:
    """`denizen.ports.external.ExternalAccess`. One for a process."""

    def __init__(self, runtime: Runtime, turns: Turns, calls: DirectCalls) -> None:
        self._runtime = runtime
        self._turns = turns
        self._calls = calls

    async def list_tools(self, agent: str) -> Sequence[ToolSpec]:
        found = {spec.name: spec for spec in await self._calls.list_tools(agent)}
        return [found[name] for name in OFFERED if name in found]

    async def use(self, caller: ExternalCaller, tool: str, args: JsonObject, tell: ReportLine) -> ToolResult:
        if tool not in OFFERED:
            fix = "Ask the agent to use it in a turn, with the tool ask."
            raise NotFound(f"There is no tool '{tool}' here.", code="tool_unknown", fix=fix)
        done = await self._calls.make(Wanted(caller.principal, tool, args, caller.agent, report=tell))
        return done.result

    async def ask(self, caller: ExternalCaller, question: str, session: str, tell: ReportLine) -> ToolResult:
        if not question.strip() or len(question) > MAX_QUESTION_CHARS:
            raise InvalidInput(f"A question has 1 to {MAX_QUESTION_CHARS} characters.", code="question_invalid")
        who = caller.principal
        inbound = Inbound(
            self._runtime.current.agent(caller.agent).name,
            own_place(PLATFORM, who.key, session),
            who,
            Author(who.id, who.name),
            (TextPart(question),),
            fresh("req"),
        )
        end: TurnFinished | None = None
        try:
            async with aclosing(self._turns.stream(inbound)) as events:
                async for event in events:
                    _tell(event, tell)
                    end = event if isinstance(event, TurnFinished) else end
        finally:
            if end is None:
                self._turns.cancel_message(inbound)
        if end is None:
            raise AssertionError("a stream of events ends with TurnFinished")
        if end.status is TurnStatus.DONE:
            pictures: list[Json] = [{"url": url} for url in end.images]
            return ToolResult(end.reply, data={"images": pictures} if pictures else {})
        why = end.failure or "The turn ended without an answer."
        return ToolResult(f"{why}\nfix: {end.failure_fix}" if end.failure_fix else why, is_error=True)


def _tell(event: TurnEvent, tell: ReportLine) -> None:
    match event:
        case ToolStarted():
            tell(f"{event.tool} is running")
        case ToolFinished():
            tell(f"{event.tool} {'failed' if event.is_error else 'is done'} after {event.duration_ms} ms")
        case Notice():
            tell(event.text)
        case _:
            pass
