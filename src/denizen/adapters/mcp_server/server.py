"""What there is, in MCP's words: the tool `ask`, and those tools of the agent that only look things up.

Imports the vendor, so only `endpoint` imports it, and late.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import mcp_types as wire
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from starlette.requests import Request

from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.ids import fresh
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal
from denizen.domain.tool import ToolResult, ToolSpec
from denizen.ports.outside import Caller, Outside, Tell

_log = logging.getLogger("denizen.mcp_server")

ASK = "ask"
MAX_WAITING = 100
"""Lines of progress that wait for a slow client; more are left out."""

_INSTRUCTIONS = "An agent of a community: ask it, or look up yourself what it knows."
_ASK = wire.Tool(
    name=ASK,
    description=(
        "Asks the agent, which knows its community, its documents and its tools, and answers in words. It remembers "
        "what was said before in the same session."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "question": {"type": "string", "description": "What to ask, in full sentences."},
            "session": {
                "type": "string",
                "description": "Names a talk to begin or go on with; usually left out.",
            },
        },
        "required": ["question"],
        "additionalProperties": False,
    },
    annotations=wire.ToolAnnotations(title="Ask the agent", read_only_hint=False, open_world_hint=True),
)


def build_server(outside: Outside, version: str) -> Server[Any]:
    """The server over what may be asked. It keeps nothing between requests."""

    async def list_tools(context: ServerRequestContext[Any], _: object) -> wire.ListToolsResult:
        try:
            specs = await outside.list_tools(get_caller(context).agent)
        except DenizenError as error:
            raise MCPError(wire.INVALID_PARAMS, error.explain()) from error
        return wire.ListToolsResult(tools=[_ASK, *(_offered(spec) for spec in specs)])

    async def call_tool(context: ServerRequestContext[Any], params: wire.CallToolRequestParams) -> wire.CallToolResult:
        caller, args = get_caller(context), cast("JsonObject", params.arguments or {})
        try:
            async with _telling(context.session) as tell:
                if params.name == ASK:
                    question, session = read_question(args)
                    usual = client_session(context.session)
                    result = await outside.ask(caller, question, session or usual, tell)
                else:
                    result = await outside.use(caller, params.name, args, tell)
        except DenizenError as error:
            result = ToolResult(error.explain(), is_error=True)
        return wire.CallToolResult(content=[*_content(result)], is_error=result.is_error)

    server: Server[Any] = Server(
        "denizen",
        version=version,
        instructions=_INSTRUCTIONS,
        get_tool_input_schema=_no_headers,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    server.middleware.append(report_faults)
    return server


def _no_headers(name: str) -> None:
    """None of our schemas takes an argument from a header; else the vendor would list all tools before each call."""
    del name


async def report_faults(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
    """An unknown fault is an error with a reference; the vendor would tell the client what was raised."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):  # what the protocol itself refuses
        raise
    except Exception:  # noqa: BLE001 - the boundary of a request
        reference = fresh("err")
        _log.exception("request fault", extra={"path": "/mcp", "method": ctx.method, "reference": reference})
        text = f"Something went wrong inside. Reference: {reference}.\nfix: Find the reference in the server's log."
        raise MCPError(wire.INTERNAL_ERROR, text) from None


def get_caller(context: ServerRequestContext[Any]) -> Caller:
    """Who came in by the request that this is about, and the agent that its path names."""
    request = context.request
    if not isinstance(request, Request):
        raise TypeError("MCP is served over HTTP only")
    principal: object = request.scope.get("state", {}).get("principal")
    if not isinstance(principal, Principal):
        raise TypeError("nobody was let in")
    return Caller(principal, request.path_params.get("agent", ""))


def client_session(session: ServerSession) -> str:
    """The session of the client's own that the talk goes on in: one for each client program that says its name, which
    those of older protocols do not with every request.
    """
    known = session.client_params
    name = "".join(c for c in known.client_info.name if c.isprintable())[:100].strip() if known else ""
    return f"mcp {name}".strip()


def read_question(args: Mapping[str, object]) -> tuple[str, str]:
    """The question, and the session where one is named. Raises InvalidInput."""
    question, session = args.get("question"), args.get("session") or ""
    if not isinstance(question, str) or not isinstance(session, str) or set(args) - {"question", "session"}:
        raise InvalidInput(
            "Wrong arguments for 'ask'.", code="arguments_invalid", fix="Give question, a text, and maybe session."
        )
    return question, session


def _content(result: ToolResult) -> Iterator[wire.ContentBlock]:
    """The text, and the pictures that a model made with it (`domain/extras`)."""
    yield wire.TextContent(text=result.text)
    images = result.data.get("images")
    for row in cast("list[Mapping[str, object]]", images) if isinstance(images, list) else ():
        head, _, data = str(row.get("url", "")).partition(",")
        if head.startswith("data:image/") and head.endswith(";base64"):
            yield wire.ImageContent(data=data, mime_type=head.removeprefix("data:").removesuffix(";base64"))


def _offered(spec: ToolSpec) -> wire.Tool:
    return wire.Tool(
        name=spec.name,
        description=spec.description,
        input_schema=dict(spec.parameters),
        annotations=wire.ToolAnnotations(
            read_only_hint=spec.read_only,
            destructive_hint=spec.destructive,
            idempotent_hint=spec.idempotent or spec.read_only,
            open_world_hint=False,
        ),
    )


@asynccontextmanager
async def _telling(session: ServerSession) -> AsyncGenerator[Tell]:
    """Lines that are told become notifications of progress, in order, while the block runs."""
    send, receive = anyio.create_memory_object_stream[str](MAX_WAITING)

    def tell(text: str) -> None:
        try:
            send.send_nowait(text)
        except anyio.WouldBlock:
            return

    async def pass_on() -> None:
        async with receive:
            number = 0
            async for text in receive:
                number += 1
                await session.report_progress(number, None, text)

    error: DenizenError | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(pass_on)
        async with send:
            try:
                yield tell
            except DenizenError as raised:  # out of the group as it is, not in a group of errors
                error = raised
    if error is not None:
        raise error
