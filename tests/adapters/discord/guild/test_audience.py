"""Who may see what, through a real client of a simulated Discord."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import anyio.lowlevel
import discord
import pytest

from denizen.adapters.discord.guild.audience import (
    list_memberships,
    list_visible_rooms,
    may_moderate,
    may_post,
    may_write,
)
from denizen.adapters.discord.guild.members import is_live
from denizen.domain.conversation import Place
from denizen.domain.errors import Unavailable
from denizen.domain.principal import Principal, PrincipalKind
from denizen.testing.discord import DiscordPermission, SimChannel, SimUser
from denizen.testing.discord.state.channels import SimOverwrite
from tests.adapters.discord.client_fixture import WITHOUT_MEMBERS, ClientFixture, ShardedBot, asker, open_client
from tests.testing.discord.bots import Bot
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


def make_place(channel: SimChannel) -> Place:
    if channel.is_thread and channel.parent is not None:
        return Place("discord", str(channel.parent.id), str(channel.id))
    return Place("discord", str(channel.id))


async def names_seen(at: ClientFixture, where: SimChannel, who: SimUser | Principal) -> set[str]:
    """Names of the rooms that may be drawn on for an answer there."""
    principal = who if isinstance(who, Principal) else asker(who)
    found = await list_visible_rooms(at.client, make_place(where), principal)
    names = {str(each.id): each.name for each in at.world.channels}
    return {names[each] or "direct" for each in found}


class PrivateRooms:
    """The public #general; #bridge for the crew, of which Cy is, and Ada; Ben is an ordinary member."""

    def __init__(self, at: ClientFixture) -> None:
        self.cy = at.world.add_person("Cy")
        self.crew = at.guild.add_role("Crew")
        at.guild.join(self.cy, [self.crew])
        at.guild.set_roles(at.ada.user, [self.crew])
        self.bridge = at.guild.add_channel("bridge", private_to=[self.crew])
        self.galley = at.guild.add_channel("galley", private_to=[self.crew])


async def test_what_was_said_in_private_is_not_for_answers_in_public():
    async with open_client() as at:
        rooms = PrivateRooms(at)
        await at.settle()
        assert await names_seen(at, at.general, rooms.cy) == {"general"}
        assert await names_seen(at, rooms.bridge, rooms.cy) == {"general", "bridge", "galley"}


async def test_the_asker_must_see_it_too_whoever_else_does():
    async with open_client() as at:
        rooms = PrivateRooms(at)
        closed = at.guild.add_channel("closed", private_to=[at.ada.user])
        await at.settle()
        assert await names_seen(at, closed, rooms.cy) == {"closed", "general", "bridge", "galley"}
        assert await names_seen(at, closed, at.ben) == {"closed", "general"}


async def test_a_direct_talk_may_draw_on_what_its_user_sees_in_all_guilds():
    async with open_client() as at:
        rooms = PrivateRooms(at)
        other = at.world.add_guild("Island", at.ben)
        other.join(at.ada.user)
        other.add_channel("beach")
        await at.settle()
        with_cy, with_ben = at.world.open_dm(rooms.cy, at.ada.user), at.world.open_dm(at.ben, at.ada.user)
        assert await names_seen(at, with_cy, rooms.cy) == {"direct", "general", "bridge", "galley"}
        assert await names_seen(at, with_ben, at.ben) == {"direct", "general", "beach"}
        assert await names_seen(at, with_ben, rooms.cy) == {"direct"}
        assert await names_seen(at, at.general, at.ben) == {"general"}


async def test_a_right_that_is_taken_away_counts_at_once():
    async with open_client() as at:
        rooms = PrivateRooms(at)
        await at.settle()
        assert "galley" in await names_seen(at, rooms.bridge, rooms.cy)
        at.guild.set_roles(rooms.cy, [])
        await at.settle()
        assert await names_seen(at, rooms.bridge, rooms.cy) == {"bridge", "general"}


