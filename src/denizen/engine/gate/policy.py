"""What the owner configured about tools: tiers, rules and rate limits. Data and matching only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from denizen.domain.json import Json
from denizen.domain.tool import Tier, ToolSpec
from denizen.domain.verdict import Decision


@dataclass(frozen=True, slots=True)
class Rule:
    """The first rule that matches a call decides. `args` are patterns that must be found in the argument's text."""

    tool: str
    decision: Decision
    args: Mapping[str, str] = field(default_factory=dict[str, str])
    reason: str = ""

    def matches(self, tool: str, args: Mapping[str, Json]) -> bool:
        """A missing argument is no match (inventory 4.9)."""
        if not fnmatchcase(tool, self.tool):
            return False
        return all(
            name in args and re.search(pattern, str(args[name])) is not None for name, pattern in self.args.items()
        )


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `calls` in `window_s` seconds."""

    calls: int
    window_s: float


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """`tiers` and `rate_limits` map tool patterns; the first match in the given order counts."""

    tiers: tuple[tuple[str, Tier], ...] = ()
    rules: tuple[Rule, ...] = ()
    rate_limits: tuple[tuple[str, RateLimit], ...] = ()
    default_rate_limit: RateLimit = RateLimit(calls=60, window_s=60.0)

    def tier(self, spec: ToolSpec) -> Tier:
        """The configured tier, else the one that the tool declares."""
        return next((tier for pattern, tier in self.tiers if fnmatchcase(spec.name, pattern)), spec.tier)

    def find_rate_limit(self, tool: str) -> RateLimit | None:
        """The one that the owner wrote, which holds for harmless tools too; they have no other."""
        return next((limit for pattern, limit in self.rate_limits if fnmatchcase(tool, pattern)), None)
