"""Actions as they are asked for: by a person, in a channel, through an account on a simulated Discord.

async with deck(sim) as act:
    done = await act(sim.ben, "send_message", text="hello")
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Protocol

from denizen.adapters.discord.account import DiscordAccount
from denizen.domain.action import OnBehalfOf, PlatformAction
from denizen.domain.conversation import Place
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import Principal, PrincipalKind
from denizen.testing.discord import SimChannel, SimMessage, SimUser
from tests.adapters.discord.account_fixture import AccountFixture, RecordingListener, running
from tests.memory_channel import enter_at_once

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """By somebody, in another channel than #general, or twice with the same key."""

    who: SimUser
    where: SimChannel | None = None
    key: str = ""


class RunAction(Protocol):
    def __call__(self, who: SimUser | ActionRequest, name: str, /, **details: Json) -> Awaitable[JsonObject]: ...


def build_on_behalf_of(sim: AccountFixture, who: SimUser, where: SimChannel | None = None, key: str = "") -> OnBehalfOf:
    """Each has a key of its own unless one is given."""
    asker = Principal(PrincipalKind.PLATFORM_USER, f"discord:{who.id}", who.display_name)
    room = where or sim.general
    place = Place("discord", str(room.parent.id if room.parent and room.is_thread else room.id))
    if room.is_thread:
        place = Place("discord", place.channel, str(room.id))
    return OnBehalfOf(asker, place, key or f"call-{next(_numbers)}")


@asynccontextmanager
async def open_actions(sim: AccountFixture, *, members_intent: bool = True) -> AsyncGenerator[RunAction]:
    """Everybody's members are known before anything is asked, but without the intent."""
    async with running(sim, members_intent=members_intent) as (account, _):
        yield bind_action(sim, account)


@asynccontextmanager
async def open_actions_and_listener(sim: AccountFixture) -> AsyncGenerator[tuple[RunAction, RecordingListener]]:
    async with running(sim) as (account, heard):
        yield bind_action(sim, account), heard


def bind_action(sim: AccountFixture, account: DiscordAccount) -> RunAction:
    async def act(who: SimUser | ActionRequest, name: str, /, **details: Json) -> JsonObject:
        asked = who if isinstance(who, ActionRequest) else ActionRequest(who)
        return await account.act(
            PlatformAction(name, details),
            build_on_behalf_of(sim, asked.who, asked.where, asked.key),
            enter=enter_at_once,
        )

    return act


def get_posted_message(sim: AccountFixture, done: JsonObject) -> SimMessage:
    """The one that an action told of."""
    found = sim.world.store.find_message(int(str(done["channel"])), int(str(done["message"])))
    assert found is not None
    return found
