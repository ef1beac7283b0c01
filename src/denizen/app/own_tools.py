"""What the owner adds to the tools: programs (`custom_tools`) and skills (`skills/` in the home folder), in this order.

Built-in tools come first. Neither may take the name of a built-in tool, whether that is on or off, nor of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from denizen.adapters.commands import CustomToolset
from denizen.app.environment import read_environment
from denizen.app.settings import Settings
from denizen.app.skills.markdown import READ_SKILL
from denizen.app.skills.shelf import Shelf, State, survey
from denizen.app.skills.statics import list_tool_names
from denizen.builtin_skills import BUILTIN, load_builtin
from denizen.domain.custom_tool import CustomTool
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json
from denizen.engine.selection import FIND_TOOLS
from denizen.ports.toolset import Toolset
from denizen.skill.context import SkillServices
from denizen.skill.manifest import SkillPermission, restrict_services

ServicesFor = Callable[[Mapping[str, Json]], SkillServices]
"""The services of a skill whose own settings are these."""


async def load_own_tools(
    settings: Settings, shelf: Shelf, services_for: ServicesFor, built_in: Sequence[Toolset]
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

    def services_of(permissions: frozenset[SkillPermission], name: str) -> SkillServices:
        options = cast("Mapping[str, Json]", settings.skills[name].settings)
        return restrict_services(services_for(options), name, permissions)

    return (*programs, *await shelf.load(settings.skills, taken, services_of))


def find_taken(settings: Settings, skill: str) -> Mapping[str, str]:
    """The names that the tools of the skill of this name must not have, with who has them. Runs no code of skills:
    the tools of the others that are enabled are read from their text.
    """
    taken = {**_built_in_names(), FIND_TOOLS: "Denizen itself", READ_SKILL: "the Markdown skills"}
    taken |= {tool.name: "the custom tools" for tool in settings.custom_tools}
    for entry in survey(settings.home, settings.skills):
        if entry.name != skill and entry.state is State.ENABLED and entry.folder and entry.manifest:
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


def _nothing(permissions: frozenset[SkillPermission], name: str) -> SkillServices:
    del permissions
    raise AssertionError(f"{name} is in no configuration")
