"""The log of requests: a line for each, with the pattern of its path, so that no id, query or secret is in it.

Left out, as long as they succeed, are files of the pages, health checks, and what open pages load by themselves again
and again: they would drown the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from denizen.domain.clock import Clock
from denizen.web.http.auth import HEALTH_PATH, READY_PATH
from denizen.web.http.openapi import STREAM
from denizen.web.http.routing import find_pattern

UNKNOWN_PATH = "(no such path)"
GONE = 499
"""Stands for the status of a request whose client left before it was answered."""
_QUIET = frozenset({HEALTH_PATH, READY_PATH})

_log = logging.getLogger("denizen.access")


class AccessLog:
    """Writes the line of each request once it is answered."""

    def __init__(self, app: ASGIApp, clock: Clock, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._clock = clock
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _log.isEnabledFor(logging.INFO):
            await self._app(scope, receive, send)
            return
        started_s, status, is_stream = self._clock.monotonic_s(), GONE, False

        async def watched(message: Message) -> None:
            nonlocal status, is_stream
            if message["type"] == "http.response.start":
                status = int(message["status"])
                is_stream = Headers(raw=message["headers"]).get("content-type", "").startswith(STREAM)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            is_reload = scope["method"] == "GET" and "hx-request" in Headers(scope=scope)
            is_quiet = is_reload or scope["path"] in _QUIET or scope["path"].startswith("/static/")
            if status >= 400 or not is_quiet:
                fields = {
                    "method": scope["method"],
                    "path": find_pattern(self._routes, scope) or UNKNOWN_PATH,
                    "status": status,
                    "duration_ms": round((self._clock.monotonic_s() - started_s) * 1000),
                }
                _log.log(
                    logging.WARNING if status >= 500 else logging.INFO,
                    "request",
                    extra={**fields, "stream": True} if is_stream else fields,
                )
