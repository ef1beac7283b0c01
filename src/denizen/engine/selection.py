"""Which tools stand in a prompt when an agent has more than fit (VW8). Pure.

The rule: pinned ones first, then those that were chosen for this session before, then the best matches of the question,
in the order in which the agent has them; the last place is `find_tools`, by which a model gets at the others. A session
keeps its choice, since tools stand in front of everything that a provider caches.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import cast

from denizen.domain.ids import SessionId
from denizen.domain.json import JsonObject
from denizen.domain.message import ToolCallPart
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.ports.toolset import CallScope

SMALL_MODEL_TOOLS = 5
"""A small model is offered at most this many tools (inventory T19)."""
FIND_TOOLS = "find_tools"
FOUND_AT_ONCE = 5
FOUND_IN_ALL = 10
"""In one turn; the newest ones count, so that a prompt never carries all."""
ALWAYS = frozenset({"read_skill"})
"""One tool that stands for many texts."""
SESSIONS_KEPT = 5000

_FINDER = ToolSpec(
    FIND_TOOLS,
    "Finds more tools by what they do. They can be used in the next step.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "what the tool should do", "maxLength": 300}},
        "required": ["query"],
        "additionalProperties": False,
    },
    tier=Tier.HARMLESS,
    read_only=True,
    idempotent=True,
    timeout_s=5.0,
    source="tools",
)


def rank(specs: Sequence[ToolSpec], words: str) -> list[str]:
    """Names, the best match first: words that few tools have count more, those of a name twice. Among equals one of
    each source comes before a second one, in the given order.
    """
    question = stems(words)
    names = {spec.name: stems(spec.name.replace("_", " ")) for spec in specs}
    texts = {spec.name: names[spec.name] | stems(_about(spec)) for spec in specs}
    known = Counter(stem for found in texts.values() for stem in found)
    place_in_source: Counter[str] = Counter()
    order: dict[str, tuple[float, int]] = {}
    for spec in specs:
        weights = (
            math.log(1 + (len(specs) - known[stem] + 0.5) / (known[stem] + 0.5))
            * (2 if stem in names[spec.name] else 1)
            for stem in sorted(question & texts[spec.name])
        )
        order[spec.name] = (-sum(weights), place_in_source[spec.source])
        place_in_source[spec.source] += 1
    return sorted(order, key=lambda name: order[name])


def matching(specs: Sequence[ToolSpec], words: str) -> list[str]:
    """As `rank`, without those that share no word."""
    question = stems(words)
    about = {spec.name: stems(f"{spec.name.replace('_', ' ')} {_about(spec)}") for spec in specs}
    return [name for name in rank(specs, words) if question & about[name]]


def select(
    specs: Sequence[ToolSpec], words: str, *, limit: int, pinned: Sequence[str] = (), kept: Collection[str] = ()
) -> tuple[str, ...]:
    """At most `limit` names, in the order of the specs."""
    first = [
        spec.name for spec in specs if spec.name in ALWAYS or any(fnmatchcase(spec.name, pattern) for pattern in pinned)
    ]
    still = [spec.name for spec in specs if spec.name in kept]
    chosen = set(list(dict.fromkeys([*first, *still, *rank(specs, words)]))[: max(limit, 0)])
    return tuple(spec.name for spec in specs if spec.name in chosen)


def found_by(specs: Sequence[ToolSpec], calls: Iterable[ToolCallPart], offered: Collection[str]) -> tuple[str, ...]:
    """What the calls of `find_tools` in a turn have brought, the newest FOUND_IN_ALL, oldest first. Told from the calls
    alone, so that a turn which is taken up again finds the same.
    """
    found: dict[str, None] = {}
    for call in calls:
        if call.tool == FIND_TOOLS:
            for name in find(specs, str(call.args.get("query", "")), offered):
                found.pop(name, None)
                found[name] = None
    return tuple(found)[-FOUND_IN_ALL:]


def find(specs: Sequence[ToolSpec], query: str, offered: Collection[str]) -> list[str]:
    """The best matches that are not offered anyway."""
    return [name for name in matching(specs, query) if name not in offered][:FOUND_AT_ONCE]


class Finder:
    """`find_tools` as a source of tools: it goes through the gate like any other."""

    def __init__(self, specs: Sequence[ToolSpec], offered: Collection[str]) -> None:
        self._specs = {spec.name: spec for spec in specs}
        self._offered = frozenset(offered)

    @property
    def name(self) -> str:
        return _FINDER.source

    @property
    def spec(self) -> ToolSpec:
        return _FINDER

    async def list_tools(self) -> Sequence[ToolSpec]:
        return (_FINDER,)

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        names = find(list(self._specs.values()), str(call.args.get("query", "")), self._offered)
        if not names:
            return ToolResult("No other tool does that. Try other words, or do without.")
        lines = (f"- {name}: {self._specs[name].description.splitlines()[0]}" for name in names)
        return ToolResult("You can use these now:\n" + "\n".join(lines))

    async def aclose(self) -> None:
        """Nothing is open."""


class Selections:
    """What was chosen for each session, for as long as the process lives: the provider's cache lives shorter."""

    def __init__(self) -> None:
        self._of_sessions: dict[SessionId, tuple[str, ...]] = {}

    def of(self, session: SessionId) -> tuple[str, ...]:
        return self._of_sessions.get(session, ())

    def keep(self, session: SessionId, names: tuple[str, ...]) -> None:
        """The oldest sessions are forgotten first."""
        self._of_sessions.pop(session, None)
        self._of_sessions[session] = names
        while len(self._of_sessions) > SESSIONS_KEPT:
            del self._of_sessions[next(iter(self._of_sessions))]


def stems(text: str) -> frozenset[str]:
    """Words cut to five letters: enough to bring 'noted' and 'notes' together."""
    return frozenset(word[:5] for word in re.findall(r"[^\W\d_]{3,}", text.lower()))


def _about(spec: ToolSpec) -> str:
    properties = cast("Mapping[str, JsonObject]", spec.parameters.get("properties", {}))
    return f"{spec.description} {' '.join(properties).replace('_', ' ')}"
