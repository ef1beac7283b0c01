"""Reads requests: query parameters, JSON bodies and their fields, with errors that name the field that is wrong."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast
from urllib.parse import parse_qsl

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from denizen.domain.errors import InvalidInput, Unavailable
from denizen.domain.record import record

MAX_BODY_BYTES = 20_000_000
"""Enough for a few pictures as data URLs."""

MAX_JSON_VALUES = 100_000
"""More than any request needs; texts may be as long as the body."""
_MARKS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[,\[{]', re.DOTALL)
"""A text, or what stands before each value. A text without an end is one too: it is not searched again and again."""

MAX_FORM_BYTES = 200_000
MAX_FORM_FIELDS = 1000
MAX_WEBHOOK_MEMORY_BYTES = 32_000_000
WEBHOOK_DEADLINE_S = 20.0

IDEMPOTENCY_HEADER = "idempotency-key"
TURN_HEADER = "X-Denizen-Turn"

JsonBody = Mapping[str, Any]


@record(kw_only=True)
class QueryParameter:
    """A query parameter with its description, from which the OpenAPI document is made.

    With `high` it is a whole number from `low` on; with `choices` one of these; else a text of at most `max_chars`.
    """

    name: str
    description: str = ""
    default: str = ""
    low: int = 0
    high: int = 0
    max_chars: int = 0
    choices: Sequence[str] = ()

    def read_text(self, request: Request) -> str:
        """Returns the value, or the default. Raises InvalidInput."""
        given = request.query_params.get(self.name)
        if given is None:
            return self.default
        if self.choices and given not in self.choices:
            raise self._error(f"one of {', '.join(self.choices)}")
        if self.max_chars and len(given) > self.max_chars:
            raise self._error(f"a text of at most {self.max_chars} characters")
        return given

    def read_number(self, request: Request) -> int:
        """Returns the value, or the default. Raises InvalidInput."""
        given = self.read_text(request)
        # Nine digits suffice for every limit, and converting a text of millions of digits would take very long.
        is_number = given.isascii() and given.isdecimal() and len(given) <= 9
        if not is_number or not self.low <= int(given) <= self.high:
            raise self._error(f"a whole number from {self.low} to {self.high}")
        return int(given)

    def describe(self) -> dict[str, Any]:
        """Returns the parameter as the OpenAPI document has it."""
        schema: dict[str, Any] = {"type": "string"}
        if self.high:
            schema = {"type": "integer", "minimum": self.low, "maximum": self.high, "default": int(self.default)}
        elif self.choices:
            schema["enum"] = list(self.choices)
        elif self.max_chars:
            schema["maxLength"] = self.max_chars
        described: dict[str, Any] = {"name": self.name, "in": "query", "schema": schema}
        return described | {"description": self.description} if self.description else described

    def _error(self, expected: str) -> InvalidInput:
        return InvalidInput(f"'{self.name}' must be {expected}.", code="field_invalid", field=self.name)


async def read_object(request: Request) -> JsonBody:
    """Returns the JSON object in the body. Raises InvalidInput.

    Requires `application/json`: a form on another site's page cannot send that without a CORS preflight.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise InvalidInput(
            "The body must be JSON.",
            code="media_type",
            why=f"its Content-Type is '{media_type or 'missing'}'",
            fix="Send `Content-Type: application/json`.",
        )
    raw = await read_json_bytes(request)
    try:
        text = raw.decode("utf-8-sig")
        body: Any = json.loads(text)
        if "\\u" in text:
            json.dumps(body, ensure_ascii=False).encode()  # half of a surrogate pair could not be encoded in any answer
    except ValueError as error:
        raise InvalidInput("The body is not valid JSON.", code="json_invalid", why=str(error)) from error
    except RecursionError as error:
        raise InvalidInput("The body is nested too deeply.", code="json_invalid") from error
    if not isinstance(body, dict):
        raise InvalidInput("The body must be a JSON object.", code="json_invalid")
    return cast("JsonBody", body)


async def read_json_bytes(request: Request) -> bytes:
    """Returns a body of JSON, which is not parsed. Raises HTTPException (413), and InvalidInput for more values than
    `MAX_JSON_VALUES`: parsing them would hold up everybody for seconds, in a thread too.
    """
    raw = await read_bytes(request, limit=MAX_BODY_BYTES)
    if sum(map(raw.count, (b",", b"[", b"{"))) > MAX_JSON_VALUES:  # where texts hold such marks, they are counted
        marks = (found for found in _MARKS.finditer(raw) if found[0][:1] != b'"')
        if next(islice(marks, MAX_JSON_VALUES, None), None) is not None:
            raise InvalidInput(
                f"The body holds more than {MAX_JSON_VALUES:,} values.", code="json_too_wide", fix="Send less at once."
            )
    return raw


