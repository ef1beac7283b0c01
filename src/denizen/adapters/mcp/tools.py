"""Translates a server's tools and results: names, specs with tiers, texts for the model, files for people. Pure.

Tools are offered as `<prefix>_<tool>`, in a form that every model accepts. Schemas are passed on as the server wrote
them.
"""

from __future__ import annotations

import json
import mimetypes
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urlsplit

from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.domain.tool import CacheScope, DataFlow, Effect, Taint, Tier, ToolResult, ToolSpec

if TYPE_CHECKING:
    from mcp_types import CallToolResult, EmbeddedResource, ResourceLink, Tool


TIMEOUT_S = 360.0
"""How long a call may take unless it is configured. Tools that paint or search need minutes."""
MAX_CHARS = 64
"""The longest name that the strictest provider accepts."""
_MARK_CHARS = 6
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")


@record(kw_only=True)
class McpDataFlow:
    """The part of a tool's `DataFlow` that the owner wrote; `_plan_flow` fills in what is None."""

    reads: tuple[Taint, ...] | None = None
    effects: tuple[Effect, ...] | None = None
    destinations: tuple[str, ...] | None = None


@record
class McpToolPolicy:
    """Which of a server's tools are offered, how dangerous they are, and what they let in and send.

    Patterns match the server's own names of its tools; in `tiers` and `flows` the first match counts. What a server
    says about the risks of its tools is believed only when it is `trusted`; all tools of other servers are dangerous.
    `reserved` are beginnings of names that belong to other servers, such as `git_hub_` for a server whose names begin
    with `git_`: rules and calls for such a name must not reach this server.
    """

    prefix: str
    allow: tuple[str, ...] = ("*",)
    tiers: tuple[tuple[str, Tier], ...] = ()
    trusted: bool = False
    timeout_s: float = TIMEOUT_S
    reserved: tuple[str, ...] = ()
    flows: tuple[tuple[str, McpDataFlow], ...] = ()

    def allows(self, tool: str) -> bool:
        return any(fnmatchcase(tool, pattern) for pattern in self.allow)

    def find_tier(self, tool: str) -> Tier | None:
        """Returns the tier that the owner configured for a tool."""
        return next((tier for pattern, tier in self.tiers if fnmatchcase(tool, pattern)), None)

    def find_flow(self, tool: str) -> McpDataFlow:
        """Returns what the owner wrote about a tool; empty for nothing."""
        return next((flow for pattern, flow in self.flows if fnmatchcase(tool, pattern)), McpDataFlow())


def plan_names(prefix: str, tools: Sequence[str]) -> dict[str, str]:
    """Returns the offered name of each tool.

    The same tool of the same server always has the same name, whatever else is in the list. Where two would have the
    same name, the one that had to be changed gets a digest of its own name.
    """
    raw = {tool: f"{prefix}_{tool}" if prefix else tool for tool in tools}
    plain = {tool: sanitise(name) for tool, name in raw.items()}
    often = Counter(plain.values())
    return {tool: name if often[name] == 1 or name == raw[tool] else _marked(raw[tool]) for tool, name in plain.items()}


def sanitise(name: str) -> str:
    """Replaces other characters by `_`; cuts and marks a name that is too long."""
    clean = _FOREIGN.sub("_", name)
    return clean if len(clean) <= MAX_CHARS else _marked(name)


def _marked(name: str) -> str:
    mark = sha256(name.encode()).hexdigest()[:_MARK_CHARS]
    return f"{_FOREIGN.sub('_', name)[: MAX_CHARS - _MARK_CHARS - 1]}_{mark}"


MAX_TOOLS = 500
"""The limit for one server."""
MAX_DESCRIPTION_CHARS = 4000


@record
class McpToolList:
    """The offered tools. `own_names` maps an offered name to the server's; `left_out` says why others are missing."""

    specs: tuple[ToolSpec, ...] = ()
    own_names: Mapping[str, str] = field(default_factory=dict[str, str])
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])


