"""From the configuration's words to the MCP adapter's, and how the servers fare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from denizen.adapters.mcp import HttpTransport, McpServerPhase, McpServerSpec, McpToolPolicy, McpToolset, StdioTransport
from denizen.app.settings import Settings
from denizen.app.settings.schema_mcp import McpServerSection, prefix_of
from denizen.domain.errors import Unavailable
from denizen.domain.tool import ToolSpec


def read_servers(settings: Settings) -> Mapping[McpServerSpec, McpToolPolicy]:
    """The servers that are enabled, in the order of the file."""
    enabled = {name: section for name, section in settings.mcp.servers.items() if section.enabled}
    begins = {name: f"{prefix}_" for name, section in enabled.items() if (prefix := prefix_of(name, section))}

    def reserved(name: str) -> tuple[str, ...]:
        own = begins.get(name, "")
        return tuple(begin for begin in begins.values() if begin != own and begin.startswith(own))

    return {
        _spec(name, section, settings.home): _offer(name, section, reserved(name)) for name, section in enabled.items()
    }


def _spec(name: str, section: McpServerSection, home: Path) -> McpServerSpec:
    if section.url:
        way = HttpTransport(str(section.url), _pairs(section.headers))
    else:
        args = tuple(str(argument) for argument in section.args)
        way = StdioTransport(str(section.command), args, home / Path(section.cwd).expanduser(), _pairs(section.env))
    return McpServerSpec(name, way, section.start_timeout_s)


def _offer(name: str, section: McpServerSection, reserved: tuple[str, ...]) -> McpToolPolicy:
    return McpToolPolicy(
        prefix_of(name, section),
        tuple(str(pattern) for pattern in section.tools),
        tuple(section.tiers.items()),
        section.trusted,
        section.timeout_s,
        reserved,
    )


def _pairs(values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in values.items())


@dataclass(frozen=True, slots=True)
class ServerReport:
    """What a server that answers has. `left_out` says of tools that are not offered why."""

    about: str
    tools: Sequence[ToolSpec]
    left_out: Mapping[str, str]


async def examine_server(toolset: McpToolset, mask: Callable[[str], str]) -> ServerReport:
    """Waits for a server as long as it may take to start. Raises Unavailable, with what is known of the reason, masked,
    since a server may repeat its own secrets.
    """
    server = toolset.server
    await server.wait_first_attempt(server.spec.start_timeout_s + 5)
    if server.state.phase is not McpServerPhase.UP:
        raise Unavailable(
            f"The MCP server '{server.spec.name}' cannot be reached.",
            code="mcp_down",
            why=mask(server.state.why) or "It did not answer.",
            fix=_fix_of(server.spec.transport),
        )
    about = server.state.about or server.spec.name
    return ServerReport(about, toolset.listing.specs, toolset.listing.left_out)


def _fix_of(way: StdioTransport | HttpTransport) -> str:
    if isinstance(way, StdioTransport):
        return "Run its command by hand and read what it says; check command, args, env and cwd below mcp.servers."
    return "Check that it runs and that url and headers below mcp.servers are right."
