"""`/api/agent-config`: how an agent is set up, and the named sets of settings that lie over its configuration (2.7).

Changing is for owners and admins. Everybody who may reach the server reads `/public`: how the agent answers, but not
the texts of its prompt, which its owner wrote and may want to keep. `?agent=` names another than the default one.
"""

from __future__ import annotations

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from denizen.domain.agent import Agent
from denizen.domain.assistant import SettingsSet, in_effect
from denizen.engine.assistant import Assistant
from denizen.engine.runtime import Runtime
from denizen.web.api.chat import may_see_all
from denizen.web.api.knowledge import require_admin
from denizen.web.http.request import read_flag, read_object, read_text
from denizen.web.http.auth import get_principal
from denizen_sdk.agents import AgentConfig, AgentConfigSet

_BESIDE = frozenset({"agent", "name", "activate"})
"""Fields of a body that are no settings."""


class AgentConfigRoutes:
    """The routes."""

    def __init__(self, assistant: Assistant, runtime: Runtime) -> None:
        self._assistant = assistant
        self._runtime = runtime

    @property
    def routes(self) -> list[Route]:
        one = "/api/agent-config/sets/{name:path}"
        return [
            Route("/api/agent-config", self.get, methods=["GET"]),
            Route("/api/agent-config", self.save, methods=["PUT"]),
            Route("/api/agent-config/reset", self.reset, methods=["POST"]),
            Route("/api/agent-config/public", self.get_public, methods=["GET"]),
            Route("/api/agent-config/sets", self.list_sets, methods=["GET"]),
            Route(f"{one}/activate", self.activate, methods=["POST"]),
            Route(one, self.remove, methods=["DELETE"]),
        ]

    async def get(self, request: Request) -> Response:
        """What holds now, and which of it the active set says."""
        require_admin(request)
        return await self._told(request, in_full=True)

    async def get_public(self, request: Request) -> Response:
        """The same without the texts of the prompt, but for owners and admins."""
        return await self._told(request, in_full=may_see_all(get_principal(request)))

    async def save(self, request: Request) -> Response:
        """Changes settings: fields that are missing stay as they are, and null brings the configured value back.

        `name` is the set that is written to, made when it is not there; else it is the active one. It is active then,
        unless `activate` is false.
        """
        require_admin(request)
        body = await read_object(request)
        given = {name: value for name, value in body.items() if name not in _BESIDE}
        activate = read_flag(body, "activate") if "activate" in body else True
        agent, current = self._agent(request, read_text(body, "agent")), self._runtime.current
        name, by = read_text(body, "name"), get_principal(request)
        await self._assistant.save(by, current, given, to=agent.name, name=name, activate=activate)
        return await self._told(request, in_full=True, agent=agent)

    async def reset(self, request: Request) -> Response:
        """Empties the active set, or that of the query `name`: the configuration holds again."""
        require_admin(request)
        by, name = get_principal(request), request.query_params.get("name", "")
        await self._assistant.reset(by, self._agent(request).name, name=name)
        return await self._told(request, in_full=True)

    async def list_sets(self, request: Request) -> Response:
        require_admin(request)
        rows = await self._assistant.list_sets(self._agent(request).name)
        return JSONResponse([asdict(_set(row)) for row in rows])

    async def activate(self, request: Request) -> Response:
        require_admin(request)
        await self._assistant.activate(get_principal(request), self._agent(request).name, request.path_params["name"])
        return await self._told(request, in_full=True)

    async def remove(self, request: Request) -> Response:
        """After an active one the configuration holds."""
        require_admin(request)
        await self._assistant.remove(get_principal(request), self._agent(request).name, request.path_params["name"])
        return Response(status_code=204)

    def _agent(self, request: Request, named: str = "") -> Agent:
        """As configured. Raises NotFound."""
        return self._runtime.current.agent(named or request.query_params.get("agent", ""))

    async def _told(self, request: Request, *, in_full: bool, agent: Agent | None = None) -> Response:
        name = (agent or self._agent(request)).name
        active = await self._assistant.load_active(name)
        now = await self._assistant.agent(self._runtime.current, name)
        return JSONResponse(asdict(config_to_wire(now, active, in_full=in_full)))


def config_to_wire(agent: Agent, active: SettingsSet | None, *, in_full: bool) -> AgentConfig:
    """Of an agent with its active set over it."""
    holds = in_effect(agent)
    return AgentConfig(
        agent=agent.name,
        name=active.name if active else "",
        response_style=agent.style.response,
        language=agent.style.language,
        default_model=agent.model_word,
        max_steps_multiplier=agent.limits.max_steps_multiplier,
        citation_format=agent.style.citations,
        temperature=holds.temperature,
        additional_prompt=holds.additional_prompt if in_full else None,
        search_instructions=holds.search_instructions if in_full else None,
        changed=active.chosen.names if active else (),
    )


def _set(row: SettingsSet) -> AgentConfigSet:
    return AgentConfigSet(row.name, row.is_active, row.chosen.names, row.updated_at.isoformat())
