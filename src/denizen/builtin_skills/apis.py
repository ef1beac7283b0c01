"""APIs of one's own: registered by name, then called by any method, at most 10 times a minute each.

A key stands in the configuration together with the one host that may get it, so that nobody can have it sent elsewhere.
No redirect is followed, and an answer that repeats a key is shown without it. Calls that may change something are a
tool of their own, which asks a human. Answers come from strangers.

The registered APIs and the times of the last calls are files, which all processes of a home share.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import unquote, urlencode, urlsplit

from denizen.skill import (
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
    quote_untrusted,
    run_in_thread,
    truncate,
)

CALLS_PER_MINUTE = 10
MINUTE_S = 60.0
MAX_APIS = 50
MAX_ANSWER_CHARS = 12_000
TIMEOUT_S = 30.0

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostKey:
    """`host` is the only one that gets the key, over https or at the named `server`. `value` is the whole value of
    `header`, such as `Bearer ${TRACKER_TOKEN}`.
    """

    host: str
    value: str = field(repr=False)
    header: str = "Authorization"


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """`keys` are keys of APIs by name. `server` is the address of one server of your own network, such as
    `http://nas.lan:8080`, whose API may be called besides those of the public web.
    """

    keys: dict[str, HostKey] = field(default_factory=dict[str, HostKey])
    server: str = ""


skill = Skill("apis", description="Registers and calls APIs of the web.", settings=ApiSettings)


@dataclass(frozen=True, slots=True)
class _Api:
    name: str
    base_url: str
    key: str = ""
    description: str = ""


@skill.tool(tier=Tier.SENSITIVE, effects={Effect.MEMORY})
async def register_api(
    context: ToolContext,
    name: Annotated[str, "lower case"],
    base_url: Annotated[str, Param("https", max_length=500)],
    key: Annotated[str, "name of a configured key; empty: none"] = "",
    description: Annotated[str, Param(max_length=300)] = "",
) -> str:
    """Registers an API for calls."""
    api = _Api(name, base_url.strip().rstrip("/"), key, description)
    _check(api, context.settings(ApiSettings))
    await _change(context, partial(_add, api))
    return f"Registered {name}."


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def list_apis(context: ToolContext) -> str | ToolOutput:
    """Lists registered APIs."""
    apis = await run_in_thread(partial(_load, _folder(context)))
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
    await _change(context, partial(_remove, name))
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
    return await _call(context, name, _Call(method, path, query))


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
    return await _call(context, name, _Call(method, path, query, body))


@dataclass(frozen=True, slots=True)
class _Call:
    method: str
    path: str
    query: dict[str, str]
    body: str = ""


async def _call(context: ToolContext, name: str, call: _Call) -> str:
    if context.send_request is None:
        raise ToolError("Requests cannot be sent here.")
    settings = context.settings(ApiSettings)
    api = _find(await run_in_thread(partial(_load, _folder(context))), name)
    _check(api, settings)  # the configuration may be another one by now
    url = _join(api, call)
    headers = {"Content-Type": "application/json"} if call.body else {}
    secret = settings.keys[api.key].value if api.key else ""
    if api.key:
        headers[settings.keys[api.key].header] = secret
    await run_in_thread(partial(_count_call, _folder(context), name, context.clock.now().timestamp()))
    request = WebRequest(method=call.method, url=url, headers=headers, body=call.body)
    try:
        answer = await context.send_request(request, timeout_s=TIMEOUT_S)
    except (InvalidInput, NotAllowed) as refused:
        raise ToolError(refused.explain(), is_own=True) from refused
    return _show(answer, api, secret)


def _show(answer: FetchedPage, api: _Api, secret: str) -> str:
    text = answer.text
    for part in filter(None, (secret, secret.rpartition(" ")[2])):
        text = text.replace(part, "***")
    cut = " (cut)" if answer.truncated or len(text) > MAX_ANSWER_CHARS else ""
    head = f"{answer.status} {answer.media_type}{cut}".strip()
    return f"{head}\n{quote_untrusted(truncate(text, MAX_ANSWER_CHARS), source=api.base_url)}"


def _check(api: _Api, settings: ApiSettings) -> None:
    """Raises InvalidInput or NotAllowed for what may not be registered or called."""
    if not _NAME.fullmatch(api.name):
        raise InvalidInput("This cannot be the name of an API.", code="api_name", fix="Use a-z, 0-9, - and _.")
    try:
        parts = urlsplit(api.base_url)
        host, is_own = parts.hostname or "", bool(settings.server) and _origin(api.base_url) == _origin(settings.server)
    except ValueError as error:
        raise InvalidInput("This is no web address.", code="api_url", fix="Give one in full, with https.") from error
    if not host or parts.query or parts.fragment or parts.username or (parts.scheme != "https" and not is_own):
        raise InvalidInput(
            "An API cannot be called at this address.",
            code="api_url",
            why="it needs https and a host, and has no user name and nothing from ? or # on",
            fix="Give an address such as https://api.example.org/v1.",
        )
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


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"https": 443, "http": 80}.get(parts.scheme)


def _join(api: _Api, call: _Call) -> str:
    """Returns the address, which stays below that of the API. Raises InvalidInput."""
    path = call.path.strip().lstrip("/")
    plain = unquote(unquote(path))
    if any(part in (".", "..") for part in re.split(r"[/\\]", plain)) or re.search(r"[?#\\\s\x00-\x1f]", plain):
        raise InvalidInput(
            "This path leads out of the API.",
            code="api_path",
            fix="Give a path below its base without . or .., and what follows ? as query.",
        )
    query = f"?{urlencode(call.query)}" if call.query else ""
    return f"{api.base_url}/{path}".rstrip("/") + query


def _folder(context: ToolContext) -> Path:
    if context.shared is None:
        raise ToolError("There is no folder for APIs.")
    return context.shared


def _find(apis: dict[str, _Api], name: str) -> _Api:
    if name not in apis:
        known = ", ".join(sorted(apis)) or "none"
        raise NotFound(f"There is no API '{name[:40]}'.", code="api_unknown", fix=f"Registered are: {known}.")
    return apis[name]


async def _change(context: ToolContext, change: Callable[[dict[str, _Api]], None]) -> None:
    folder = _folder(context)

    def job() -> None:
        with _locked(folder):
            apis = _load(folder)
            change(apis)
            _write(folder / "apis.json", [asdict(api) for api in apis.values()])

    await run_in_thread(job)


def _add(api: _Api, apis: dict[str, _Api]) -> None:
    if api.name not in apis and len(apis) >= MAX_APIS:
        raise ToolError(f"{MAX_APIS} APIs are registered, as many as there may be. Delete one.", is_own=True)
    if api.name in apis and apis[api.name] != api:
        raise ToolError(f"The name {api.name} is taken. Delete that API first, or choose another.", is_own=True)
    apis[api.name] = api


def _remove(name: str, apis: dict[str, _Api]) -> None:
    del apis[_find(apis, name).name]


def _count_call(folder: Path, name: str, now_s: float) -> None:
    """Notes a call. Raises ToolError when there were too many within a minute, of whatever process."""
    with _locked(folder):
        calls: dict[str, list[float]] = _read(folder / "calls.json", {})
        recent = [at for at in calls.get(name, []) if 0 <= now_s - at < MINUTE_S]
        if len(recent) >= CALLS_PER_MINUTE:
            wait_s = MINUTE_S - (now_s - min(recent))
            raise ToolError(
                f"{name} was called {CALLS_PER_MINUTE} times within a minute. Wait {wait_s:.0f} s.", is_own=True
            )
        _write(folder / "calls.json", calls | {name: [*recent, now_s]})


def _load(folder: Path) -> dict[str, _Api]:
    return {row["name"]: _Api(**row) for row in _read(folder / "apis.json", [])}


def _read(path: Path, default: T) -> T:
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    return found


def _write(path: Path, value: object) -> None:
    following = path.with_suffix(".next")
    with following.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    following.replace(path)


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Keeps other processes from changing the files during the block."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
