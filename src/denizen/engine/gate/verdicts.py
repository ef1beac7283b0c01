"""What an observer thinks of a call, and the verdicts about calls of tier 2 that are kept for a while.

Kept in memory: a restart forgets them, and so does a reload of the configuration, whose number is part of the key.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum

from denizen.domain.clock import Clock

MAX_KEPT = 10_000


class Opined(StrEnum):
    APPROVE = "approve"
    DENY = "deny"
    ESCALATE = "escalate"


@dataclass(frozen=True, slots=True)
class Opinion:
    """`reason` is safe to tell the model and the asker. `decided_by` is `observer`, `observer-cache` or
    `observer-fault`.
    """

    opined: Opined
    reason: str
    decided_by: str = "observer"


def digest(*facts: object) -> str:
    """A key for everything that a verdict depends on."""
    text = json.dumps(facts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class VerdictCache:
    """Holds what was approved and denied, never what was handed on to people (VW3), and no faults."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, Opinion]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: str, *, ttl_s: float) -> Opinion | None:
        """One that is younger than `ttl_s`."""
        since_s, opinion = self._kept.get(key, (0.0, None))
        if opinion is not None and self._clock.monotonic_s() - since_s < ttl_s:
            return opinion
        self._kept.pop(key, None)
        return None

    def keep(self, key: str, opinion: Opinion) -> None:
        if opinion.opined is Opined.ESCALATE or opinion.decided_by != "observer":
            return
        self._kept[key] = (self._clock.monotonic_s(), opinion)
        self._kept.move_to_end(key)
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        self._kept.clear()
