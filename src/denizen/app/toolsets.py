"""The tools of agents as the configuration has them: built-in skills, the owner's programs and skills, MCP servers.

Their order is the order in which names are taken: built-in tools come first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from denizen.adapters.commands import CustomToolset, ProgramRunner
from denizen.adapters.fetch import WebFetcher
from denizen.adapters.mcp import (
    HttpTransport,
    McpDataFlow,
    McpServerPhase,
    McpServerSpec,
    McpToolPolicy,
    McpToolset,
    StdioTransport,
)
from denizen.app.administration import ServerAdministration
from denizen.app.google import open_google_account
from denizen.app.home.environment import read_environment
from denizen.app.knowledge import KnowledgeShells
from denizen.app.openapi import OpenApiReader
from denizen.app.settings import Settings
from denizen.app.settings.fields import copy_fields
from denizen.app.settings.tools import McpServerSection, ToolSection, get_tool_prefix
from denizen.app.skill_loading.check import list_tool_names
from denizen.app.skill_loading.editor import SkillFolderEditor
from denizen.app.skill_loading.markdown import READ_SKILL
from denizen.app.skill_loading.registry import SkillRegistry, SkillStatus, survey_skills
from denizen.app.speech import SKILL as VOICE
from denizen.app.speech import build_speech
from denizen.builtin_skills import BUILTIN, OPT_IN, load_builtin
from denizen.domain.clock import Clock
from denizen.domain.delegation import TOOL_NAMES as DELEGATION_TOOLS
from denizen.domain.errors import InvalidInput, Unavailable
from denizen.domain.handover import HAND_OVER
from denizen.domain.json import Json
from denizen.domain.project import TASK_SKILL
from denizen.domain.record import record
from denizen.domain.tool import IdleTools, ToolSpec
from denizen.engine.agents.catalog import AgentCatalog
from denizen.engine.agents.tools import TOOL_NAMES as AGENT_TOOLS
from denizen.engine.agents.tools import AgentTools
from denizen.engine.event_bus.access import EventTools
from denizen.engine.memory.history_search import SessionHistorySearch
from denizen.engine.memory.keeper import MemoryKeeper
from denizen.engine.schedules.own_schedules import OwnSchedules
from denizen.engine.tools.toolbox import FIND_TOOLS
from denizen.engine.workflows.tool_access import OwnerWorkflows
from denizen.ports.browser import PageBrowser
from denizen.ports.calendar import OpenCalendars
from denizen.ports.mail import Mailbox
from denizen.ports.sandbox import Sandbox
from denizen.ports.source import Library
from denizen.ports.toolset import Toolset
from denizen.skill.context import (
    AccountServices,
    AskModelForScope,
    CallThroughGate,
    OpenArchive,
    OpenFeeds,
    OpenPlatform,
    OpenProjects,
    OpenQuestions,
    OpenReminders,
    OwnerServices,
    ScopedServices,
    SearchDocumentsFor,
    SkillFolders,
    SkillServices,
)
from denizen.skill.instance_services import InstanceControl
from denizen.skill.manifest import SkillPermission, restrict_services
from denizen.skill.toolset import SkillToolset

if TYPE_CHECKING:
    from denizen.engine.delegation.delegations import Delegations

SHELL_LOG = "denizen.app.shell"
"""The logger of remarks about the shell; `denizen doctor` shows them itself."""

ServicesForOptions = Callable[[Mapping[str, Json]], SkillServices]
"""Returns the services of a skill whose own settings are these."""

SEARCH_FIX = "Write `tools.web_search.provider`: brave or searxng."

_TOOL_WORDS = {"knowledge": "knowledge", "shell": "bash"}
"""A pattern of an agent that contains the word names tools of the skill."""

_log = logging.getLogger("denizen.app")


@record(kw_only=True)
class SkillDeps:
    """The dependencies of skills on the rest of Denizen; the same for the whole life of the process."""

    clock: Clock
    recall: SessionHistorySearch
    call_tool: CallThroughGate
    open_archive: OpenArchive
    open_platform: OpenPlatform
    open_reminders: OpenReminders
    open_feeds: OpenFeeds
    open_projects: OpenProjects
    schedules: OwnSchedules
    events: EventTools
    workflows: OwnerWorkflows
    open_questions: OpenQuestions
    memories: MemoryKeeper
    instance: InstanceControl
    administration: ServerAdministration
    ask_model: AskModelForScope
    library: Library
    search: SearchDocumentsFor
    sandbox: Sandbox
    browser: PageBrowser
    mailbox: Mailbox
    open_calendars: OpenCalendars


async def load_builtin_skills(settings: Settings, deps: SkillDeps) -> tuple[Toolset, ...]:
    """Loads the built-in skills that are switched on and of use with this configuration. Raises InvalidInput for
    settings that are wrong.
    """
    toolsets: list[Toolset] = []
    for name in BUILTIN:
        section = settings.tools.get(name, ToolSection())
        if section.enabled is None and section.options and name in OPT_IN:
            _log.warning("skill has settings and is off", extra={"skill": name, "fix": f"tools.{name}.enabled: true"})
        if not explain_idle(name, settings) and await _can_work(name, settings, deps.sandbox):
            if name == VOICE:
                build_speech(settings)
            skill = load_builtin(name)
            services = build_skill_services(settings, deps, section.options, skill.read_settings(section.options))
            toolsets.append(SkillToolset(skill, services, section.options))
    return tuple(toolsets)


def build_skill_services(
    settings: Settings, deps: SkillDeps, options: Mapping[str, Json], effective: object = None
) -> SkillServices:
    """Builds the services of a skill. `options` is what the operator wrote for it; `effective` is the same with the
    skill's own defaults.

    The skill's requests to servers in `effective` carry its headers (a key), but only servers that the operator wrote
    may be private: a default address must not open the local network.
    """
    known = asdict(effective) if is_dataclass(effective) and not isinstance(effective, type) else {}
    fetcher = WebFetcher(allow_private=list_named_servers(options), trusted=list_named_servers({**known, **options}))
    home = settings.home
    return SkillServices(
        clock=deps.clock,
        fetcher=fetcher,
        folders=SkillFolders(
            own=lambda agent, skill: home / "agents" / agent / skill,
            shared={
                "knowledge": settings.folders.knowledge,
                "moderation": home / "moderation",
                "apis": home / "apis",
            }.get,
            snapshot=deps.library.list_folders,
        ),
        search_history=deps.recall,
        read_history=deps.recall.read,
        call_tool=deps.call_tool,
        scoped=ScopedServices(
            open_archive=deps.open_archive,
            open_memory=deps.memories.open,
            open_call_log=deps.memories.open_call_log,
            open_platform=deps.open_platform,
            open_shell=KnowledgeShells(deps.sandbox, settings.folders, deps.library.list_folders).open,
            open_reminders=deps.open_reminders,
            open_feeds=deps.open_feeds,
            open_projects=deps.open_projects,
            open_schedules=deps.schedules.open,
            open_workflows=deps.workflows.open,
            open_questions=deps.open_questions,
            open_events=deps.events.open,
        ),
        search_documents=deps.search,
        download=fetcher.download,
        send_request=fetcher.send,
        api_documents=OpenApiReader(),
        run_program=ProgramRunner(home=home, environ=read_environment()),
        browser=deps.browser,
        accounts=AccountServices(
            mailbox=deps.mailbox, open_calendars=deps.open_calendars, google=open_google_account(settings, deps.clock)
        ),
        ask_model=deps.ask_model,
        owner=OwnerServices(
            skill_editor=SkillFolderEditor(home, settings.skills),
            instance=deps.instance,
            administration=deps.administration,
        ),
    )


def build_feed_fetcher(settings: Settings) -> WebFetcher:
    """Builds what reads feeds: those of the public web, and of the server that the operator wrote for them."""
    section = settings.tools.get("feeds", ToolSection())
    return WebFetcher(allow_private=list_named_servers(section.options))


def list_named_servers(options: Mapping[str, Json]) -> list[str]:
    """Returns the servers in a skill's options as `host:port`. That skill alone may reach them, wherever they are.

    Raises InvalidInput for an address that cannot be read, without repeating it: it may hold a secret.
    """
    servers: list[str] = []
    for text in options.values():
        if not isinstance(text, str) or not text.startswith(("http://", "https://")):
            continue
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            host, port = None, 0
        if not host:
            raise InvalidInput(
                "A skill's settings hold an invalid web address.",
                code="config_invalid",
                fix="Write it in full, such as https://weather.example/v1, with a port of at most 65535.",
            )
        servers.append(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    return servers


def explain_idle(skill: str, settings: Settings) -> str:
    """Returns how to switch a built-in skill on whose tools do not exist with this configuration; empty where they do.

    Skills that can do harm are off until somebody switches them on. Tools without use would only cost tokens in every
    prompt; a tool that an agent names is there all the same.
    """
    section = settings.tools.get(skill, ToolSection())
    if skill == TASK_SKILL and section.enabled is None:
        if settings.task_watcher is not None or _is_named(skill, settings):
            return ""
        return f"Write `tools.{skill}.enabled: true`, or name its tools in the `tools` of an agent."
    if not (skill not in OPT_IN if section.enabled is None else section.enabled):
        return f"Write `tools.{skill}.enabled: true`."
    if skill == "archive" and not (settings.discord_accounts or settings.github_accounts):
        return "Connect an account of Discord or GitHub, below `channels`."
    if skill == "reminders" and not (settings.discord_accounts or _is_named(skill, settings)):
        return "Connect an account of Discord, below `channels`, or name its tools in the `tools` of an agent."
    if skill == "web_search" and not (section.options.get("provider") or _is_named(skill, settings)):
        return SEARCH_FIX
    if skill == "shell" and not settings.sandbox.enabled:
        return "Write `sandbox.enabled: true`."
    if skill in _TOOL_WORDS:
        word = _TOOL_WORDS[skill]
        is_named = any(word in pattern for agent in settings.agents.values() for pattern in agent.tool_access.tools)
        if not is_named and not settings.folders.has_knowledge(list(settings.agents)):
            return "Add documents: files in a knowledge folder, or a source with `denizen sources add`."
    return ""


def list_idle_tools(settings: Settings) -> list[IdleTools]:
    """Returns the built-in skills that are off, each with its tools and how to switch it on."""
    fixes = {skill: explain_idle(skill, settings) for skill in BUILTIN}
    return [
        IdleTools(skill, fix, [tool.name for tool in load_builtin(skill).tools]) for skill, fix in fixes.items() if fix
    ]


async def _can_work(skill: str, settings: Settings, sandbox: Sandbox) -> bool:
    """A shell without isolation is off, and the log says why. Where an agent names its tools, they exist, and explain
    the reason themselves.
    """
    patterns = [pattern for agent in settings.agents.values() for pattern in agent.tool_access.tools]
    if skill != "shell" or any("bash" in pattern for pattern in patterns):
        return True
    try:
        await sandbox.check()
    except Unavailable as error:
        log = logging.getLogger(SHELL_LOG)
        log.warning("the tools bash and bash_batch are off", extra=error.fields)
        return False
    return True


def _is_named(skill: str, settings: Settings) -> bool:
    """Returns whether an agent lists one of the skill's tools in full."""
    access = [agent.tool_access for agent in settings.agents.values()]
    listed = {name for each in access for name in (*each.tools, *each.pinned_tools)}
    return any(tool.name in listed for tool in load_builtin(skill).tools)


