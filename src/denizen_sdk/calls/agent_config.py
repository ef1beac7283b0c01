"""How an agent is set up, and the named sets of settings over its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from denizen_sdk.calls.calls import ClientCalls
from denizen_sdk.wire import AgentConfig, AgentConfigSet, from_json


class AgentConfigCalls(ClientCalls):
    """`/api/agent-config`. An empty `agent` is the default one. All raise ApiError (403 but for owners and admins, 404
    for an agent or a set that is not there) and NetworkError.
    """

    async def get_agent_config(self, agent: str = "") -> AgentConfig:
        """What holds now; for everybody, without the texts of the prompt but for owners and admins."""
        return await self._get(AgentConfig, "/api/agent-config/public", agent=agent)

    async def save_agent_config(
        self, settings: Mapping[str, Any], *, agent: str = "", name: str = "", activate: bool = True
    ) -> AgentConfig:
        """Sets fields of `AgentConfig` from `response_style` on; None brings the configured value back, what is missing
        stays. `name` is the set that is written to, made when it is not there; else it is the active one. Raises
        ApiError (400) for a field that does not exist or a value that it cannot have.
        """
        body = {**settings, "agent": agent, "name": name, "activate": activate}
        return from_json(AgentConfig, await self._connection.request("PUT", "/api/agent-config", body=body))

    async def reset_agent_config(self, *, agent: str = "", name: str = "") -> AgentConfig:
        """Empties the active set, or the named one: the configuration holds again."""
        return await self._change("POST", "/reset", agent=agent, name=name)

    async def list_agent_config_sets(self, agent: str = "") -> list[AgentConfigSet]:
        return await self._list(AgentConfigSet, "/api/agent-config/sets", agent=agent)

    async def activate_agent_config_set(self, name: str, *, agent: str = "") -> AgentConfig:
        return await self._change("POST", f"/sets/{quote_segment(name)}/activate", agent=agent)

    async def remove_agent_config_set(self, name: str, *, agent: str = "") -> None:
        """After an active one the configuration holds."""
        params = {"agent": agent} if agent else None
        await self._connection.request("DELETE", f"/api/agent-config/sets/{quote_segment(name)}", params=params)

    async def _change(self, method: str, path: str, **params: str) -> AgentConfig:
        given = {name: value for name, value in params.items() if value}
        return from_json(AgentConfig, await self._connection.request(method, f"/api/agent-config{path}", params=given))
