"""Builds one generation of the runtime from the settings: models, toolsets, policies.

A generation is immutable: a change of the configuration builds another one, which replaces it whole.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from denizen.adapters.commands import CommandToolset
from denizen.adapters.mcp import McpPool
from denizen.app.embeddings import EmbedderPool, build_recall
from denizen.app.home.environment import read_environment
from denizen.app.knowledge import OwnFiles, read_video_access, read_webhooks
from denizen.app.model_choice import ModelChoice
from denizen.app.models import EmbeddedRuntimePool, apply_choice, build_catalog, resolve_choice
from denizen.app.schedule_delivery import HomeRunSender
from denizen.app.settings import Settings
from denizen.app.settings.problem import config_error
from denizen.app.skill_loading.registry import SkillRegistry
from denizen.app.telemetry import OpenTelemetry, measure_models
from denizen.app.tool_checks import (
    check_agent_tools,
    check_gate_patterns,
    find_gate_problems,
    find_missing_workflow_tools,
    find_skill_problems,
    find_source_problems,
    read_known_tools,
)
from denizen.app.toolsets import (
    SkillDeps,
    build_skill_services,
    load_agent_tools,
    load_builtin_skills,
    load_delegation_tools,
    load_own_tools,
    read_servers,
)
from denizen.domain.attention import AccountPolicy
from denizen.domain.clock import Clock
from denizen.domain.hook import Hooks
from denizen.domain.ids import AgentName
from denizen.domain.project import WATCHER
from denizen.domain.prompt_messages import agent_timezone
from denizen.domain.rate_limit import DAY_S, RateLimit
from denizen.domain.record import record
from denizen.domain.schedule import Schedule
from denizen.domain.workflow import BrokenWorkflow
from denizen.domain.workflow_triggers import list_listeners, list_schedules
from denizen.engine.agents.catalog import AgentCatalog
from denizen.engine.configuration.generation import CustomCommandSet, Generation, KnowledgeSettings
from denizen.engine.configuration.tool_policy import GatePolicy
from denizen.ports.events import EventSettings
from denizen.ports.toolset import Toolset

if TYPE_CHECKING:
    from denizen.engine.delegation.delegations import Delegations

_log = logging.getLogger("denizen.app")


@record(kw_only=True)
class GenerationDeps:
    """The dependencies of every generation; the same for the whole life of the process.

    The pools keep what is dear to start (processes, loaded weights), so that a reload that does not touch it does not
    restart it.
    """

    home: Path
    clock: Clock
    choice: ModelChoice
    embedded_runtimes: EmbeddedRuntimePool
    embedders: EmbedderPool
    mcp: McpPool
    own_skills: SkillRegistry
    skills: SkillDeps
    open_delegations: Callable[[], Delegations]
    telemetry: OpenTelemetry
    agents: AgentCatalog


async def build_generation(settings: Settings, number: int, deps: GenerationDeps) -> Generation:
    """Builds the generation. Raises InvalidInput for what the configuration cannot mean; nothing is left open then."""
    if problems := find_skill_problems(settings):
        raise config_error(problems)
    chosen = resolve_choice(deps.choice)
    agents = apply_choice(settings.agents.values(), chosen)
    toolsets = await load_builtin_skills(settings, deps.skills)
    toolsets += load_delegation_tools(settings, deps.open_delegations)
    toolsets += load_agent_tools(settings, deps.agents)
    services = partial(build_skill_services, settings, deps.skills)
    toolsets += await load_own_tools(settings, deps.own_skills, services, toolsets)
    servers = read_servers(settings)
    # A skill that could not be loaded may be the one that has a missing tool, so nothing is refused then.
    may_miss = deps.own_skills.misses_some(settings.skills)
    known = await read_known_tools(toolsets, may_miss=may_miss)
    findings = check_agent_tools(settings, known)
    if problems := [*findings.problems, *find_gate_problems(settings, known)]:
        raise config_error(problems)
    for each in findings.notices:
        _log.warning("an agent's tool is not there", extra={"where": str(each), "fix": each.fix})
    for each in find_source_problems(settings, known):
        _log.warning("an agent answers from sources that it cannot read", extra={"where": str(each), "fix": each.fix})
    for each in find_missing_workflow_tools(settings, known):
        _log.warning("a workflow's tool is not there", extra={"where": str(each), "fix": each.fix})
    if not may_miss:
        await check_gate_patterns(settings, toolsets)
    generation = Generation(
        number=number,
        agents={agent.name: agent for agent in agents},
        default_agent=settings.default_agent,
        models=measure_models(build_catalog(settings, chosen, deps.embedded_runtimes), deps.telemetry.telemetry),
        toolsets=toolsets,
        policy=_read_policy(settings, number),
        account_policies=_read_account_policies(settings),
        guild_fields=frozenset(settings.channels.discord.server_owners),
        archive=settings.archive,
        commands=CustomCommandSet(settings.commands, _build_programs(settings, deps.home)),
        budgets=settings.budgets,
        knowledge=KnowledgeSettings(
            embedder=deps.embedders.get(settings),
            recall=build_recall(settings),
            learning=settings.config.knowledge.learning.policy,
            read_own=OwnFiles(settings.folders).read,
            snapshot_remote=settings.config.knowledge.remote.remote,
            private_hosts=settings.config.knowledge.private_hosts,
            guild_sources=settings.config.knowledge.server_sources.limits,
            videos=read_video_access(settings),
            webhooks=read_webhooks(settings),
        ),
        makes_titles=settings.channels.web.model_titles,
        is_model_chosen=bool(chosen.model),
        task_watcher=settings.task_watcher,
        issue_mirrors=settings.issue_mirrors,
        schedules={**settings.schedules, **_read_workflow_schedules(settings)},
        trigger_hooks=_read_trigger_hooks(settings),
        events=_read_events(settings),
        workflows=settings.workflows,
        broken_workflows=_read_broken_workflows(settings),
        run_sender=HomeRunSender(settings, deps.skills.mailbox, deps.clock),
    )
    # MCP servers are opened last: they have to be closed again, and everything above may still raise.
    return replace(generation, toolsets=(*toolsets, *deps.mcp.open(servers)))


def _read_policy(settings: Settings, number: int) -> GatePolicy:
    """Returns the policy about tools, with the limit of people with accounts, which stands at the server."""
    policy, daily = settings.gate.policy(number, settings.secrets.mask), settings.server.limits.messages_per_day
    per_member = (RateLimit(daily, DAY_S),) if daily else ()
    return replace(policy, rate_limits=replace(policy.rate_limits, per_member=per_member))


def _read_trigger_hooks(settings: Settings) -> Mapping[str, Hooks]:
    """Returns the hooks of schedules and of the task watcher, by the keys of their principals."""
    hooks = {each.principal.key: each.conduct.hooks for each in settings.schedules.values()}
    watcher = settings.task_watcher
    return hooks if watcher is None else hooks | {WATCHER.key: watcher.hooks}


def _read_events(settings: Settings) -> EventSettings:
    """Returns listeners and routes, with the listeners of workflows."""
    events = settings.events
    routes = events.routes or {}
    found = list_listeners(
        settings.workflows, settings.default_agent, lambda route: routes[route].source if route in routes else ""
    )
    return replace(events, listeners={**events.listeners, **{each.key: each for each in found}})


def _read_workflow_schedules(settings: Settings) -> Mapping[str, Schedule]:
    agents = settings.agents
    found = list_schedules(settings.workflows, settings.default_agent, lambda agent: agent_timezone(agents[agent]))
    return {each.name: each for each in found}


def _read_broken_workflows(settings: Settings) -> Mapping[str, BrokenWorkflow]:
    """Returns the workflows that cannot be used, each with its first problem."""
    found: dict[str, BrokenWorkflow] = {}
    for name, problems in settings.broken_workflows.items():
        first = problems[0]
        where = f"line {first.line}: " if first.line else ""
        found[name] = BrokenWorkflow(name, f"{where}{first.message}", first.fix)
    return found


def _read_account_policies(settings: Settings) -> Mapping[tuple[str, AgentName], AccountPolicy]:
    logins = (("discord", settings.discord_accounts), ("github", settings.github_accounts))
    return {(platform, login.agent): login.account_policy for platform, accounts in logins for login in accounts}


def _build_programs(settings: Settings, home: Path) -> Toolset | None:
    """The programs of custom commands, run in the home folder and with an environment that holds no secret."""
    if not any(command.shell for command in settings.commands):
        return None
    return CommandToolset(settings.commands, cwd=home, environ=read_environment())
