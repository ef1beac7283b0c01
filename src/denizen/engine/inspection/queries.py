"""Questions about the running system, answered from the store for the web and the command line. Reads only.

The trace of a turn is everything that is recorded of it; `replay` reads it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from denizen.domain.agent import Agent, ContextStrategy
from denizen.domain.approval import Approval, derive_approval_id
from denizen.domain.audit import AuditEntry
from denizen.domain.budget import BudgetScopeKind
from denizen.domain.citation import Citation
from denizen.domain.conversation import ALONE, Place
from denizen.domain.delegation import Delegation
from denizen.domain.errors import DenizenError, NotFound
from denizen.domain.ids import AgentName, CallId, TurnId
from denizen.domain.memory import Memory
from denizen.domain.message import Message, join_text, list_calls
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.prompt import PromptMessage, count_tool_tokens, estimate_tokens
from denizen.domain.prompt_messages import count_tokens, date_line, to_prompt_messages
from denizen.domain.record import record
from denizen.domain.room import Room, RoomKind
from denizen.domain.summary import Summary, covered_until
from denizen.domain.tool import Tier, ToolSpec, find_call_key
from denizen.domain.trace import PromptUse, sha256_hex
from denizen.domain.turn import CallRecord, Step, Turn
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.audit.audit_log import Verification, verify_log
from denizen.engine.configuration.generation import Runtime
from denizen.engine.configuration.tool_policy import ToolOutlook, explain_policy
from denizen.engine.inspection.cited_lines import CitedExcerpt, read_cited_lines
from denizen.engine.inspection.exchange import load_exchange, restore_calls
from denizen.engine.inspection.names import NameDirectory
from denizen.engine.inspection.overview import BudgetUse, SystemOverview, list_budgets, load_overview
from denizen.engine.inspection.past_calls import PastCalls
from denizen.engine.inspection.rooms import RoomInspection
from denizen.engine.intake.opening import find_reply_target
from denizen.engine.loop.outcome import NOT_IN_SOURCES
from denizen.engine.loop.services import EngineServices
from denizen.engine.loop.steps import LIMIT_NOTE
from denizen.engine.prompt.context import plan_tokens
from denizen.engine.prompt.room_transcript import TranscriptRequest, measure_room_transcript
from denizen.engine.prompt.session_history import summary_message
from denizen.engine.prompt.system_prompt import assemble_participant_prompt, assemble_system_prompt, source_rules
from denizen.engine.tools.toolbox import list_all, list_allowed, resolve_tools, uses_planning
from denizen.ports.model import ModelInfo
from denizen.ports.store import AuditSearch, RecentSession, Store, TurnListing, TurnSearch, UnitOfWork, UsageRow
from denizen.ports.usage import SpendRow


@record(kw_only=True)
class TurnTrace:
    """A turn with its question, prompts, steps and calls. `question` is what is left of it: it may be forgotten."""

    turn: Turn
    question: str
    prompts: Sequence[PromptUse]
    steps: Sequence[Step]
    calls: Sequence[CallRecord]
    memories: Sequence[Memory] = ()
    """Those that came up unasked, as far as they are not forgotten; the prompts have the ids of all."""
    citations: Sequence[Citation] = ()
    """Citations of the reply, and those that were taken out since they were not proved."""
    delegated: Sequence[Delegation] = ()
    """The tasks that the turn gave to other agents."""

    @property
    def taken(self) -> Sequence[Step]:
        """The steps without the request to the router, which comes before them."""
        return [step for step in self.steps if step.number > 0]

    @property
    def unasked(self) -> Sequence[CallRecord]:
        """The calls that no model asked for, from before its first request (`loop/look_up`)."""
        return [call for call in self.calls if call.step == 0]

    @property
    def hooks_after(self) -> Sequence[CallRecord]:
        """The calls of the hooks after the turn, with those from within them."""
        last = max((step.number for step in self.steps), default=0)
        return [call for call in self.calls if call.step > last]

    @property
    def is_replaced(self) -> bool:
        """Whether the reply is ours, in place of an answer that rests on nothing that was read (`loop/outcome`)."""
        return self.turn.result.reply.removesuffix(LIMIT_NOTE) == NOT_IN_SOURCES


async def load_trace(store: Store, turn_id: TurnId) -> TurnTrace:
    """Raises NotFound."""
    async with store.work(write=False) as work:
        turn = await work.turns.get(turn_id)
        prompts = await work.turns.list_prompts(turn_id)
        return TurnTrace(
            turn=turn,
            question=await _question(work, turn),
            prompts=_with_texts(prompts, turn),
            steps=await work.turns.list_steps(turn_id),
            calls=await work.turns.list_calls(turn_id),
            memories=await _memories(work, prompts),
            citations=await work.citations.list_for(turn_id),
            delegated=await work.delegations.list_delegated(turn_id),
        )


async def _memories(work: UnitOfWork, prompts: Sequence[PromptUse]) -> list[Memory]:
    ids = dict.fromkeys(key for prompt in prompts for key in prompt.memories)
    found = [await work.memories.find(key) for key in ids]
    return [memory for memory in found if memory is not None]


async def _question(work: UnitOfWork, turn: Turn) -> str:
    try:
        return join_text((await work.messages.get(turn.trigger_id)).parts)
    except NotFound:
        return ""


def _with_texts(prompts: Sequence[PromptUse], turn: Turn) -> list[PromptUse]:
    """Fills in the texts that are not kept with a prompt, where the turn itself has the same text."""
    instructions = str(turn.options.get("instructions", ""))
    told = (instructions, instructions.strip(), date_line(turn.opened_at))
    known = {sha256_hex(text): text for text in told}
    return [
        replace(
            prompt,
            segments=tuple(
                replace(segment, text=known.get(segment.sha256)) if segment.text is None else segment
                for segment in prompt.segments
            ),
        )
        for prompt in prompts
    ]


@record
class ToolInfo:
    """A tool as the gate sees it: `tier` is the configured one, `outlook` what becomes of its calls."""

    spec: ToolSpec
    tier: Tier
    outlook: ToolOutlook


@record
class RecordedCall:
    """A call, and the approval that it had to wait for, if any."""

    record: CallRecord
    approval: Approval | None


@record
class ContextShare:
    """One part of the prompt and its estimated tokens."""

    name: str
    tokens: int


@record
class ContextUse:
    """The parts of the next prompt, and the tokens that those of the conversation may have together."""

    shares: tuple[ContextShare, ...]
    history_tokens: int


class Queries:
    """Reads; never writes."""

    def __init__(self, runtime: Runtime, services: EngineServices, channels: ConnectedAccounts | None = None) -> None:
        self._runtime = runtime
        self._services = services
        self._channels = channels or ConnectedAccounts()
        self.past_calls = PastCalls(runtime, services.store, services.clock, services.observer)
        self.rooms = RoomInspection(runtime, services.store, self._channels)
        self.names = NameDirectory(services.store, self.rooms)

    def list_agents(self) -> list[Agent]:
        """The default agent first."""
        current = self._runtime.current
        return sorted(current.agents.values(), key=lambda agent: (agent.name != current.default_agent, agent.name))

    def get_agent(self, name: str) -> Agent:
        """Raises NotFound."""
        return self._runtime.current.agent(name)

    def check_model(self, name: str) -> None:
        """Raises NotFound for a model that is not configured."""
        self._runtime.current.models.get(name)

    def list_models(self) -> Sequence[ModelInfo]:
        return self._runtime.current.models.list_models()

    async def list_tools(self, agent: str = "") -> list[ToolInfo]:
        """All tools, or those that an agent may use. Raises NotFound."""
        generation = self._runtime.current
        if agent:
            tools = await list_allowed(generation.agent(agent), generation.toolsets)
        else:
            tools = await list_all(generation.toolsets)
        policy, is_observed = generation.policy, await self.past_calls.is_observed()
        return [
            ToolInfo(tool.spec, policy.tier(tool.spec), explain_policy(tool.spec, policy, is_observed=is_observed))
            for tool in tools.values()
        ]

    async def list_messages(self, place: Place, agent: str, *, limit: int = 100) -> Sequence[Message]:
        """The current session of an agent at a place, oldest first."""
        name = AgentName(self.get_agent(agent).name)
        async with self._services.store.work(write=False) as work:
            sessions = await work.sessions.list_sessions(place.conversation_id, name)
            current = next((session for session in sessions if session.closed_at is None), None)
            return await work.messages.list_tail(current.id, limit=limit) if current else []

    async def list_calls(self, messages: Iterable[Message]) -> Mapping[tuple[TurnId, CallId], RecordedCall]:
        """The recorded calls of the turns of these messages, by turn and the id that the message has."""
        found: dict[tuple[TurnId, CallId], RecordedCall] = {}
        turns = {each.turn_id for each in messages if each.turn_id is not None and list_calls(each.parts)}
        async with self._services.store.work(write=False) as work:
            for turn_id in turns:
                asked = {each.id: each for each in await work.approvals.list_approvals(turn_id=turn_id)}
                for record in await work.turns.list_calls(turn_id):
                    key = derive_approval_id(find_call_key(record.tool_call, turn_id, record.step, record.position))
                    found[turn_id, record.tool_call.id] = RecordedCall(record, asked.get(key))
        return found

    async def list_sessions(self, *, platform: str = "", agent: str = "", limit: int = 50) -> Sequence[RecentSession]:
        """Open ones, by their last message, newest first; without questions that stood alone."""
        async with self._services.store.work(write=False) as work:
            return await work.sessions.list_recent(platform=platform, agent=agent, except_prefix=ALONE, limit=limit)

    async def get_turn(self, turn_id: TurnId) -> TurnTrace:
        """Everything that is recorded of it. Raises NotFound."""
        return await load_trace(self._services.store, turn_id)

    async def restore_calls(self, history: Sequence[PromptMessage], asker: Principal) -> list[PromptMessage]:
        """See `exchange`."""
        return await restore_calls(self._services.store, history, asker)

    async def load_exchange(self, turn_id: TurnId, asker: Principal) -> list[PromptMessage]:
        """Returns the conversation up to the end of a turn of the asker's. Raises NotFound."""
        return await load_exchange(self._services.store, turn_id, asker)

    async def read_cited_lines(self, turn: Turn, place: str) -> CitedExcerpt:
        """The lines that a turn cites as `path:first-last`, with those around them. Raises NotFound."""
        return await read_cited_lines(self._runtime, self._services, turn, place)

    async def is_private(self, turn: Turn) -> bool:
        """Whether the turn was not asked where everybody of a community may read it now, nor by a program. What cannot
        be known counts as private.
        """
        if turn.principal.kind is not PrincipalKind.PLATFORM_USER:
            return turn.principal.kind in (PrincipalKind.LOCAL, PrincipalKind.WEB_USER)
        owed = find_reply_target(turn)
        async with self._services.store.work(write=False) as work:
            place = turn.parent.place if turn.parent else (await work.conversations.get(turn.conversation_id)).place
            known = await work.archive.find_room(place.platform, place.thread or place.channel)
        channel = self._channels.find(place.platform, owed.account) if owed else None
        if owed is None or channel is None:
            return True
        if known is not None and known.kind in (RoomKind.DIRECT, RoomKind.PRIVATE_THREAD):
            return True
        # Platforms do not list archived threads, which are as open as their channel.
        is_thread = known is not None and known.kind is RoomKind.THREAD
        room = place.channel if is_thread else place.thread or place.channel
        try:
            return not await channel.is_open(Room(place.platform, room, room, guild=owed.guild))
        except DenizenError:
            return True

    async def may_read(self, turn: Turn, reader: Principal) -> bool:
        """Whether somebody may see a turn: who asked it and owners may, admins where it was not asked in private."""
        if turn.principal.key == reader.key or RoleName.OWNER in reader.roles:
            return True
        return RoleName.ADMIN in reader.roles and not await self.is_private(turn)

    async def search_turns(self, wanted: TurnSearch) -> Sequence[TurnListing]:
        async with self._services.store.work(write=False) as work:
            return await work.turns.search(wanted)

    async def search_audit_log(self, wanted: AuditSearch) -> Sequence[AuditEntry]:
        async with self._services.store.work(write=False) as work:
            return await work.audit.search(wanted)

    async def verify_audit_log(self, noted: str = "") -> Verification:
        """Follows the chain from its beginning. `noted` is a digest that was the newest once, or empty."""
        return await verify_log(self._services.store, noted=noted)

    async def load_overview(self) -> SystemOverview:
        return await load_overview(self._services.store, self._runtime, self._services.clock)

    async def list_budgets(self) -> Sequence[BudgetUse]:
        """Returns the limits of the server and of agents, with what is spent of them."""
        async with self._services.store.work(write=False) as work:
            return (await list_budgets(work, self._runtime, self._services.clock))[1]

    async def list_turns(self, *, agent: str = "", limit: int = 100) -> list[Turn]:
        """Those of an agent, or of all, among the `limit` newest; newest first."""
        async with self._services.store.work(write=False) as work:
            turns = await work.turns.list_turns(limit=limit)
        return [turn for turn in turns if agent in {"", turn.agent}]

    async def list_usage(self, *, since: datetime, agent: str = "", principal: str = "") -> Sequence[UsageRow]:
        async with self._services.store.work(write=False) as work:
            return await work.ledger.list_usage(since=since, agent=agent, principal=principal)

    async def list_spend(self, kind: BudgetScopeKind, *, since: datetime) -> Sequence[SpendRow]:
        """Per day, the newest first, and scope of that kind."""
        async with self._services.store.work(write=False) as work:
            return await work.spending.list_spend(kind, since=since)

    async def load_context(self, place: Place, agent: str, model_name: str = "") -> ContextUse:
        """How the next prompt's tokens divide among system segments, tools and messages. `model_name` is that of
        another model than the agent's own. Raises NeedsAttention when there is no room for a conversation at all.
        """
        current = self._runtime.current
        generation = await self._services.configured(current, current.agent(agent).name)
        found = generation.agent(agent)
        model = generation.models.get(model_name or found.model)
        plans = uses_planning(found.tool_access.planning, model.capabilities)
        is_participant = found.history.context is ContextStrategy.TRANSCRIPT
        assembled = assemble_participant_prompt if is_participant else assemble_system_prompt
        mine = await list_allowed(found, generation.toolsets)
        segments = assembled(found, tool_rules=not plans, sources=source_rules(found, mine, is_short=plans))
        tools = (await resolve_tools(found, generation.toolsets)).specs
        shares = [
            *(ContextShare(segment.name, estimate_tokens(segment.text)) for segment in segments),
            ContextShare("tools", sum(count_tool_tokens(spec) for spec in tools)),
        ]
        history_tokens, _ = await plan_tokens(found, model, generation.toolsets, segments)
        if is_participant:
            accounts = tuple(self._runtime.current.agents)
            budget = found.history.transcript
            asked = TranscriptRequest(place, budget, budget, accounts=accounts)
            blocks, tail = await measure_room_transcript(self._services.store, asked)
            shares += [ContextShare("closed blocks", blocks), ContextShare("tail", tail)]
            return ContextUse(tuple(shares), min(history_tokens, budget.most_tokens))
        messages = await self.list_messages(place, agent, limit=found.limits.max_history_messages)
        summaries = await self._list_summaries(messages)
        behind = [message for message in messages if message.sequence > covered_until(summaries)]
        if summaries:
            shares.append(
                ContextShare("summaries", sum(count_tokens(summary_message(each)) for each in summaries if each.text))
            )
        shares.append(ContextShare("messages", sum(count_tokens(message) for message in to_prompt_messages(behind))))
        return ContextUse(tuple(shares), min(history_tokens, found.limits.max_history_tokens))

    async def _list_summaries(self, messages: Sequence[Message]) -> Sequence[Summary]:
        """Those of the session of these messages."""
        session = messages[-1].session_id if messages else None
        if session is None:
            return []
        async with self._services.store.work(write=False) as work:
            return await work.summaries.list_summaries(session)
