"""One generation of the runtime from the settings: models, toolsets, the gate's policy (inventory T6)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import urlsplit

from denizen.adapters.commands import CommandToolset
from denizen.adapters.fetch import WebFetcher
from denizen.app.choice import ModelChoice
from denizen.app.environment import read_environment
from denizen.app.model_specs import EmbeddedPool, apply_choice, build_catalog, read_choice
from denizen.app.settings import Settings
from denizen.app.settings.schema import GateSection, ToolSection
from denizen.domain.agent import Agent
from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.domain.verdict import Decision
from denizen.engine.gate.policy import GatePolicy, RateLimit, Rule
from denizen.engine.runtime import Generation
from denizen.engine.toolbox import list_all
from denizen.ports.toolset import Toolset
from denizen.skill.toolset import CallThroughGate, OpenArchive, SearchHistory, SkillServices, SkillToolset
from denizen.skills import BUILTIN, load_builtin

_log = logging.getLogger("denizen.app")


@dataclass(frozen=True, slots=True)
class Foundations:
    """What every generation is built on; the same for the whole life of the process."""

    home: Path
    clock: Clock
    embedded: EmbeddedPool
    search_history: SearchHistory
    call_tool: CallThroughGate
    open_archive: OpenArchive
    choice: ModelChoice


async def build_generation(settings: Settings, number: int, on: Foundations) -> Generation:
    """Raises InvalidInput for what the configuration cannot mean; nothing is left open then."""
    chosen = read_choice(on.choice)
    agents = apply_choice(settings.agents.values(), chosen)
    toolsets = _toolsets(settings, on)
    await _check_tools(agents, toolsets)
    return Generation(
        number=number,
        agents={agent.name: agent for agent in agents},
        default_agent=settings.default_agent,
        models=build_catalog(settings, chosen, on.embedded),
        toolsets=toolsets,
        policy=build_policy(settings.gate),
        requests_per_hour=settings.gate.rate_limits.per_user_per_hour,
        manners={login.agent: login.manners for login in settings.discord_accounts},
        archive=settings.archive,
        commands=settings.commands,
        programs=_programs(settings, on),
        budgets=settings.budgets,
    )


def _toolsets(settings: Settings, on: Foundations) -> tuple[Toolset, ...]:
    toolsets: list[Toolset] = []
    for name in BUILTIN:
        section = settings.tools.get(name, ToolSection())
        if section.enabled and (name != "archive" or settings.discord_accounts):  # else nothing is ever archived
            services = SkillServices(
                clock=on.clock,
                fetcher=WebFetcher(allow_private=_named_servers(section.options)),
                folder_of=lambda agent, skill: _folder(on.home, agent, skill),
                search_history=on.search_history,
                call_tool=on.call_tool,
                open_archive=on.open_archive,
            )
            toolsets.append(SkillToolset(load_builtin(name), services, section.options))
    return tuple(toolsets)


def _programs(settings: Settings, on: Foundations) -> Toolset | None:
    """What configured commands run, in the home folder and with an environment that holds no secret."""
    if not any(command.shell for command in settings.commands):
        return None
    return CommandToolset(settings.commands, cwd=on.home, environ=read_environment())


def _folder(home: Path, agent: AgentName, skill: str) -> Path:
    """An agent's own folder for a skill."""
    return home / "agents" / agent / skill


def _named_servers(options: Mapping[str, Json]) -> list[str]:
    """Servers that the operator named in a skill's section: that skill alone may reach them, wherever they are."""
    texts = (value for value in options.values() if isinstance(value, str))
    return [_server_of(text) for text in texts if text.startswith(("http://", "https://"))]


def _server_of(url: str) -> str:
    """`host:port`. Raises InvalidInput, which does not repeat the address: it may hold a secret."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        host, port = None, 0
    if not host:
        raise InvalidInput(
            "A skill's settings hold a web address that is none.",
            code="config_invalid",
            fix="Write it in full, such as https://weather.example/v1, with a port of at most 65535.",
        )
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def _check_tools(agents: Iterable[Agent], toolsets: Iterable[Toolset]) -> None:
    """An allow list that names a tool which does not exist is an error; a pattern without a match only a warning."""
    names = set(await list_all(toolsets))
    for agent in agents:
        for pattern in agent.tools:
            if any(fnmatchcase(name, pattern) for name in names):
                continue
            if not set(pattern) & set("*?["):
                raise InvalidInput(
                    f"Agent '{agent.name}' lists the tool '{pattern}', which does not exist.",
                    code="config_invalid",
                    fix=f"Known tools: {', '.join(sorted(names))}.",
                )
            _log.warning("no tool matches", extra={"agent": agent.name, "pattern": pattern})


def build_policy(section: GateSection) -> GatePolicy:
    """The gate's part of the configuration."""
    return GatePolicy(
        tiers=tuple(section.tiers.items()),
        rules=tuple(Rule(rule.tool, Decision(rule.action), dict(rule.args), rule.reason) for rule in section.rules),
        rate_limits=tuple(
            (pattern, RateLimit(limit.calls, limit.per_s)) for pattern, limit in section.rate_limits.tool.items()
        ),
    )
