"""The agents of the configuration: what there is, and making, switching and removing one.

Every change goes through the files of the configuration (`ports/configuration`), so it is one generation, is written to
the audit log, and can be taken back. `domain/agent_draft` says what a new agent may be like.
"""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.agent import Agent
from denizen.domain.agent_draft import AgentChoices, AgentDraft, check_draft
from denizen.domain.errors import Conflict, InvalidInput, NotAllowed
from denizen.domain.principal import Principal, RoleName
from denizen.domain.routing import AUTO
from denizen.engine.configuration.generation import Runtime
from denizen.engine.tools.toolbox import list_all
from denizen.ports.configuration import ConfigurationChange, ConfigurationFiles, NewAgent, PlannedChange


class AgentCatalog:
    """One for a process. Without files that can be written, as in most commands, nothing can be changed."""

    def __init__(self, runtime: Runtime, files: ConfigurationFiles | None = None) -> None:
        self._runtime = runtime
        self._files = files

    def open_configuration(self, files: ConfigurationFiles) -> None:
        """Lets agents be changed in these files from now on."""
        self._files = files

    # --- what there is -----------------------------------------------------------------------------------------------

    def list_agents(self) -> Sequence[Agent]:
        """Returns the agents, the default one first."""
        current = self._runtime.current
        return sorted(current.agents.values(), key=lambda agent: (agent.name != current.default_agent, agent.name))

    def get_agent(self, name: str) -> Agent:
        """Raises NotFound."""
        return self._runtime.current.agent(name)

    def list_models(self) -> Sequence[str]:
        """Returns the words that an agent may have for its model: aliases first."""
        known = self._runtime.current.models.list_models()
        aliases = dict.fromkeys(alias for info in known for alias in info.aliases)
        return [AUTO, *aliases, *dict.fromkeys(info.name for info in known)]

    async def list_tools(self) -> Sequence[str]:
        """Returns the names of the tools that an agent may be given."""
        tools = await list_all(self._runtime.current.toolsets, of=lambda spec: not spec.administration)
        return sorted(tools)

    async def load_choices(self) -> AgentChoices:
        """Returns what an interview about a new agent chooses among."""
        return AgentChoices(self._runtime.current.agents.keys(), await self.list_tools(), self.list_models())

    async def check_draft(self, draft: AgentDraft) -> AgentDraft:
        """Raises what is wrong with it."""
        current = self._runtime.current
        return check_draft(draft, taken=current.agents, tools=await self.list_tools(), models=self.list_models())

    # --- changes -----------------------------------------------------------------------------------------------------

    async def plan(self, draft: AgentDraft) -> PlannedChange:
        """Returns what making the agent would write. Raises what is wrong with the draft."""
        files = self._get_files()
        planned = await files.plan_agent(_new_agent(await self.check_draft(draft)))
        for fault in planned.faults:
            raise InvalidInput(fault.message, code="config_invalid", fix=fault.fix)
        return planned

    async def describe_plan(self, draft: AgentDraft) -> str:
        """Returns the lines that making the agent would write. Raises as `plan` does."""
        return (await self.plan(draft)).changed_lines

    async def create(self, by: Principal, draft: AgentDraft, *, expected: str = "") -> ConfigurationChange:
        """Makes the agent, in one change. `expected` is the digest of the text that was planned on."""
        files = self._get_files()
        return await files.add_agent(by, _new_agent(await self.check_draft(draft)), expected=expected)

    async def remove(self, by: Principal, name: str) -> ConfigurationChange:
        """Takes the agent out of the configuration; its folder and what was said with it stay. Raises NotFound, and
        Conflict for the default one.
        """
        self.check_not_default(name)
        return await self._get_files().remove_agent(by, name)

    def check_not_default(self, name: str) -> None:
        """Raises NotFound for no agent, Conflict for the default one: it answers whoever names none."""
        agent = self.get_agent(name)
        if agent.name == self._runtime.current.default_agent:
            raise Conflict(
                f"{agent.name} is the default agent.", code="agent_default", fix="Make another one the default first."
            )

    async def switch(self, by: Principal, name: str, *, is_on: bool) -> ConfigurationChange:
        """Lets the agent answer, or not. Raises NotFound, and Conflict for the default one, which is always on."""
        if not is_on:
            self.check_not_default(name)
        agent = self.get_agent(name)
        if agent.enabled is is_on:
            raise Conflict(f"{agent.name} is {'on' if is_on else 'off'} already.", code="agent_switched")
        return await self._get_files().put_value(by, f'agents."{agent.name}".enabled', is_on)

    def _get_files(self) -> ConfigurationFiles:
        if self._files is None:
            raise NotAllowed("Agents are changed while the server runs only.", code="configuration_closed")
        return self._files


def check_may_manage(by: Principal) -> None:
    """Raises NotAllowed for anybody but owners and admins."""
    if not by.roles & {RoleName.OWNER, RoleName.ADMIN}:
        raise NotAllowed("Agents are made and changed by owners and admins only.", code="agents_not_yours")


def _new_agent(draft: AgentDraft) -> NewAgent:
    return NewAgent(name=draft.name, section=draft.section, files=draft.files)
