"""Actions as they are asked for: by a person, in a channel, through an account on a simulated Discord.

async with deck(harbour) as act:
    done = await act(harbour.ben, "send_message", text="hello")
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from itertools import count
from typing import Protocol

from denizen.adapters.discord.account import DiscordAccount
from denizen.domain.action import Action, Warrant
from denizen.domain.conversation import Place
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import Principal, PrincipalKind
from denizen.testing.discord import Channel, Message, User
from tests.adapters.discord.listening import Harbour, Heard, running

_numbers = count(1)


class Act(Protocol):
    def __call__(
        self, who: User, name: str, /, *, where: Channel | None = None, key: str = "", **details: Json
    ) -> Awaitable[JsonObject]: ...


def warrant_of(harbour: Harbour, who: User, where: Channel | None = None, key: str = "") -> Warrant:
    """Each has a key of its own unless one is given."""
    asker = Principal(PrincipalKind.PLATFORM_USER, f"discord:{who.id}", who.display_name)
    room = where or harbour.general
    place = Place("discord", str(room.parent.id if room.parent and room.is_thread else room.id))
    if room.is_thread:
        place = Place("discord", place.channel, str(room.id))
    return Warrant(asker, place, key or f"call-{next(_numbers)}")


@asynccontextmanager
async def deck(harbour: Harbour) -> AsyncGenerator[Act]:
    """Everybody's members are known before anything is asked."""
    async with running(harbour) as (account, _):
        yield _acting(harbour, account)


@asynccontextmanager
async def deck_heard(harbour: Harbour) -> AsyncGenerator[tuple[Act, Heard]]:
    async with running(harbour) as (account, heard):
        yield _acting(harbour, account), heard


def _acting(harbour: Harbour, account: DiscordAccount) -> Act:
    async def act(
        who: User, name: str, /, *, where: Channel | None = None, key: str = "", **details: Json
    ) -> JsonObject:
        return await account.act(Action(name, details), warrant_of(harbour, who, where, key))

    return act


def message_of(harbour: Harbour, done: JsonObject) -> Message:
    """The one that an action told of."""
    found = harbour.world.realm.find_message(int(str(done["channel"])), int(str(done["message"])))
    assert found is not None
    return found
