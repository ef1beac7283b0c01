"""The MCP servers of this server, for people who look after them: how each fares, what it wrote, starting it anew.

No value of an environment variable or header is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Protocol

from denizen.domain.json import Json
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.tool import Tier
from denizen.ports.configuration import ConfigurationChange, ConfigurationPart, PlannedChange


@record
class McpToolInfo:
    """A tool that a server offers."""

    name: str
    tier: Tier
    description: str


@record
class McpOutputLine:
    """A line that a server's program wrote to its standard error."""

    at: datetime
    text: str


@record(kw_only=True)
class McpServerInfo:
    """A configured server. `address` is its command line or its URL, and `variables` are the names of its environment
    or headers, each with where the value comes from.

    `phase` is off, idle (nobody has needed it so far), starting, up or down. `why` explains one that is down, `failure`
    is why it was down last. `left_out` maps tools that are not offered to the reason.
    """

    name: str
    address: str
    variables: Mapping[str, str]
    is_trusted: bool
    phase: str
    about: str = ""
    since: datetime | None = None
    starts: int = 0
    why: str = ""
    failure: str = ""
    failed_at: datetime | None = None
    tools: Sequence[McpToolInfo] = ()
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    output: Sequence[McpOutputLine] = ()


@record(kw_only=True)
class McpServerDraft:
    """A server as somebody describes it: a command line, or a URL. `variables` are its environment or its headers;
    `secrets` too, whose values go into `secrets.env`.
    """

    name: str
    command: Sequence[str] = ()
    url: str = ""
    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    is_trusted: bool = False


@record(kw_only=True)
class McpServerEdit:
    """A change of a server: `values` by their paths in the configuration, None for those to take out, and `secrets` of
    its environment or its headers, whose values go into `secrets.env`. `expected` is the digest of the text that it was
    made on.
    """

    values: Mapping[str, Json]
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    expected: str = ""


class McpConfiguration(Protocol):
    """Shows and changes the MCP servers; one for a process. Changes raise as
    `ConfigurationFiles.replace`, and are in the audit log.
    """

    def list_servers(self) -> Sequence[McpServerInfo]: ...

    def get_server(self, name: str) -> McpServerInfo:
        """Raises NotFound."""
        ...

    def restart(self, name: str) -> None:
        """Starts a server anew, or reaches it anew. Calls that it has are lost. Raises NotFound, and InvalidInput for
        one that is off.
        """
        ...

    async def switch(self, by: Principal, name: str, *, is_on: bool) -> ConfigurationChange: ...

    async def add(self, by: Principal, draft: McpServerDraft) -> ConfigurationChange:
        """Starts or reaches the server to see whether it answers, and writes it down then. Raises Unavailable with the
        reason, Conflict for a name that is taken, and as `ConfigurationFiles.replace`; nothing is written then.
        """
        ...

    async def describe(self, name: str) -> ConfigurationPart:
        """Returns the settings of a server. A value of its environment or headers that refers to no secret is `***`,
        which stands for itself in an edit. Raises NotFound.
        """
        ...

    async def plan(self, name: str, edit: McpServerEdit) -> PlannedChange:
        """Returns what an edit would change, with secrets masked. Without faults the server was tried as it would be,
        unless it is off. Raises as `edit`, and writes nothing.
        """
        ...

    async def edit(self, by: Principal, name: str, edit: McpServerEdit) -> ConfigurationChange:
        """Changes a server after it has answered as it would be, unless it is off. Raises NotFound, Unavailable with
        the reason, Conflict for a text that was changed meanwhile, and as `ConfigurationFiles.replace`.
        """
        ...

    async def remove(self, by: Principal, name: str) -> ConfigurationChange: ...
