"""Actions as they are asked for: by a person, in a channel, through an account on a simulated Discord.

async with deck(harbour) as act:
    done = await act(harbour.ben, "send_message", text="hello")
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Protocol

from denizen.adapters.discord.account import DiscordAccount
from denizen.domain.action import Action, Warrant
from denizen.domain.conversation import Place
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import Principal, PrincipalKind
from denizen.testing.discord import SimChannel, SimMessage, SimUser
from tests.adapters.discord.listening import Harbour, Heard, running

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Asked:
    """By somebody, in another channel than #general, or twice with the same key."""

    who: SimUser
    where: SimChannel | None = None
    key: str = ""


class Act(Protocol):
    def __call__(self, who: SimUser | Asked, name: str, /, **details: Json) -> Awaitable[JsonObject]: ...


def warrant_of(harbour: Harbour, who: SimUser, where: SimChannel | None = None, key: str = "") -> Warrant:
    """Each has a key of its own unless one is given."""
    asker = Principal(PrincipalKind.PLATFORM_USER, f"discord:{who.id}", who.display_name)
    room = where or harbour.general
    place = Place("discord", str(room.parent.id if room.parent and room.is_thread else room.id))
    if room.is_thread:
        place = Place("discord", place.channel, str(room.id))
    return Warrant(asker, place, key or f"call-{next(_numbers)}")


@asynccontextmanager
async def deck(harbour: Harbour, *, members_intent: bool = True) -> AsyncGenerator[Act]:
    """Everybody's members are known before anything is asked, but without the intent."""
    async with running(harbour, members_intent=members_intent) as (account, _):
        yield acting(harbour, account)


@asynccontextmanager
async def deck_heard(harbour: Harbour) -> AsyncGenerator[tuple[Act, Heard]]:
    async with running(harbour) as (account, heard):
        yield acting(harbour, account), heard


def acting(harbour: Harbour, account: DiscordAccount) -> Act:
    async def act(who: SimUser | Asked, name: str, /, **details: Json) -> JsonObject:
        asked = who if isinstance(who, Asked) else Asked(who)
        return await account.act(Action(name, details), warrant_of(harbour, asked.who, asked.where, asked.key))

    return act


def message_of(harbour: Harbour, done: JsonObject) -> SimMessage:
    """The one that an action told of."""
    found = harbour.world.realm.find_message(int(str(done["channel"])), int(str(done["message"])))
    assert found is not None
    return found
