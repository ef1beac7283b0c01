"""APIs of one's own: registered by name, then called by any method, at most 10 times a minute each.

A key stands in the configuration together with the one host that may get it, so that nobody can have it sent elsewhere.
No redirect is followed, and an answer that repeats a key is shown without it. Calls that may change something are a
tool of their own, which asks a human. Answers come from strangers.

An API that was imported from an OpenAPI document has operations, whose arguments are checked before anything is sent.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import SplitResult, parse_qs, unquote, urlencode, urlsplit

from denizen.builtin_skills.api_registry import ApiRegistry, RegisteredApi
from denizen.skill import (
    ApiDocument,
    ApiDocumentReader,
    ApiKeyPlace,
    ApiOperation,
    Effect,
    FetchedPage,
    InvalidInput,
    NotAllowed,
    NotFound,
    Param,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    ToolOutput,
    WebRequest,
    fill_operation,
    quote_untrusted,
    run_in_thread,
    select_schemas,
    truncate,
)

MAX_ANSWER_CHARS = 12_000
MAX_DOCUMENT_BYTES = 1_000_000
MAX_LISTED = 40
MAX_DESCRIBED_CHARS = 8_000
TIMEOUT_S = 30.0

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")


@dataclass(frozen=True, slots=True)
class HostKey:
    """`host` is the only one that gets the key, over https or at the named `server`. `value` is the whole value of
    `header`, such as `Bearer ${TRACKER_TOKEN}`, or of the parameter `query` where that is given.
    """

    host: str
    value: str = field(repr=False)
    header: str = "Authorization"
    query: str = ""


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """`keys` are keys of APIs by name. `server` is the address of one server of your own network, such as
    `http://nas.lan:8080`, whose API may be called besides those of the public web.
    """

    keys: dict[str, HostKey] = field(default_factory=dict[str, HostKey])
    server: str = ""


skill = Skill("apis", description="Registers and calls APIs of the web.", settings=ApiSettings)


@skill.tool(tier=Tier.SENSITIVE, effects={Effect.MEMORY})
async def register_api(
    context: ToolContext,
    name: Annotated[str, "lower case"],
    base_url: Annotated[str, Param("https", max_length=500)],
    key: Annotated[str, "name of a configured key; empty: none"] = "",
    description: Annotated[str, Param(max_length=300)] = "",
) -> str:
    """Registers an API for calls."""
    api = RegisteredApi(name, base_url.strip().rstrip("/"), key, description)
    _check(api, context.settings(ApiSettings))
    await run_in_thread(partial(_registry(context).add, api))
    return f"Registered {name}."


@skill.tool(tier=Tier.SENSITIVE, timeout_s=90.0, reads={Taint.WEB}, effects={Effect.MEMORY})
async def import_api(
    context: ToolContext,
    name: Annotated[str, "lower case"],
    document: Annotated[str, Param("address or text of it", max_length=200_000)],
    server: Annotated[str, Param("if it names several", max_length=500)] = "",
    key: Annotated[str, "of list_apis"] = "",
) -> str:
    """Registers an API by its OpenAPI document."""
    settings, reader = context.settings(ApiSettings), _reader(context)
    is_address = re.fullmatch(r"https?://\S+", document.strip(), re.IGNORECASE)
    address = document.strip() if is_address else ""
    text = await _download(context, address) if address else document
    found = await run_in_thread(partial(reader.read, text, address))
    api = RegisteredApi(name, _choose_server(found, server, source=name), key)
    _check(api, settings)
    if key:
        _check_place(found, key, settings.keys[key], source=name)
    await run_in_thread(partial(_registry(context).add, api, found))
    notes = f", {found.left_out} left out that cannot be called" if found.left_out else ""
    unkeyed = " It wants a key, which the owner writes under tools.apis.keys." if found.key_places and not key else ""
    return f"Registered {name} with {len(found.operations)} operations{notes}.{unkeyed}"


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.WEB, Taint.OTHERS})
async def find_operations(
    context: ToolContext, name: str, words: Annotated[str, Param("all occur", max_length=120)] = ""
) -> str:
    """Lists operations of an imported API; for words that are the id of one, its arguments."""
    document = await run_in_thread(partial(_registry(context).get_document, name))
    named = next((each for each in document.operations if each.id == words), None)
    if named is not None:
        schemas = select_schemas(named, document.schemas)
        shown = json.dumps({"arguments": named.arguments, "schemas": schemas}, ensure_ascii=False)
        return quote_untrusted(f"{_summarize(named)}\n{truncate(shown, MAX_DESCRIBED_CHARS)}", source=name)
    lines = map(_summarize, document.operations)
    found = [line for line in lines if all(word in line.casefold() for word in words.casefold().split())]
    more = [f"({len(found) - MAX_LISTED} more: give words)"] if len(found) > MAX_LISTED else []
    return quote_untrusted("\n".join([*found[:MAX_LISTED], *more]) or "None.", source=name)


@skill.tool(tier=Tier.LIMITED, read_only=True, timeout_s=TIMEOUT_S + 10, reads={Taint.WEB})
async def call_operation(context: ToolContext, name: str, operation: str, arguments: dict[str, Any] = {}) -> str:  # noqa: B006
    """Reads through an operation (GET, HEAD)."""
    return await _call_operation(context, name, operation, arguments, reads=True)


@skill.tool(
    tier=Tier.DANGEROUS,
    timeout_s=TIMEOUT_S + 10,
    reads={Taint.WEB},
    effects={Effect.SEND},
    destructive=True,  # as send_to_api
)
async def send_operation(context: ToolContext, name: str, operation: str, arguments: dict[str, Any] = {}) -> str:  # noqa: B006
    """Changes something through an operation."""
    return await _call_operation(context, name, operation, arguments, reads=False)


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def list_apis(context: ToolContext) -> str | ToolOutput:
    """Lists registered APIs."""
    apis = await run_in_thread(_registry(context).load)
    if not apis:
        return ToolOutput("No API is registered.", is_own=True)
    keys = ", ".join(sorted(context.settings(ApiSettings).keys)) or "none"
    lines = (
        f"{api.name}: {api.base_url} (key: {api.key or 'none'}) {api.description}".strip() for api in apis.values()
    )
    return quote_untrusted("\n".join([*lines, f"Configured keys: {keys}"]), source="apis")


@skill.tool(tier=Tier.SENSITIVE)
async def delete_api(context: ToolContext, name: str) -> str:
    """Deletes a registered API."""
    await run_in_thread(partial(_registry(context).delete, name))
    return f"Deleted {name}."


@skill.tool(tier=Tier.LIMITED, read_only=True, timeout_s=TIMEOUT_S + 10, reads={Taint.WEB})
async def call_api(
    context: ToolContext,
    name: str,
    path: Annotated[str, Param("below its base", max_length=1000)] = "",
    query: dict[str, str] = {},  # noqa: B006
    method: Literal["GET", "HEAD"] = "GET",
) -> str:
    """Reads from a registered API."""
    return await _call(context, name, _Call(method, _check_path(path), urlencode(query)))


@skill.tool(
    tier=Tier.DANGEROUS,
    timeout_s=TIMEOUT_S + 10,
    reads={Taint.WEB},
    effects={Effect.SEND},
    destructive=True,  # nobody knows what it changes there, or whether it can be taken back
)
async def send_to_api(
    context: ToolContext,
    name: str,
    method: Literal["POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
    path: Annotated[str, Param(max_length=1000)] = "",
    query: dict[str, str] = {},  # noqa: B006
    body: Annotated[str, Param("JSON", max_length=20_000)] = "",
) -> str:
    """Changes something through a registered API."""
    return await _call(context, name, _Call(method, _check_path(path), urlencode(query), body))


@dataclass(frozen=True, slots=True)
class _Call:
    method: str
    path: str
    query: str
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])


async def _call(context: ToolContext, name: str, call: _Call) -> str:
    if context.send_request is None:
        raise ToolError("Requests cannot be sent here.")
    settings = context.settings(ApiSettings)
    registry = _registry(context)
    api = await run_in_thread(partial(registry.get, name))
    _check(api, settings)  # the configuration may be another one by now
    key = settings.keys.get(api.key)
    secret = key.value if key else ""
    headers = call.headers | ({"Content-Type": "application/json"} if call.body else {})
    query = [call.query] if call.query else []
    if key and key.query:
        if key.query in parse_qs(call.query, keep_blank_values=True):
            raise InvalidInput(
                f"'{key.query}' is the parameter of the key.", code="api_key_query", fix="Leave it out: it is added."
            )
        query.append(urlencode({key.query: secret}))
    elif key:
        headers = {name: value for name, value in headers.items() if name.lower() != key.header.lower()}
        headers[key.header] = secret
    url = f"{api.base_url}/{call.path}".rstrip("/") + (f"?{'&'.join(query)}" if query else "")
    await run_in_thread(partial(registry.count_call, name, context.clock.now().timestamp()))
    request = WebRequest(method=call.method, url=url, headers=headers, body=call.body)
    try:
        answer = await context.send_request(request, timeout_s=TIMEOUT_S)
    except (InvalidInput, NotAllowed) as refused:
        raise ToolError(refused.explain(), is_own=True) from refused
    return _show(answer, api, secret)


def _show(answer: FetchedPage, api: RegisteredApi, secret: str) -> str:
    text = answer.text
    for part in filter(None, (secret, secret.rpartition(" ")[2])):
        text = re.sub("".join(map(_match_escaped, part)), "***", text)
    cut = " (cut)" if answer.truncated or len(text) > MAX_ANSWER_CHARS else ""
    head = f"{answer.status} {answer.media_type}{cut}".strip()
    return f"{head}\n{quote_untrusted(truncate(text, MAX_ANSWER_CHARS), source=api.base_url)}"


def _match_escaped(char: str) -> str:
    """Returns a pattern of the character, as it is or as it stands in an address."""
    escaped = "".join(f"%{byte:02x}" for byte in char.encode())
    return f"(?:{re.escape(char)}|(?i:{escaped}){'|[+]' if char == ' ' else ''})"


def _check(api: RegisteredApi, settings: ApiSettings) -> None:
    """Raises InvalidInput or NotAllowed for what may not be registered or called."""
    if not _NAME.fullmatch(api.name):
        raise InvalidInput("This cannot be the name of an API.", code="api_name", fix="Use a-z, 0-9, - and _.")
    parts = _check_address(api.base_url, settings)
    if parts.query or parts.fragment:
        raise InvalidInput(
            "An API cannot be called at this address.",
            code="api_url",
            why="it has something from ? or # on",
            fix="Give an address such as https://api.example.org/v1.",
        )
    host = parts.hostname or ""
    if not api.key:
        return
    if api.key not in settings.keys:
        raise NotFound(
            f"There is no key '{api.key[:40]}'.",
            code="api_key_unknown",
            fix="The owner writes it under tools.apis.keys.",
        )
    if settings.keys[api.key].host.lower() != host.lower():
        raise NotAllowed(
            f"The key '{api.key}' is not for {host}.",
            code="api_key_host",
            fix="The owner says under tools.apis.keys which host gets it.",
        )


def _check_address(url: str, settings: ApiSettings) -> SplitResult:
    """Raises InvalidInput for what is neither an address of the public web with https nor of the configured server."""
    try:
        parts = urlsplit(url)
        is_own = bool(settings.server) and _origin(url) == _origin(settings.server)
    except ValueError as error:
        raise InvalidInput("This is no web address.", code="api_url", fix="Give one in full, with https.") from error
    if not parts.hostname or parts.username or (parts.scheme != "https" and not is_own):
        raise InvalidInput(
            "This address cannot be called.",
            code="api_url",
            why="it needs https and a host, and has no user name",
            fix="Give an address such as https://api.example.org/v1.",
        )
    return parts


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"https": 443, "http": 80}.get(parts.scheme)


def _check_path(path: str) -> str:
    """Returns the path, which stays below the address of the API. Raises InvalidInput."""
    path = path.strip().lstrip("/")
    plain = unquote(unquote(path))
    if any(part in (".", "..") for part in re.split(r"[/\\]", plain)) or re.search(r"[?#\\\s\x00-\x1f]", plain):
        raise InvalidInput(
            "This path leads out of the API.",
            code="api_path",
            fix="Give a path below its base without . or .., and what follows ? as query.",
        )
    return path


def _reader(context: ToolContext) -> ApiDocumentReader:
    if context.api_documents is None:
        raise ToolError("OpenAPI documents cannot be read here.")
    return context.api_documents


async def _download(context: ToolContext, address: str) -> str:
    if context.send_request is None:
        raise ToolError("Requests cannot be sent here.")
    _check_address(address, context.settings(ApiSettings))
    request = WebRequest(method="GET", url=address, headers={}, body="")
    page = await context.send_request(request, timeout_s=TIMEOUT_S, max_bytes=MAX_DOCUMENT_BYTES)
    if page.status != 200:
        raise ToolError(f"The address answers {page.status} instead of a document.", is_own=True)
    if page.truncated:
        raise ToolError(f"The document is larger than {MAX_DOCUMENT_BYTES} bytes.", is_own=True)
    return page.text


def _choose_server(document: ApiDocument, server: str, *, source: str) -> str:
    servers = list(document.servers)
    if not server and len(servers) == 1:
        return servers[0]
    if server.rstrip("/") not in servers:
        known = quote_untrusted(truncate("\n".join(servers), 500), source=source)
        raise InvalidInput("Which server is not said.", code="api_server", fix=f"Give one as `server`:\n{known}")
    return server.rstrip("/")


def _check_place(document: ApiDocument, name: str, key: HostKey, *, source: str) -> None:
    """Raises InvalidInput when the key is sent in none of the ways that the document names."""
    places = document.key_places
    if places and not any(_fits(key, place) for place in places):
        ways = [
            f"query: {place.query}" if place.query else f'header: {place.header}, value: "{place.prefix}..."'
            for place in places
        ]
        raise InvalidInput(
            f"The key '{name}' is not sent as this API wants it.",
            code="api_key_place",
            fix="The owner writes it under tools.apis.keys with one of "
            f"{quote_untrusted(truncate('; '.join(ways), 300), source=source)}",
        )


def _fits(key: HostKey, place: ApiKeyPlace) -> bool:
    if key.query or place.query:
        return key.query == place.query
    return key.header.lower() == place.header.lower() and key.value.lower().startswith(place.prefix.lower())


def _summarize(operation: ApiOperation) -> str:
    return f"{operation.id}: {operation.method} {operation.path} {operation.summary}".strip()


def _find_operation(document: ApiDocument, operation: str) -> ApiOperation:
    for each in document.operations:
        if each.id == operation:
            return each
    raise NotFound(f"There is no operation '{operation[:100]}'.", code="api_operation", fix="See find_operations.")


async def _call_operation(
    context: ToolContext, name: str, operation: str, arguments: dict[str, Any], *, reads: bool
) -> str:
    document = await run_in_thread(partial(_registry(context).get_document, name))
    found = _find_operation(document, operation)
    if found.reads is not reads:
        tool = "call_operation" if found.reads else "send_operation"
        raise InvalidInput(f"This operation is a {found.method}.", code="api_operation", fix=f"Use {tool}.")
    check = partial(_reader(context).check, found, document.schemas, arguments)
    checked = await run_in_thread(check)
    _check_path(found.path)
    filled = fill_operation(found, checked)
    body = json.dumps(checked["body"]) if "body" in checked else ""
    path = filled.path.lstrip("/")
    return await _call(context, name, _Call(found.method, path, filled.query, body, dict(filled.headers)))


def _registry(context: ToolContext) -> ApiRegistry:
    if context.shared is None:
        raise ToolError("There is no folder for APIs.")
    return ApiRegistry(context.shared)
