"""What the gate's configuration says about tools that do not exist: most likely a name is misspelt, and then it
protects nothing. Told in the log by `generation`, and by `denizen doctor`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from denizen.app.settings import Settings
from denizen.app.skill_loading.markdown import READ_SKILL
from denizen.app.toolsets import read_servers
from denizen.engine.selection import FIND_TOOLS
from denizen.skills import BUILTIN, load_builtin

FIX = "Correct the name; `denizen tools` lists them."

_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class UnmatchedPattern:
    """`key` is where it stands, such as `gate.rules[0].tool`; `pattern` the name or pattern there."""

    key: str
    pattern: str


def find_unmatched(settings: Settings, names: Collection[str]) -> list[UnmatchedPattern]:
    """`names` are the tools that there are. Built-in tools that are off count as known: a rule may be there before its
    tool is. So does whatever could be a tool of a configured MCP server, since nobody waits for its answer here.
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
    """Whether a name with this prefix could fit the pattern."""
    head = _WILD.split(pattern, maxsplit=1)[0]
    return head.startswith(prefix) or (head != pattern and prefix.startswith(head))