async def test_only_people_of_discord_see_more_than_the_place():
    async with open_client() as at:
        at.guild.add_channel("other")
        await at.settle()
        for principal in (
            Principal(PrincipalKind.SCHEDULE, "nightly", "nightly"),
            Principal(PrincipalKind.WEB_USER, f"discord:{at.ana.id}", "Ana"),
            Principal(PrincipalKind.PLATFORM_USER, f"github:{at.ana.id}", "Ana"),
            Principal(PrincipalKind.PLATFORM_USER, "discord:somebody", "Ana"),
        ):
            assert await names_seen(at, at.general, principal) == {"general"}
        assert await list_visible_rooms(at.client, Place("web", "1"), asker(at.ana)) == frozenset()
        assert await names_seen(at, at.general, at.ana) == {"general", "other"}


async def test_a_stranger_sees_no_more_than_the_place():
    async with open_client() as at:
        at.guild.add_channel("other")
        stranger = at.world.add_person("Stranger")
        await at.settle()
        assert await names_seen(at, at.general, stranger) == {"general"}


async def test_seeing_a_channel_without_its_history_is_not_reading_it():
    async with open_client() as at:
        blind = SimOverwrite(at.guild.id, 0, deny=DiscordPermission.READ_MESSAGE_HISTORY)
        mute = SimOverwrite(at.guild.id, 0, deny=DiscordPermission.CONNECT)
        at.guild.add_channel("blind", overwrites=[blind])
        at.guild.add_channel("cabin", kind="voice")
        at.guild.add_channel("closed cabin", kind="voice", overwrites=[mute])
        at.guild.add_channel("decks", kind="category")
        at.guild.add_channel("questions", kind="forum")
        await at.settle()
        assert await names_seen(at, at.general, at.ben) == {"general", "cabin", "questions"}


async def test_bots_are_readers_and_the_account_is_none():
    async with open_client() as at:
        rooms = PrivateRooms(at)
        relay = at.world.add_application("Relay")
        at.guild.join(relay.user)
        quiet = at.guild.add_channel("quiet", private_to=[rooms.crew, at.ada.user, relay.user])
        await at.settle()
        assert await names_seen(at, quiet, rooms.cy) == {"quiet", "general"}
        at.guild.set_roles(relay.user, [rooms.crew])
        await at.settle()
        assert await names_seen(at, quiet, rooms.cy) == {"quiet", "general", "bridge", "galley"}


async def test_people_in_a_timeout_still_read():
    async with open_client() as at:
        rooms = PrivateRooms(at)
        deck = at.guild.add_channel("deck", private_to=[rooms.crew, at.ben])
        member = at.guild.members[at.ben.id]
        at.server.acts.guilds.time_out(at.ana, at.guild, member, datetime.now(UTC) + timedelta(hours=1))
        at.guild.add_channel("cabin", kind="voice")
        await at.settle()
        assert await names_seen(at, deck, rooms.cy) == {"deck", "general"}


async def test_public_threads_are_as_visible_as_their_channel():
    async with open_client() as at:
        rooms = PrivateRooms(at)
        at.world.open_thread(at.ana, at.general, "lunch")
        secret = at.world.open_thread(rooms.cy, rooms.bridge, "course")
        await at.settle()
        assert await names_seen(at, at.general, rooms.cy) == {"general", "lunch"}
        everything = {"general", "lunch", "bridge", "galley", "course"}
        assert await names_seen(at, secret, rooms.cy) == everything


async def test_a_private_thread_is_for_itself_and_for_talk_among_its_members():
    async with open_client() as at:
        rooms = PrivateRooms(at)
        at.guild.set_roles(
            at.ada.user, [rooms.crew, at.guild.add_role("Warden", permissions=DiscordPermission.MANAGE_THREADS)]
        )
        await at.settle()
        plans = at.world.open_thread(at.ana, at.general, "plans", private=True)
        for guest in (at.ada.user, rooms.cy):
            at.world.invite_to(at.ana, plans, guest)
        await at.settle()
        with_cy, with_ben = at.world.open_dm(rooms.cy, at.ada.user), at.world.open_dm(at.ben, at.ada.user)
        assert "plans" in await names_seen(at, plans, rooms.cy)
        assert "plans" in await names_seen(at, with_cy, rooms.cy)
        assert "plans" not in await names_seen(at, with_ben, at.ben)
        assert "plans" not in await names_seen(at, at.general, rooms.cy)
        # The crew is Cy alone, and the owner sees everything.
        assert "plans" in await names_seen(at, rooms.bridge, rooms.cy)


