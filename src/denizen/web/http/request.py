"""Reading a request's JSON body and its fields, with errors that name what is wrong."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Mapping
from typing import Any, cast

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request

from denizen.domain.errors import InvalidInput, Unavailable

MAX_BODY_BYTES = 20_000_000
"""Room for a few pictures as data URLs."""

STRANGERS_AT_ONCE = 16
STRANGERS_PATIENCE_S = 20.0

JsonBody = Mapping[str, Any]


async def read_object(request: Request) -> JsonBody:
    """The JSON object in the body. Raises InvalidInput.

    Only `application/json` is taken: a form of a foreign page cannot send that without asking first.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise InvalidInput(
            "The body must be JSON.",
            code="media_type",
            why=f"its Content-Type is '{media_type or 'missing'}'",
            fix="Send `Content-Type: application/json`.",
        )
    raw = await read_bytes(request, limit=MAX_BODY_BYTES)
    try:
        body = _parse(raw)
    except ValueError as error:
        raise InvalidInput("The body is not valid JSON.", code="json_invalid", why=str(error)) from error
    except RecursionError as error:
        raise InvalidInput("The body is nested too deeply.", code="json_invalid") from error
    if not isinstance(body, dict):
        raise InvalidInput("The body must be a JSON object.", code="json_invalid")
    return cast("JsonBody", body)


def _parse(raw: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Raises ValueError, also for half of a surrogate pair: no answer could ever say such a text again."""
    text = raw.decode("utf-8-sig")
    value: Any = json.loads(text)
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def has_body(request: Request) -> bool:
    """Whether there is one, of whatever kind."""
    length = request.headers.get("content-length", "0")
    return length != "0" or "transfer-encoding" in request.headers


async def read_bytes(request: Request, *, limit: int) -> bytes:
    """The body. Raises HTTPException (413) as soon as there is more than the limit."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise HTTPException(413, f"The body is larger than {limit} bytes")
    return bytes(body)


def check_field_names(body: JsonBody, known: Collection[str]) -> None:
    """Raises InvalidInput for a field that nobody would read: what it says would be lost without a word."""
    for name in body:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            fix = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(known)}."
            raise InvalidInput(
                f"There is no field '{name[:100]}' here.", code="field_unknown", fix=fix, field=name[:100]
            )


def read_text(body: JsonBody, name: str, default: str = "") -> str:
    """A string field; null and absence give the default. Raises InvalidInput."""
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise field_error(name, "a string")
    return value


def read_flag(body: JsonBody, name: str) -> bool:
    """A boolean field, false by default. Raises InvalidInput."""
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise field_error(name, "true or false")
    return value is True


def read_number(body: JsonBody, name: str, *, low: float, high: float) -> float | None:
    """A number within bounds, None when absent. Raises InvalidInput."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise field_error(name, f"a number from {low:g} to {high:g}")
    return float(value)


def field_error(name: str, expected: str) -> InvalidInput:
    fix = "Correct the field, or leave it out where it may be missing."
    return InvalidInput(f"'{name}' must be {expected}.", code="field_invalid", fix=fix, field=name)


class WebhookBodyReader:
    """Reads the bodies of those who show by the body itself who they are, such as signed webhooks: a few at a time, and
    not for ever, since anybody may send one.
    """

    def __init__(self) -> None:
        self._places = anyio.Semaphore(STRANGERS_AT_ONCE)

    async def read(self, request: Request, *, limit: int) -> bytes:
        """Raises as `read_bytes`, and Unavailable for a body that does not come, or when too many come at once."""
        try:
            with anyio.fail_after(STRANGERS_PATIENCE_S):
                async with self._places:
                    return await read_bytes(request, limit=limit)
        except TimeoutError as error:
            raise Unavailable("The body took too long.", code="body_slow", fix="Send it again.") from error
