"""Puts the routes and layers together. `app` calls `create_app` and serves the result.

Layers from the outside in: security headers, the boundary for errors, other sites' pages (only when some are allowed),
the guard, the routes.
"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from denizen.web.api.agents import AgentConfigRoutes
from denizen.web.api.approvals import ApprovalRoutes
from denizen.web.api.chat import ChatRoutes
from denizen.web.api.completions import CompletionRoutes
from denizen.web.api.gaps import GapRoutes
from denizen.web.api.service import HealthRoutes
from denizen.web.api.chat import TURN_HEADER
from denizen.web.api.knowledge import KnowledgeRoutes
from denizen.web.api.on_demand import Listings
from denizen.web.api.sandbox import SandboxRoutes
from denizen.web.api.statistics import StatisticsRoutes
from denizen.web.api.knowledge import SyncRoutes
from denizen.web.api.webhooks import WebhookRoutes
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.errors import ErrorBoundary, answer_http_exception
from denizen.web.http.auth import AccessGuard, SecurityHeaders
from denizen.web.pages.routes import PageRoutes

MCP_PATHS = ("/mcp", "/mcp/{agent}")
"""The MCP server of the default agent, and of each by its name."""


def create_app(deps: WebDependencies) -> Starlette:
    """The application. It opens nothing and keeps no task of its own."""
    return Starlette(
        routes=[
            *HealthRoutes(deps).routes,
            *(CompletionRoutes(deps).routes if deps.channels.api else ()),
            *(ChatRoutes(deps).routes if deps.channels.web else ()),
            *ApprovalRoutes(deps).routes,
            *(SyncRoutes(deps.knowledge, deps.timing).routes if deps.knowledge is not None else ()),
            *(KnowledgeRoutes(deps.knowledge).routes if deps.knowledge is not None else ()),
            *(GapRoutes(deps.gaps).routes if deps.gaps is not None else ()),
            *(SandboxRoutes(deps.calls).routes if deps.calls is not None else ()),
            *([Route(path, deps.mcp, methods=["POST"]) for path in MCP_PATHS] if deps.mcp is not None else ()),
            *StatisticsRoutes(deps.statistics, deps.clock).routes,
            *(AgentConfigRoutes(deps.assistant, deps.runtime).routes if deps.assistant is not None else ()),
            *WebhookRoutes(deps.hosting).routes,
            *(PageRoutes(deps).routes if deps.channels.web else ()),
            *Listings(deps).routes,
        ],
        middleware=_layers(deps),
        exception_handlers={HTTPException: answer_http_exception},
    )


def _layers(deps: WebDependencies) -> list[Middleware]:
    layers = [Middleware(SecurityHeaders), Middleware(ErrorBoundary)]
    if deps.exposure.allowed_origins:
        from starlette.middleware.cors import CORSMiddleware

        layers.append(
            Middleware(
                CORSMiddleware,
                allow_origins=sorted(deps.exposure.allowed_origins),
                allow_methods=["GET", "POST", "PUT", "DELETE"],
                allow_headers=["*"],
                expose_headers=[TURN_HEADER],
            )
        )
    return [*layers, Middleware(AccessGuard, deps=deps)]
