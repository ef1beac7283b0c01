"""A small guild on a simulated Discord, with a real discord.py client in it, for what the account reads."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import discord

from denizen.domain.principal import Principal, PrincipalKind
from denizen.testing.discord import (
    DiscordServer,
    SimApplication,
    SimChannel,
    SimGuild,
    SimMessage,
    SimUser,
    SimWorld,
    open_discord,
)
from tests.testing.discord.bots import Bot, running


@dataclass
class ClientFixture:
    """Ana owns the guild; Ben is a member; Ada is the account that reads."""

    server: DiscordServer
    guild: SimGuild
    ana: SimUser
    ben: SimUser
    ada: SimApplication
    general: SimChannel
    client: Bot

    @property
    def world(self) -> SimWorld:
        return self.server.world

    @property
    def me(self) -> discord.ClientUser:
        assert self.client.user is not None
        return self.client.user

    async def hear(self, sent: SimMessage) -> discord.Message:
        """What the client makes of a message."""
        await self.server.until(lambda: any(each.id == sent.id for each in self.client.heard))
        return next(each for each in self.client.heard if each.id == sent.id)

    async def say(
        self, author: SimUser, text: str = "", channel: SimChannel | None = None, **extras: Any
    ) -> discord.Message:
        return await self.hear(self.world.say(author, channel or self.general, text, **extras))

    async def settle(self) -> None:
        """Everything that was done so far has reached the client: a message comes after what came before it."""
        await self.say(self.ana, "so far")


class ShardedBot(Bot, discord.AutoShardedClient):
    """The same on as many connections as Discord wants."""


@asynccontextmanager
async def open_client(kind: type[Bot] = Bot, **options: Any) -> AsyncGenerator[ClientFixture]:
    """`options` are those of the client: `intents` above all."""
    async with open_discord() as server:
        world = server.world
        ana, ben = world.add_person("Ana"), world.add_person("Ben")
        guild = world.add_guild("Harbour", owner=ana)
        guild.join(ben)
        ada = world.add_application("Ada")
        guild.join(ada.user)
        general = guild.add_channel("general")
        async with running(server, ada, lambda: kind(**options)) as client:
            yield ClientFixture(server=server, guild=guild, ana=ana, ben=ben, ada=ada, general=general, client=client)


def asker(user: SimUser) -> Principal:
    return Principal(PrincipalKind.PLATFORM_USER, f"discord:{user.id}", user.display_name)


WITHOUT_MEMBERS = discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)
