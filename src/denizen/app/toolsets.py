"""What the owner adds to the tools: programs (`custom_tools`) and skills (`skills/` in the home folder), in this order.

Built-in tools come first. Neither may take the name of a built-in tool, whether that is on or off, nor of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from denizen.adapters.commands import CustomToolset
from denizen.adapters.mcp import McpToolset, Offer, Phase, Program, ServerSpec, Site
from denizen.app.home.environment import read_environment
from denizen.app.settings import Settings
from denizen.app.settings.tools import McpServerSection, get_tool_prefix
from denizen.app.skill_loading.check import list_tool_names
from denizen.app.skill_loading.markdown import READ_SKILL
from denizen.app.skill_loading.registry import SkillRegistry, SkillStatus, survey_skills
from denizen.domain.custom_tool import CustomTool
from denizen.domain.errors import InvalidInput, Unavailable
from denizen.domain.json import Json
from denizen.domain.tool import ToolSpec
from denizen.engine.selection import FIND_TOOLS
from denizen.ports.toolset import Toolset
from denizen.skill.permission import Permission, restrict
from denizen.skill.toolset import SkillServices
from denizen.skills import BUILTIN, load_builtin

ServicesForOptions = Callable[[Mapping[str, Json]], SkillServices]
"""The services of a skill whose own settings are these."""


async def load_own_tools(
    settings: Settings, shelf: SkillRegistry, services_for: ServicesForOptions, built_in: Sequence[Toolset]
) -> tuple[Toolset, ...]:
    """Raises InvalidInput for a custom tool that cannot be; a skill that cannot be is left out, and told."""
    if not settings.custom_tools and not settings.skills:
        await shelf.load({}, {}, _nothing)
        return ()
    taken = _built_in_names()
    for toolset in built_in:
        taken |= {spec.name: f"the skill {toolset.name}" for spec in await toolset.list_tools()}
    taken[FIND_TOOLS] = "Denizen itself"
    programs = _programs(settings.home, settings.custom_tools, {*taken, READ_SKILL})
    taken |= {tool.name: "the custom tools" for tool in settings.custom_tools}

    def services_of(permissions: frozenset[Permission], name: str) -> SkillServices:
        options = cast("Mapping[str, Json]", settings.skills[name].settings)
        return restrict(services_for(options), name, permissions)

    return (*programs, *await shelf.load(settings.skills, taken, services_of))


def find_taken(settings: Settings, skill: str) -> Mapping[str, str]:
    """The names that the tools of the skill of this name must not have, with who has them. Runs no code of skills:
    the tools of the others that are enabled are read from their text.
    """
    taken = {**_built_in_names(), FIND_TOOLS: "Denizen itself", READ_SKILL: "the Markdown skills"}
    taken |= {tool.name: "the custom tools" for tool in settings.custom_tools}
    for entry in survey_skills(settings.home, settings.skills):
        if entry.name != skill and entry.state is SkillStatus.ENABLED and entry.folder and entry.manifest:
            names = list_tool_names(entry.folder, entry.manifest)
            taken |= dict.fromkeys(names, f"the skill {entry.name}")
    return taken


def _built_in_names() -> dict[str, str]:
    return {spec.name: f"the skill {name}" for name in BUILTIN for spec in load_builtin(name).specs()}


def _programs(home: Path, tools: Sequence[CustomTool], taken: Iterable[str]) -> tuple[Toolset, ...]:
    for tool in tools:
        if tool.name in taken:
            raise InvalidInput(
                f"The custom tool '{tool.name}' has the name of a tool that is built in.",
                code="config_invalid",
                fix="Give yours another name under custom_tools.",
            )
    return (CustomToolset(tools, cwd=home, environ=read_environment()),) if tools else ()


def _nothing(permissions: frozenset[Permission], name: str) -> SkillServices:
    del permissions
    raise AssertionError(f"{name} is in no configuration")


def read_servers(settings: Settings) -> Mapping[ServerSpec, Offer]:
    """The servers that are enabled, in the order of the file."""
    enabled = {name: section for name, section in settings.mcp.servers.items() if section.enabled}
    begins = {name: f"{prefix}_" for name, section in enabled.items() if (prefix := get_tool_prefix(name, section))}

    def reserved(name: str) -> tuple[str, ...]:
        own = begins.get(name, "")
        return tuple(begin for begin in begins.values() if begin != own and begin.startswith(own))

    return {
        _spec(name, section, settings.home): _offer(name, section, reserved(name)) for name, section in enabled.items()
    }


def _spec(name: str, section: McpServerSection, home: Path) -> ServerSpec:
    if section.url:
        way = Site(str(section.url), _pairs(section.headers))
    else:
        args = tuple(str(argument) for argument in section.args)
        way = Program(str(section.command), args, home / Path(section.cwd).expanduser(), _pairs(section.env))
    return ServerSpec(name, way, section.start_timeout_s)


def _offer(name: str, section: McpServerSection, reserved: tuple[str, ...]) -> Offer:
    return Offer(
        get_tool_prefix(name, section),
        tuple(str(pattern) for pattern in section.tools),
        tuple(section.tiers.items()),
        section.trusted,
        section.timeout_s,
        reserved,
    )


def _pairs(values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in values.items())


@dataclass(frozen=True, slots=True)
class ServerReport:
    """What a server that answers has. `left_out` says of tools that are not offered why."""

    about: str
    tools: Sequence[ToolSpec]
    left_out: Mapping[str, str]


async def examine_server(toolset: McpToolset, mask: Callable[[str], str]) -> ServerReport:
    """Waits for a server as long as it may take to start. Raises Unavailable, with what is known of the reason, masked,
    since a server may repeat its own secrets.
    """
    server = toolset.server
    await server.wait_tried(server.spec.start_timeout_s + 5)
    if server.state.phase is not Phase.UP:
        raise Unavailable(
            f"The MCP server '{server.spec.name}' cannot be reached.",
            code="mcp_down",
            why=mask(server.state.why) or "It did not answer.",
            fix=_fix_of(server.spec.way),
        )
    about = server.state.about or server.spec.name
    return ServerReport(about, toolset.listing.specs, toolset.listing.left_out)


def _fix_of(way: Program | Site) -> str:
    if isinstance(way, Program):
        return "Run its command by hand and read what it says; check command, args, env and cwd below mcp.servers."
    return "Check that it runs and that url and headers below mcp.servers are right."
