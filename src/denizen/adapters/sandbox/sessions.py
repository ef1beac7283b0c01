"""Sessions of the sandbox, which bind an owner to a view, and the queue for its workers.

A session ends half an hour after its last use. Sessions are kept in memory: one that is gone is begun anew, and nothing
is lost with it. The queue serves one owner after the other: with a plain queue, a conversation that sends a hundred
batches would make everybody else wait for all of them.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import takewhile

import anyio
import anyio.lowlevel

from denizen.ports.sandbox import ShellView

SESSION_TTL_S = 1800.0
MAX_SESSIONS = 10_000
MAX_OWN_SESSIONS = 500
"""The limit for one owner: each view makes a session, and so does each unknown id."""
PREFIX = "sess_"


@dataclass(slots=True)
class SandboxSession:
    """Binds an owner to the view that the session began with."""

    id: str
    owner: str
    view: ShellView
    used_at_s: float


@dataclass(slots=True)
class SandboxSessions:
    """All sessions. `now_s` is a monotonic clock."""

    now_s: Callable[[], float]
    _by_id: dict[str, SandboxSession] = field(default_factory=dict[str, SandboxSession])
    """The least recently used session comes first, here and in the sessions of each owner."""
    _by_owner: dict[str, dict[str, SandboxSession]] = field(default_factory=dict[str, dict[str, SandboxSession]])

    def open(self, owner: str, view: ShellView, session_id: str = "") -> SandboxSession:
        """Returns the named session if it is this owner's, else the owner's session on that view, else a new one."""
        now = self.now_s()
        self._forget_old(now)
        own = self._by_owner.get(owner, {})
        if session_id:
            session = own.get(session_id)
        else:
            session = next((each for each in own.values() if each.view == view), None)
        if session is None:
            self._make_room(own)
            # Long and random: whoever guesses an id still needs its owner, but ids should not be guessable either.
            session = SandboxSession(f"{PREFIX}{secrets.token_urlsafe(16)}", owner, view, now)
        else:
            self._forget(session)
        session.used_at_s = now
        self._by_id[session.id] = self._by_owner.setdefault(owner, {})[session.id] = session
        return session

    def clear(self) -> None:
        self._by_id.clear()
        self._by_owner.clear()

    def __len__(self) -> int:
        return len(self._by_id)

    def _forget_old(self, now: float) -> None:
        for session in list(takewhile(lambda each: now - each.used_at_s > SESSION_TTL_S, self._by_id.values())):
            self._forget(session)

    def _make_room(self, own: Mapping[str, SandboxSession]) -> None:
        """Forgets the least recently used session of an owner who has as many as allowed.

        When there are too many in all, the owners with most sessions lose one, whoever asks for another: the least
        recently used of all of theirs.
        """
        if len(own) >= MAX_OWN_SESSIONS:
            self._forget(next(iter(own.values())))
        elif len(self._by_id) >= MAX_SESSIONS:
            most = max(map(len, self._by_owner.values()))
            self._forget(next(each for each in self._by_id.values() if len(self._by_owner[each.owner]) == most))

    def _forget(self, session: SandboxSession) -> None:
        own = self._by_owner[session.owner]
        del self._by_id[session.id], own[session.id]
        if not own:
            del self._by_owner[session.owner]


class FairQueue:
    """A queue in which owners take turns for `places` places. The requests of one owner are served in order."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._taken = 0
        self._waiting: OrderedDict[str, deque[anyio.Event]] = OrderedDict()

    @property
    def taken(self) -> int:
        return self._taken

    @asynccontextmanager
    async def place(self, owner: str) -> AsyncGenerator[None]:
        """Waits for a place, and holds it until the block ends."""
        await self._take(owner)
        try:
            yield
        finally:
            self._leave()

    async def _take(self, owner: str) -> None:
        await anyio.lowlevel.checkpoint()
        if self._free and not self._waiting:
            self._free -= 1
            self._taken += 1
            return
        turn = anyio.Event()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():  # it was given the place at the moment when it went away
                self._leave()
            else:
                self._forget(owner, turn)
            raise

    def _leave(self) -> None:
        """Hands the place to the next owner, who then goes to the end of the queue."""
        self._taken -= 1
        if not self._waiting:
            self._free += 1
            return
        owner, turns = self._waiting.popitem(last=False)
        turns.popleft().set()
        self._taken += 1
        if turns:
            self._waiting[owner] = turns

    def _forget(self, owner: str, turn: anyio.Event) -> None:
        self._waiting[owner].remove(turn)
        if not self._waiting[owner]:
            del self._waiting[owner]
