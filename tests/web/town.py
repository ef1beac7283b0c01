"""A server with every route there is, for tests of how they are described: with knowledge and tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from denizen.testing.memory_durable import MemoryDurable
from denizen.testing.memory_store import MemoryStore
from denizen.testing.scripted_model import Say, ScriptedModel
from denizen.web.auth import ApiKey
from denizen.web.dependencies import KnowledgeParts
from tests.engine.knowledge.house import House
from tests.site import ADA, ANN, HandClock, Site, running_site

OWNER = ApiKey.of("olga", "key-of-olga", ("owner",))


@asynccontextmanager
async def open_town(root: Path) -> AsyncGenerator[Site]:
    def make(store: MemoryStore, durable: MemoryDurable, clock: HandClock) -> KnowledgeParts:
        house = House(root, store=store, durable=durable)
        return KnowledgeParts(house.catalog, house.sync, house.snapshots, lambda: house.remote)

    model = ScriptedModel(otherwise=Say("Hello."))
    async with running_site(model, keys=[ADA, ANN, OWNER], make_knowledge=make) as site:
        yield site
