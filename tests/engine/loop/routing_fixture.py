"""An engine whose agent is on `auto`: a router and the models that it may choose."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal

from denizen.domain.agent import Agent
from denizen.domain.usage import Usage
from denizen.testing.memory_durable import MemoryLog
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from denizen.testing.temporary_store import TemporaryStore
from tests.engine.engine_fixture import NAME, EngineFixture, ToolsetFixture, generation, open_engine

AUTO = Agent(NAME, is_routed=True)
USED = Usage(input_tokens=300, output_tokens=40, cost_usd=Decimal("0.0001"), requests=1)


def make_routing_reply(complexity: str, steps: int, model: str, reason: str = "because") -> ScriptedReply:
    row = {"complexity": complexity, "max_steps": steps, "model": model, "reason": reason}
    return ScriptedReply(json.dumps(row), usage=USED)


@dataclass
class RoutingModels:
    """The three to choose from, and the one that sorts."""

    router: ScriptedModel
    fast: ScriptedModel
    balanced: ScriptedModel
    quality: ScriptedModel

    @classmethod
    def answering(cls, *routes: ScriptedReply) -> RoutingModels:
        def model(name: str) -> ScriptedModel:
            return ScriptedModel(name=f"acme/{name}", otherwise=ScriptedReply(f"said by {name}"))

        return cls(ScriptedModel(*routes, name="acme/router"), model("fast"), model("balanced"), model("quality"))

    @property
    def by_alias(self) -> dict[str, ScriptedModel]:
        return {"fast": self.fast, "balanced": self.balanced, "quality": self.quality, "cheap": self.router}


@asynccontextmanager
async def open_router(
    models: RoutingModels,
    agent: Agent = AUTO,
    tools: ToolsetFixture | None = None,
    store: TemporaryStore | None = None,
    log: MemoryLog | None = None,
) -> AsyncGenerator[EngineFixture]:
    tools = tools or ToolsetFixture()
    async with open_engine(models.balanced, tools, agent=agent, store=store, log=log) as engine:
        await engine.runtime.swap(generation(models.by_alias, tools, agent=agent, number=2))
        yield engine
