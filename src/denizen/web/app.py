"""Puts the routes and layers together. `app` calls `create_app` and serves the result.

Layers from the outside in: security headers, the boundary for errors, other sites' pages (only when some are allowed),
the guard, the routes.
"""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import InvalidInput
from denizen.web.api.chat import Chat
from denizen.web.api.completions import Completions
from denizen.web.api.health import HealthCheck
from denizen.web.api.inbound import TURN_HEADER
from denizen.web.api.listings import listings
from denizen.web.dependencies import WebDependencies
from denizen.web.errors import Boundary, answer_error, answer_http_exception
from denizen.web.guard import Guard, SecurityHeaders
from denizen.web.pages.routes import Pages


def create_app(deps: WebDependencies) -> FastAPI:
    """The application. It opens nothing and keeps no task of its own; the description at `/api/openapi.json` is built
    when it is asked for. Its pages are Swagger's and need scripts of another site, so they are off.
    """
    app = FastAPI(
        title="Denizen",
        version=deps.version,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        routes=[
            *HealthCheck(deps).routes,
            *(Completions(deps).routes if deps.channels.api else ()),
            *(Chat(deps).routes if deps.channels.web else ()),
            *(Pages(deps).routes if deps.channels.web else ()),
        ],
        middleware=_layers(deps),
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.add_exception_handler(HTTPException, answer_http_exception)
    app.add_exception_handler(RequestValidationError, _answer_validation)
    app.include_router(listings(deps))
    return app


def _layers(deps: WebDependencies) -> list[Middleware]:
    layers = [Middleware(SecurityHeaders), Middleware(Boundary)]
    if deps.exposure.allowed_origins:
        from starlette.middleware.cors import CORSMiddleware

        layers.append(
            Middleware(
                CORSMiddleware,
                allow_origins=sorted(deps.exposure.allowed_origins),
                allow_methods=["GET", "POST"],
                allow_headers=["*"],
                expose_headers=[TURN_HEADER],
            )
        )
    return [*layers, Middleware(Guard, deps=deps)]


def _answer_validation(request: Request, error: Exception) -> Response:
    """A query parameter that does not fit; bodies are read by `body.py`."""
    if not isinstance(error, RequestValidationError):
        raise TypeError(f"not a validation error: {error!r}")
    faults = "; ".join(f"{fault['loc'][-1]}: {fault['msg']}" for fault in error.errors())
    return answer_error(request.url.path, InvalidInput("A parameter does not fit.", code="field_invalid", why=faults))
