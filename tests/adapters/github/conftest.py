"""A simulated GitHub with a repository, two people and an App that is installed there."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from tests.adapters.github.yard import HandClock, Yard
from tests.github_simulator import open_github


@pytest.fixture
async def yard() -> AsyncGenerator[Yard]:
    clock = HandClock()
    async with open_github(clock=clock) as github:
        yard = Yard(github, clock)
        yield yard
        await yard.aclose()
