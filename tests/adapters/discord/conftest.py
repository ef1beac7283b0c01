"""A simulated Discord with a guild, a channel, two people and a bot that is a member."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from denizen.testing.discord import open_discord
from tests.adapters.discord.listening import Harbour


@pytest.fixture
async def harbour() -> AsyncGenerator[Harbour]:
    async with open_discord() as discord:
        yield Harbour(discord)
