"""Pieces that pages with forms and lists share: what is wrong with a form, the way back after it, parts of a list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.web.http.problems import describe_problem
from denizen_sdk.errors import ProblemDetails

T = TypeVar("T")

MAX_PAGE_DIGITS = 6


def find_problem(error: DenizenError | None) -> ProblemDetails | None:
    """Returns the error as a page shows it, with the status of the answer; None without one."""
    return None if error is None else describe_problem(error)


def lead_to(path: str, **query: str) -> Response:
    """Returns the answer to a form that was carried out: the browser asks for that page, whatever the form was."""
    given = {name: value for name, value in query.items() if value}
    return RedirectResponse(f"{path}?{urlencode(given)}" if given else path, status_code=303)


def read_json_object(typed: str, subject: str) -> JsonObject:
    """Returns what somebody typed, empty for nothing. Raises InvalidInput, which begins with `subject`."""
    try:
        given: Json = json.loads(typed) if typed.strip() else {}
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise InvalidInput(f"{subject} no JSON object.", code="input_invalid", fix='Write {"name": "value"}.')
    return given


@record
class ListPart(Generic[T]):
    """One part of a list. `number` counts from 1, and `back` and `onward` are the queries of the parts beside it, empty
    where there are none.
    """

    rows: Sequence[T]
    total: int
    number: int
    parts: int
    back: str
    onward: str


def cut_list(request: Request, rows: Sequence[T], *, size: int) -> ListPart[T]:
    """Returns the part that `?page=` asks for; the nearest for a number that there is none of."""
    part = plan_part(request, len(rows), size=size)
    return replace(part, rows=rows[(part.number - 1) * size : part.number * size])


def plan_part(request: Request, total: int, *, size: int) -> ListPart[Any]:
    """Returns the same part of a list that is not loaded, without its rows."""
    given = request.query_params.get("page", "")
    parts = max(1, -(-total // size))
    wanted = int(given) if given.isascii() and given.isdecimal() and len(given) <= MAX_PAGE_DIGITS else 1
    number = min(max(1, wanted), parts)
    rest = [(name, value) for name, value in request.query_params.multi_items() if name != "page"]

    def query(page: int) -> str:
        return urlencode([*rest, ("page", str(page))]) if 1 <= page <= parts else ""

    return ListPart(rows=(), total=total, number=number, parts=parts, back=query(number - 1), onward=query(number + 1))
