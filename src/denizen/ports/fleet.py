"""The words between the processes of a fleet, and the things that one of them has at a time.

Implemented by `adapters/fleet` over Postgres, the one thing that they share. Everything here is best effort: what
counts is in the store, and whoever misses a word finds it there a few seconds later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from denizen.domain.errors import DenizenError
from denizen.domain.events import TurnEvent
from denizen.domain.ids import AgentName, TurnId

Result = TypeVar("Result")


class TurnRelay(Protocol):
    """Passes on what happens in turns to those who watch in other processes, and what these want of a turn."""

    @property
    def runs_turns(self) -> bool:
        """Whether this process runs turns itself."""
        ...

    def watch(self, turn_id: TurnId, *, on: bool) -> None:
        """Somebody here watches the turn now, or (not `on`) nobody does any more."""
        ...

    def is_watched(self, turn_id: TurnId) -> bool:
        """Whether somebody in another process watches the turn."""
        ...

    def publish(self, turn_id: TurnId, sign: TurnEvent | DenizenError) -> None: ...

    def cancel(self, turn_id: TurnId) -> None:
        """Asks the process that runs the turn to stop it."""
        ...

    def wake_outbox(self, platform: str, account: AgentName) -> None:
        """Tells the process that holds the account that there is something to send."""
        ...


class FleetLeases(Protocol):
    """Things that one process has at a time."""

    async def hold(
        self, name: str, job: Callable[[], Awaitable[Result]], *, on_wait: Callable[[str], None]
    ) -> Result | None:
        """Waits until no other process has `name`, then does the job while this one has it. Returns None when it lost
        the name meanwhile: the job is cancelled then. `on_wait` gets the name of the process that has it.
        """
        ...
