"""A simulated GitHub with a repository, two people and an App that is installed there."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from tests.adapters.github.github_fixture import GitHubFixture, HandClock
from tests.github_simulator import open_github


@pytest.fixture
async def sim() -> AsyncGenerator[GitHubFixture]:
    clock = HandClock()
    async with open_github(clock=clock) as github:
        sim = GitHubFixture(github, clock)
        yield sim
        await sim.aclose()