def build_tool_list(tools: Sequence[Tool], offer: McpToolPolicy, source: str) -> McpToolList:
    """Returns the tools that the policy offers, with a reason for each that is left out."""
    allowed = {tool.name: tool for tool in tools if offer.allows(tool.name)}
    left_out = {name: problem for name, tool in allowed.items() if (problem := _find_problem(tool))}
    usable = [tool for name, tool in allowed.items() if name not in left_out]
    left_out |= {tool.name: f"a server may have {MAX_TOOLS} tools" for tool in usable[MAX_TOOLS:]}
    planned = plan_names(offer.prefix, [tool.name for tool in usable[:MAX_TOOLS]])
    # A server could else take over calls and rules for a tool of another server.
    names = {own: shown for own, shown in planned.items() if not shown.startswith(offer.reserved)}
    left_out |= {own: f"{planned[own]} could be a tool of another server" for own in planned.keys() - names.keys()}
    specs = tuple(_spec(tool, names[tool.name], offer, source) for tool in usable if tool.name in names)
    return McpToolList(specs, {shown: own for own, shown in names.items()}, left_out)


def _spec(tool: Tool, name: str, offer: McpToolPolicy, source: str) -> ToolSpec:
    hints = tool.annotations
    # A warning is believed from everybody, a reassurance only from a trusted server.
    is_destructive = hints is not None and hints.destructive_hint is True and hints.read_only_hint is not True
    reads_only = offer.trusted and hints is not None and hints.read_only_hint is True
    is_idempotent = offer.trusted and hints is not None and hints.idempotent_hint is True
    description = (tool.description or tool.title or tool.name).strip() or tool.name
    return ToolSpec(
        name,
        description[:MAX_DESCRIPTION_CHARS],
        # Passed on unchanged: the model should see what the author of the server wrote.
        cast("Mapping[str, Json]", tool.input_schema),
        tier=_tier(tool.name, offer, reads_only=reads_only),
        read_only=reads_only,
        idempotent=is_idempotent or reads_only,
        # A server is not told who asks.
        cache=CacheScope.EVERYONE if is_idempotent and reads_only else CacheScope.NONE,
        timeout_s=offer.timeout_s,
        source=source,
        destructive=is_destructive,
        flow=_plan_flow(tool, offer.find_flow(tool.name), reads_only=reads_only),
    )


def _plan_flow(tool: Tool, written: McpDataFlow, *, reads_only: bool) -> DataFlow:
    """The owner's word counts. Where there is none, results are foreign text, and a tool that does not only read sends
    something to the addresses in its arguments, or anywhere.
    """
    schema = cast("Mapping[str, Json]", tool.input_schema)
    reads = {Taint.TOOL} if written.reads is None else written.reads
    effects = (() if reads_only else (Effect.SEND,)) if written.effects is None else written.effects
    destinations = find_destinations(schema) if written.destinations is None else written.destinations
    return DataFlow(
        frozenset(reads), frozenset(effects), destinations if Effect.SEND in effects else (), here_by_default=False
    )


def find_destinations(schema: Mapping[str, Json]) -> tuple[str, ...]:
    """Returns the names of the arguments that seem to say where a tool sends to, by their names and formats. Empty when
    none of them is required: such a tool has a place of its own to send to.
    """
    properties = schema.get("properties")
    required = schema.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return ()
    found = tuple(name for name, value in properties.items() if _is_address(name, value))
    return found if any(name in required for name in found) else ()


_ADDRESS_NAMES = re.compile(
    r"to|b?cc|(recipient|receiver|addressee|email|mail|address|url|channel|room|participant|attendee|invitee|guest)(es|s)?"
    r"|uri|link|webhook|endpoint|host|domain|chat|phone|iban|payee"
)
_ADDRESS_FORMATS = frozenset({"email", "idn-email", "uri", "iri", "hostname", "idn-hostname"})
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def _is_address(name: str, value: Json) -> bool:
    """`recipient_email` and `channelId` are addresses, and so is whatever has the format of one."""
    shape = value if isinstance(value, dict) else {}
    items = shape.get("items")
    inner = items if isinstance(items, dict) else shape
    is_named = any(_ADDRESS_NAMES.fullmatch(word.lower()) for word in _WORD.findall(name))
    return is_named or inner.get("format") in _ADDRESS_FORMATS


def _tier(tool: str, offer: McpToolPolicy, *, reads_only: bool) -> Tier:
    written = offer.find_tier(tool)
    if written is not None:
        return written
    if not offer.trusted:
        return Tier.DANGEROUS
    return Tier.LIMITED if reads_only else Tier.SENSITIVE


def _find_problem(tool: Tool) -> str:
    """Returns why arguments can never be checked against the tool's schema; empty when they can."""
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for

    schema = tool.input_schema
    if schema.get("type") != "object":
        return "its schema is not of type object"
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return f"its schema is not valid: {error.message[:200]}"
    return ""


MAX_DATA_CHARS = 16_000_000
"""The limit for what one result shows to people, as it is recorded."""


