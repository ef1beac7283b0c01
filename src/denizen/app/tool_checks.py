"""Checks of the configuration against the tools that exist: the tools that agents list, and the patterns of the gate.

A name in the gate that no tool has is most likely misspelt, and then it protects nothing. `generation` logs what is
found; `denizen doctor` shows it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from denizen.adapters.mcp import McpToolPolicy
from denizen.app.settings import Settings
from denizen.app.skill_loading.markdown import READ_SKILL
from denizen.app.toolsets import read_servers
from denizen.builtin_skills import BUILTIN, load_builtin
from denizen.domain.agent import Agent, AnswersFrom
from denizen.domain.errors import InvalidInput
from denizen.engine.prompt.system_prompt import TOOLS as SOURCE_TOOLS
from denizen.engine.tools.toolbox import FIND_TOOLS, list_all, list_allowed
from denizen.ports.toolset import Toolset

GATE_LOG = "denizen.app.gate"
"""The logger of remarks about the gate; `denizen doctor` shows them itself."""
FIX = "Correct the name; `denizen tools` lists them."

_WILD = re.compile(r"[*?\[]")
_log = logging.getLogger("denizen.app")


async def check_agent_tools(
    agents: Iterable[Agent], toolsets: Iterable[Toolset], offers: Iterable[McpToolPolicy], *, may_miss: bool
) -> None:
    """Raises InvalidInput for an agent that lists a tool which does not exist; logs a pattern without a match.

    Names that a configured MCP server may have are passed over: its tools are not known before it has answered. With
    `may_miss` a skill of the owner was left out, so a missing name is only logged.
    """
    foreign = tuple(f"{offer.prefix}_" if offer.prefix else "" for offer in offers)
    names = set(await list_all(toolsets))
    for agent in agents:
        for pattern in (*agent.tool_access.tools, *agent.tool_access.pinned_tools):
            if _matches(pattern, names) or pattern.startswith(foreign):
                continue
            if not may_miss and not _WILD.search(pattern):
                raise InvalidInput(
                    f"Agent '{agent.name}' lists the tool '{pattern}', which does not exist.",
                    code="config_invalid",
                    fix=f"Known tools: {', '.join(sorted(names))}.",
                )
            _log.warning("no tool matches", extra={"agent": agent.name, "pattern": pattern})


async def check_agent_sources(agents: Iterable[Agent], toolsets: Sequence[Toolset]) -> None:
    """Logs agents that may answer from sources only and have no tool that reads them."""
    for agent in agents:
        if agent.instructions.answers_from is AnswersFrom.SOURCES and not SOURCE_TOOLS.intersection(
            await list_allowed(agent, toolsets)
        ):
            fix = "Add knowledge files or sources, and let the agent use search_docs or bash."
            _log.warning("an agent answers from sources that it cannot read", extra={"agent": agent.name, "fix": fix})


async def check_gate_patterns(settings: Settings, toolsets: Iterable[Toolset]) -> None:
    """Logs the patterns of the gate that fit no tool."""
    log = logging.getLogger(GATE_LOG)
    for each in find_unmatched(settings, await list_all(toolsets)):
        log.warning("no tool matches", extra={"key": each.key, "pattern": each.pattern, "fix": FIX})


@dataclass(frozen=True, slots=True)
class UnmatchedPattern:
    """A pattern of the gate that fits no tool. `key` is its place, such as `gate.rules[0].tool`."""

    key: str
    pattern: str


def find_unmatched(settings: Settings, names: Collection[str]) -> list[UnmatchedPattern]:
    """Returns the patterns of the gate that fit no tool; `names` are the tools that exist.

    Built-in tools that are off count as known, since a rule may be written before its tool is switched on. So does
    whatever could be a tool of a configured MCP server, since nobody waits for its answer here.
    """
    prefixes = [f"{offer.prefix}_" if offer.prefix else "" for offer in read_servers(settings).values()]
    known = {*names, FIND_TOOLS, READ_SKILL}
    left = [
        each
        for each in _patterns(settings)
        if not _matches(each.pattern, known) and not any(_may_match(each.pattern, prefix) for prefix in prefixes)
    ]
    if not left:
        return []
    built_in = [tool.name for name in BUILTIN for tool in load_builtin(name).tools]
    return [each for each in left if not _matches(each.pattern, built_in)]


def _patterns(settings: Settings) -> Iterator[UnmatchedPattern]:
    gate = settings.gate
    for number, rule in enumerate(gate.rules):
        yield UnmatchedPattern(f"gate.rules[{number}].tool", rule.tool)
    tables = {"tiers": gate.tiers, "modes": gate.modes, "roles": gate.roles, "rate_limits.tool": gate.rate_limits.tool}
    for name, table in tables.items():
        for pattern in table:
            yield UnmatchedPattern(f"gate.{name}", pattern)


def _matches(pattern: str, names: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def _may_match(pattern: str, prefix: str) -> bool:
    """Returns whether a name with this prefix could fit the pattern."""
    head = _WILD.split(pattern, maxsplit=1)[0]
    return head.startswith(prefix) or (head != pattern and prefix.startswith(head))
