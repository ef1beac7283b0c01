"""A fresh home and a provider for every test, and Discord for those that want it."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from tests.e2e.discord import Harbour, open_harbour
from tests.e2e.github import Yard, open_yard
from tests.e2e.home import Home
from tests.e2e.provider import Provider, open_provider


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def provider() -> Generator[Provider]:
    with open_provider() as opened:
        yield opened


@pytest.fixture
async def harbour(home: Home, provider: Provider) -> AsyncGenerator[Harbour]:
    async with open_harbour(home, provider) as opened:
        yield opened


@pytest.fixture
async def yard(home: Home, provider: Provider) -> AsyncGenerator[Yard]:
    async with open_yard(home, provider) as opened:
        yield opened