class BoundedJson:
    """An ASGI application whose requests have a body as `read_json_bytes` allows it, for an application that parses the
    body itself.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        messages: list[Message] = [{"type": "http.request", "body": await read_json_bytes(Request(scope, receive))}]

        async def receive_again() -> Message:
            return messages.pop() if messages else await receive()

        await self.app(scope, receive_again, send)


async def read_form(request: Request, *, limit: int = MAX_FORM_BYTES) -> Mapping[str, str]:
    """Returns the fields of a form that a page sent, each with its last value. Raises HTTPException (413) for a form of
    more bytes than the limit, InvalidInput for one of too many fields.
    """
    return parse_form(await read_bytes(request, limit=limit))


def parse_form(body: bytes) -> Mapping[str, str]:
    """Returns the fields of a form, each with its last value. Raises InvalidInput for one of too many fields."""
    try:
        return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS))
    except ValueError as error:
        raise InvalidInput(f"A form has at most {MAX_FORM_FIELDS} fields.", code="form_too_wide") from error


def has_body(request: Request) -> bool:
    """Tells whether the request has a body, of any type."""
    length = request.headers.get("content-length", "0")
    return length != "0" or "transfer-encoding" in request.headers


async def read_bytes(request: Request, *, limit: int) -> bytes:
    """Returns the body. Raises HTTPException (413) as soon as it exceeds the limit."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        _check_size(body, limit)
    return bytes(body)


def _check_size(body: bytearray, limit: int) -> None:
    if len(body) > limit:
        raise HTTPException(413, f"The body is larger than {limit} bytes")


def check_field_names(body: JsonBody, known: Collection[str]) -> None:
    """Raises InvalidInput for an unknown field, which would otherwise be ignored silently."""
    for name in body:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            fix = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(known)}."
            raise InvalidInput(
                f"There is no field '{name[:100]}' here.", code="field_unknown", fix=fix, field=name[:100]
            )


def read_text(body: JsonBody, name: str, default: str = "") -> str:
    """Returns a string field; the default if it is null or missing. Raises InvalidInput."""
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise field_error(name, "a string")
    return value


def read_texts(body: JsonBody, name: str) -> list[str]:
    """Returns a list of strings; empty if it is null or missing. Raises InvalidInput."""
    value: Any = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in cast("list[object]", value)):
        raise field_error(name, "a list of strings")
    return cast("list[str]", value)


def read_flag(body: JsonBody, name: str, *, default: bool = False) -> bool:
    """Returns a boolean field; the default if it is null or missing. Raises InvalidInput."""
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise field_error(name, "true or false")
    return default if value is None else value


def read_number(body: JsonBody, name: str, *, low: float, high: float) -> float | None:
    """Returns a number within bounds; None if it is null or missing. Raises InvalidInput."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise field_error(name, f"a number from {low:g} to {high:g}")
    return float(value)


def field_error(name: str, expected: str) -> InvalidInput:
    fix = "Correct the field, or leave it out where it may be missing."
    return InvalidInput(f"'{name}' must be {expected}.", code="field_invalid", fix=fix, field=name)


@dataclass(slots=True, eq=False)
class _Reading:
    """A body that is being read. It is `given_up` to make room for others."""

    source: str
    scope: anyio.CancelScope
    body: bytearray = field(default_factory=bytearray)
    given_up: bool = False


class WebhookBodyReader:
    """Reads the bodies of signed webhooks, whose signature can be checked only once the body is read.

    Anybody may send one, so the bodies under way take at most `MAX_WEBHOOK_MEMORY_BYTES`. Beyond that the address with
    the most of it loses its largest body. A slow body has taken little, and holds up nobody.
    """

    def __init__(self) -> None:
        self._readings: list[_Reading] = []

    async def read(self, request: Request, *, limit: int) -> bytes:
        """Returns the body. Raises as `read_bytes` does, and Unavailable if it is too slow or had to make room."""
        reading = _Reading(request.client.host if request.client else "", anyio.CancelScope())
        self._readings.append(reading)
        try:
            with reading.scope, anyio.fail_after(WEBHOOK_DEADLINE_S):
                async for chunk in request.stream():
                    reading.body += chunk
                    _check_size(reading.body, limit)
                    self._make_room()
        except TimeoutError as error:
            raise Unavailable("The body took too long.", code="body_slow", fix="Send it again.") from error
        finally:
            self._readings.remove(reading)
        if reading.given_up:
            raise Unavailable("There are too many webhooks at once.", code="webhooks_full", fix="Send it again.")
        return bytes(reading.body)

    def _make_room(self) -> None:
        held = Counter[str]()
        for reading in self._readings:
            held[reading.source] += len(reading.body)
        if held.total() <= MAX_WEBHOOK_MEMORY_BYTES:
            return
        [(source, _)] = held.most_common(1)
        largest = max((each for each in self._readings if each.source == source), key=lambda each: len(each.body))
        largest.given_up = True
        largest.body.clear()
        largest.scope.cancel()
