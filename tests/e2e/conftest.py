"""A fresh home and a provider for every test, and Discord for those that want it."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from tests.e2e.discord import DiscordDeployment, open_deployment
from tests.e2e.github import GitHubDeployment, open_github_deployment
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
async def deployment(home: Home, provider: Provider) -> AsyncGenerator[DiscordDeployment]:
    async with open_deployment(home, provider) as opened:
        yield opened


@pytest.fixture
async def github_deployment(home: Home, provider: Provider) -> AsyncGenerator[GitHubDeployment]:
    async with open_github_deployment(home, provider) as opened:
        yield opened
