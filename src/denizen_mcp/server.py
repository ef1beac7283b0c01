"""Serves skills as an MCP server on standard input and output.

Every tool of the skills is offered with its schema and with hints made from what it declares. What it shows to people
goes along as pictures and links. No gate stands in front of a tool here: that is the client's business.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, cast

import anyio

from denizen.adapters.fetch import WebFetcher
from denizen.app.home.environment import read_environment
from denizen.domain.attachments import extract_attachments
from denizen.domain.clock import SystemClock
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.ids import AgentName, CallId, SessionId, TurnId, fresh
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.ports.toolset import CallScope
from denizen.skill import HistoryMessage, Skill, SkillFolders, SkillServices, SkillToolset

if TYPE_CHECKING:
    import mcp_types as wire
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server


Report = Callable[[str], Awaitable[None]]
_listener: ContextVar[Report | None] = ContextVar("listener", default=None)


@contextmanager
def progress_to(report: Report) -> Generator[None]:
    """Sends the progress of what runs within the block to `report`."""
    token = _listener.set(report)
    try:
        yield
    finally:
        _listener.reset(token)


async def report_progress(text: str) -> None:
    """Reports how far the current call is; does nothing where nobody listens."""
    report = _listener.get()
    if report is not None:
        await report(text)


_INVALID = 2


@dataclass(frozen=True, slots=True)
class EnvVariable:
    """An environment variable that fills one field of a skill's settings. Of several for one field the last counts."""

    name: str
    skill: str
    field: str
    is_required: bool = False


