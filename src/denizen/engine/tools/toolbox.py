"""The tools in effect for a step: those the agent may use, and the choice of them when it has more than fit.

The rule: pinned ones first, then those that were chosen for this session before, then the best matches of the question,
in the order in which the agent has them; the last place is `find_tools`, by which a model gets at the others. A session
keeps its choice, since tools stand in front of everything that a provider caches.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import cast

from denizen.domain.agent import Agent, ToolPlanning
from denizen.domain.ids import CallId, SessionId, derive, fresh
from denizen.domain.json import JsonObject
from denizen.domain.message import ToolCallPart
from denizen.domain.prompt import count_tool_tokens
from denizen.domain.ranking import telling_words
from denizen.domain.record import record
from denizen.domain.taint import find_call_taint
from denizen.domain.tool import Origin, Taint, Tier, ToolCall, ToolResult, ToolSpec
from denizen.engine.configuration.generation import Runtime
from denizen.engine.configuration.tool_policy import GatePolicy
from denizen.engine.gate.executor import BoundTool, ToolExecutor
from denizen.engine.tools.arguments import ArgumentsError, check_arguments
from denizen.ports.model import Capabilities
from denizen.ports.toolset import AgentToolset, CallScope, Toolset

SMALL_MODEL_TOOLS = 5
"""A small model is offered at most this many tools."""
FIND_TOOLS = "find_tools"
FOUND_AT_ONCE = 5
FOUND_IN_ALL = 10
"""In one turn; the newest ones count, so that a prompt never carries all."""
ALWAYS = frozenset({"read_skill"})
"""One tool that stands for many texts."""
SESSIONS_KEPT = 5000

_FINDER = ToolSpec(
    FIND_TOOLS,
    "Finds more tools by what they do. They can be used in the next step.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "what the tool should do", "maxLength": 300}},
        "required": ["query"],
        "additionalProperties": False,
    },
    tier=Tier.HARMLESS,
    read_only=True,
    idempotent=True,
    timeout_s=5.0,
    source="tools",
)


def rank_tools(specs: Sequence[ToolSpec], words: str) -> list[str]:
    """Names, the best match first: words that few tools have count more, those of a name twice. Among equals one of
    each source comes before a second one, in the given order.
    """
    question = stems(words)
    names = {spec.name: stems(spec.name.replace("_", " ")) for spec in specs}
    texts = {spec.name: names[spec.name] | stems(_about(spec)) for spec in specs}
    known = Counter(stem for found in texts.values() for stem in found)
    place_in_source: Counter[str] = Counter()
    order: dict[str, tuple[float, int]] = {}
    for spec in specs:
        weights = (
            math.log(1 + (len(specs) - known[stem] + 0.5) / (known[stem] + 0.5))
            * (2 if stem in names[spec.name] else 1)
            for stem in sorted(question & texts[spec.name])
        )
        order[spec.name] = (-sum(weights), place_in_source[spec.source])
        place_in_source[spec.source] += 1
    return sorted(order, key=lambda name: order[name])


def matching_tools(specs: Sequence[ToolSpec], words: str) -> list[str]:
    """As `rank_tools`, without those that share no word that says something: every question has a "the"."""
    question = stems(" ".join(telling_words(words)))
    about = {spec.name: stems(f"{spec.name.replace('_', ' ')} {_about(spec)}") for spec in specs}
    return [name for name in rank_tools(specs, words) if question & about[name]]


def names_tool(question: str, tool: str, *, besides: Iterable[str] = ()) -> bool:
    """Whether a word of the tool's name stands in the question: "remind me" names `set_reminder`; and not
    `cancel_reminder` `besides` that one.
    """
    name = stems(tool.replace("_", " ")) - stems(" ".join(besides).replace("_", " "))
    return not stems(" ".join(telling_words(question))).isdisjoint(name)


def select_tools(
    specs: Sequence[ToolSpec], words: str, *, limit: int, pinned: Sequence[str] = (), kept: Collection[str] = ()
) -> tuple[str, ...]:
    """At most `limit` names, in the order of the specs."""
    first = [
        spec.name for spec in specs if spec.name in ALWAYS or any(fnmatchcase(spec.name, pattern) for pattern in pinned)
    ]
    still = [spec.name for spec in specs if spec.name in kept]
    chosen = set(list(dict.fromkeys([*first, *still, *rank_tools(specs, words)]))[: max(limit, 0)])
    return tuple(spec.name for spec in specs if spec.name in chosen)


def list_found_tools(
    specs: Sequence[ToolSpec], calls: Iterable[ToolCallPart], offered: Collection[str]
) -> tuple[str, ...]:
    """Lists the tools that the calls of `find_tools` in a turn found, the newest FOUND_IN_ALL, oldest first. Told from
    the calls alone, so that a turn which is taken up again finds the same.
    """
    found: dict[str, None] = {}
    for call in calls:
        if call.tool == FIND_TOOLS:
            for name in find_more_tools(specs, str(call.args.get("query", "")), offered):
                found.pop(name, None)
                found[name] = None
    return tuple(found)[-FOUND_IN_ALL:]


def find_more_tools(specs: Sequence[ToolSpec], query: str, offered: Collection[str]) -> list[str]:
    """The best matches that are not offered anyway."""
    return [name for name in matching_tools(specs, query) if name not in offered][:FOUND_AT_ONCE]


class FindTools:
    """`find_tools` as a source of tools: it goes through the gate like any other."""

    def __init__(self, specs: Sequence[ToolSpec], offered: Collection[str]) -> None:
        self._specs = {spec.name: spec for spec in specs}
        self._offered = frozenset(offered)

    @property
    def name(self) -> str:
        return _FINDER.source

    @property
    def spec(self) -> ToolSpec:
        return _FINDER

    async def list_tools(self) -> Sequence[ToolSpec]:
        return (_FINDER,)

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        names = find_more_tools(list(self._specs.values()), str(call.args.get("query", "")), self._offered)
        if not names:
            return ToolResult("No other tool does that. Try other words, or do without.")
        lines = (f"- {name}: {self._specs[name].description.splitlines()[0]}" for name in names)
        return ToolResult("You can use these now:\n" + "\n".join(lines))

    async def aclose(self) -> None:
        """Nothing is open."""


class SessionSelections:
    """The tools chosen for each session, for as long as the process lives: the provider's cache lives shorter."""

    def __init__(self) -> None:
        self._of_sessions: dict[SessionId, tuple[str, ...]] = {}

    def of(self, session: SessionId) -> tuple[str, ...]:
        return self._of_sessions.get(session, ())

    def keep(self, session: SessionId, names: tuple[str, ...]) -> None:
        """The oldest sessions are forgotten first."""
        self._of_sessions.pop(session, None)
        self._of_sessions[session] = names
        while len(self._of_sessions) > SESSIONS_KEPT:
            del self._of_sessions[next(iter(self._of_sessions))]


