"""A simulated GitHub with a repository, two people and an App that is installed there."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from tests.adapters.github.github_fixture import GitHubFixture
from tests.clock import ManualClock
from tests.github_simulator import open_github


@pytest.fixture
async def sim() -> AsyncGenerator[GitHubFixture]:
    clock = ManualClock()
    async with open_github(clock=clock) as github:
        sim = GitHubFixture(github, clock)
        yield sim
        await sim.aclose()
