"""`/api/agents`, `/api/models`, `/api/tools` and `/api/agent-config`: the agents, and how each is configured.

Named sets of settings can be laid over the configuration of an agent. Only owners and admins change them. Everybody who
may reach the server reads `/api/agent-config/public`, which leaves out the texts of the prompt: their writer may want
to keep them private. `?agent=` names another agent than the default one.
"""

from __future__ import annotations

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.agent import Agent
from denizen.domain.agent_settings import SettingsSet, find_active_set
from denizen.engine.configuration.agent_settings import AgentSettingsOverlay
from denizen.engine.configuration.generation import Runtime
from denizen.engine.inspection.queries import Queries
from denizen.web.api.records import agent_to_wire, find_model, model_to_wire, tool_to_wire
from denizen.web.http.auth import get_principal, may_see_all
from denizen.web.http.openapi import FLAG, TEXT, ApiRoute, Operation, Schema, object_schema
from denizen.web.http.request import QueryParameter, read_flag, read_object, read_text
from denizen.web.http.routing import Access
from denizen_sdk.agents import AgentConfig, AgentConfigSet, AgentListing, ModelListing, ToolListing

_NO_SETTINGS = frozenset({"agent", "name", "activate"})
"""The fields of a body that are no settings."""

_AGENT = QueryParameter(name="agent", description="Name of an agent; empty for the default one.")
_NAME = QueryParameter(name="name", description="Name of a set; empty for the active one.")
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
_SETTINGS = object_schema(
    agent=TEXT,
    name=TEXT,
    activate=FLAG,
    additional_prompt=_TEXT_OR_NULL,
    response_style=_TEXT_OR_NULL,
    language=_TEXT_OR_NULL,
    default_model=_TEXT_OR_NULL,
    max_steps_multiplier=_NUMBER_OR_NULL,
    temperature=_NUMBER_OR_NULL,
    search_instructions=_TEXT_OR_NULL,
    citation_format=_TEXT_OR_NULL,
)


class AgentRoutes:
    """The routes that list agents, their models and tools."""

    def __init__(self, queries: Queries, runtime: Runtime) -> None:
        self._queries = queries
        self._runtime = runtime

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "GET",
                "/api/agents",
                self.list_agents,
                Access.MEMBER,
                Operation("The agents, the default one first", answer=list[AgentListing]),
            ),
            ApiRoute(
                "GET",
                "/api/models",
                self.list_models,
                Access.MEMBER,
                Operation("The models that agents may use", answer=list[ModelListing]),
            ),
            ApiRoute(
                "GET",
                "/api/tools",
                self.list_tools,
                Access.MEMBER,
                Operation("All tools, or those of an agent", answer=list[ToolListing], query=(_AGENT,)),
            ),
        ]

    async def list_agents(self, _: Request) -> Response:
        current = self._runtime.current
        rows = [
            agent_to_wire(
                agent, find_model(current.models, agent.model), is_default=agent.name == current.default_agent
            )
            for agent in self._queries.list_agents()
        ]
        return JSONResponse([asdict(row) for row in rows])

    async def list_models(self, _: Request) -> Response:
        return JSONResponse([asdict(model_to_wire(model)) for model in self._queries.list_models()])

    async def list_tools(self, request: Request) -> Response:
        tools = await self._queries.list_tools(_AGENT.read_text(request))
        return JSONResponse([asdict(tool_to_wire(tool)) for tool in tools])