def stems(text: str) -> frozenset[str]:
    """Words cut to five letters: enough to bring 'noted' and 'notes' together."""
    return frozenset(word[:5] for word in re.findall(r"[^\W\d_]{3,}", text.lower()))


def _about(spec: ToolSpec) -> str:
    properties = cast("Mapping[str, JsonObject]", spec.parameters.get("properties", {}))
    return f"{spec.description} {' '.join(properties).replace('_', ' ')}"


@record
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

    def without(self, names: frozenset[str]) -> Toolbox:
        """Returns the tools that have other names."""
        if names.isdisjoint(self.tools):
            return self
        return replace(self, tools={name: tool for name, tool in self.tools.items() if name not in names})


async def list_all(
    toolsets: Iterable[Toolset], *, of: Callable[[ToolSpec], bool] = lambda _: True, agent: Agent | None = None
) -> dict[str, BoundTool]:
    """Every tool of every toolset, or those that `of` wants, as the agent has them if one is given. Of two with the
    same name the earlier toolset keeps it.
    """
    tools: dict[str, BoundTool] = {}
    for toolset in toolsets:
        if agent is not None and _differs_by_agent(type(toolset)):
            specs = await cast("AgentToolset", toolset).list_tools_for(agent)
        else:
            specs = await toolset.list_tools()
        for spec in filter(of, specs):
            if spec.name not in tools:
                named = spec if spec.source == toolset.name else replace(spec, source=toolset.name)
                tools[spec.name] = BoundTool(named, toolset)
    return tools


@lru_cache
def _differs_by_agent(kind: type[Toolset]) -> bool:
    """Whether toolsets of that class are an `AgentToolset`. Told once for each class, since each step of a turn asks it
    of all toolsets, and looking at the members of a protocol costs more than listing the tools.
    """
    return hasattr(kind, "list_tools_for")


async def list_allowed(agent: Agent, toolsets: Iterable[Toolset]) -> dict[str, BoundTool]:
    """Lists the tools that the agent may use, in the order of its patterns. A `listed_only` tool must be
    named in full. In a turn about the administration it has all tools for that, and no others; else none of them.
    """
    is_administration = agent.tool_access.administration
    everything = await list_all(toolsets, of=lambda spec: spec.administration is is_administration, agent=agent)
    found: dict[str, BoundTool] = {}
    for pattern in (*agent.tool_access.tools, "*") if is_administration else agent.tool_access.tools:
        for name, tool in everything.items():
            if name == pattern or (not tool.spec.listed_only and fnmatchcase(name, pattern)):
                found.setdefault(name, tool)
    return found


