"""A client for a vendor's JSON API: retries, and a text of its own for each way to fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, cast

import anyio
import httpx2

from denizen.skill import ToolError

SleepFor = Callable[[float], Awaitable[None]]

_REASON_CHARS = 300
_FIRST_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class VendorService:
    """A vendor's API: its address, headers and limits. `texts` say what a status means there, for people."""

    name: str
    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    texts: Mapping[int, str] = field(default_factory=dict[int, str])
    timeout_s: float = 120.0
    retry_pauses_s: tuple[float, ...] = (2.0, 4.0, 8.0)


@dataclass(frozen=True, slots=True)
class VendorResponse:
    """A status and the JSON object that came with it."""

    status: int
    body: Mapping[str, Any]


class VendorClient:
    """A client of one service, used as a context manager."""

    def __init__(self, service: VendorService, *, pause: SleepFor = anyio.sleep) -> None:
        self._service = service
        self._pause = pause
        self._client = httpx2.AsyncClient(
            base_url=service.base_url.rstrip("/") + "/", headers=dict(service.headers), timeout=service.timeout_s
        )

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    async def get(self, path: str, *, accept: frozenset[int] = frozenset()) -> VendorResponse:
        """Returns the response with status 2xx or one of `accept`. Raises ToolError for any other."""
        return await self._ask("GET", path, None, accept)

    async def post(self, path: str, body: Mapping[str, object]) -> VendorResponse:
        """Posts JSON and returns the response as `get` does. A request that may have arrived is repeated only when
        the service says that it failed: it could be charged twice.
        """
        return await self._ask("POST", path, body, frozenset())

    async def _ask(
        self, method: str, path: str, body: Mapping[str, object] | None, accept: frozenset[int]
    ) -> VendorResponse:
        for pause_s in (*self._service.retry_pauses_s, None):
            try:
                response = await self._client.request(method, path.lstrip("/"), json=body)
            except httpx2.TimeoutException as error:
                # A POST that timed out later may have been taken, and would be charged twice.
                if pause_s is None or (method == "POST" and not isinstance(error, httpx2.ConnectTimeout)):
                    raise self._error(
                        f"did not answer within {self._service.timeout_s:g} s. Try again later."
                    ) from error
            except httpx2.TransportError as error:
                if pause_s is None or (method == "POST" and not isinstance(error, httpx2.ConnectError)):
                    raise self._error("cannot be reached. Check the connection and the address.") from error
            else:
                if response.is_success or response.status_code in accept:
                    return VendorResponse(response.status_code, self._object(response))
                # A request that is refused is refused again; a server error may pass.
                if pause_s is None or response.status_code < _FIRST_SERVER_ERROR:
                    raise self._refusal(response)
            await self._pause(pause_s)
        raise AssertionError("the last attempt returns or raises")

    def _object(self, response: httpx2.Response) -> Mapping[str, Any]:
        try:
            body = response.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise self._error("sent a response that is not understood.")
        return cast("dict[str, Any]", body)

    def _refusal(self, response: httpx2.Response) -> ToolError:
        status = response.status_code
        text = self._service.texts.get(status) or (
            "has an error of its own. Try again later." if status >= _FIRST_SERVER_ERROR else "refused the request."
        )
        reason = _reason(response)
        return self._error(f"{text} (HTTP status {status}{f': {reason}' if reason else ''})")

    def _error(self, text: str) -> ToolError:
        return ToolError(f"{self._service.name} {text}")


def _reason(response: httpx2.Response) -> str:
    """Returns what the service says is wrong, without what was sent: that may be a whole picture."""
    try:
        body = response.json()
    except ValueError:
        return ""
    if not isinstance(body, dict):
        return ""
    fields = cast("dict[str, object]", body)
    for key in ("detail", "error", "message"):
        match fields.get(key):
            case str() as text:
                return text[:_REASON_CHARS]
            case {"message": str() as text}:
                return text[:_REASON_CHARS]
            case list():
                faults = cast("list[object]", fields[key])
                return "; ".join(_fault(each) for each in faults)[:_REASON_CHARS]
            case _:
                pass
    return ""


def _fault(fault: object) -> str:
    """Formats an error of FastAPI's form: where it is, and what."""
    if not isinstance(fault, dict):
        return ""
    fields = cast("dict[str, object]", fault)
    where = fields.get("loc")
    steps = cast("list[object]", where) if isinstance(where, list) else []
    return ": ".join(filter(None, (".".join(map(str, steps)), str(fields.get("msg", "")))))
