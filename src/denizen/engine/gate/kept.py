"""Results that answer the same call again for a while, in other turns too (inventory L-result-cache, LW2).

Only those of tools that are declared for it, in memory, and only behind the gate's approval: whoever may not make a
call does not get its kept result. The turn's own cache, which lives as long as one turn, is in `engine/steps`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from denizen.domain.clock import Clock
from denizen.domain.tool import ToolCall, ToolResult, ToolSpec
from denizen.ports.toolset import CallScope, Toolset

SWEEP_S = 300.0
MAX_CHARS = 32_000_000
"""Of all that is kept; the oldest goes first."""


@dataclass(frozen=True, slots=True)
class _Kept:
    result: ToolResult
    toolset: Toolset
    since_s: float
    chars: int


class KeptResults:
    """`ttl_s` is given with each question, because it follows the configuration; 0 keeps nothing."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        self._chars = 0
        self._swept_s = clock.monotonic_s()
        self._changes = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def changes(self) -> int:
        """Rises whenever something was done that makes kept results doubtful."""
        return self._changes

    def find(
        self, spec: ToolSpec, toolset: Toolset, call: ToolCall, scope: CallScope, ttl_s: float
    ) -> ToolResult | None:
        """The kept result of the same call. A toolset that was made anew does not get what another one answered."""
        self._sweep(ttl_s)
        if not spec.cacheable:
            return None
        kept = self._kept.get(_key(spec, call, scope))
        if kept is None or kept.toolset is not toolset or kept.since_s + ttl_s <= self._clock.monotonic_s():
            return None
        return kept.result

    def keep(self, spec: ToolSpec, toolset: Toolset, call: ToolCall, scope: CallScope, result: ToolResult) -> None:
        """Errors are not kept."""
        if not spec.cacheable or result.is_error:
            return
        chars = len(result.text) + len(json.dumps(dict(result.data)))
        key = _key(spec, call, scope)
        self._drop(key)
        self._kept[key] = _Kept(result, toolset, self._clock.monotonic_s(), chars)
        self._chars += chars
        while self._chars > MAX_CHARS:
            self._drop(next(iter(self._kept)))

    def note_change(self, toolset: Toolset) -> None:
        """Something was done through this toolset: what it answered before may be different now."""
        self._changes += 1
        for key in [key for key, kept in self._kept.items() if kept.toolset is toolset]:
            self._drop(key)

    def _sweep(self, ttl_s: float) -> None:
        now_s = self._clock.monotonic_s()
        if now_s - self._swept_s < SWEEP_S:
            return
        self._swept_s = now_s
        for key in [key for key, kept in self._kept.items() if kept.since_s + ttl_s <= now_s]:
            self._drop(key)

    def _drop(self, key: str) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._chars -= kept.chars


def _key(spec: ToolSpec, call: ToolCall, scope: CallScope) -> str:
    """Tool, arguments and agent; and who asks and where, unless the tool says that its results are the same for all."""
    who = [] if spec.shared else [scope.principal.key, scope.conversation_id]
    return json.dumps([call.tool, call.args, scope.agent, *who], sort_keys=True)
