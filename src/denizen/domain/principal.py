"""Who asks."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from denizen.domain.record import record


class PrincipalKind(StrEnum):
    """The kind of a principal: a person on a platform, on the web or at the machine, or a key, schedule, hook or the
    task watcher, or a listener or webhook, whose turns events cause.
    """

    PLATFORM_USER = "platform_user"
    WEB_USER = "web_user"
    API_KEY = "api_key"
    LOCAL = "local"
    """Somebody with a shell on the machine: the operator."""
    SCHEDULE = "schedule"
    HOOK = "hook"
    TASK_WATCHER = "task_watcher"
    LISTENER = "listener"
    WEBHOOK = "webhook"

    @property
    def asks(self) -> bool:
        """Whether somebody asked, themselves or with a program, rather than a time or an event."""
        return self in (PrincipalKind.PLATFORM_USER, PrincipalKind.WEB_USER, PrincipalKind.API_KEY, PrincipalKind.LOCAL)


class RoleName(StrEnum):
    """The roles that Denizen itself knows. A platform's own roles are checked by their ids."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


@record
class Principal:
    """The one on whose behalf a turn runs. `id` is unique within its kind."""

    kind: PrincipalKind
    id: str
    name: str
    roles: frozenset[str] = field(default_factory=frozenset[str])

    @property
    def key(self) -> str:
        """One string for settings, rules and logs: `kind:id`."""
        return f"{self.kind}:{self.id}"

    @property
    def owner(self) -> Principal | None:
        """The person who had this schedule made, without roles; None for all others."""
        _, is_owned, rest = self.id.partition("@")
        if self.kind is not PrincipalKind.SCHEDULE or not is_owned:
            return None
        kind, _, person = rest.rpartition("#")[0].partition(":")
        return Principal(PrincipalKind(kind), person, "")

    @property
    def payer(self) -> Principal:
        """The one whose limits and budget its turns count in: of a schedule with an owner that person."""
        return self.owner or self


def name_schedule(name: str, owner: str, life: str) -> str:
    """Returns the id of a schedule: its name, and for one that a person had made, the key of its owner and what tells
    it from others that have had its name. No name of a schedule has an @.
    """
    return f"{name}@{owner}#{life}" if owner else name
