"""The one place from which a tool runs. An architecture test holds that nothing else calls `Toolset.call`."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import anyio

from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError
from denizen.domain.extras import take_out
from denizen.domain.ids import fresh
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.verdict import Decision, Verdict
from denizen.engine.gate.decide import decide
from denizen.engine.gate.limits import SlidingWindow
from denizen.engine.gate.policy import GatePolicy
from denizen.ports.toolset import CallScope, Toolset

MAX_RESULT_CHARS = 200_000
"""Of one result. It is recorded, shown and sent to the model, so no tool may make it as long as it likes."""

_log = logging.getLogger("denizen.gate")


@dataclass(frozen=True, slots=True)
class BoundTool:
    """A tool together with the toolset that runs it."""

    spec: ToolSpec
    toolset: Toolset


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a call. A denied call has an error result that tells the model why."""

    verdict: Verdict
    result: ToolResult
    duration_ms: int


class Gate:
    """Decides, then runs. Stateless but for the rate-limit windows, so it outlives generations of the configuration."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._window = SlidingWindow(clock)

    async def run(
        self, tool: BoundTool, call: ToolCall, scope: CallScope, policy: GatePolicy, *, floor: Tier = Tier.HARMLESS
    ) -> Outcome:
        """Passes the call through the gate and, when approved, runs it within the tool's time limit. Never raises
        for what the tool does: the model is told, and goes on.
        """
        started = self._clock.monotonic_s()
        verdict = decide(tool.spec, call, scope, policy=policy, window=self._window, floor=floor)
        if verdict.decision is Decision.APPROVE:
            inner = replace(scope, depth=scope.depth + 1, chain=(*scope.chain, call.tool))
            result = _recordable(await _run_tool(tool, call, inner))
        else:
            result = ToolResult(f"Denied: {verdict.reason}.", is_error=True)
        return Outcome(verdict, result, round((self._clock.monotonic_s() - started) * 1000))


def _recordable(result: ToolResult) -> ToolResult:
    """As it may be recorded, shown and sent to a model: within the bound; without pictures and files in the text, which
    go to people instead (inventory L7); and without halves of surrogate pairs, which no model accepts, so that a page
    with such a text would end every later turn of the session.
    """
    whole, data = take_out(result.text, result.data)
    text = whole[:MAX_RESULT_CHARS].encode("utf-8", "replace").decode()
    if len(whole) > MAX_RESULT_CHARS:
        text += f"\n[cut: the result has {len(whole)} characters]"
    return replace(result, text=text, data=data)


async def _run_tool(tool: BoundTool, call: ToolCall, scope: CallScope) -> ToolResult:
    try:
        with anyio.fail_after(tool.spec.timeout_s):
            return await tool.toolset.call(call, scope)
    except TimeoutError:
        return ToolResult(f"'{call.tool}' did not finish within {tool.spec.timeout_s:g} s.", is_error=True)
    except DenizenError as error:
        return ToolResult(error.explain(), is_error=True)
    except Exception:  # noqa: BLE001 - the boundary of a skill call
        reference = fresh("err")
        _log.exception("tool fault", extra={"tool": call.tool, "turn": scope.turn_id, "reference": reference})
        return ToolResult(f"'{call.tool}' failed inside (reference {reference}).", is_error=True)