async def test_a_list_of_thread_members_that_may_be_old_is_not_believed():
    async with open_client() as at:
        plans = at.world.open_thread(at.ana, at.general, "plans", private=True)
        at.world.invite_to(at.ana, plans, at.ada.user)
        at.world.invite_to(at.ana, plans, at.ben)
        await at.settle()
        with_ben = at.world.open_dm(at.ben, at.ada.user)
        assert "plans" not in await names_seen(at, with_ben, at.ben)
        assert "plans" in await names_seen(at, plans, at.ben)


async def test_without_the_members_intent_only_what_is_sure_counts():
    async with open_client(intents=WITHOUT_MEMBERS) as at:
        rooms = PrivateRooms(at)
        at.guild.add_channel("open")
        muted = SimOverwrite(rooms.crew.id, 0, deny=DiscordPermission.VIEW_CHANNEL)
        at.guild.add_channel("not for the crew", overwrites=[muted])
        at.world.open_thread(at.ana, at.general, "lunch")
        await at.settle()
        assert await names_seen(at, at.general, at.ben) == {"general", "open", "lunch"}
        # Whoever sees #bridge sees #galley: they let in the same.
        assert await names_seen(at, rooms.bridge, rooms.cy) == {"bridge", "galley", "general", "open", "lunch"}
        assert await names_seen(at, rooms.bridge, at.ben) == {"bridge", "general", "open", "lunch"}


async def test_without_the_members_intent_a_direct_talk_goes_by_the_user_as_fetched():
    async with open_client(intents=WITHOUT_MEMBERS) as at:
        rooms = PrivateRooms(at)
        await at.settle()
        talk = at.world.open_dm(rooms.cy, at.ada.user)
        assert await names_seen(at, talk, rooms.cy) == {"direct", "general", "bridge", "galley"}
        at.guild.set_roles(rooms.cy, [])
        assert await names_seen(at, talk, rooms.cy) == {"direct", "general"}


@pytest.mark.parametrize("kind", [Bot, ShardedBot])
async def test_while_the_gateway_is_away_only_the_place_is_sure(kind: type[Bot]):
    async with open_client(kind) as at:
        at.guild.add_channel("other")
        await at.settle()
        assert await names_seen(at, at.general, at.ben) == {"general", "other"}
        at.server.faults.refuse_gateway(1_000_000)
        at.server.faults.close_gateway(4000)
        await at.server.until(lambda: not at.server.connections)
        with anyio.fail_after(HANG_LIMIT_S):
            while is_live(at.client, at.client.guilds[0]):
                await anyio.lowlevel.checkpoint()
        assert await names_seen(at, at.general, at.ben) == {"general"}
        assert not await may_moderate(at.client, str(at.general.id), asker(at.ana))


async def test_who_manages_messages_may_moderate():
    async with open_client() as at:
        guard = at.guild.add_role("Guard", permissions=DiscordPermission.MANAGE_MESSAGES)
        cy = at.world.add_person("Cy")
        at.guild.join(cy, [guard])
        thread = at.world.open_thread(at.ana, at.general, "lunch")
        talk = at.world.open_dm(cy, at.ada.user)
        await at.settle()

        async def may(channel: SimChannel, who: Any) -> bool:
            return await may_moderate(at.client, str(channel.id), who if isinstance(who, Principal) else asker(who))

        assert await may(at.general, cy)
        assert await may(thread, cy)
        assert await may(at.general, at.ana)
        assert not await may(at.general, at.ben)
        assert not await may(talk, cy)
        assert not await may(at.general, Principal(PrincipalKind.LOCAL, f"discord:{cy.id}", "Cy"))
        assert not await may_moderate(at.client, "none", asker(cy))
        at.guild.set_roles(cy, [])
        await at.settle()
        assert not await may(at.general, cy)


