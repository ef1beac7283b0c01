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
from denizen.ports.fetch import NO_HEADERS, FetchedPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from denizen.ports.toolset import CallScope
    from denizen.skill.context import HistoryMessage
    from denizen.skill.toolset import SkillServices


class SkillPermission(StrEnum):
    NETWORK = "network"
    """`context.fetch` and `context.download`."""
    TOOLS = "tools"
    """`context.call_tool`: other tools, through the gate."""
    HISTORY = "history"
    """What was said and done: `context.history`, `archive`, `memory`, `call_log`."""
    PROGRAMS = "programs"
    """`context.run_program`."""
    MODEL = "model"
    """`context.ask_model`, for which whoever asked pays."""


PERMISSION_DESCRIPTIONS: dict[SkillPermission, str] = {
    SkillPermission.NETWORK: "reads pages and files of the web",
    SkillPermission.TOOLS: "calls other tools, through the gate",
    SkillPermission.HISTORY: "reads what was said and done where it is used, the archive and the memory",
    SkillPermission.PROGRAMS: "runs programs on this machine",
    SkillPermission.MODEL: "asks the model, which costs money",
}


PERMISSION_TAINTS: dict[SkillPermission, Taint] = {
    SkillPermission.NETWORK: Taint.WEB,
    SkillPermission.HISTORY: Taint.OTHERS,
    SkillPermission.PROGRAMS: Taint.TOOL,
}
"""What the results of a skill with that permission may hold, whatever its tools say of themselves."""


def restrict_services(services: SkillServices, skill: str, granted: Collection[SkillPermission]) -> SkillServices:
    """The services without those that the skill has no permission for, and without what only built-in skills have."""
    denied = _Denied(skill)
    services = replace(services, skill_editor=None, instance=None, open_platform=_nothing, open_reminders=_nothing)
    services = replace(services, open_shell=_nothing)
    if SkillPermission.NETWORK not in granted:
        services = replace(services, fetcher=denied, download=None)
    if SkillPermission.TOOLS not in granted:
        services = replace(services, call_tool=denied.call_tool)
    if SkillPermission.HISTORY not in granted:
        services = replace(services, search_history=denied.search_history, read_history=denied.read_history)
        services = replace(services, open_archive=_nothing, open_memory=_nothing, open_call_log=_nothing)
    if SkillPermission.PROGRAMS not in granted:
        services = replace(services, run_program=None)
    if SkillPermission.MODEL not in granted:
        services = replace(services, ask_model=None)
    return services


def _nothing(scope: CallScope) -> None:
    del scope


class _Denied:
    """Says which permission the manifest would have to ask for."""

    def __init__(self, skill: str) -> None:
        self._skill = skill

    async def fetch(
        self,
        url: str,
        *,
        timeout_s: float = 15.0,
        max_bytes: int = 2_000_000,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> FetchedPage:
        raise self._refusal(SkillPermission.NETWORK)

    async def aclose(self) -> None:
        """Nothing is open."""

    async def call_tool(self, scope: CallScope, tool: str, args: JsonObject) -> ToolResult:
        raise self._refusal(SkillPermission.TOOLS)

    async def search_history(self, scope: CallScope, words: str, limit: int) -> Sequence[HistoryMessage]:
        raise self._refusal(SkillPermission.HISTORY)

    async def read_history(self, scope: CallScope, first: int, last: int) -> Sequence[HistoryMessage]:
        raise self._refusal(SkillPermission.HISTORY)

    def _refusal(self, missing: SkillPermission) -> NotAllowed:
        return NotAllowed(
            f"The skill {self._skill} has no permission for this.",
            code="skill_permission",
            fix=f"Its skill.yaml needs `{missing}` under permissions; then its owner enables it again.",
        )
