"""The MCP server: the tool `ask`, and those tools of the agent that only search.

Imports the vendor's library, so only `endpoint` imports this module, at the first request.
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
from denizen.domain.tool import ToolResult
from denizen.ports.external import ExternalAccess, ExternalCaller, ReportLine

_log = logging.getLogger("denizen.mcp_server")

ASK = "ask"
MAX_PROGRESS_LINES = 100
"""How many lines of progress wait for a slow client; more are dropped."""

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
            "session": {"type": "string", "description": "Names a talk to begin or go on with; usually left out."},
        },
        "required": ["question"],
        "additionalProperties": False,
    },
    annotations=wire.ToolAnnotations(title="Ask the agent", read_only_hint=False, open_world_hint=True),
)


def build_server(outside: ExternalAccess, version: str) -> Server[Any]:
    """Returns a server of these agents and tools. It keeps nothing between requests."""

    async def list_tools(context: ServerRequestContext[Any], _: object) -> wire.ListToolsResult:
        try:
            specs = await outside.list_tools(get_caller(context))
        except DenizenError as error:
            raise MCPError(wire.INVALID_PARAMS, error.explain()) from error
        tools = (
            wire.Tool(
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
            for spec in specs
        )
        return wire.ListToolsResult(tools=[_ASK, *tools])

    async def call_tool(context: ServerRequestContext[Any], params: wire.CallToolRequestParams) -> wire.CallToolResult:
        caller, args = get_caller(context), cast("JsonObject", params.arguments or {})
        try:
            async with _report_progress(context.session) as report:
                if params.name == ASK:
                    question, session = read_question(args)
                    default = default_session(context.session)
                    result = await outside.ask(caller, question, session or default, report)
                else:
                    result = await outside.use(caller, params.name, args, report)
        except DenizenError as error:
            result = ToolResult(error.explain(), is_error=True)
        return wire.CallToolResult(content=[*_content(result)], is_error=result.is_error)

    server: Server[Any] = Server(
        "denizen",
        version=version,
        instructions=_INSTRUCTIONS,
        get_tool_input_schema=_find_no_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    server.middleware.append(report_faults)
    return server


def _find_no_schema(name: str) -> None:
    """Returns no schema, which tells the library that no tool takes an argument from an HTTP header."""
    del name  # without this function the library would list all tools before each call


async def report_faults(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
    """Answers a fault with a reference to the log; the library would tell the client the exception itself."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):  # errors of the protocol, which the library answers
        raise
    except Exception:  # noqa: BLE001 - the boundary of a request
        reference = fresh("err")
        _log.exception("request fault", extra={"path": "/mcp", "method": ctx.method, "reference": reference})
        text = f"Something went wrong inside. Reference: {reference}.\nfix: Find the reference in the server's log."
        raise MCPError(wire.INTERNAL_ERROR, text) from None


def get_caller(context: ServerRequestContext[Any]) -> ExternalCaller:
    """Returns the caller: the principal of the HTTP request, and the agent that its path names."""
    request = context.request
    if not isinstance(request, Request):
        raise TypeError("MCP is served over HTTP only")
    principal: object = request.scope.get("state", {}).get("principal")
    if not isinstance(principal, Principal):
        raise TypeError("the request has no principal")
    return ExternalCaller(principal, request.path_params.get("agent", ""))


def default_session(session: ServerSession) -> str:
    """Returns the name of the session for calls of `ask` that name none: one for each client program by its name, which
    clients of older protocol versions do not send with every request.
    """
    known = session.client_params
    name = "".join(c for c in known.client_info.name if c.isprintable())[:100].strip() if known else ""
    return f"mcp {name}".strip()


def read_question(args: Mapping[str, object]) -> tuple[str, str]:
    """Returns the question, and the session if one is named. Raises InvalidInput."""
    question, session = args.get("question"), args.get("session") or ""
    if not isinstance(question, str) or not isinstance(session, str) or set(args) - {"question", "session"}:
        raise InvalidInput(
            "Wrong arguments for 'ask'.",
            code="arguments_invalid",
            fix="Give `question`, a text, and optionally `session`.",
        )
    return question, session


def _content(result: ToolResult) -> Iterator[wire.ContentBlock]:
    """Yields the text, and the pictures that a model made with it (`domain/attachments`)."""
    yield wire.TextContent(text=result.text)
    images = result.data.get("images")
    for row in cast("list[Mapping[str, object]]", images) if isinstance(images, list) else ():
        url = str(row.get("url", ""))
        head, _, data = url.partition(",")
        if url.startswith(("https://", "http://")):
            yield wire.ResourceLink(name="picture", uri=url, mime_type="image/*")
        elif head.startswith("data:image/") and head.endswith(";base64"):
            yield wire.ImageContent(data=data, mime_type=head.removeprefix("data:").removesuffix(";base64"))


@asynccontextmanager
async def _report_progress(session: ServerSession) -> AsyncGenerator[ReportLine]:
    """Yields a function that sends lines to the client as notifications of progress, in order."""
    send, receive = anyio.create_memory_object_stream[str](MAX_PROGRESS_LINES)

    def report(text: str) -> None:
        try:
            send.send_nowait(text)
        except anyio.WouldBlock:
            return

    async def send_notifications() -> None:
        async with receive:
            number = 0
            async for text in receive:
                number += 1
                await session.report_progress(number, None, text)

    error: DenizenError | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(send_notifications)
        async with send:
            try:
                yield report
            except DenizenError as raised:  # raised after the group, which would wrap it in a group of errors
                error = raised
    if error is not None:
        raise error
