"""Who looks at what: a session binds its owner to a view for half an hour after its last use (inventory S21, SW10).

In memory: a session that is gone is begun anew, and nothing is lost with it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from denizen.ports.sandbox import ShellView

SESSION_TTL_S = 1800.0
MAX_SESSIONS = 10_000
PREFIX = "sess_"


@dataclass(slots=True)
class Session:
    id: str
    owner: str
    view: ShellView
    used_at_s: float


@dataclass(slots=True)
class Sessions:
    """`now_s` counts seconds from any beginning."""

    now_s: Callable[[], float]
    _by_id: dict[str, Session] = field(default_factory=dict[str, Session])

    def open(self, owner: str, view: ShellView, session_id: str = "") -> Session:
        """The given one, if it is this owner's and not over; else the owner's own on that view; else a new one."""
        now = self.now_s()
        self._forget_old(now)
        session = self._by_id.get(session_id)
        if session is None or session.owner != owner:
            mine = (each for each in self._by_id.values() if each.owner == owner and each.view == view)
            session = next(mine, None) if not session_id else None
        if session is None:
            session = Session(f"{PREFIX}{secrets.token_urlsafe(16)}", owner, view, now)
        session.used_at_s = now
        self._by_id.pop(session.id, None)
        self._by_id[session.id] = session  # the latest used is the last
        return session

    def clear(self) -> None:
        self._by_id.clear()

    def __len__(self) -> int:
        return len(self._by_id)

    def _forget_old(self, now: float) -> None:
        for key, session in list(self._by_id.items()):
            if now - session.used_at_s <= SESSION_TTL_S and len(self._by_id) < MAX_SESSIONS:
                return
            del self._by_id[key]
