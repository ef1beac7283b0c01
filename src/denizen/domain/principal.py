"""Who asks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class PrincipalKind(StrEnum):
    PLATFORM_USER = "platform_user"
    WEB_USER = "web_user"
    API_KEY = "api_key"
    LOCAL = "local"
    """Somebody with a shell on the machine: the operator."""
    SCHEDULE = "schedule"
    HOOK = "hook"


class RoleName(StrEnum):
    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


@dataclass(frozen=True, slots=True)
class Principal:
    """The one on whose behalf a turn runs. `id` is unique within its kind."""

    kind: PrincipalKind
    id: str
    name: str
    roles: frozenset[str] = field(default_factory=frozenset[str])

    @property
    def key(self) -> str:
        """One string for limits, settings and logs: `kind:id`."""
        return f"{self.kind}:{self.id}"
