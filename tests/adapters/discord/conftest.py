"""A simulated Discord with a guild, a channel, two people and a bot that is a member."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from denizen.testing.discord import open_discord
from tests.adapters.discord.account_fixture import AccountFixture


@pytest.fixture
async def sim() -> AsyncGenerator[AccountFixture]:
    async with open_discord() as discord:
        yield AccountFixture(discord)
