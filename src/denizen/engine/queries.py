"""What people may ask about the running system: read-only answers for web and command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from denizen.domain.agent import Agent, ContextStrategy
from denizen.domain.budget import ScopeKind
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.message import Message
from denizen.domain.prompt import Segment, count_tool_tokens, estimate_tokens
from denizen.domain.summary import Summary, covered_until
from denizen.domain.tool import Tier, ToolSpec
from denizen.domain.turn import Turn
from denizen.engine.gate.explain import Outlook, explain
from denizen.engine.history import told_of
from denizen.engine.planning import uses_planning
from denizen.engine.prompt.assemble import assemble, assemble_participant
from denizen.engine.prompt.session import count_tokens, from_stored
from denizen.engine.prompt.sources import source_rules
from denizen.engine.prompt.transcript.room import Asked, measure_talk
from denizen.engine.runtime import Runtime
from denizen.engine.services import Services
from denizen.engine.toolbox import allowed, list_all, resolve
from denizen.engine.trace import Trace, load_trace
from denizen.ports.model import ModelInfo
from denizen.ports.store import RecentSession, UsageRow
from denizen.ports.usage import SpendRow

ALONE = "once_"
"""The name of a session that is asked one question begins so."""

LATEST_SESSIONS = 500
"""So many are looked at, for there may be many questions that stood alone."""


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """A tool as the gate sees it: `tier` is the configured one, `outlook` what becomes of its calls."""

    spec: ToolSpec
    tier: Tier
    outlook: Outlook


@dataclass(frozen=True, slots=True)
class ContextShare:
    """One part of the prompt and its estimated tokens."""

    name: str
    tokens: int


class Queries:
    """Reads; never writes."""

    def __init__(self, runtime: Runtime, services: Services) -> None:
        self._runtime = runtime
        self._services = services

    def list_agents(self) -> list[Agent]:
        """The default agent first."""
        current = self._runtime.current
        return sorted(current.agents.values(), key=lambda agent: (agent.name != current.default_agent, agent.name))

    def get_agent(self, name: str) -> Agent:
        """Raises NotFound."""
        return self._runtime.current.agent(name)

    def list_models(self) -> Sequence[ModelInfo]:
        return self._runtime.current.models.list_models()

    async def list_tools(self, agent: str = "") -> list[ToolInfo]:
        """All tools, or those that an agent may use. Raises NotFound."""
        generation = self._runtime.current
        if agent:
            tools = await allowed(generation.agent(agent), generation.toolsets)
        else:
            tools = await list_all(generation.toolsets)
        policy, observer = generation.policy, self._services.observer
        is_observed = bool(policy.observer.model) and observer is not None and (await observer.load()).is_on
        return [
            ToolInfo(tool.spec, policy.tier(tool.spec), explain(tool.spec, policy, is_observed=is_observed))
            for tool in tools.values()
        ]

    async def list_messages(self, place: Place, agent: str, *, limit: int = 100) -> Sequence[Message]:
        """The current session of an agent at a place, oldest first."""
        name = AgentName(self.get_agent(agent).name)
        async with self._services.store.work(write=False) as work:
            sessions = await work.sessions.list_sessions(place.conversation_id, name)
            current = next((session for session in sessions if session.closed_at is None), None)
            return await work.messages.list_tail(current.id, limit=limit) if current else []

    async def list_sessions(self, *, platform: str = "", agent: str = "", limit: int = 50) -> list[RecentSession]:
        """Open ones, by their last message, newest first; without questions that stood alone."""
        async with self._services.store.work(write=False) as work:
            found = await work.sessions.list_recent(platform=platform, agent=agent, limit=max(limit, LATEST_SESSIONS))
        return [row for row in found if not row.place.thread.startswith(ALONE)][:limit]

    async def get_turn(self, turn_id: TurnId) -> Trace:
        """Everything that is recorded of it. Raises NotFound."""
        return await load_trace(self._services.store, turn_id)

    async def list_turns(self, *, agent: str = "", limit: int = 100) -> list[Turn]:
        """Those of an agent, or of all, among the `limit` newest; newest first."""
        async with self._services.store.work(write=False) as work:
            turns = await work.turns.list_turns(limit=limit)
        return [turn for turn in turns if agent in {"", turn.agent}]

    async def list_usage(self, *, since: datetime, agent: str = "", principal: str = "") -> Sequence[UsageRow]:
        async with self._services.store.work(write=False) as work:
            return await work.ledger.list_usage(since=since, agent=agent, principal=principal)

    async def list_spend(self, kind: ScopeKind, *, since: datetime) -> Sequence[SpendRow]:
        """Per day, the newest first, and scope of that kind."""
        async with self._services.store.work(write=False) as work:
            return await work.spending.list_spend(kind, since=since)

    async def list_context(self, place: Place, agent: str) -> list[ContextShare]:
        """How the next prompt's tokens divide among system segments, tools and messages (inventory T35 `/context`)."""
        current = self._runtime.current
        generation = await self._services.configured(current, current.agent(agent).name)
        found = generation.agent(agent)
        model = generation.models.get(found.model)
        plans = uses_planning(found.planning, model.capabilities)
        is_participant = found.context is ContextStrategy.TRANSCRIPT
        assembled = assemble_participant if is_participant else assemble
        mine = await allowed(found, generation.toolsets)
        segments = assembled(found, tool_rules=not plans, sources=source_rules(found, mine, is_short=plans))
        tools = (await resolve(found, generation.toolsets)).specs
        shares = [
            *(ContextShare(segment.name, _segment_tokens(segment)) for segment in segments),
            ContextShare("tools", sum(count_tool_tokens(spec) for spec in tools)),
        ]
        if is_participant:
            asked = Asked(place, found.transcript, found.transcript)
            blocks, tail = await measure_talk(self._services.store, asked)
            return [*shares, ContextShare("closed blocks", blocks), ContextShare("tail", tail)]
        messages = await self.list_messages(place, agent, limit=found.limits.max_history_messages)
        summaries = await self._list_summaries(messages)
        behind = [message for message in messages if message.sequence > covered_until(summaries)]
        if summaries:
            shares.append(
                ContextShare("summaries", sum(count_tokens(told_of(each)) for each in summaries if each.text))
            )
        return [*shares, ContextShare("messages", sum(count_tokens(message) for message in from_stored(behind)))]

    async def _list_summaries(self, messages: Sequence[Message]) -> Sequence[Summary]:
        """Those of the session of these messages."""
        session = messages[-1].session_id if messages else None
        if session is None:
            return []
        async with self._services.store.work(write=False) as work:
            return await work.summaries.list_summaries(session)


def _segment_tokens(segment: Segment) -> int:
    return estimate_tokens(segment.text)
