"""The tools in effect for one step of a turn: what the agent may use, chosen from all toolsets, capped.

Asked for anew before each step (inventory T8), because toolsets may change while a turn runs.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from denizen.domain.agent import Agent
from denizen.domain.ids import CallId, derive, fresh
from denizen.domain.json import JsonObject
from denizen.domain.prompt import estimate_tokens
from denizen.domain.tool import Origin, Tier, ToolCall, ToolResult, ToolSpec
from denizen.engine.arguments import ArgumentsError, check_arguments
from denizen.engine.gate.door import BoundTool, Gate
from denizen.engine.gate.policy import GatePolicy
from denizen.engine.runtime import Runtime
from denizen.ports.toolset import CallScope, Toolset

SMALL_MODEL_TOOLS = 5
"""A small model is offered at most this many tools (inventory T19)."""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """Tools by name, in the order in which they are offered."""

    tools: Mapping[str, BoundTool]

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


async def resolve(agent: Agent, toolsets: Iterable[Toolset]) -> Toolbox:
    """What the agent is allowed, in its own order of patterns, cut at its limit (VW8)."""
    everything = await list_all(toolsets)
    allowed: dict[str, BoundTool] = {}
    for pattern in agent.tools:
        for name, tool in everything.items():
            if fnmatchcase(name, pattern):
                allowed.setdefault(name, tool)
    return Toolbox(dict(list(allowed.items())[: agent.limits.max_tools]))


def choose(toolbox: Toolbox, words: str, *, limit: int = SMALL_MODEL_TOOLS) -> Toolbox:
    """The tools that share most words with the question; among equals, one of each source before a second one."""
    if len(toolbox.tools) <= limit:
        return toolbox
    question = _stems(words)
    place_in_source: Counter[str] = Counter()
    ranks: dict[str, tuple[int, int]] = {}
    for tool in toolbox.tools.values():
        ranks[tool.spec.name] = (-len(question & _stems(_about(tool.spec))), place_in_source[tool.spec.source])
        place_in_source[tool.spec.source] += 1
    chosen = set(sorted(ranks, key=lambda name: ranks[name])[:limit])
    return Toolbox({name: tool for name, tool in toolbox.tools.items() if name in chosen})


def count_tool_tokens(spec: ToolSpec) -> int:
    """By the shared estimate."""
    return estimate_tokens(f"{spec.name}{spec.description}{spec.parameters}")


def _about(spec: ToolSpec) -> str:
    return f"{spec.name.replace('_', ' ')} {spec.description}"


def _stems(text: str) -> frozenset[str]:
    """Words cut to five letters: enough to bring 'noted' and 'notes' together."""
    return frozenset(word[:5] for word in re.findall(r"[^\W\d_]{3,}", text.lower()))


class NestedCalls:
    """Calls that a skill makes from within a skill: through the same gate, with the strictest tier of the chain
    (VW1, inventory V23).
    """

    def __init__(self, runtime: Runtime, gate: Gate) -> None:
        self._runtime = runtime
        self._gate = gate

    async def __call__(self, scope: CallScope, tool: str, args: JsonObject) -> ToolResult:
        async with self._runtime.lease() as generation:
            everything = await list_all(generation.toolsets)
            bound = everything.get(tool)
            if bound is None:
                return ToolResult(f"There is no tool '{tool}'. {_known(everything)}", is_error=True)
            try:
                checked = check_arguments(bound.spec, args)
            except ArgumentsError as problem:
                return ToolResult(str(problem), is_error=True)
            call = ToolCall(CallId(fresh("call")), tool, checked, Origin.SKILL)
            floor = strictest(scope.chain, everything, generation.policy)
            # With the key of the outer call, the second thing that a skill writes would count as done already.
            key = derive("call", scope.idempotency_key, tool, json.dumps(checked, sort_keys=True))
            inner = replace(scope, idempotency_key=key if scope.idempotency_key else "")
            outcome = await self._gate.run(bound, call, inner, generation.policy, floor=floor)
            return outcome.result


def strictest(chain: Sequence[str], tools: Mapping[str, BoundTool], policy: GatePolicy) -> Tier:
    """The highest tier in the chain; a tool that has vanished since counts as dangerous."""
    tiers = [policy.tier(tools[name].spec) if name in tools else Tier.DANGEROUS for name in chain]
    return max(tiers, default=Tier.HARMLESS)


def _known(tools: Mapping[str, BoundTool]) -> str:
    return f"Known tools: {', '.join(sorted(tools))}."
