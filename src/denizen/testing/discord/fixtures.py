"""pytest fixtures: a running simulation for each test, and one with a guild.

pytest_plugins = ["denizen.testing.discord.fixtures"]

@pytest.mark.anyio
async def test_it_answers(sim):
    async with my_bot(sim.discord.api_url, sim.discord.gateway_url, sim.ada.token):
        sim.world.say(sim.ana, sim.general, f"{sim.ada.mention} hello")
        await sim.discord.until(lambda: sim.general.texts[-1] == "hi")
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest

from denizen.testing.discord.server import DiscordServer, open_discord
from denizen.testing.discord.state.channels import SimChannel
from denizen.testing.discord.state.guilds import SimGuild
from denizen.testing.discord.state.people import SimApplication, SimUser
from denizen.testing.discord.world.world import SimWorld


@dataclass(frozen=True, slots=True)
class DiscordFixture:
    """A guild that Ana owns, with Ben, one channel, and a bot with the rights of @everyone."""

    discord: DiscordServer
    guild: SimGuild
    general: SimChannel
    ana: SimUser
    ben: SimUser
    ada: SimApplication

    @property
    def world(self) -> SimWorld:
        return self.discord.world


def build_discord_fixture(server: DiscordServer) -> DiscordFixture:
    world = server.world
    ana, ben = world.add_person("Ana"), world.add_person("Ben")
    guild = world.add_guild("Harbour", owner=ana)
    guild.join(ben)
    general = guild.add_channel("general")
    ada = world.add_application("Ada", owner=ana)
    guild.join(ada.user)
    return DiscordFixture(discord=server, guild=guild, general=general, ana=ana, ben=ben, ada=ada)


@pytest.fixture
async def discord_server() -> AsyncGenerator[DiscordServer, None]:
    """An empty simulation."""
    async with open_discord() as server:
        yield server


@pytest.fixture
async def sim(discord_server: DiscordServer) -> DiscordFixture:
    """A simulation with a guild, two people and a bot."""
    return build_discord_fixture(discord_server)
