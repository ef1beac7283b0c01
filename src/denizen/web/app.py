"""Puts the routes and layers together. `app` calls `create_app` and serves the result.

Layers from the outside in: security headers, the boundary for errors, other sites' pages (only when some are allowed),
the guard, the routes.
"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from denizen.web.api.agent_config import AgentConfiguration
from denizen.web.api.approvals import Approvals
from denizen.web.api.chat import Chat
from denizen.web.api.completions import Completions
from denizen.web.api.gaps import Gaps
from denizen.web.api.health import HealthCheck
from denizen.web.api.inbound import TURN_HEADER
from denizen.web.api.knowledge import Knowledge
from denizen.web.api.on_demand import Listings
from denizen.web.api.sandbox import Sandbox
from denizen.web.api.statistics import Statistics
from denizen.web.api.syncs import Syncs
from denizen.web.api.webhooks import Webhooks
from denizen.web.dependencies import WebDependencies
from denizen.web.errors import Boundary, answer_http_exception
from denizen.web.guard import Guard, SecurityHeaders
from denizen.web.pages.routes import Pages

MCP_PATHS = ("/mcp", "/mcp/{agent}")
"""The MCP server of the default agent, and of each by its name."""


def create_app(deps: WebDependencies) -> Starlette:
    """The application. It opens nothing and keeps no task of its own."""
    return Starlette(
        routes=[
            *HealthCheck(deps).routes,
            *(Completions(deps).routes if deps.channels.api else ()),
            *(Chat(deps).routes if deps.channels.web else ()),
            *Approvals(deps).routes,
            *(Syncs(deps.knowledge, deps.timing).routes if deps.knowledge is not None else ()),
            *(Knowledge(deps.knowledge).routes if deps.knowledge is not None else ()),
            *(Gaps(deps.gaps).routes if deps.gaps is not None else ()),
            *(Sandbox(deps.calls).routes if deps.calls is not None else ()),
            *([Route(path, deps.mcp, methods=["POST"]) for path in MCP_PATHS] if deps.mcp is not None else ()),
            *Statistics(deps.statistics, deps.clock).routes,
            *(AgentConfiguration(deps.assistant, deps.runtime).routes if deps.assistant is not None else ()),
            *Webhooks(deps.hosting).routes,
            *(Pages(deps).routes if deps.channels.web else ()),
            *Listings(deps).routes,
        ],
        middleware=_layers(deps),
        exception_handlers={HTTPException: answer_http_exception},
    )


def _layers(deps: WebDependencies) -> list[Middleware]:
    layers = [Middleware(SecurityHeaders), Middleware(Boundary)]
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
    return [*layers, Middleware(Guard, deps=deps)]
