"""What a skill of the owner says that it needs. Its context holds these services only.

This keeps honest code honest and tells the owner what to expect. It is no sandbox: a Python skill that is enabled runs
inside Denizen and could do anything that Denizen can. That is why nothing runs before its owner has enabled exactly
this content (inventory VW6).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from denizen.domain.errors import NotAllowed
from denizen.domain.json import JsonObject
from denizen.domain.tool import Taint, ToolResult
from denizen.ports.fetch import NO_HEADERS, Fetched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from denizen.ports.toolset import CallScope
    from denizen.skill.context import Found
    from denizen.skill.toolset import SkillServices


class Permission(StrEnum):
    NETWORK = "network"
    """`context.fetch` and `context.download`."""
    TOOLS = "tools"
    """`context.call_tool`: other tools, through the gate."""
    HISTORY = "history"
    """What was said and done: `context.history`, `archive`, `memory`, `deeds`."""
    PROGRAMS = "programs"
    """`context.run_program`."""
    MODEL = "model"
    """`context.ask_model`, for which whoever asked pays."""


MEANINGS: dict[Permission, str] = {
    Permission.NETWORK: "reads pages and files of the web",
    Permission.TOOLS: "calls other tools, through the gate",
    Permission.HISTORY: "reads what was said and done where it is used, the archive and the memory",
    Permission.PROGRAMS: "runs programs on this machine",
    Permission.MODEL: "asks the model, which costs money",
}


READS: dict[Permission, Taint] = {
    Permission.NETWORK: Taint.WEB,
    Permission.HISTORY: Taint.OTHERS,
    Permission.PROGRAMS: Taint.TOOL,
}
"""What the results of a skill with that permission may hold, whatever its tools say of themselves."""


def restrict(services: SkillServices, skill: str, granted: Collection[Permission]) -> SkillServices:
    """The services without those that the skill has no permission for, and without what only built-in skills have."""
    denied = _Denied(skill)
    services = replace(services, workshop=None, upkeep=None, open_platform=_nothing, open_reminders=_nothing)
    services = replace(services, open_shell=_nothing)
    if Permission.NETWORK not in granted:
        services = replace(services, fetcher=denied, download=None)
    if Permission.TOOLS not in granted:
        services = replace(services, call_tool=denied.call_tool)
    if Permission.HISTORY not in granted:
        services = replace(services, search_history=denied.search_history, read_history=denied.read_history)
        services = replace(services, open_archive=_nothing, open_memory=_nothing, open_deeds=_nothing)
    if Permission.PROGRAMS not in granted:
        services = replace(services, run_program=None)
    if Permission.MODEL not in granted:
        services = replace(services, ask_model=None)
    return services


def _nothing(scope: CallScope) -> None:
    del scope


class _Denied:
    """Says which permission the manifest would have to ask for."""

    def __init__(self, skill: str) -> None:
        self._skill = skill

    async def fetch(
        self, url: str, *, timeout_s: float = 15.0, max_bytes: int = 2_000_000, headers: Mapping[str, str] = NO_HEADERS
    ) -> Fetched:
        raise self._refusal(Permission.NETWORK)

    async def aclose(self) -> None:
        """Nothing is open."""

    async def call_tool(self, scope: CallScope, tool: str, args: JsonObject) -> ToolResult:
        raise self._refusal(Permission.TOOLS)

    async def search_history(self, scope: CallScope, words: str, limit: int) -> Sequence[Found]:
        raise self._refusal(Permission.HISTORY)

    async def read_history(self, scope: CallScope, first: int, last: int) -> Sequence[Found]:
        raise self._refusal(Permission.HISTORY)

    def _refusal(self, missing: Permission) -> NotAllowed:
        return NotAllowed(
            f"The skill {self._skill} has no permission for this.",
            code="skill_permission",
            fix=f"Its skill.yaml needs `{missing}` under permissions; then its owner enables it again.",
        )
