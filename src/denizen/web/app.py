"""Puts the routes and the middleware together. `app.serve` calls `create_app` and serves the result.

The middleware from the outside in: the log of requests, security headers, the headers of rate limits, the boundary for
errors, CORS (only if some origins are allowed), the guard.
"""

from __future__ import annotations

from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from denizen.web.api.account import AccountRoutes
from denizen.web.api.activity import ActivityRoutes
from denizen.web.api.agents import AgentConfigRoutes, AgentRoutes
from denizen.web.api.approvals import ApprovalRoutes
from denizen.web.api.background_tasks import BackgroundTaskRoutes
from denizen.web.api.chat import ChatRoutes
from denizen.web.api.chats import ChatListRoutes
from denizen.web.api.client_turns import ClientTurns
from denizen.web.api.commands import CommandRoutes
from denizen.web.api.completions import CompletionRoutes
from denizen.web.api.configuration import ConfigurationRoutes
from denizen.web.api.documents import DocumentRoutes
from denizen.web.api.embeddings import EmbeddingRoutes
from denizen.web.api.events import EventRoutes
from denizen.web.api.gaps import GapRoutes
from denizen.web.api.hooks import HookRoutes
from denizen.web.api.inspection import InspectionRoutes
from denizen.web.api.logs import LogRoutes
from denizen.web.api.projects import ProjectRoutes
from denizen.web.api.questions import QuestionRoutes
from denizen.web.api.responses import ResponseRoutes
from denizen.web.api.sandbox import SandboxRoutes
from denizen.web.api.schedules import ScheduleRoutes
from denizen.web.api.service import ServiceRoutes
from denizen.web.api.sources import KnowledgeRoutes, SourceImportRoutes
from denizen.web.api.statistics import StatisticsRoutes
from denizen.web.api.store import StoreRoutes
from denizen.web.api.syncs import SyncRoutes
from denizen.web.api.uploads import UploadRoutes
from denizen.web.api.users import UserRoutes
from denizen.web.api.webhooks import WebhookRoutes
from denizen.web.api.workflows import WorkflowRoutes, WorkflowRunRoutes
from denizen.web.http.access_log import AccessLog
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.errors import ErrorBoundary, answer_http_exception
from denizen.web.http.guard import AccessGuard, SecurityHeaders
from denizen.web.http.rate_headers import LIMIT_HEADER, REMAINING_HEADER, RateHeaders
from denizen.web.http.request import TURN_HEADER, BoundedJson
from denizen.web.http.routing import Access, AccessRoute, IndexedRouter
from denizen.web.pages.page import render_problem
from denizen.web.pages.routes import list_pages

MCP_PATHS = ("/mcp", "/mcp/{agent}")
"""The MCP server of the default agent, and of each agent by its name."""


def create_app(deps: WebDependencies) -> Starlette:
    """Returns the application. It opens nothing and starts no task of its own."""
    engine, clock, timing = deps.engine, deps.clock, deps.timing
    middleware = [
        Middleware(SecurityHeaders),
        Middleware(RateHeaders, limiter=engine.limiter, runtime=engine.runtime),
        Middleware(ErrorBoundary, render_page=partial(render_problem, deps)),
    ]
    if origins := deps.access.exposure.allowed_origins:
        from starlette.middleware.cors import CORSMiddleware

        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=sorted(origins),
                allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
                allow_headers=["*"],
                expose_headers=[TURN_HEADER, LIMIT_HEADER, REMAINING_HEADER],
            )
        )
    chat = ChatRoutes(engine.turns, engine.chats, engine.queries, timing)
    client_turns = ClientTurns(engine.turns, engine.queries, timing)
    completions = CompletionRoutes(client_turns, engine.queries, clock, engine.tasks)
    responses = ResponseRoutes(client_turns, engine.queries, clock)
    embeddings = EmbeddingRoutes(engine.embedder, engine.runtime, engine.limiter)
    routes: list[BaseRoute] = [
        *ServiceRoutes(deps).routes,
        *(completions.routes if deps.channels.api else ()),
        *(responses.routes if deps.channels.api else ()),
        *(embeddings.routes if deps.channels.api else ()),
        *(chat.chat_routes if deps.channels.web else ()),
        *(ChatListRoutes(engine.chats, engine.queries, timing).routes if deps.channels.web else ()),
        *(CommandRoutes(engine.commands, timing).routes if deps.channels.web else ()),
        *(UploadRoutes(engine.chats.uploads).routes if deps.channels.web else ()),
        *chat.history_routes,
        *ApprovalRoutes(engine.turns).routes,
        *QuestionRoutes(engine.turns.questions).routes,
        *BackgroundTaskRoutes(engine.open_delegations).routes,
        *AgentRoutes(engine.queries, engine.runtime).routes,
        *(AgentConfigRoutes(engine.assistant, engine.runtime).routes if engine.assistant is not None else ()),
        *(SyncRoutes(deps.knowledge, timing).routes if deps.knowledge is not None else ()),
        *(KnowledgeRoutes(deps.knowledge).routes if deps.knowledge is not None else ()),
        *(
            ConfigurationRoutes(deps.configuration, deps.components.models).routes
            if deps.configuration is not None and deps.components is not None
            else ()
        ),
        *(SourceImportRoutes(deps.importer).routes if deps.importer is not None else ()),
        *(GapRoutes(deps.gaps).routes if deps.gaps is not None else ()),
        *(ScheduleRoutes(deps.schedules).routes if deps.schedules is not None else ()),
        *(WorkflowRoutes(deps.workflows).routes if deps.workflows is not None else ()),
        *(WorkflowRunRoutes(deps.workflows.workflows).routes if deps.workflows is not None else ()),
        *(SandboxRoutes(engine.calls).routes if engine.calls is not None else ()),
        *(DocumentRoutes(engine.calls).routes if engine.calls is not None else ()),
        *(StoreRoutes(deps.instance.store).routes if deps.instance.store is not None else ()),
        *(LogRoutes(deps.instance.logs, clock).routes if deps.instance.logs is not None else ()),
        *StatisticsRoutes(engine.statistics, engine.queries, clock).routes,
        *(ProjectRoutes(deps.projects, clock, timing).routes if deps.projects is not None else ()),
        *ActivityRoutes(engine.queries).routes,
        *InspectionRoutes(deps).routes,
        *WebhookRoutes(deps.hosting).routes,
        *(HookRoutes(deps.events.webhooks).routes if deps.events is not None else ()),
        *(EventRoutes(deps.events.log).routes if deps.events is not None else ()),
        *AccountRoutes(deps).routes,
        *UserRoutes(deps).routes,
        *(
            [AccessRoute("POST", path, BoundedJson(deps.mcp), Access.MEMBER) for path in MCP_PATHS]
            if deps.mcp is not None
            else ()
        ),
        *(list_pages(deps) if deps.channels.web else ()),
    ]
    middleware.insert(0, Middleware(AccessLog, clock=clock, routes=routes))
    middleware.append(Middleware(AccessGuard, rules=deps.access, clock=clock, routes=routes))
    app = Starlette(middleware=middleware, exception_handlers={HTTPException: answer_http_exception})
    app.router = IndexedRouter(routes)
    return app
