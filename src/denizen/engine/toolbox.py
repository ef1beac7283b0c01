"""The tools in effect for one step of a turn: what the agent may use, chosen from all toolsets, capped.

Asked for anew before each step (inventory T8), because toolsets may change while a turn runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from denizen.domain.agent import Agent
from denizen.domain.ids import CallId, derive, fresh
from denizen.domain.json import JsonObject
from denizen.domain.message import ToolCallPart
from denizen.domain.prompt import count_tool_tokens
from denizen.domain.tool import Origin, Taint, Tier, ToolCall, ToolResult, ToolSpec
from denizen.engine.arguments import ArgumentsError, check_arguments
from denizen.engine.gate.door import BoundTool, Gate
from denizen.engine.gate.policy import GatePolicy
from denizen.engine.runtime import Runtime
from denizen.engine.selection import FIND_TOOLS, Finder, found_by, select
from denizen.ports.toolset import CallScope, Toolset


@dataclass(frozen=True, slots=True)
class Toolbox:
    """Tools by name, in the order in which they are offered. `chosen` are those that the session keeps, where a choice
    had to be made.
    """

    tools: Mapping[str, BoundTool]
    chosen: tuple[str, ...] = ()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self.tools.values())

    def find(self, name: str) -> BoundTool | None:
        return self.tools.get(name)


async def list_all(toolsets: Iterable[Toolset]) -> dict[str, BoundTool]:
    """Every tool of every toolset. When two have the same name the earlier toolset keeps it."""
    tools: dict[str, BoundTool] = {}
    for toolset in toolsets:
        for spec in await toolset.list_tools():
            tools.setdefault(spec.name, BoundTool(replace(spec, source=toolset.name), toolset))
    return tools


async def allowed(agent: Agent, toolsets: Iterable[Toolset]) -> dict[str, BoundTool]:
    """What the agent may use, in its own order of patterns. A `listed_only` tool must be named in full (TW6)."""
    everything = await list_all(toolsets)
    found: dict[str, BoundTool] = {}
    for pattern in agent.tools:
        for name, tool in everything.items():
            if name == pattern or (not tool.spec.listed_only and fnmatchcase(name, pattern)):
                found.setdefault(name, tool)
    return found


@dataclass(frozen=True, slots=True)
class Wish:
    """What a turn needs of the tools: `words` are what is asked, `kept` what its session was offered before, `calls`
    the calls of this turn so far. `limit` 0 is that of the agent. Without `finder` the others cannot be looked up.
    """

    words: str = ""
    kept: Sequence[str] = ()
    calls: Sequence[ToolCallPart] = ()
    limit: int = 0
    finder: bool = True


async def resolve(agent: Agent, toolsets: Iterable[Toolset], wish: Wish | None = None) -> Toolbox:
    """The tools of one prompt: all that the agent may use, or, where these are more than its limit, the choice that
    `selection.py` makes of them, with those that this turn has found (VW8).
    """
    tools, wish = await allowed(agent, toolsets), wish or Wish()
    limit = min(agent.limits.max_tools, wish.limit or agent.limits.max_tools)
    if len(tools) <= limit or not limit:
        return Toolbox(tools if limit else {})
    specs = [tool.spec for tool in tools.values()]
    room = limit - 1 if wish.finder else limit
    base = select(specs, wish.words, limit=room, pinned=agent.pinned_tools, kept=wish.kept)
    if not wish.finder:
        return Toolbox({name: tools[name] for name in base})
    finder = Finder(specs, base)
    found = found_by(specs, wish.calls, base)[-max(room // 2, 1) :]
    offered = base
    if len(base) + len(found) > room:
        among = [spec for spec in specs if spec.name in base]
        offered = select(among, wish.words, limit=room - len(found), pinned=agent.pinned_tools)
    shown = {name: tools[name] for name in offered} | {FIND_TOOLS: BoundTool(finder.spec, finder)}
    return Toolbox(shown | {name: tools[name] for name in found}, base)


async def count_most_tokens(agent: Agent, toolsets: Iterable[Toolset]) -> int:
    """What the tools take of a prompt at most, whichever are chosen; by the shared estimate."""
    sizes = sorted((count_tool_tokens(tool.spec) for tool in (await allowed(agent, toolsets)).values()), reverse=True)
    return sum(sizes[: agent.limits.max_tools])


class NestedCalls:
    """Calls that a skill makes from within a skill: of the agent's own tools only, through the same gate, with the
    strictest tier of the chain and what was read on the way (VW1, inventory V23).
    """

    def __init__(self, runtime: Runtime, gate: Gate) -> None:
        self._runtime = runtime
        self._gate = gate

    async def __call__(self, scope: CallScope, tool: str, args: JsonObject) -> ToolResult:
        async with self._runtime.lease() as generation:
            everything = await list_all(generation.toolsets)
            agent = generation.agents.get(scope.agent)
            mine = await allowed(agent, generation.toolsets) if agent else {}
            bound = mine.get(tool)
            if bound is None:
                return ToolResult(f"There is no tool '{tool}'. {_known(mine)}", is_error=True)
            try:
                checked = check_arguments(bound.spec, args)
            except ArgumentsError as problem:
                return ToolResult(str(problem), is_error=True)
            call = ToolCall(CallId(fresh("call")), tool, checked, Origin.SKILL)
            floor = strictest(scope.chain, everything, generation.policy)
            # With the key of the outer call, the second thing that a skill writes would count as done already.
            key = derive("call", scope.idempotency_key, tool, json.dumps(checked, sort_keys=True))
            read = read_by(scope.chain, everything)
            inner = replace(scope, idempotency_key=key if scope.idempotency_key else "", taint=scope.taint | read)
            outcome = await self._gate.run(bound, call, inner, generation.policy, floor=floor)
            scope.trail.taint |= bound.spec.reads
            return outcome.result


def read_by(chain: Sequence[str], tools: Mapping[str, BoundTool]) -> frozenset[Taint]:
    """What the tools of the chain may have read before they called; one that has vanished since may be anything."""
    return frozenset(label for name in chain for label in (tools[name].spec.reads if name in tools else [Taint.TOOL]))


def strictest(chain: Sequence[str], tools: Mapping[str, BoundTool], policy: GatePolicy) -> Tier:
    """The highest tier in the chain; a tool that has vanished since counts as dangerous."""
    tiers = [policy.tier(tools[name].spec) if name in tools else Tier.DANGEROUS for name in chain]
    return max(tiers, default=Tier.HARMLESS)


def _known(tools: Mapping[str, BoundTool]) -> str:
    return f"Known tools: {', '.join(sorted(tools))}."
