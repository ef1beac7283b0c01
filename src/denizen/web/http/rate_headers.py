"""The headers that tell callers how many messages they have left: on answers that begin a turn, or refuse one."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from denizen.engine.configuration.generation import Runtime
from denizen.engine.intake.rate_limiter import RateLimiter, turn_rate_key
from denizen.web.http.auth import find_principal
from denizen.web.http.request import TURN_HEADER

LIMIT_HEADER = "X-RateLimit-Limit"
REMAINING_HEADER = "X-RateLimit-Remaining"


class RateHeaders:
    """The middleware that adds the headers where the caller has a limit. It stands around the boundary for errors."""

    def __init__(self, app: ASGIApp, limiter: RateLimiter, runtime: Runtime) -> None:
        self._app = app
        self._limiter = limiter
        self._runtime = runtime

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._add(scope, MutableHeaders(scope=message), message["status"])
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)

    async def _add(self, scope: Scope, headers: MutableHeaders, status: int) -> None:
        if status != 429 and TURN_HEADER not in headers:
            return
        principal = find_principal(HTTPConnection(scope)) if "principal" in scope.get("state", {}) else None
        if principal is None:
            return
        limits = self._runtime.current.policy.rate_limits.of(principal)
        allowance = await self._limiter.find_allowance(turn_rate_key(principal), limits)
        if allowance is not None:
            headers[LIMIT_HEADER] = str(allowance.limit.calls)
            headers[REMAINING_HEADER] = str(allowance.remaining)
