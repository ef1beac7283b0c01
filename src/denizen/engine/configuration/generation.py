"""One runtime object with one current generation of the configuration.

A generation is immutable and swapped whole. A turn leases the generation that it began with; what an old generation
holds open is closed when its last lease ends. Building generations is the business of `app/build`.
"""

from __future__ import annotations

import difflib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import field

import anyio

from denizen.domain.agent import Agent
from denizen.domain.archiving import ArchivePolicy
from denizen.domain.attention import AccountPolicy
from denizen.domain.budget import BudgetPolicy
from denizen.domain.custom_command import CustomCommand
from denizen.domain.errors import NotFound
from denizen.domain.guild_settings import NARROWING, GuildField
from denizen.domain.hook import NO_HOOKS, Hooks
from denizen.domain.ids import AgentName
from denizen.domain.issue_mirror import IssueMirror
from denizen.domain.memory import RecallPolicy
from denizen.domain.principal import Principal
from denizen.domain.project import TaskWatcherPolicy
from denizen.domain.proposal import LearningPolicy
from denizen.domain.record import record
from denizen.domain.schedule import Schedule
from denizen.domain.snapshot import NOWHERE, RemoteRepository
from denizen.domain.source import GuildSourceLimits
from denizen.domain.video import VideoAccess
from denizen.domain.workflow import BrokenWorkflow, Workflow, get_workflow
from denizen.engine.configuration.tool_policy import GatePolicy
from denizen.engine.events.signal import Signal
from denizen.ports.embed import Embedder
from denizen.ports.events import EventSettings
from denizen.ports.model import Models
from denizen.ports.schedules import RunSender
from denizen.ports.telemetry import NO_TELEMETRY, Telemetry
from denizen.ports.toolset import Toolset

_USUAL = AccountPolicy()


ReadOwn = Callable[[AgentName, str], str | None]
"""Returns the text of an agent's own file, or of one that all agents share, by the name that tools give it."""


def no_own_files(agent: AgentName, path: str) -> None:
    """For agents without files of their own."""
    del agent, path


@record
class CustomCommandSet:
    """The configured commands, and the toolset with the programs of those that have one.

    That toolset is none of the generation's toolsets, so that no model can call it.
    """

    commands: tuple[CustomCommand, ...] = ()
    toolset: Toolset | None = None


@record(kw_only=True)
class KnowledgeSettings:
    """How agents remember and look things up, and where their documents come from.

    `embedder` is not closed with the generation: others may have the same one. `read_own` reads files that come from no
    source. What is read of sources is pushed to `snapshot_remote`. `videos` says how channels of YouTube are read; None
    without a key. Repositories may be read from `private_hosts`, whatever their addresses are. `guild_sources`
    bounds what communities add for themselves. `webhooks` has, by source, the secret of those who may have it read.
    """

    embedder: Embedder | None = None
    recall: RecallPolicy = field(default_factory=RecallPolicy)
    learning: LearningPolicy = field(default_factory=LearningPolicy)
    read_own: ReadOwn = no_own_files
    snapshot_remote: RemoteRepository = NOWHERE
    videos: VideoAccess | None = None
    private_hosts: tuple[str, ...] = ()
    guild_sources: GuildSourceLimits = field(default_factory=GuildSourceLimits)
    webhooks: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@record(kw_only=True)
