"""The HTTP connection to one server with one key: sends requests, and raises typed errors for their failures."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
from httpx2 import EventSource

from denizen_sdk.errors import ApiError, NetworkError, ProblemDetails
from denizen_sdk.records import from_json


class ServerConnection:
    """An HTTP client of one server, open until `aclose`.

    `timeout_s` bounds every wait, except where a call asks for more.
    """

    def __init__(self, http: httpx2.AsyncClient, timeout_s: float) -> None:
        self.http = http
        self._timeout_s = timeout_s

    async def aclose(self) -> None:
        await self.http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        at_least_s: float = 0.0,
    ) -> Any:  # noqa: ANN401 - any JSON value
        """Returns the answer's JSON; None for an empty answer.

        Waits `at_least_s` for the answer even if the client's own timeout is shorter. Raises ApiError, NetworkError.
        """
        answer_s = max(self._timeout_s, at_least_s)
        timeout = httpx2.Timeout(self._timeout_s, read=answer_s)
        try:
            response = await self.http.request(
                method, path, params=params, json=body, content=content, headers=headers, timeout=timeout
            )
        except httpx2.RequestError as error:
            raise self._connection_error(error, answer_s) from error
        await raise_for_error(response)
        try:
            return response.json() if response.content else None
        except ValueError as error:
            raise _foreign_answer_error(response) from error

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, *, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[EventSource]:
        """Opens an answer of server-sent events. Raises ApiError before the first event, NetworkError at any time."""
        try:
            async with self.http.sse(path, method=method, json=body, headers=headers) as source:
                await raise_for_error(source.response)
                if not _has_media_type(source.response, "text/event-stream"):
                    raise _foreign_answer_error(source.response)
                try:
                    yield source
                except json.JSONDecodeError as error:  # the caller decodes the events inside the block
                    raise _foreign_answer_error(source.response) from error
        except httpx2.RequestError as error:
            raise self._connection_error(error, self._timeout_s) from error

    def _connection_error(self, error: httpx2.RequestError, answer_s: float) -> NetworkError:
        url = self.http.base_url  # its netloc holds no password, so it may be shown
        server = f"The server {url.scheme}://{url.netloc.decode()}"
        match error:
            case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
                told = f"could not be reached within {self._timeout_s:g} s. Raise timeout_s if that is too short."
            case httpx2.TimeoutException():
                told = f"did not answer within {answer_s:g} s; it may still be doing it. Raise timeout_s."
            case _:
                told = f"could not be reached, or the connection broke: {str(error) or type(error).__name__}"
        return NetworkError(f"{server} {told}")


async def raise_for_error(response: httpx2.Response) -> None:
    """Raises ApiError for an error status. For an answer that is not Denizen's (a proxy's page) it names the status."""
    if response.is_success:
        return
    await response.aread()
    problem = ProblemDetails("http", f"The server answered {response.status_code}.", status=response.status_code)
    if _has_media_type(response, "application/json"):
        try:
            body: Any = response.json()
        except ValueError:
            body = None
        error: Any = cast("dict[str, Any]", body).get("error") if isinstance(body, dict) else None
        if isinstance(error, dict) and {"code", "message"} <= error.keys():
            problem = from_json(ProblemDetails, cast("dict[str, Any]", error))
    after = response.headers.get("retry-after", "")
    raise ApiError(problem, retry_after_s=float(after) if after.isdigit() else None)


def _has_media_type(response: httpx2.Response, kind: str) -> bool:
    return _media_type(response) == kind


def _media_type(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _foreign_answer_error(response: httpx2.Response) -> ApiError:
    status = response.status_code
    return ApiError(
        ProblemDetails(
            "http",
            f"The server answered {status} with something that is not Denizen's.",
            status=status,
            why=f"Its type is '{_media_type(response)}'.",
            fix="Check base_url: another server, a proxy or a login page may have answered.",
        )
    )
