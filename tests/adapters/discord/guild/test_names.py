"""Whom an @Name in an answer may mean."""

from __future__ import annotations

import discord
import pytest

from denizen.adapters.discord.guild.audience import find_names
from denizen.domain.conversation import Place
from denizen.domain.pings import link_pings
from denizen.testing.discord import SimChannel
from tests.adapters.discord.client_fixture import WITHOUT_MEMBERS, ClientFixture, open_client

pytestmark = pytest.mark.anyio


async def link_names(at: ClientFixture, text: str, channel: SimChannel | None = None) -> str:
    """The text as it would be sent."""
    names = await find_names(at.client, Place("discord", str((channel or at.general).id)), text)
    return link_pings(text, names.users, roles=names.roles).text


@pytest.mark.proves("CW7")
async def test_names_with_spaces_dots_and_hyphens_are_found():
    async with open_client() as at:
        people = [at.world.add_person(name) for name in ("Mary Ann", "j.r. Hook", "Anne-Lise", "Åsa")]
        for each in people:
            at.guild.join(each)
        await at.settle()
        mary, hook, anne, asa = (each.mention for each in people)
        text = await link_names(at, "@mary ann, @J.R. Hook and @Anne-Lise: ask @Åsa or @nobody")
        assert text == f"{mary}, {hook} and {anne}: ask {asa} or @nobody"
        assert await link_names(at, '@"Mary Ann" and @"Åsa" know') == f"{mary} and {asa} know"


async def test_the_name_that_is_shown_counts_for_more_than_another_ones_user_name():
    async with open_client() as at:
        shown, hidden = at.world.add_person("Robin"), at.world.add_person("Kim")
        hidden.name = "robin"
        shown.name = "robin_the_first"
        for each in (shown, hidden):
            at.guild.join(each)
        await at.settle()
        assert (
            await link_names(at, "@Robin @robin_the_first @Kim") == f"{shown.mention} {shown.mention} {hidden.mention}"
        )


async def test_a_name_that_two_are_shown_under_means_nobody():
    async with open_client() as at:
        for each in (at.world.add_person("Robin"), at.world.add_person("Robin")):
            at.guild.join(each)
        await at.settle()
        assert await link_names(at, "@Robin") == "@Robin"


async def test_only_who_can_view_the_place_is_called():
    async with open_client() as at:
        bridge = at.guild.add_channel("bridge", private_to=[at.ada.user])
        await at.settle()
        assert await link_names(at, "@Ana @Ben", bridge) == f"{at.ana.mention} @Ben"


async def test_mentionable_roles_are_found_and_others_not():
    async with open_client() as at:
        crew, guests = at.guild.add_role("Deck Crew", mentionable=True), at.guild.add_role("Guests")
        await at.settle()
        assert guests.name == "Guests"
        assert await link_names(at, "@deck crew @Guests") == f"{crew.mention} @Guests"


async def test_without_the_members_intent_names_are_looked_up():
    async with open_client(intents=WITHOUT_MEMBERS) as at:
        mary = at.world.add_person("Mary Ann")
        at.guild.join(mary)
        await at.settle()
        assert await link_names(at, "@Mary Ann, look; @Ben too") == f"{mary.mention}, look; {at.ben.mention} too"
        assert await link_names(at, "@x @y @z @Ben") == "@x @y @z @Ben"


async def test_nobody_is_looked_up_for_a_text_that_calls_nobody():
    async with open_client(intents=WITHOUT_MEMBERS) as at:
        names = await find_names(at.client, Place("discord", str(at.general.id)), "no names here")
        assert not names.users
        assert not names.roles


async def test_in_a_direct_talk_there_is_nobody_to_call():
    async with open_client() as at:
        talk = at.world.open_dm(at.ben, at.ada.user)
        await at.say(at.ben, "hi", talk)
        assert await link_names(at, "@Ben", talk) == "@Ben"
        assert isinstance(at.client.heard[-1].channel, discord.DMChannel)