async def load_own_tools(
    settings: Settings, registry: SkillRegistry, services_for: ServicesForOptions, built_in: Sequence[Toolset]
) -> tuple[Toolset, ...]:
    """Loads the programs of `custom_tools`, then the owner's skills. Neither may take the name of a built-in tool,
    whether that is on or off, nor of the other.

    A skill that cannot be loaded is left out and logged.
    """
    if not settings.custom_tools and not settings.skills:
        await registry.load({}, {}, _no_services)
        return ()
    taken = list_built_in_names()
    for toolset in built_in:
        taken |= {spec.name: f"the skill {toolset.name}" for spec in await toolset.list_tools()}
    tools = settings.custom_tools
    programs = (CustomToolset(tools, cwd=settings.home, environ=read_environment()),) if tools else ()
    taken |= {tool.name: "the custom tools" for tool in tools}

    def services_for_skill(permissions: frozenset[SkillPermission], name: str) -> SkillServices:
        options = cast("Mapping[str, Json]", settings.skills[name].settings)
        return restrict_services(services_for(options), name, permissions)

    return (*programs, *await registry.load(settings.skills, taken, services_for_skill))


def load_delegation_tools(settings: Settings, open_delegations: Callable[[], Delegations]) -> tuple[Toolset, ...]:
    """Loads the tools by which agents hand tasks to others; none where no agent may."""
    if not any(agent.tool_access.delegates_to for agent in settings.agents.values()):
        return ()
    from denizen.engine.delegation.tools import DelegationTools

    return (DelegationTools(open_delegations(), settings.agents),)


