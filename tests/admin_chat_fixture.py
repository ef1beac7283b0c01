"""A server whose admins may ask about it, for tests of chats about the administration."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from denizen.adapters.log_files import LogFiles
from denizen.adapters.store import open_sql_reader
from denizen.app.administration import ServerAdministration, ServerRecords
from denizen.builtin_skills import load_builtin
from denizen.domain.agent import Agent
from denizen.domain.ids import AgentName
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.user import User
from denizen.engine.configuration.agent_settings import AgentSettingsOverlay
from denizen.engine.configuration.generation import Generation, Runtime
from denizen.engine.inspection.statistics import UsageStatistics
from denizen.ports.toolset import CallScope
from denizen.skill import OwnerServices, SkillToolset
from denizen.testing.scripted_model import ScriptedModel, ScriptedModels
from tests.skill_fixture import ServicesFixture, scope
from tests.web_fixture import ADA, ANN, WebFixture, open_web

ADMIN: CallScope = replace(
    scope(), principal=Principal(PrincipalKind.API_KEY, "ada", "ada", frozenset({"admin"})), is_administration=True
)


class _LateAdministration:
    """The administration of a server that is opened later, with the toolset that asks it."""

    def __init__(self) -> None:
        self.real: ServerAdministration | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


@dataclass
class AdminChatFixture:
    web: WebFixture
    tools: SkillToolset
    home: Path
    logs: LogFiles
    administration: ServerAdministration

    async def add_user(self, user: User) -> None:
        async with self.web.store.work() as work:
            assert await work.users.add(user)


@asynccontextmanager
async def open_admin_chat(
    home: Path, *models: ScriptedModel, agents: Sequence[Agent] = ()
) -> AsyncGenerator[AdminChatFixture]:
    """A server in whose chats of the mode admin the skill `admin` is offered, for the key of ADA."""
    late, own = _LateAdministration(), ServicesFixture(home)
    services: Any = replace(own.services(), owner=OwnerServices(administration=late))  # pyright: ignore[reportArgumentType]
    tools = SkillToolset(load_builtin("admin"), services)
    async with open_web(*models, keys=[ADA, ANN], agents=agents, more=[tools]) as web:
        async with web.store.work(write=False):
            pass
        own.clock = web.clock
        runtime, logs = Runtime(), LogFiles(home / "logs")
        known = list(agents) or [Agent(AgentName("denizen"), "Lives here.")]
        await runtime.swap(
            Generation(
                number=1,
                agents={agent.name: agent for agent in known},
                default_agent=known[0].name,
                models=ScriptedModels(web.model),
                toolsets=(),
            )
        )
        records = ServerRecords(
            UsageStatistics(web.store, web.clock, runtime), open_sql_reader(f"sqlite:///{web.store.path}"), logs
        )
        late.real = ServerAdministration(runtime, AgentSettingsOverlay(web.store, web.clock), records)
        yield AdminChatFixture(web, tools, home, logs, late.real)
        await runtime.aclose()
