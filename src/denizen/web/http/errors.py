"""Answers for errors, and the boundary that every request passes. `problems.py` has the table of statuses.

OpenAI's clients repeat 409, 429 and 5xx by themselves; `x-should-retry: false` tells them not to.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from denizen.domain.errors import DenizenError, Unavailable
from denizen.domain.ids import fresh
from denizen.web.http.problems import BUG, describe_problem, fill_in
from denizen_sdk.errors import ProblemDetails

PROGRAM_PATHS = ("/api/", "/v1/")
"""The beginnings of the paths that only programs ask for."""
REPEATABLE = frozenset({429, 503})
RETRY_AFTER_S = 5
"""The `Retry-After` of a 503 whose error names no time."""

_OPENAI_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
}

RenderProblem = Callable[[HTTPConnection, ProblemDetails], Response]

_log = logging.getLogger("denizen.web")


def openai_error(problem: ProblemDetails) -> dict[str, Any]:
    """Returns OpenAI's error object. It has a single text, which takes the reason and the remedy too."""
    why = f"Why: {problem.why.removesuffix('.')}." if problem.why else ""
    text = " ".join(filter(None, (problem.message, why, problem.fix)))
    kind = _OPENAI_TYPES.get(problem.status, "server_error" if problem.status >= 500 else "invalid_request_error")
    return {"error": {"message": text, "type": kind, "param": None, "code": problem.code}}


def error_response(path: str, problem: ProblemDetails, *, headers: Mapping[str, str] | None = None) -> Response:
    """Returns the answer in the form that the clients of the path expect: OpenAI's under `/v1`, elsewhere ours."""
    if path.startswith("/v1/"):
        body = openai_error(problem)
    else:
        told = fill_in(problem)
        body = {"error": {each.name: getattr(told, each.name) for each in fields(told)}}
    extra = {} if problem.status in REPEATABLE else {"x-should-retry": "false"}
    if problem.status == 401:
        extra["WWW-Authenticate"] = "Bearer"
    return JSONResponse(body, problem.status, {**extra, **(headers or {})})


def answer_error(path: str, error: DenizenError) -> Response:
    """Returns the answer to a request that raised a DenizenError."""
    return error_response(path, describe_problem(error), headers=_retry_headers(error))


def _retry_headers(error: DenizenError) -> dict[str, str]:
    if not isinstance(error, Unavailable):
        return {}
    return {"Retry-After": str(math.ceil(error.retry_after_s or RETRY_AFTER_S))}


def answer_http_exception(request: Request, error: Exception) -> Response:
    """Returns the answer to errors of the framework: unknown paths and methods, bodies that are too large."""
    if not isinstance(error, HTTPException):
        raise TypeError(f"not an HTTP exception: {error!r}")
    if not request.url.path.startswith(PROGRAM_PATHS):
        raise error  # for the boundary, which has a page for browsers
    return error_response(request.url.path, _describe_http(request.scope, error), headers=error.headers)


def _describe_http(scope: Scope, error: HTTPException) -> ProblemDetails:
    code = {404: "route_unknown", 405: "method_not_allowed", 413: "body_too_large"}.get(error.status_code, "http")
    is_program = scope["path"].startswith(PROGRAM_PATHS)
    fix = "See /api/openapi.json for what there is." if is_program else "Look for it in the menu, or begin at `/`."
    return ProblemDetails(code, f"{scope['method']} {scope['path']}: {error.detail}.", error.status_code, fix=fix)


class ErrorBoundary:
    """The middleware that turns every exception of a request into an answer, and logs faults with a reference. A
    browser that asks for a page gets one by `render_page`.

    A fault after the answer began can only cut the connection; the client sees that the stream is incomplete.
    """

    def __init__(self, app: ASGIApp, render_page: RenderProblem | None = None) -> None:
        self._app = app
        self._render_page = render_page

    def _answer(self, scope: Scope, problem: ProblemDetails, headers: Mapping[str, str] | None = None) -> Response:
        """Returns a page for a browser, and what programs expect for all else."""
        accepted = Headers(scope=scope).get("accept", "")
        is_page = "text/html" in accepted and not scope["path"].startswith(PROGRAM_PATHS)
        if self._render_page is not None and is_page:
            return self._render_page(HTTPConnection(scope), fill_in(problem))
        return error_response(scope["path"], problem, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        response: Response | None = None
        try:
            await self._app(scope, receive, watched)
        except DenizenError as error:
            response = self._answer(scope, describe_problem(error), _retry_headers(error))
            if started:
                _log.warning("answer broken off", extra={"path": scope["path"], **error.fields})
        except HTTPException as error:
            response = self._answer(scope, _describe_http(scope, error), error.headers)
        except ClientDisconnect:
            return  # before its body was complete
        except Exception:  # noqa: BLE001 - the boundary of a request
            reference = fresh("err")
            _log.exception("request fault", extra={"path": scope["path"], "reference": reference})
            text = f"Something went wrong inside. Reference: {reference}."
            problem = ProblemDetails(
                "bug", text, BUG, fix="Find the reference in the server's log.", reference=reference
            )
            response = self._answer(scope, problem)
        if response is not None and not started:
            await response(scope, receive, send)
