"""Remembers what the repository of a mirror refused, so that it is not asked for the same with every look."""

from __future__ import annotations

from datetime import datetime, timedelta

from denizen.domain.clock import Clock
from denizen.domain.record import record

MAX_WAIT = timedelta(hours=1)
"""So long is waited at most, unless the mirror looks less often."""


@record
class _Refusal:
    told: str
    version: str
    wait: timedelta
    until: datetime


class MirrorRefusals:
    """The refusals of one mirror, each by the key of what was to be written. What changed since, in its `version`, is
    tried at once; the rest waits as long as between two looks, and twice as long after each further refusal.
    """

    def __init__(self, clock: Clock, every: timedelta) -> None:
        self._clock = clock
        self._every = every
        self._known: dict[str, _Refusal] = {}

    def find(self, key: str, version: str = "") -> str:
        """Returns what was told when it was refused; empty for what may be tried."""
        known = self._known.get(key)
        if known is None or known.version != version or known.until <= self._clock.now():
            return ""
        return known.told

    def note(self, key: str, told: str, version: str = "") -> None:
        wait, known = self._every, self._known.get(key)
        if known is not None and known.version == version:
            wait = min(known.wait * 2, max(MAX_WAIT, self._every))
        self._known[key] = _Refusal(told, version, wait, self._clock.now() + wait)

    def clear(self, key: str) -> None:
        self._known.pop(key, None)
