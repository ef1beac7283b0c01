"""What can be read under `/api`: agents, models, tools, an own session's messages, what is recorded of a turn, usage.

FastAPI routes: it checks their parameters and describes them in `/api/openapi.json`. Reads only.
"""

# Imported by `on_demand` when the first of them is asked for. Everything else on the web is plain Starlette.

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from denizen.domain.approval import ApprovalStatus
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import TurnId
from denizen.domain.statistics import MAX_NAME_CHARS
from denizen.web.api.chat import WEB, check_own, may_see_all, own_place
from denizen.web.api.knowledge import require_admin
from denizen.web.http.openapi import complete
from denizen.web.api.statistics import overview_to_wire
from denizen.web.api.chat import (
    agent_to_wire,
    approval_to_wire,
    find_model,
    messages_to_wire,
    model_to_wire,
    tool_to_wire,
    turn_to_wire,
)
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.errors import ErrorBoundary, answer_error, answer_http_exception
from denizen.web.http.auth import get_principal
from denizen_sdk.agents import AgentListing, ModelListing, ToolListing
from denizen_sdk.turns import ApprovalInfo, MessageInfo, TurnInfo
from denizen_sdk.usage import UsageOverview

AgentName = Annotated[str, Query(description="Name of an agent; empty for the default one.")]
Limit = Annotated[int, Query(ge=1, le=500)]
Days = Annotated[int, Query(ge=1, le=365, description="How far back, with today (UTC).")]
UsageName = Annotated[str, Query(max_length=MAX_NAME_CHARS, description="Only what has this name; empty for all.")]
ApprovalState = Annotated[ApprovalStatus | None, Query(description="Only those in this state.")]


class _Described(FastAPI):
    """Describes the routes that it does not serve as well."""

    others: Sequence[BaseRoute] = ()

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = complete(super().openapi(), self.others)
        return self.openapi_schema


def create_listings(deps: WebDependencies, others: Sequence[BaseRoute] = ()) -> FastAPI:
    """The application behind the layers of `app`; `others` are the plain routes beside it. Its description is built
    when it is asked for; its pages are Swagger's and need scripts of another site, so they are off.
    """
    app = _Described(
        title="Denizen",
        version=deps.version,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        # Once more, inside: FastAPI would answer a fault by itself before the layers outside hear of it.
        middleware=[Middleware(ErrorBoundary)],
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.others = others
    app.add_exception_handler(HTTPException, answer_http_exception)
    app.add_exception_handler(RequestValidationError, _answer_validation)
    app.include_router(_router(deps))
    return app


def _router(deps: WebDependencies) -> APIRouter:
    router = APIRouter(prefix="/api")

    @router.get("/agents", summary="The agents, the default one first")
    async def list_agents() -> list[AgentListing]:
        current = deps.runtime.current
        return [
            agent_to_wire(
                agent, find_model(current.models, agent.model), is_default=agent.name == current.default_agent
            )
            for agent in deps.queries.list_agents()
        ]

    @router.get("/models", summary="The models that agents may use")
    async def list_models() -> list[ModelListing]:
        return [model_to_wire(model) for model in deps.queries.list_models()]

    @router.get("/tools", summary="All tools, or those of an agent")
    async def list_tools(agent: str = "") -> list[ToolListing]:
        return [tool_to_wire(tool) for tool in await deps.queries.list_tools(agent)]

    @router.get("/sessions/{name:path}/messages", summary="The messages of an own session, oldest first")
    async def list_messages(
        request: Request, name: str, agent: AgentName = "", limit: Limit = 100
    ) -> list[MessageInfo]:
        place = own_place(WEB, get_principal(request), name)
        return messages_to_wire(await deps.queries.list_messages(place, agent, limit=limit))

    @router.get("/approvals", summary="Calls that wait for people, or waited: own ones and those that one may decide")
    async def list_approvals(request: Request, status: ApprovalState = None) -> list[ApprovalInfo]:
        reader = get_principal(request)
        found = await deps.turns.approvals.list_for(reader, status=status)
        return [approval_to_wire(approval, reader) for approval in found]

    @router.get("/turns/{turn_id}", summary="A turn with its prompts, steps and tool calls")
    async def get_turn(request: Request, turn_id: str) -> TurnInfo:
        detail, principal = await deps.queries.get_turn(TurnId(turn_id)), get_principal(request)
        check_own(detail.turn, principal)
        return turn_to_wire(detail, in_full=may_see_all(principal))

    @router.get("/stats", summary="Usage of everybody, for owners and admins")
    async def get_statistics(
        request: Request, days: Days = 30, source: UsageName = "", model: UsageName = ""
    ) -> UsageOverview:
        require_admin(request)
        return overview_to_wire(await deps.statistics.overview(days, source=source, model=model))

    @router.get("/stats/me", summary="The caller's own usage")
    async def get_own_statistics(request: Request, days: Days = 30) -> UsageOverview:
        return overview_to_wire(await deps.statistics.overview_of(get_principal(request).key, days))

    return router


def _answer_validation(request: Request, error: Exception) -> Response:
    """A query parameter that does not fit; bodies are read by `body.py`."""
    if not isinstance(error, RequestValidationError):
        raise TypeError(f"not a validation error: {error!r}")
    faults = "; ".join(f"{fault['loc'][-1]}: {fault['msg']}" for fault in error.errors())
    return answer_error(request.url.path, InvalidInput("A parameter does not fit.", code="field_invalid", why=faults))