class Generation:
    """Everything that one accepted configuration means. `number` rises by one for each accepted change only.

    `account_policies` are by platform and agent. `guild_fields` are left to those who manage a community.
    `makes_titles` says whether models name the chats of the web. `is_model_chosen` when the command line chose one for
    all agents. `trigger_hooks` are those of schedules and the like, by the key of the principal of their turns.
    `schedules`, `workflows` and `broken_workflows` are by name, `events` the listeners and the routes of webhooks.
    Without `task_watcher`, nobody looks at changed tasks. `issue_mirrors` are projects whose tasks mirror issues.
    `run_sender` sends the answers of schedules by webhook and mail.
    """

    number: int
    agents: Mapping[AgentName, Agent]
    default_agent: AgentName
    models: Models
    toolsets: tuple[Toolset, ...]
    policy: GatePolicy = field(default_factory=GatePolicy)
    account_policies: Mapping[tuple[str, AgentName], AccountPolicy] = field(
        default_factory=dict[tuple[str, AgentName], AccountPolicy]
    )
    archive: ArchivePolicy = field(default_factory=ArchivePolicy)
    commands: CustomCommandSet = field(default_factory=CustomCommandSet)
    budgets: BudgetPolicy = field(default_factory=BudgetPolicy)
    knowledge: KnowledgeSettings = field(default_factory=KnowledgeSettings)
    guild_fields: frozenset[GuildField] = frozenset(NARROWING)
    makes_titles: bool = True
    is_model_chosen: bool = False
    schedules: Mapping[str, Schedule] = field(default_factory=dict[str, Schedule])
    trigger_hooks: Mapping[str, Hooks] = field(default_factory=dict[str, Hooks])
    task_watcher: TaskWatcherPolicy | None = None
    issue_mirrors: tuple[IssueMirror, ...] = ()
    events: EventSettings = field(default_factory=EventSettings)
    workflows: Mapping[str, Workflow] = field(default_factory=dict[str, Workflow])
    broken_workflows: Mapping[str, BrokenWorkflow] = field(default_factory=dict[str, BrokenWorkflow])
    run_sender: RunSender | None = None

    def get_workflow(self, name: str) -> Workflow:
        """Raises NotFound, naming the nearest, and InvalidInput for a broken one."""
        if name in self.broken_workflows:
            raise self.broken_workflows[name].error
        return get_workflow(self.workflows, name)

    def find_hooks(self, agent: AgentName, asker: Principal, *, is_delegated: bool = False) -> Hooks:
        """Returns the hooks of a turn: those of its agent, and behind them those of what triggered it. A delegated turn
        was triggered by another turn, which has the latter.
        """
        found = self.agents.get(agent)
        own = found.hooks if found else NO_HOOKS
        return own if is_delegated else own + self.trigger_hooks.get(asker.key, NO_HOOKS)

    @property
    def enabled_agents(self) -> frozenset[AgentName]:
        """The agents that answer; the others are switched off."""
        return frozenset(name for name, agent in self.agents.items() if agent.enabled)

    def account_policy_for(self, platform: str, account: AgentName) -> AccountPolicy:
        """How the account of that agent behaves on the platform."""
        return self.account_policies.get((platform, account), _USUAL)

    def agent(self, name: str) -> Agent:
        """The agent of that name; the default agent for an empty name. Raises NotFound, naming the nearest."""
        found = self.agents.get(AgentName(name) if name else self.default_agent)
        if found is None:
            near = difflib.get_close_matches(name, self.agents, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"Known agents: {', '.join(sorted(self.agents))}."
            raise NotFound(f"There is no agent '{name}'.", code="agent_unknown", fix=hint)
        return found

    async def aclose(self) -> None:
        for toolset in (*self.toolsets, *((self.commands.toolset,) if self.commands.toolset else ())):
            await toolset.aclose()
        await self.models.aclose()


class Runtime:
    """Holds the current generation and counts who still uses the old ones. Empty until the first `swap`. `telemetry`
    measures what is done with them.
    """

    def __init__(self, telemetry: Telemetry = NO_TELEMETRY) -> None:
        self.telemetry = telemetry
        self._current: Generation | None = None
        self._leases: dict[int, int] = {}
        self.swapped = Signal()
        """Sent when there is another generation."""

    @property
    def current(self) -> Generation:
        if self._current is None:
            raise RuntimeError("no generation was built yet")
        return self._current

    @asynccontextmanager
    async def lease(self) -> AsyncGenerator[Generation]:
        """The current generation, kept open until the block ends."""
        generation = self.current
        self._leases[generation.number] = self._leases.get(generation.number, 0) + 1
        try:
            yield generation
        finally:
            self._leases[generation.number] -= 1
            await self._close_if_unused(generation)

    async def swap(self, generation: Generation) -> None:
        """Makes `generation` the current one and closes the old one as soon as nobody uses it."""
        old, self._current = self._current, generation
        self.swapped.send()
        if old is not None:
            await self._close_if_unused(old)

    async def aclose(self) -> None:
        """Closes the current generation; leased old ones are closed by their last user."""
        if self._current is not None:
            await self._current.aclose()

    async def _close_if_unused(self, generation: Generation) -> None:
        if generation is self._current or self._leases.get(generation.number, 0) > 0:
            return
        self._leases.pop(generation.number, None)
        with anyio.CancelScope(shield=True):
            await generation.aclose()
