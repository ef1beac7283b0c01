"""Agents: the list of them, their models, tools and settings. Also the health of the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from denizen_sdk.calls import ClientCalls, quote_segment
from denizen_sdk.records import Json, from_json, record


@record
class HealthReport:
    """The health of a running server. Without a key only `status` is told. `tools` is None while a source of tools does
    not answer.
    """

    status: str
    version: str = ""
    uptime_s: float = 0.0
    generation: int = 0
    agents: int = 0
    provider: str = ""
    model: str = ""
    tools: int | None = None


@record
class ReadinessReport:
    """Whether a server can do its work: `status` is `ready` or `not_ready`. `not_ready` names the parts that are not:
    `store`, `durable_log`, `disk`, `accounts`. Without a key there are no `reasons`.
    """

    status: str
    not_ready: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])


@record
class AgentListing:
    """An agent in the list of agents. `provider` is empty if the agent's model is not in the list of models.
    `is_embedded` tells that the agent uses the small built-in model.
    """

    name: str
    description: str
    model: str
    provider: str
    is_default: bool
    is_embedded: bool = False


@record
class ModelListing:
    """A model in the list of models."""

    name: str
    provider: str
    aliases: tuple[str, ...]
    fallbacks: tuple[str, ...]
    context_tokens: int
    is_small: bool
    is_embedded: bool = False


@record
class ToolListing:
    """A tool in the list of tools. `tier` is the risk that the gate assumes: 0 harmless to 3 dangerous."""

    name: str
    description: str
    tier: int
    source: str
    read_only: bool
    parameters: Json


@record
class AgentConfig:
    """The settings of an agent in effect: its configuration, and over it the active set of settings `name` (empty if
    none is active). `changed` names the fields that the set changes. Texts are None if there are none, and for callers
    who are neither owner nor admin. `default_model` is `auto` if the router chooses a model for each question.
    """

    agent: str
    name: str
    response_style: str
    language: str
    default_model: str
    max_steps_multiplier: float
    citation_format: str
    temperature: float | None = None
    additional_prompt: str | None = None
    search_instructions: str | None = None
    changed: tuple[str, ...] = ()


@record
class AgentConfigSet:
    """One of an agent's named sets of settings. `changed` names the fields that it sets."""

    name: str
    is_active: bool
    changed: tuple[str, ...]
    updated_at: str


class AgentCalls(ClientCalls):
    """`/api/agents`, `/api/models`, `/api/tools`, `/api/agent-config` and `/health`.

    An empty `agent` is the default one. All raise ApiError (404 for an agent or a set that does not exist, 403 for
    changes by anybody but owners and admins) and NetworkError.
    """

    async def list_agents(self) -> list[AgentListing]:
        """Returns the agents, the default one first."""
        return await self._list(AgentListing, "/api/agents")

    async def list_models(self) -> list[ModelListing]:
        """Returns the models that agents may use."""
        return await self._list(ModelListing, "/api/models")

    async def list_tools(self, *, agent: str = "") -> list[ToolListing]:
        """Returns all tools, or those of one agent."""
        return await self._list(ToolListing, "/api/tools", agent=agent)

    async def health(self) -> HealthReport:
        """Returns the health of the server; without a key only that it is alive."""
        return await self._get(HealthReport, "/health")

    async def get_agent_config(self, agent: str = "") -> AgentConfig:
        """Returns the settings in effect. Only owners and admins get the texts of the prompt."""
        return await self._get(AgentConfig, "/api/agent-config/public", agent=agent)

    async def save_agent_config(
        self, settings: Mapping[str, Any], *, agent: str = "", name: str = "", activate: bool = True
    ) -> AgentConfig:
        """Changes settings: the fields of `AgentConfig` from `response_style` on.

        None restores the configured value; a missing field stays as it is. Writes to the set `name`, which is created
        if needed, or without a name to the active set. Raises ApiError (400) for an unknown field or a wrong value.
        """
        body = {**settings, "agent": agent, "name": name, "activate": activate}
        return from_json(AgentConfig, await self._connection.request("PUT", "/api/agent-config", body=body))

    async def reset_agent_config(self, *, agent: str = "", name: str = "") -> AgentConfig:
        """Empties the active set, or the named one, so that the configuration is in effect again."""
        return await self._change("POST", "/reset", agent=agent, name=name)

    async def list_agent_config_sets(self, agent: str = "") -> list[AgentConfigSet]:
        """Returns the sets of settings of an agent."""
        return await self._list(AgentConfigSet, "/api/agent-config/sets", agent=agent)

    async def activate_agent_config_set(self, name: str, *, agent: str = "") -> AgentConfig:
        """Makes a set the active one."""
        return await self._change("POST", f"/sets/{quote_segment(name)}/activate", agent=agent)

    async def remove_agent_config_set(self, name: str, *, agent: str = "") -> None:
        """Removes a set. If it was the active one, the configuration is in effect again."""
        params = {"agent": agent} if agent else None
        await self._connection.request("DELETE", f"/api/agent-config/sets/{quote_segment(name)}", params=params)

    async def _change(self, method: str, path: str, **params: str) -> AgentConfig:
        given = {name: value for name, value in params.items() if value}
        return from_json(AgentConfig, await self._connection.request(method, f"/api/agent-config{path}", params=given))