@pytest.mark.parametrize("intents", [discord.Intents.all(), WITHOUT_MEMBERS], ids=["members known", "fetched"])
async def test_who_left_or_lost_the_permission_may_not_write(intents: discord.Intents) -> None:
    async with open_client(intents=intents) as at:
        quiet = [SimOverwrite(at.guild.everyone.id, 0, deny=DiscordPermission.SEND_MESSAGES)]
        notices = at.guild.add_channel("notices", overwrites=quiet)
        cy = at.world.add_person("Cy")
        talk = at.world.open_dm(cy, at.ada.user)
        await at.settle()

        async def may(channel: SimChannel, who: SimUser) -> bool:
            return await may_write(at.client, make_place(channel), asker(who))

        assert await may(at.general, at.ben)
        assert not await may(notices, at.ben)
        assert await may(notices, at.ana)
        assert not await may(at.general, cy), "a stranger"
        assert await may(talk, cy)
        at.guild.leave(at.ben)
        await at.settle()
        assert not await may(at.general, at.ben)


async def test_while_discord_cannot_tell_who_may_write_it_is_neither_yes_nor_no() -> None:
    async with open_client(intents=WITHOUT_MEMBERS) as at:
        await at.settle()
        at.server.faults.fail("GET", f"/guilds/{at.guild.id}/members/{at.ben.id}", status=403)
        with pytest.raises(Unavailable):
            await may_write(at.client, make_place(at.general), asker(at.ben))


async def test_the_account_knows_where_it_may_post_itself_and_where_in_threads_only() -> None:
    async with open_client(intents=WITHOUT_MEMBERS) as at:
        quiet = [SimOverwrite(at.guild.everyone.id, 0, deny=DiscordPermission.SEND_MESSAGES)]
        notices = at.guild.add_channel("notices", overwrites=quiet)
        shut = [SimOverwrite(at.guild.everyone.id, 0, deny=quiet[0].deny | DiscordPermission.SEND_MESSAGES_IN_THREADS)]
        archive = at.guild.add_channel("archive", overwrites=shut)
        await at.settle()
        assert may_post(at.client, make_place(at.general))
        assert not may_post(at.client, make_place(notices))
        assert may_post(at.client, make_place(notices), in_new_thread=True)
        assert not may_post(at.client, make_place(archive), in_new_thread=True)
        assert may_post(at.client, Place("discord", "1")), "what the cache does not know"
        herald = at.guild.add_role("Herald", permissions=DiscordPermission.ADMINISTRATOR)
        at.guild.set_roles(at.ada.user, [herald])
        await at.settle()
        assert may_post(at.client, make_place(notices)), "the account was given a role"


@pytest.mark.parametrize("options", [{}, {"intents": WITHOUT_MEMBERS}])
async def test_a_membership_tells_roles_rooms_and_who_manages_the_guild_as_they_are_now(options: dict[str, Any]):
    async with open_client(**options) as at:
        rooms = PrivateRooms(at)
        stewards = at.guild.add_role("Stewards", permissions=DiscordPermission.MANAGE_GUILD)
        other = at.world.add_guild("Island", at.ben)
        other.join(at.ada.user)
        await at.settle()

        async def told(who: SimUser) -> dict[str, tuple[set[str], set[str], bool]]:
            listed = await list_memberships(at.client, str(who.id))
            assert listed.is_complete
            names = {str(each.id): each.name for each in at.world.channels}
            return {
                each.name: ({names[room] for room in each.rooms}, set(each.roles), each.manages)
                for each in listed.found
            }

        crew = {str(rooms.crew.id)}
        assert await told(rooms.cy) == {"Harbour": ({"general", "bridge", "galley"}, crew, False)}
        assert await told(at.ana) == {"Harbour": ({"general", "bridge", "galley"}, set(), True)}
        assert await told(at.ben) == {"Harbour": ({"general"}, set(), False), "Island": (set(), set(), True)}
        at.guild.set_roles(rooms.cy, [stewards])
        await at.settle()
        assert await told(rooms.cy) == {"Harbour": ({"general"}, {str(stewards.id)}, True)}
        at.guild.set_roles(rooms.cy, [])
        await at.settle()
        assert (await told(rooms.cy))["Harbour"][2] is False
        assert await told(at.world.add_person("Stranger")) == {}
        assert (await list_memberships(at.client, "nobody")).found == ()


async def test_a_guild_that_cannot_be_reached_is_no_membership_and_the_list_says_that_it_lacks_something():
    async with open_client() as at:
        await at.settle()
        guild = at.client.get_guild(int(at.guild.id))
        assert guild is not None
        guild.unavailable = True
        listed = await list_memberships(at.client, str(at.ben.id))
        assert (list(listed.found), listed.is_complete) == ([], False)
