"""A model server for each test, and models that are closed when it ends."""

from collections.abc import AsyncIterator, Generator
from functools import partial
from typing import Any

import pytest

from denizen.adapters.models.catalog import ModelCatalog
from denizen.testing.model_server import ModelServer, model_server
from tests.adapters.models.wire_fixture import BuildCatalog, Wire, catalog
from tests.ports import hold_unused_port


@pytest.fixture
async def server(anyio_backend: str) -> AsyncIterator[ModelServer]:
    async with model_server() as running:
        yield running


@pytest.fixture
def unused_port() -> Generator[int]:
    with hold_unused_port() as port:
        yield port


@pytest.fixture
async def build(server: ModelServer) -> AsyncIterator[BuildCatalog]:
    opened: list[ModelCatalog] = []

    def make(*wires: Wire, **more: Any) -> ModelCatalog:
        opened.append(partial(catalog, server, *wires)(**more))
        return opened[-1]

    yield make
    for models in opened:
        await models.aclose()
