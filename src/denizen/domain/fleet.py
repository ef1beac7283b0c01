"""A fleet: several processes of one Denizen on one Postgres, each with a role."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from denizen.domain.ids import AgentName
from denizen.domain.record import record


class FleetRole(StrEnum):
    """The part that a process has in a fleet. Alone it does everything."""

    ALL = "all"
    GATEWAY = "gateway"
    """Holds the accounts on platforms: it hears what is said, and sends what is owed."""
    WORKER = "worker"
    """Runs turns and what goes on in the background."""
    WEB = "web"
    """Serves pages and APIs."""

    @property
    def has_accounts(self) -> bool:
        return self in (FleetRole.ALL, FleetRole.GATEWAY)

    @property
    def runs_turns(self) -> bool:
        return self in (FleetRole.ALL, FleetRole.WORKER)

    @property
    def serves_pages(self) -> bool:
        return self in (FleetRole.ALL, FleetRole.WEB)


@record
class HeldAccount:
    """An account that a process holds, connected at this moment. `user_id` is its id on the platform."""

    platform: str
    agent: AgentName
    user_id: str


@record(kw_only=True)
class FleetNode:
    """A process of the fleet as it described itself at `seen_at`; after some seconds without a word it counts as gone.

    `runs` are the turns and other durable runs that are under way there.
    """

    name: str
    role: FleetRole
    version: str
    started_at: datetime
    seen_at: datetime
    accounts: tuple[HeldAccount, ...] = ()
    runs: int = 0
    is_alive: bool = True
