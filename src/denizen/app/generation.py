"""One generation of the runtime from the settings: models, toolsets, the gate's policy (inventory T6)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from denizen.adapters.commands import CommandToolset, Programs
from denizen.adapters.fetch import WebFetcher
from denizen.adapters.mcp import McpPool, Offer
from denizen.app.embeddings import EmbedderPool, build_recall
from denizen.app.home.environment import read_environment
from denizen.app.knowledge import KnowledgeShells, OwnFiles, read_video_access, read_webhooks
from denizen.app.model_choice import ModelChoice
from denizen.app.models import EmbeddedRuntimePool, apply_choice, build_catalog, resolve_choice
from denizen.app.settings import Settings
from denizen.app.settings.tools import ToolSection
from denizen.app.skill_loading.editor import SkillFolderEditor
from denizen.app.skill_loading.registry import SkillRegistry
from denizen.app.tool_checks import FIX, find_unmatched
from denizen.app.toolsets import load_own_tools, read_servers
from denizen.domain.agent import Agent, AnswersFrom
from denizen.domain.attention import Manners
from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput, Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.engine.memory import MemoryKeeper
from denizen.engine.prompt.sources import TOOLS as SOURCE_TOOLS
from denizen.engine.recall import Recall
from denizen.engine.runtime import Generation
from denizen.engine.toolbox import allowed, list_all
from denizen.ports.sandbox import Sandbox
from denizen.ports.source import Library
from denizen.ports.toolset import Toolset
from denizen.skill.services import SearchDocuments, Upkeep
from denizen.skill.toolset import (
    AskForScope,
    CallThroughGate,
    OpenArchive,
    OpenPlatform,
    OpenReminders,
    SkillServices,
    SkillToolset,
)
from denizen.skills import BUILTIN, OPT_IN, load_builtin

_NAMING = {"knowledge": "knowledge", "shell": "bash"}
"""What a pattern holds that names tools of a skill."""

REMARKS_LOG = "denizen.app.gate"
SHELL_LOG = "denizen.app.knowledge"
"""Of what `denizen doctor` tells too."""

_log = logging.getLogger("denizen.app")


@dataclass(frozen=True, slots=True)
class GenerationDeps:
    """What every generation is built on; the same for the whole life of the process."""

    home: Path
    clock: Clock
    embedded: EmbeddedRuntimePool
    recall: Recall
    call_tool: CallThroughGate
    open_archive: OpenArchive
    open_platform: OpenPlatform
    open_reminders: OpenReminders
    choice: ModelChoice
    mcp: McpPool
    embedders: EmbedderPool
    memories: MemoryKeeper
    shelf: SkillRegistry
    upkeep: Upkeep
    ask_model: AskForScope
    library: Library
    search: SearchDocuments
    sandbox: Sandbox


async def build_generation(settings: Settings, number: int, on: GenerationDeps) -> Generation:
    """Raises InvalidInput for what the configuration cannot mean; nothing is left open then."""
    chosen = resolve_choice(on.choice)
    agents = apply_choice(settings.agents.values(), chosen)
    toolsets = await _toolsets(settings, on)
    toolsets += await load_own_tools(settings, on.shelf, partial(_services, settings, on), toolsets)
    servers = read_servers(settings)
    may_miss = on.shelf.misses_some(settings.skills)
    await _check_tools(agents, toolsets, servers.values(), may_miss=may_miss)
    await _check_sources(agents, toolsets)
    if not may_miss:
        await _check_gate(settings, toolsets)
    generation = Generation(
        number=number,
        agents={agent.name: agent for agent in agents},
        default_agent=settings.default_agent,
        models=build_catalog(settings, chosen, on.embedded),
        toolsets=toolsets,
        policy=settings.gate.policy(number),
        requests_per_hour=settings.gate.rate_limits.per_user_per_hour,
        manners=_manners(settings),
        archive=settings.archive,
        commands=settings.commands,
        programs=_programs(settings, on),
        budgets=settings.budgets,
        recall=build_recall(settings),
        embedder=on.embedders.get(settings),
        is_model_chosen=bool(chosen.model),
        snapshot_remote=settings.config.knowledge.remote.remote,
        learning=settings.config.knowledge.learning.policy,
        read_own=OwnFiles(settings.folders).read,
        videos=read_video_access(settings),
        webhooks=read_webhooks(settings),
    )
    return replace(generation, toolsets=(*toolsets, *on.mcp.open(servers)))  # the last, since it is to be closed


def _manners(settings: Settings) -> Mapping[tuple[str, AgentName], Manners]:
    logins = (("discord", settings.discord_accounts), ("github", settings.github_accounts))
    return {(platform, login.agent): login.manners for platform, accounts in logins for login in accounts}


async def _toolsets(settings: Settings, on: GenerationDeps) -> tuple[Toolset, ...]:
    toolsets: list[Toolset] = []
    for name in BUILTIN:
        section = settings.tools.get(name, ToolSection())
        if _is_on(name, section) and _has_use(name, settings) and await _can_work(name, settings, on.sandbox):
            skill = load_builtin(name)
            services = _services(settings, on, section.options, skill.read_settings(section.options))
            toolsets.append(SkillToolset(skill, services, section.options))
    return tuple(toolsets)


def _services(
    settings: Settings, on: GenerationDeps, options: Mapping[str, Json], meant: object = None
) -> SkillServices:
    """Of a skill with these settings of its own; `meant` is what they come to with the skill's own defaults. Servers
    in there get headers (a key) from this skill, but only those that the operator wrote may be private.
    """
    known = asdict(meant) if is_dataclass(meant) and not isinstance(meant, type) else {}
    fetcher = WebFetcher(allow_private=_named_servers(options), trusted=_named_servers({**known, **options}))
    return SkillServices(
        clock=on.clock,
        fetcher=fetcher,
        folder_of=lambda agent, skill: _folder(on.home, agent, skill),
        search_history=on.recall,
        read_history=on.recall.read,
        call_tool=on.call_tool,
        open_archive=on.open_archive,
        open_platform=on.open_platform,
        open_reminders=on.open_reminders,
        open_memory=on.memories.open,
        open_deeds=on.memories.open_deeds,
        shared_of={"knowledge": settings.folders.knowledge, "moderation": on.home / "moderation"}.get,
        snapshot=on.library.current_folder,
        search_documents=on.search,
        download=fetcher.download,
        run_program=Programs(home=on.home, environ=read_environment()),
        ask_model=on.ask_model,
        open_shell=KnowledgeShells(on.sandbox, settings.folders, on.library.current_folder).open,
        workshop=SkillFolderEditor(on.home, settings.skills),
        upkeep=on.upkeep,
    )


def _is_on(skill: str, section: ToolSection) -> bool:
    """What can harm is there only where somebody wrote so."""
    if section.enabled is None and section.options and skill in OPT_IN:
        _log.warning("skill has settings and is off", extra={"skill": skill, "fix": f"tools.{skill}.enabled: true"})
    return skill not in OPT_IN if section.enabled is None else section.enabled


def _has_use(skill: str, settings: Settings) -> bool:
    """Tools without use would only cost tokens in every prompt. One that somebody names is there all the same."""
    if skill == "archive":
        return bool(settings.discord_accounts or settings.github_accounts)
    if skill == "reminders":
        return bool(settings.discord_accounts) or _is_named(skill, settings)
    if skill == "web_search":
        return bool(settings.tools.get(skill, ToolSection()).options.get("provider")) or _is_named(skill, settings)
    if skill == "shell" and not settings.sandbox.enabled:
        return False
    if skill in {"knowledge", "shell"}:
        is_named = any(_NAMING[skill] in pattern for agent in settings.agents.values() for pattern in agent.tools)
        return is_named or settings.folders.has_knowledge(list(settings.agents))
    return True


async def _can_work(skill: str, settings: Settings, sandbox: Sandbox) -> bool:
    """A shell that cannot shut programs in is off, and says why; where somebody names its tools, they are there and
    say so themselves.
    """
    if skill != "shell" or any("bash" in pattern for agent in settings.agents.values() for pattern in agent.tools):
        return True
    try:
        await sandbox.check()
    except Unavailable as error:
        log = logging.getLogger(SHELL_LOG)
        log.warning("the tools bash and bash_batch are off", extra={"code": error.code, "why": error.why})
        return False
    return True


def _is_named(skill: str, settings: Settings) -> bool:
    """Whether an agent lists one of its tools in full."""
    listed = {name for agent in settings.agents.values() for name in (*agent.tools, *agent.pinned_tools)}
    return any(tool.name in listed for tool in load_builtin(skill).tools)


def _programs(settings: Settings, on: GenerationDeps) -> Toolset | None:
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


async def _check_tools(
    agents: Iterable[Agent], toolsets: Iterable[Toolset], offers: Iterable[Offer], *, may_miss: bool
) -> None:
    """An allow list that names a tool which does not exist is an error; a pattern without a match only a warning. What
    MCP servers have is not known before they have answered, and nobody waits for that here. With `may_miss` a skill of
    the owner is left out, which may be the one that has the tool: the others go on.
    """
    foreign = tuple(f"{offer.prefix}_" if offer.prefix else "" for offer in offers)
    names = set(await list_all(toolsets))
    for agent in agents:
        for pattern in (*agent.tools, *agent.pinned_tools):
            if any(fnmatchcase(name, pattern) for name in names) or pattern.startswith(foreign):
                continue
            if not may_miss and not set(pattern) & set("*?["):
                raise InvalidInput(
                    f"Agent '{agent.name}' lists the tool '{pattern}', which does not exist.",
                    code="config_invalid",
                    fix=f"Known tools: {', '.join(sorted(names))}.",
                )
            _log.warning("no tool matches", extra={"agent": agent.name, "pattern": pattern})


async def _check_sources(agents: Iterable[Agent], toolsets: Sequence[Toolset]) -> None:
    """Who is to answer from sources alone has to be able to read them."""
    for agent in agents:
        if agent.answers_from is AnswersFrom.SOURCES and not SOURCE_TOOLS.intersection(await allowed(agent, toolsets)):
            fix = "Add knowledge files or sources, and let the agent use search_docs or bash."
            _log.warning("an agent answers from sources that it cannot read", extra={"agent": agent.name, "fix": fix})


async def _check_gate(settings: Settings, toolsets: Iterable[Toolset]) -> None:
    log = logging.getLogger(REMARKS_LOG)
    for each in find_unmatched(settings, await list_all(toolsets)):
        log.warning("no tool matches", extra={"key": each.key, "pattern": each.pattern, "fix": FIX})