@record
class ToolRequest:
    """A turn's request for tools: `words` are what is asked, `kept` what its session was offered before, `calls`
    the calls of this turn so far. `limit` 0 is that of the agent. Without `finder` the others cannot be looked up.
    """

    words: str = ""
    kept: Sequence[str] = ()
    calls: Sequence[ToolCallPart] = ()
    limit: int = 0
    finder: bool = True
    first: tuple[str, ...] = ()
    """Names of tools that are offered whatever is asked, as far as the agent has them, beside those that it pins."""


async def resolve_tools(agent: Agent, toolsets: Iterable[Toolset], wish: ToolRequest | None = None) -> Toolbox:
    """The tools of one prompt: all that the agent may use, or, where these are more than its limit, the choice that
    `select_tools` makes of them, with those that this turn has found.
    """
    tools, wish = await list_allowed(agent, toolsets), wish or ToolRequest()
    limit = min(agent.limits.max_tools, wish.limit or agent.limits.max_tools)
    if len(tools) <= limit or not limit:
        return Toolbox(tools if limit else {})
    specs = [tool.spec for tool in tools.values()]
    room = limit - 1 if wish.finder else limit
    pinned = (*wish.first, *agent.tool_access.pinned_tools)
    base = select_tools(specs, wish.words, limit=room, pinned=pinned, kept=wish.kept)
    if not wish.finder:
        return Toolbox({name: tools[name] for name in base})
    finder = FindTools(specs, base)
    found = list_found_tools(specs, wish.calls, base)[-max(room // 2, 1) :]
    offered = base
    if len(base) + len(found) > room:
        among = [spec for spec in specs if spec.name in base]
        offered = select_tools(among, wish.words, limit=room - len(found), pinned=pinned)
    shown = {name: tools[name] for name in offered} | {FIND_TOOLS: BoundTool(finder.spec, finder)}
    return Toolbox(shown | {name: tools[name] for name in found}, base)


async def count_most_tokens(agent: Agent, toolsets: Iterable[Toolset]) -> int:
    """Estimates the most tokens that tools take of a prompt, whichever are chosen."""
    sizes = sorted(
        (count_tool_tokens(tool.spec) for tool in (await list_allowed(agent, toolsets)).values()), reverse=True
    )
    return sum(sizes[: agent.limits.max_tools])


class NestedCalls:
    """Calls that a skill makes from within a skill: of the agent's own tools only, through the same gate, with the
    strictest tier of the chain and what was read on the way.
    """

    def __init__(self, runtime: Runtime, gate: ToolExecutor) -> None:
        self._runtime = runtime
        self._gate = gate

    async def __call__(self, scope: CallScope, tool: str, args: JsonObject) -> ToolResult:
        async with self._runtime.lease() as generation:
            everything = await list_all(generation.toolsets)
            agent = generation.agents.get(scope.agent)
            mine = await list_allowed(agent, generation.toolsets) if agent else {}
            bound = mine.get(tool)
            if bound is None:
                known = ", ".join(sorted(mine))
                return ToolResult(f"There is no tool '{tool}'. Known tools: {known}.", is_error=True)
            try:
                checked = check_arguments(bound.spec, args)
            except ArgumentsError as problem:
                return ToolResult(str(problem), is_error=True)
            call = ToolCall(CallId(fresh("call")), tool, checked, Origin.SKILL)
            floor = strictest_tier(scope.chain, everything, generation.policy)
            # With the key of the outer call, the second thing that a skill writes would count as done already.
            key = derive("call", scope.options.idempotency_key, tool, json.dumps(checked, sort_keys=True))
            read = chain_taint(scope.chain, everything)
            options = replace(scope.options, idempotency_key=key if scope.options.idempotency_key else "")
            inner = replace(scope, options=options, taint=scope.taint | read)
            outcome = await self._gate.run(bound, call, inner, generation.policy, floor=floor)
            scope.trail.taint |= find_call_taint(bound.spec, outcome)
            return outcome.result


def chain_taint(chain: Sequence[str], tools: Mapping[str, BoundTool]) -> frozenset[Taint]:
    """Returns the taint of what the tools of the chain may have read before they called; one that has vanished since
    may be anything.
    """
    return frozenset(
        label for name in chain for label in (tools[name].spec.flow.reads if name in tools else [Taint.TOOL])
    )


def strictest_tier(chain: Sequence[str], tools: Mapping[str, BoundTool], policy: GatePolicy) -> Tier:
    """The highest tier in the chain; a tool that has vanished since counts as dangerous."""
    tiers = [policy.tier(tools[name].spec) if name in tools else Tier.DANGEROUS for name in chain]
    return max(tiers, default=Tier.HARMLESS)


def uses_planning(planning: ToolPlanning, capabilities: Capabilities) -> bool:
    """AUTO plans for models that have no native tool calls or are small."""
    if planning is ToolPlanning.AUTO:
        return capabilities.takes_tools and (capabilities.small or not capabilities.native_tools)
    return planning is ToolPlanning.PLAN