def load_agent_tools(settings: Settings, catalog: AgentCatalog) -> tuple[Toolset, ...]:
    """Loads the tools about agents; none where no agent names one of them."""
    access = [agent.tool_access for agent in settings.agents.values()]
    if not any(name in AGENT_TOOLS for each in access for name in (*each.tools, *each.pinned_tools)):
        return ()
    return (AgentTools(catalog),)


def find_taken(settings: Settings, skill: str) -> Mapping[str, str]:
    """Returns the names that the tools of this skill must not have, with who has them. Runs no code of skills: the
    tools of the others that are enabled are read from their text.
    """
    taken = list_built_in_names()
    taken |= {tool.name: "the custom tools" for tool in settings.custom_tools}
    for entry in survey_skills(settings.home, settings.skills):
        if entry.name != skill and entry.state is SkillStatus.ENABLED and entry.folder and entry.manifest:
            names = list_tool_names(entry.folder, entry.manifest)
            taken |= dict.fromkeys(names, f"the skill {entry.name}")
    return taken


def list_built_in_names() -> dict[str, str]:
    """Returns the names of all tools that are built in, on or off, with who has them."""
    names = {spec.name: f"the skill {name}" for name in BUILTIN for spec in load_builtin(name).specs()}
    reserved = dict.fromkeys((FIND_TOOLS, *DELEGATION_TOOLS, HAND_OVER, *AGENT_TOOLS), "Denizen itself")
    return {**names, **reserved, READ_SKILL: "the Markdown skills"}


