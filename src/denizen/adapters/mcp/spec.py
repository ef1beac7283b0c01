"""What is configured about one MCP server: how to reach it, and what of its tools is offered."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from denizen.domain.tool import Tier

TIMEOUT_S = 360.0
"""How long a call may take unless it is configured (inventory L6)."""
START_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class StdioTransport:
    """A server that is started here and spoken to over its standard input and output.

    `env` is all that it sees beside HOME, LOGNAME, PATH, SHELL, TERM and USER (inventory LW4).
    """

    command: str
    args: tuple[str, ...]
    cwd: Path
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class HttpTransport:
    """A server that runs elsewhere and is spoken to over streamable HTTP."""

    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class McpServerSpec:
    """What a connection depends on. A server whose spec stays the same goes on running when the configuration changes.

    `start_timeout_s` bounds starting it, shaking hands and listing its tools.
    """

    name: str
    transport: StdioTransport | HttpTransport
    start_timeout_s: float = START_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class McpToolPolicy:
    """What of a server's tools is offered, and as how dangerous. Patterns are of the server's own names of its tools;
    in `tiers` the first match counts.

    What a server says of its tools' risks is believed only when it is `trusted`; all of another one's are dangerous.
    `reserved` are beginnings of names that belong to other servers: `git_hub_` where this one's begin with `git_`. What
    the owner says of such a name, and what agents call by it, is not to become this one's.
    """

    prefix: str
    allow: tuple[str, ...] = ("*",)
    tiers: tuple[tuple[str, Tier], ...] = ()
    trusted: bool = False
    timeout_s: float = TIMEOUT_S
    reserved: tuple[str, ...] = ()

    def allows(self, tool: str) -> bool:
        return any(fnmatchcase(tool, pattern) for pattern in self.allow)

    def find_tier(self, tool: str) -> Tier | None:
        """The one that the owner wrote."""
        return next((tier for pattern, tier in self.tiers if fnmatchcase(tool, pattern)), None)
