"""The way to one server with one key: requests, and their failures as typed errors. Used by `client`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import httpx2

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
        idempotency_key: str = "",
    ) -> Any:  # noqa: ANN401 - any JSON value
        """The answer's JSON. Raises ApiError, NetworkError."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        try:
            response = await self.http.request(method, path, params=params, json=body, headers=headers)
        except httpx2.TransportError as error:
            raise NetworkError(f"No connection to the server: {error}") from error
        await check(response)
        return response.json()


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