def _no_services(permissions: frozenset[SkillPermission], name: str) -> SkillServices:
    del permissions
    raise AssertionError(f"{name} is in no configuration")


def read_servers(settings: Settings) -> Mapping[McpServerSpec, McpToolPolicy]:
    """Returns the servers that are enabled, in the order of the file, with what each may offer."""
    enabled = {name: section for name, section in settings.mcp.servers.items() if section.enabled}
    begins = {name: f"{prefix}_" for name, section in enabled.items() if (prefix := get_tool_prefix(name, section))}

    def reserved(name: str) -> tuple[str, ...]:
        own = begins.get(name, "")
        return tuple(begin for begin in begins.values() if begin != own and begin.startswith(own))

    return {
        _spec(name, section, settings.home): _offer(name, section, reserved(name)) for name, section in enabled.items()
    }


def _spec(name: str, section: McpServerSection, home: Path) -> McpServerSpec:
    if section.url:
        way = HttpTransport(str(section.url), _pairs(section.headers))
    else:
        args = tuple(str(argument) for argument in section.args)
        env = {"PATH": read_environment()["PATH"], **section.env}
        way = StdioTransport(str(section.command), args, home / Path(section.cwd).expanduser(), _pairs(env))
    return McpServerSpec(name, way, section.start_timeout_s)


def _offer(name: str, section: McpServerSection, reserved: tuple[str, ...]) -> McpToolPolicy:
    return McpToolPolicy(
        prefix=get_tool_prefix(name, section),
        allow=tuple(str(pattern) for pattern in section.tools),
        tiers=tuple(section.tiers.items()),
        trusted=section.trusted,
        timeout_s=section.timeout_s,
        reserved=reserved,
        flows=tuple((pattern, copy_fields(flow, McpDataFlow)) for pattern, flow in section.flows.items()),
    )


def _pairs(values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in values.items())


@record
class ServerReport:
    """A report on a server that answers. `left_out` maps tools that are not offered to the reason."""

    about: str
    tools: Sequence[ToolSpec]
    left_out: Mapping[str, str]


async def examine_server(toolset: McpToolset, mask: Callable[[str], str]) -> ServerReport:
    """Waits for a server as long as it may take to start. Raises Unavailable with the reason, if it is known; that is
    masked, since a server may repeat its own secrets.
    """
    server = toolset.server
    await server.wait_first_attempt(server.spec.start_timeout_s + 5)
    if server.state.phase is not McpServerPhase.UP:
        raise Unavailable(
            f"The MCP server '{server.spec.name}' cannot be reached.",
            code="mcp_down",
            why=mask(server.state.why) or "It did not answer.",
            fix=_explain_unreachable(server.spec.transport),
        )
    about = server.state.about or server.spec.name
    return ServerReport(about, toolset.listing.specs, toolset.listing.left_out)


def _explain_unreachable(way: StdioTransport | HttpTransport) -> str:
    if isinstance(way, StdioTransport):
        return "Run its command by hand and read what it says; check command, args, env and cwd below mcp.servers."
    return "Check that it runs and that url and headers below mcp.servers are right."
