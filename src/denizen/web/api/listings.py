"""What can be read under `/api`: agents, models, tools, an own session's messages, a turn with its steps and calls.

FastAPI routes, so that they are described in `/api/openapi.json`. Reads only.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request

from denizen.domain.errors import NotFound
from denizen.domain.ids import TurnId
from denizen.ports.model import ModelInfo, Models
from denizen.web.api.inbound import WEB, check_own, own_place
from denizen.web.api.translate import agent_to_wire, messages_to_wire, model_to_wire, tool_to_wire, turn_to_wire
from denizen.web.dependencies import WebDependencies
from denizen.web.guard import principal_of
from denizen_sdk import wire

AgentName = Annotated[str, Query(description="Name of an agent; empty for the default one.")]
Limit = Annotated[int, Query(ge=1, le=500)]


def listings(deps: WebDependencies) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api")

    @router.get("/agents", summary="The agents, the default one first")
    async def list_agents() -> list[wire.AgentInfo]:
        current = deps.runtime.current
        return [
            agent_to_wire(
                agent, find_model(current.models, agent.model), is_default=agent.name == current.default_agent
            )
            for agent in deps.queries.list_agents()
        ]

    @router.get("/models", summary="The models that agents may use")
    async def list_models() -> list[wire.ModelInfo]:
        return [model_to_wire(model) for model in deps.queries.list_models()]

    @router.get("/tools", summary="All tools, or those of an agent")
    async def list_tools(agent: str = "") -> list[wire.ToolInfo]:
        return [tool_to_wire(tool) for tool in await deps.queries.list_tools(agent)]

    @router.get("/sessions/{name:path}/messages", summary="The messages of an own session, oldest first")
    async def list_messages(
        request: Request, name: str, agent: AgentName = "", limit: Limit = 100
    ) -> list[wire.MessageInfo]:
        place = own_place(WEB, principal_of(request), name)
        return messages_to_wire(await deps.queries.list_messages(place, agent, limit=limit))

    @router.get("/turns/{turn_id}", summary="A turn with its steps and tool calls")
    async def get_turn(request: Request, turn_id: str) -> wire.TurnInfo:
        detail = await deps.queries.get_turn(TurnId(turn_id))
        check_own(detail.turn, principal_of(request))
        return turn_to_wire(detail)

    return router


def find_model(models: Models, name: str) -> ModelInfo | None:
    """What is known of the model that an agent names, by alias or as `provider/model`."""
    try:
        full = models.get(name).name
    except NotFound:
        return None
    return next((info for info in models.list_models() if full in {info.name, f"{info.provider}/{info.name}"}), None)
