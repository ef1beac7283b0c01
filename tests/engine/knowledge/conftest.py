"""A library for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[KnowledgeFixture]:
    async with KnowledgeFixture(tmp_path) as engine:
        yield engine