class AgentConfigRoutes:
    """The routes that show and change how agents answer."""

    def __init__(self, assistant: AgentSettingsOverlay, runtime: Runtime) -> None:
        self._assistant = assistant
        self._runtime = runtime

    @property
    def routes(self) -> list[ApiRoute]:
        path, one_set = "/api/agent-config", "/api/agent-config/sets/{name:path}"
        return [
            ApiRoute(
                "GET",
                path,
                self.get_config,
                Access.ADMIN,
                Operation(
                    "The settings in effect, and which of them the active set changes",
                    answer=AgentConfig,
                    query=(_AGENT,),
                ),
            ),
            ApiRoute(
                "PUT",
                path,
                self.save_config,
                Access.ADMIN,
                Operation(
                    "Change a set and make it active; a missing field stays, null restores the configured value",
                    _SETTINGS,
                    AgentConfig,
                ),
            ),
            ApiRoute(
                "POST",
                f"{path}/reset",
                self.reset_config,
                Access.ADMIN,
                Operation(
                    "Empty the active set, or the named one, so that the configuration is in effect again",
                    answer=AgentConfig,
                    query=(_AGENT, _NAME),
                ),
            ),
            ApiRoute(
                "GET",
                f"{path}/public",
                self.get_public_config,
                Access.MEMBER,
                Operation(
                    "The settings in effect, with the texts of the prompt for owners and admins only",
                    answer=AgentConfig,
                    query=(_AGENT,),
                ),
            ),
            ApiRoute(
                "GET",
                f"{path}/sets",
                self.list_sets,
                Access.ADMIN,
                Operation("The sets of an agent", answer=list[AgentConfigSet], query=(_AGENT,)),
            ),
            ApiRoute(
                "POST",
                f"{one_set}/activate",
                self.activate_set,
                Access.ADMIN,
                Operation("Make a set active", answer=AgentConfig, query=(_AGENT,)),
            ),
            ApiRoute(
                "DELETE",
                one_set,
                self.remove_set,
                Access.ADMIN,
                Operation(
                    "Remove a set; after the active one the configuration is in effect", status=204, query=(_AGENT,)
                ),
            ),
        ]

    async def get_config(self, request: Request) -> Response:
        return await self._respond(request, in_full=True)

    async def get_public_config(self, request: Request) -> Response:
        """Answers without the texts of the prompt, except to owners and admins."""
        return await self._respond(request, in_full=may_see_all(get_principal(request)))

    async def save_config(self, request: Request) -> Response:
        """Changes settings: a missing field stays as it is, and null restores the configured value.

        Writes to the set `name`, which is created if needed, or without a name to the active set. Makes it the active
        set unless `activate` is false.
        """
        body = await read_object(request)
        given = {name: value for name, value in body.items() if name not in _NO_SETTINGS}
        activate = read_flag(body, "activate") if "activate" in body else True
        agent, current = self._get_agent(request, read_text(body, "agent")), self._runtime.current
        name, by = read_text(body, "name"), get_principal(request)
        await self._assistant.save(by, current, given, to=agent.name, name=name, activate=activate)
        return await self._respond(request, in_full=True, agent=agent)

    async def reset_config(self, request: Request) -> Response:
        by, name = get_principal(request), _NAME.read_text(request)
        await self._assistant.reset(by, self._get_agent(request).name, name=name)
        return await self._respond(request, in_full=True)

    async def list_sets(self, request: Request) -> Response:
        rows = await self._assistant.list_sets(self._get_agent(request).name)
        return JSONResponse(
            [
                asdict(
                    AgentConfigSet(
                        name=row.name,
                        is_active=row.is_active,
                        changed=row.chosen.names,
                        updated_at=row.updated_at.isoformat(),
                    )
                )
                for row in rows
            ]
        )

    async def activate_set(self, request: Request) -> Response:
        await self._assistant.activate(
            get_principal(request), self._get_agent(request).name, request.path_params["name"]
        )
        return await self._respond(request, in_full=True)

    async def remove_set(self, request: Request) -> Response:
        await self._assistant.remove(get_principal(request), self._get_agent(request).name, request.path_params["name"])
        return Response(status_code=204)

    def _get_agent(self, request: Request, named: str = "") -> Agent:
        """Returns the agent as configured. Raises NotFound."""
        return self._runtime.current.agent(named or _AGENT.read_text(request))

    async def _respond(self, request: Request, *, in_full: bool, agent: Agent | None = None) -> Response:
        name = (agent or self._get_agent(request)).name
        active = await self._assistant.load_active(name)
        now = await self._assistant.agent(self._runtime.current, name)
        return JSONResponse(asdict(config_to_wire(now, active, in_full=in_full)))


def config_to_wire(agent: Agent, active: SettingsSet | None, *, in_full: bool) -> AgentConfig:
    """Returns the settings in effect of an agent that its active set was applied to."""
    settings = find_active_set(agent)
    return AgentConfig(
        agent=agent.name,
        name=active.name if active else "",
        response_style=agent.instructions.style.response,
        language=agent.instructions.style.language,
        default_model=agent.model_word,
        max_steps_multiplier=agent.limits.max_steps_multiplier,
        citation_format=agent.instructions.style.citations,
        temperature=settings.temperature,
        additional_prompt=settings.additional_prompt if in_full else None,
        search_instructions=settings.search_instructions if in_full else None,
        changed=active.chosen.names if active else (),
    )
