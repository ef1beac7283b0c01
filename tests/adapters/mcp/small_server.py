"""A small MCP server, run as a program: over standard input and output, or over HTTP on the socket that it is given.

    python small_server.py                 standard input and output
    python small_server.py FD              streamable HTTP on the listening socket FD, at /mcp

It writes one line into the file $STARTS, when that is set, each time it starts.
"""

import os
import socket
import sys
from pathlib import Path

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("small", version="1.2.3")
READS = ToolAnnotations(read_only_hint=True)
SURE = ToolAnnotations(read_only_hint=True, idempotent_hint=True)
REPEATABLE = ToolAnnotations(idempotent_hint=True)
HARMS = ToolAnnotations(destructive_hint=True)


def note(text: str) -> None:
    """A line in the file of what was done, which outlives the process."""
    if "STARTS" in os.environ:
        with Path(os.environ["STARTS"]).open("a") as file:
            file.write(f"{text}\n")


@server.tool(annotations=READS)
def pid() -> str:
    """The id of this process."""
    return str(os.getpid())


@server.tool(annotations=SURE)
def roll(sides: int) -> str:
    """A number that is another one each time."""

    return f"{sides}: {os.urandom(8).hex()}"


@server.tool(annotations=HARMS)
def wipe() -> str:
    """Something that cannot be undone."""
    note("wipe")
    return "gone"


@server.tool()
async def fall(ctx: Context) -> str:
    """Says that it has begun, and never ends."""
    note("fall")
    await ctx.report_progress(1, 4, "begun")
    await anyio.sleep_forever()
    return ""


@server.tool(annotations=REPEATABLE)
async def fall_once(ctx: Context) -> str:
    """Never ends the first time; afterwards it is quick."""
    first = "fall_once" not in Path(os.environ["STARTS"]).read_text()
    note("fall_once")
    if first:
        await ctx.report_progress(1, 4, "begun")
        await anyio.sleep_forever()
    return "done at last"


@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool."""
    server.add_tool(wipe, name="grown", description="New.")
    await ctx.notify_tools_changed()
    return "grown"


@server.tool()
def who(ctx: Context) -> str:
    """The key that the request was sent with."""
    return (ctx.headers or {}).get("authorization", "")


@server.tool()
def fail() -> str:
    """Fails."""
    raise ToolError("the well is dry")


def main() -> None:
    note("start")
    sys.stderr.write("small server begins\n")
    if len(sys.argv) == 1:
        server.run("stdio")
        return
    import uvicorn

    app = server.streamable_http_app(streamable_http_path="/mcp")
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        anyio.run(lambda: uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
