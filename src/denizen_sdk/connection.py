"""The way to one server with one key: requests, and their failures as typed errors. Used by `client`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
from httpx2 import EventSource

from denizen_sdk.errors import ApiError, NetworkError
from denizen_sdk.wire import Problem, from_json


class Connection:
    """`http` is open until `aclose`."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http

    async def aclose(self) -> None:
        await self.http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - any JSON value
        """The answer's JSON, None when there is no answer but that it is done. Raises ApiError, NetworkError."""
        try:
            response = await self.http.request(method, path, params=params, json=body, headers=headers)
        except httpx2.TransportError as error:
            raise NetworkError(f"No connection to the server: {error}") from error
        await check(response)
        return response.json() if response.content else None

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[EventSource]:
        """An answer of server-sent events. Raises ApiError before the first one, and NetworkError at any time."""
        try:
            async with self.http.sse(path, method=method, json=body, headers=headers) as source:
                await check(source.response)
                yield source
        except httpx2.TransportError as error:
            raise NetworkError(f"No connection to the server: {error}") from error


def idempotent(key: str) -> Mapping[str, str]:
    """The header of what is to be done once, however often it is sent; none without a key."""
    return {"Idempotency-Key": key} if key else {}


async def check(response: httpx2.Response) -> None:
    """Raises ApiError for an error status. An answer that is not Denizen's (a proxy's page) is told by its status."""
    if response.is_success:
        return
    await response.aread()
    problem = Problem("http", f"The server answered {response.status_code}.", status=response.status_code)
    if response.headers.get("content-type", "").startswith("application/json"):
        body: Any = response.json()
        error: Any = cast("dict[str, Any]", body).get("error") if isinstance(body, dict) else None
        if isinstance(error, dict) and {"code", "message"} <= error.keys():
            problem = from_json(Problem, cast("dict[str, Any]", error))
    after = response.headers.get("retry-after", "")
    raise ApiError(problem, retry_after_s=float(after) if after.isdigit() else None)