def to_result(result: CallToolResult) -> ToolResult:
    """Translates a result: text for the model; pictures, sound and files for people (`domain/attachments`).

    `isError` makes it a failure. Structured content is used where there is no text.
    """
    read = _ResultReader()
    for block in result.content:
        read.take(block)
    text = "\n".join(read.texts)
    if not read.has_text and result.structured_content is not None:
        text = "\n".join([json.dumps(result.structured_content, ensure_ascii=False), *read.texts])
    if not text:
        text = "The tool failed and did not say why." if result.is_error else "Done; the tool returned nothing."
    return ToolResult(
        text, is_error=bool(result.is_error), data={name: rows for name, rows in read.data.items() if rows}
    )


class _ResultReader:
    """Collects the texts and files of a result."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.has_text = False
        self.data: dict[str, list[Json]] = {"images": [], "files": [], "embeds": []}
        self._picture: dict[str, Json] | None = None
        """The picture that came last, with nothing but links since."""
        self._chars = 0

    def take(self, block: object) -> None:
        from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent

        match block:
            case TextContent():
                self._say(block.text)
            case ImageContent():
                self._show("images", block.mime_type, block.data, f"image-{len(self.data['images']) + 1}")
            case AudioContent():
                self._show("files", block.mime_type, block.data, f"audio-{len(self.data['files']) + 1}")
            case EmbeddedResource():
                self._take_resource(block)
            case ResourceLink():
                self._link(block)
            case _:
                self.texts.append("[something of a kind that is not known here was left out]")

    def _say(self, text: str) -> None:
        if text:
            self._picture = None
            self.texts.append(text)
            self.has_text = True

    def _take_resource(self, block: EmbeddedResource) -> None:
        """Gives a text to the model and shows anything else to people."""
        from mcp_types import TextResourceContents

        resource = block.resource
        name = _file_name(resource.uri, resource.mime_type or "")
        if not isinstance(resource, TextResourceContents):
            media_type = resource.mime_type or "application/octet-stream"
            kind = "images" if media_type.startswith("image/") else "files"
            self._show(kind, media_type, resource.blob, name)
            return
        self._say(f"[{resource.uri}]\n{resource.text}")

    def _show(self, kind: str, media_type: str, encoded: str, name: str) -> None:
        if self._chars + len(encoded) > MAX_DATA_CHARS:
            self.texts.append(f"[{name} was left out: it is too large]")
            return
        self._chars += len(encoded)
        media_type = media_type.partition(";")[0].strip()
        if "." not in name:
            name += _ending(media_type)
        row: dict[str, Json] = {"url": f"data:{media_type};base64,{encoded}", "name": name}
        self.data[kind].append(row)
        self._picture = row if kind == "images" else None
        self.texts.append(f"[{name} ({media_type}) is shown to the user]")

    def _link(self, link: ResourceLink) -> None:
        """Shows a link as a card. A link to a picture is a picture, and behind a picture, a link without a description
        is another view of that.
        """
        title = link.title or link.name
        about = link.description or ""
        if link.uri.startswith(("https://", "http://")):
            if (link.mime_type or "").startswith("image/"):
                self._picture = {"url": link.uri, "title": link.title or ""}
                self.data["images"].append(self._picture)
            elif self._picture is not None and not about:
                self._picture["links"] = {**cast("JsonObject", self._picture.get("links", {})), title: link.uri}
            else:
                self.data["embeds"].append({"title": title, "text": about, "url": link.uri})
        self.texts.append(" ".join(f"[resource: {title} {link.uri} {about}".split()) + "]")


def _file_name(uri: str, media_type: str) -> str:
    """Returns the last part of the address, which is only a name."""
    parts = urlsplit(uri)
    last = unquote(parts.path or parts.netloc).rstrip("/").rpartition("/")[2] or "resource"
    return last if "." in last or not media_type else f"{last}{_ending(media_type)}"


def _ending(media_type: str) -> str:
    plain = media_type.rpartition("/")[2].removeprefix("x-")
    usual = f".{plain}" if plain.isascii() and plain.isalnum() and len(plain) <= 5 else ".bin"
    return mimetypes.guess_extension(media_type) or usual


def read_progress(progress: float, total: float | None, message: str | None) -> str:
    """Returns one line for people about how far a call is."""
    text = " ".join((message or "").split())[:200]
    done = f"{progress / total:.0%}" if total and 0 <= progress <= total else ""
    return f"{text} ({done})" if text and done else text or done