def run(name: str, skills: Sequence[Skill], variables: Sequence[EnvVariable] = ()) -> None:
    """Serves until the input ends. `--help` prints what it is; a missing variable makes it exit with 2."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        tools = "\n".join(f"  {tool.name}  {tool.description}" for skill in skills for tool in skill.tools)
        names = "\n".join(f"  {v.name}{'  (required)' if v.is_required else ''}" for v in variables)
        sys.stdout.write(
            f"{name}: an MCP server on standard input and output.\n\n"
            f"Tools:\n{tools}\n\nEnvironment:\n{names or '  nothing'}\n\n"
            f"In denizen.yaml:\n  mcp:\n    servers:\n      {name.removeprefix('denizen-mcp-')}: {{command: {name}}}\n"
        )
        return
    try:
        toolsets = open_toolsets(skills, read_variables(variables, read_environment()))
    except InvalidInput as error:
        sys.stderr.write(f"{name}: {error.explain()}\n")
        raise SystemExit(_INVALID) from None
    anyio.run(_serve, name, toolsets)


Sections = Mapping[str, Mapping[str, Json]]
"""Settings by the name of the skill that they belong to."""


def read_variables(variables: Sequence[EnvVariable], environment: Mapping[str, str]) -> Sections:
    """Returns the settings that the environment sets. Raises InvalidInput for a required variable that is missing."""
    missing = next((v.name for v in variables if v.is_required and not environment.get(v.name)), None)
    if missing:
        raise InvalidInput(f"{missing} is not set.", code="variable_missing", fix=f"Set {missing} and try again.")
    sections: dict[str, dict[str, Json]] = {}
    for variable in variables:
        if environment.get(variable.name):
            sections.setdefault(variable.skill, {})[variable.field] = environment[variable.name]
    return sections


def open_toolsets(skills: Sequence[Skill], sections: Sections) -> list[SkillToolset]:
    """Returns the skills with their settings. Raises InvalidInput for settings that do not fit."""
    return [SkillToolset(skill, _services(sections.get(skill.name, {})), sections.get(skill.name)) for skill in skills]


def build_server(name: str, toolsets: Sequence[SkillToolset]) -> Server[Any]:
    """Returns the MCP server over the toolsets."""
    import mcp_types as wire
    from mcp.server.lowlevel import Server

    async def list_tools(_: ServerRequestContext[Any], __: object) -> wire.ListToolsResult:
        return wire.ListToolsResult(tools=[_offered(spec) for each in toolsets for spec in await each.list_tools()])

    async def call_tool(context: ServerRequestContext[Any], params: wire.CallToolRequestParams) -> wire.CallToolResult:
        async def report(text: str) -> None:
            reported[0] += 1
            await context.session.report_progress(reported[0], None, text)

        reported = [0]
        with progress_to(report):
            return _answer(await _call(toolsets, params.name, cast("JsonObject", params.arguments or {})))

    return Server(name, version=version("denizen"), on_list_tools=list_tools, on_call_tool=call_tool)


async def _serve(name: str, toolsets: Sequence[SkillToolset]) -> None:
    from mcp.server.stdio import stdio_server

    server = build_server(name, toolsets)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


async def _call(toolsets: Sequence[SkillToolset], name: str, args: JsonObject) -> ToolResult:
    scope = CallScope(  # the client and its conversation are not known here
        agent=AgentName("mcp"),
        principal=Principal(PrincipalKind.API_KEY, "mcp", "MCP client"),
        place=Place("mcp", "mcp"),
        session_id=SessionId("mcp"),
        turn_id=TurnId(fresh("turn")),
    )
    for toolset in toolsets:
        spec = next((spec for spec in await toolset.list_tools() if spec.name == name), None)
        if spec is None:
            continue
        try:
            with anyio.fail_after(spec.timeout_s):
                return await toolset.call(ToolCall(CallId(fresh("call")), name, args), scope)
        except TimeoutError:
            return ToolResult(f"'{name}' did not finish within {spec.timeout_s:g} s.", is_error=True)
        except DenizenError as error:
            return ToolResult(error.explain(), is_error=True)
    return ToolResult(f"There is no tool '{name}'.", is_error=True)


def _offered(spec: ToolSpec) -> wire.Tool:
    import mcp_types as wire

    hints = wire.ToolAnnotations(
        read_only_hint=spec.read_only,
        destructive_hint=spec.destructive or spec.tier is Tier.DANGEROUS,
        idempotent_hint=spec.idempotent,
        open_world_hint=bool(spec.flow.reads),
    )
    return wire.Tool(
        name=spec.name, description=spec.description, input_schema=dict(spec.parameters), annotations=hints
    )


def _answer(result: ToolResult) -> wire.CallToolResult:
    """Returns the text first, then what people are shown: pictures as such, addresses as links."""
    import mcp_types as wire

    text, data = extract_attachments(result.text, result.data)
    content: list[wire.ContentBlock] = [wire.TextContent(type="text", text=text)]
    images = data.get("images")
    for image in cast("list[Any]", images) if isinstance(images, list) else []:
        if not isinstance(image, dict):
            continue
        shown = cast("dict[str, Any]", image)
        url, title = str(shown.get("url", "")), str(shown.get("title", ""))
        head, _, body = url.partition(",")
        if head.startswith("data:") and head.endswith(";base64"):
            kind = head.removeprefix("data:").removesuffix(";base64")
            content.append(wire.ImageContent(type="image", data=body, mime_type=kind))
        elif url:
            name = title or "picture"
            link = wire.ResourceLink(
                type="resource_link", name=name, title=title or None, uri=url, mime_type="image/png"
            )
            content.append(link)
        links = shown.get("links")
        for name, link in cast("dict[str, Any]", links).items() if isinstance(links, dict) else ():
            content.append(wire.ResourceLink(type="resource_link", name=name, uri=str(link)))
    return wire.CallToolResult(content=content, is_error=result.is_error)


def _services(section: Mapping[str, Json]) -> SkillServices:
    """Returns the services of a tool here: the clock and the web. Addresses that the environment names may be
    private.
    """
    # Hosts and ports that the environment names, such as a local server for tests, may be private.
    named = [
        url.split("://", 1)[1].split("/", 1)[0] for url in section.values() if isinstance(url, str) and "://" in url
    ]
    return SkillServices(
        clock=SystemClock(),
        fetcher=WebFetcher(allow_private=named),
        folders=SkillFolders(own=lambda _, skill: Path(gettempdir()) / "denizen-mcp" / skill),
        search_history=_no_history,
        call_tool=_no_other_tools,
    )


async def _no_history(scope: CallScope, words: str, limit: int) -> Sequence[HistoryMessage]:
    del scope, words, limit
    return ()


async def _no_other_tools(scope: CallScope, tool: str, args: JsonObject) -> ToolResult:
    del scope, args
    return ToolResult(f"There is no tool '{tool}'.", is_error=True)
