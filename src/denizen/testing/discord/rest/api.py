"""The REST API on aiohttp: authorization, rate limits, faults, body, handler, answer, log."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote

import anyio
from aiohttp import BodyPartReader, hdrs, web
from aiohttp.multipart import MultipartReader

from denizen.testing.discord.actions.actions import SimActions
from denizen.testing.discord.rest.call import CreatedResponse, Handler, RestCall, RestRoute
from denizen.testing.discord.rest.limits import SimRateLimits
from denizen.testing.discord.rest.request_log import FaultTime, LoggedRequest, RequestFault
from denizen.testing.discord.state.errors import RefusedError, unauthorized
from denizen.testing.discord.state.messages import SimAttachment
from denizen.testing.discord.state.people import SimApplication

PREFIX = "/api/v10"
_FILE = re.compile(r"files\[(\d+)\]")
_IDS = re.compile(r"\{(\w+_id)\}")
_JSON = "application/json"


class SimRestApi:
    """Serves the routes. Handlers run without interruption, so each request is applied wholly or not at all."""

    def __init__(
        self, acts: SimActions, limits: SimRateLimits, faults: Sequence[RequestFault], noticed: Callable[[], None]
    ) -> None:
        self.requests: list[LoggedRequest] = []
        self.gateway_url = ""
        self._acts = acts
        self._limits = limits
        self._faults = faults
        self._noticed = noticed

    def mount(self, router: web.UrlDispatcher, routes: Sequence[RestRoute]) -> None:
        for route in routes:
            router.add_route(
                route.method, PREFIX + _IDS.sub(r"{\1:\\d+}", route.template), partial(self._answer, route)
            )
        router.add_route("*", PREFIX + "/{rest:.*}", self._unknown)

    async def _unknown(self, request: web.Request) -> web.StreamResponse:
        status, text = (405, "Method Not Allowed") if await _is_known(request) else (404, "Not Found")
        path = request.path.removeprefix(PREFIX)
        self.requests.append(LoggedRequest(request.method, path, "", status=status, query=dict(request.query)))
        return _respond(status, {"message": f"{status}: {text}", "code": 0}, {})

    async def _answer(self, route: RestRoute, request: web.Request) -> web.StreamResponse:
        path = request.path.removeprefix(PREFIX)
        record = LoggedRequest(
            request.method, path, route.template, query=dict(request.query), remote=request.remote or ""
        )
        self.requests.append(record)
        application = self._asker(request)
        record.application_id = application.id if application else None
        ruling = self._limits.rule(
            record.method, route.template, record.path, request.match_info, request.headers.get("Authorization", "")
        )
        if ruling.retry_after_s is not None:
            return self._finish(record, 429, ruling.body, ruling.headers)
        record.body, files = await _read_body(request)
        reason = unquote(request.headers.get("X-Audit-Log-Reason", "")) or None
        record.reason = reason or ""
        call = RestCall(
            acts=self._acts,
            asker=application,
            path=request.match_info,
            query=record.query,
            body=record.body,
            files=files,
            reason=reason,
            gateway_url=self.gateway_url,
        )
        if (broken := await self._meet("before", request, record)) is not None:
            return broken
        status, body = self._handle(route, call)
        record.applied = status < 400
        if (broken := await self._meet("after", request, record)) is not None:
            return broken
        return self._finish(record, status, body, ruling.headers)

    def _handle(self, route: RestRoute, call: RestCall) -> tuple[int, object]:
        try:
            if not route.open and call.asker is None:
                raise unauthorized()
            return _get_status(route.handler, call)
        except RefusedError as refusal:
            return refusal.status, refusal.body

    async def _meet(self, when: FaultTime, request: web.Request, record: LoggedRequest) -> web.StreamResponse | None:
        """Applies a fault at this point and returns its answer; None lets the request go on."""
        for fault in list(self._faults):
            if fault.when != when or not fault.matches(record):
                continue
            fault.left -= 1
            fault.met += 1
            fault.reached.set()
            self._noticed()
            if fault.delay_s:
                await anyio.sleep(fault.delay_s)
            if fault.gate is not None:
                await fault.gate.wait()
            if fault.drop:
                if request.transport is not None:
                    request.transport.abort()
                return web.Response(status=499)
            if fault.status is not None:
                body = {"message": f"{fault.status}: scripted fault", "code": fault.number}
                return self._finish(record, fault.status, body, {})
        return None

    def _asker(self, request: web.Request) -> SimApplication | None:
        token = request.headers.get("Authorization", "").removeprefix("Bot ")
        for application in self._acts.store.applications.values():
            if token and application.token == token:
                return application
        return None

    def _finish(
        self, record: LoggedRequest, status: int, body: object, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        record.status, record.answer = status, body
        self._noticed()
        return _respond(status, body, headers)


async def _is_known(request: web.Request) -> bool:
    """Whether there is a route for the path, with whatever method."""
    methods = [(await resource.resolve(request))[1] for resource in request.app.router.resources()]
    return any(each - {hdrs.METH_ANY} for each in methods)


def _get_status(handler: Handler, call: RestCall) -> tuple[int, object]:
    answer = handler(call)
    if isinstance(answer, CreatedResponse):
        return 201, answer.body
    return (204, None) if answer is None else (200, answer)


def _respond(status: int, body: object, headers: Mapping[str, str]) -> web.Response:
    """Returns JSON without a charset: discord.py takes anything else for text."""
    if status == 204:
        return web.Response(status=204, headers=dict(headers))
    return web.Response(status=status, body=json.dumps(body).encode(), content_type=_JSON, headers=dict(headers))


async def _read_body(request: web.Request) -> tuple[Any, Mapping[int, SimAttachment]]:
    """Returns the JSON of a body and its files by number. The form refuses a body that is not JSON (50035)."""
    if request.content_type == _JSON:
        text = await request.text()
        return _parse(text) if text else None, {}
    if request.content_type.startswith("multipart/"):
        return await _read_parts(await request.multipart())
    return None, {}


async def _read_parts(reader: MultipartReader) -> tuple[Any, Mapping[int, SimAttachment]]:
    fields: dict[str, Any] = {}
    body: Any = None
    files: dict[int, SimAttachment] = {}
    while (part := await reader.next()) is not None:
        if not isinstance(part, BodyPartReader):
            continue
        content = bytes(await part.read(decode=True))
        found = _FILE.fullmatch(part.name or "")
        if found is not None:
            kind = part.headers.get("Content-Type")
            known = None if kind == "application/octet-stream" else kind
            files[int(found[1])] = SimAttachment(part.filename or "file", content, known)
        elif part.name == "payload_json":
            body = _parse(content.decode())
        elif part.name:
            fields[part.name] = content.decode(errors="replace")
    return (fields or None) if body is None else body, files


def _parse(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
