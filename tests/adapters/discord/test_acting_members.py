"""Members in somebody's name: looking them up, their names and roles, direct messages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from denizen.adapters.discord.actions.members import PAGE
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.testing.discord import DiscordPermission, SimUser
from tests.adapters.discord.acting import Asked, deck
from tests.adapters.discord.listening import Harbour, running
from tests.adapters.discord.rights import MODERATING, RUNNING, muster, texts_to, writes

pytestmark = [pytest.mark.anyio, pytest.mark.proves("V-skill-user-management")]

P = DiscordPermission


def nick(harbour: Harbour, user: SimUser) -> str | None:
    return harbour.guild.members[user.id].nick


async def test_a_member_is_shown_with_roles_and_dates(harbour: Harbour) -> None:
    crew = muster(harbour, P(0), P(0))
    async with deck(harbour) as act:
        found = await act(crew.mo, "member_info", member="ben")
        assert (found["id"], found["name"], found["display_name"]) == (str(harbour.ben.id), "ben", "Ben")
        assert found["roles"] == ["crew"]
        assert (await act(crew.mo, "member_info"))["name"] == "mo"
        assert (await act(crew.mo, "member_info", member="Ana"))["is_owner"] is True
        with pytest.raises(NotFound):
            await act(crew.mo, "member_info", member="Nobody")


async def test_who_is_in_time_out_is_told_to_moderators_only(harbour: Harbour) -> None:
    crew = muster(harbour, MODERATING, MODERATING)
    harbour.guild.members[harbour.ben.id].timeout_until = datetime(2099, 1, 1, tzinfo=UTC)
    async with deck(harbour) as act:
        assert str((await act(crew.mo, "member_info", member="Ben"))["timed_out_until"]).startswith("2099")
        assert (await act(crew.cy, "member_info", member="Ben"))["timed_out_until"] == ""


async def test_members_are_listed_by_role_and_name_page_by_page(harbour: Harbour) -> None:
    crew = muster(harbour, P(0), P(0))
    for number in range(PAGE + 5):
        harbour.guild.join(harbour.world.add_person(f"Deckhand {number:03}"), [crew.crew])
    async with deck(harbour) as act:
        first: Any = await act(harbour.ben, "list_members", role="crew")
        second: Any = await act(harbour.ben, "list_members", role=crew.crew.mention, page=2)
        named = await act(harbour.ben, "list_members", name="HAND 00")
    assert (first["total"], first["pages"]) == (PAGE + 6, 2)
    names = [row["name"] for page in (first, second) for row in page["members"]]
    assert len(set(names)) == PAGE + 6
    assert named["total"] == 10


async def test_without_the_members_intent_members_are_found_by_the_beginning_of_a_name(harbour: Harbour) -> None:
    muster(harbour, P(0), P(0))
    async with deck(harbour, members_intent=False) as act:
        found: Any = await act(harbour.ben, "list_members", name="an")
        assert [row["name"] for row in found["members"]] == ["ana"]
        with pytest.raises(Unavailable, match="do not know all members"):
            await act(harbour.ben, "list_members", role="crew")


# --- names -----------------------------------------------------------------------------------------------------------


async def test_a_nickname_is_given_and_taken_by_who_manages_them(harbour: Harbour) -> None:
    crew = muster(harbour, P.MANAGE_NICKNAMES, P.MANAGE_NICKNAMES)
    async with deck(harbour) as act:
        await act(crew.mo, "set_nickname", member="Ben", nickname="Benny")
        assert nick(harbour, harbour.ben) == "Benny"
        await act(crew.mo, "set_nickname", member="ben")
        assert nick(harbour, harbour.ben) is None
        for target in ("Cy", "Ana", "Ada"):
            with pytest.raises(NotAllowed):
                await act(crew.mo, "set_nickname", member=target, nickname="x")
        with pytest.raises(NotAllowed, match="Manage Nicknames"):
            await act(harbour.ben, "set_nickname", member="Mo", nickname="x")


async def test_ones_own_name_takes_the_right_to_that_and_an_account_above(harbour: Harbour) -> None:
    muster(harbour, P(0), P.MANAGE_NICKNAMES)
    async with deck(harbour) as act:
        await act(harbour.ben, "set_nickname", member="Ben", nickname="Benny")
        assert nick(harbour, harbour.ben) == "Benny"
        with pytest.raises(NotAllowed, match="a role above yours"):
            await act(harbour.ana, "set_nickname", member="Ana", nickname="Queen")
    harbour.guild.everyone.permissions &= ~P.CHANGE_NICKNAME
    async with deck(harbour) as act:
        with pytest.raises(NotAllowed, match="Change Nickname"):
            await act(harbour.ben, "set_nickname", member=str(harbour.ben.id), nickname="Ben")


# --- roles -----------------------------------------------------------------------------------------------------------


async def test_roles_are_given_and_taken_downwards_and_to_oneself(harbour: Harbour) -> None:
    crew = muster(harbour, P.MANAGE_ROLES, P.MANAGE_ROLES)
    plain = harbour.guild.add_role("swimmers")
    async with deck(harbour) as act:
        for who in (harbour.ben, crew.mo):
            done = await act(crew.mo, "add_role", member=who.mention, role="swimmers")
            assert done["role"] == str(plain.id)
            assert plain.id in harbour.guild.members[who.id].roles
        for _ in range(2):
            await act(crew.mo, "remove_role", member="Ben", role=plain.mention)
        assert plain.id not in harbour.guild.members[harbour.ben.id].roles


async def test_a_role_that_holds_more_than_the_asker_or_the_account_is_not_given(harbour: Harbour) -> None:
    crew = muster(harbour, P.MANAGE_ROLES, P.MANAGE_ROLES | P.KICK_MEMBERS)
    bouncers = harbour.guild.add_role("bouncers", permissions=P.KICK_MEMBERS)
    keepers = harbour.guild.add_role("keepers", permissions=P.BAN_MEMBERS)
    for role in (crew.mods, crew.crew):
        role.position += 10  # both new ones stay below
    crew.captains.position, crew.own.position = 30, 31
    async with deck(harbour) as act:
        for member in (harbour.ben, crew.mo):
            with pytest.raises(NotAllowed, match=r"You cannot give .*Kick Members"):
                await act(crew.mo, "add_role", member=member.mention, role="bouncers")
        with pytest.raises(NotAllowed, match=r"I cannot give .*Ban Members"):
            await act(harbour.ana, "add_role", member="Ben", role="keepers")
        await act(harbour.ana, "add_role", member="Ben", role="bouncers")
    assert bouncers.id in harbour.guild.members[harbour.ben.id].roles
    assert keepers.id not in harbour.guild.members[harbour.ben.id].roles


async def test_no_role_is_given_at_or_above_ones_own_and_none_that_belongs_to_discord(harbour: Harbour) -> None:
    crew = muster(harbour, P.MANAGE_ROLES, P.MANAGE_ROLES)
    async with deck(harbour) as act:
        for role in ("mods", "captains", crew.own.mention, str(harbour.guild.id)):
            for name in ("add_role", "remove_role"):
                with pytest.raises(NotAllowed):
                    await act(crew.mo, name, member="Ben", role=role)
        for target in ("Cy", "Ana", "Ada"):
            with pytest.raises(NotAllowed):
                await act(crew.mo, "add_role", member=target, role="crew")
    assert writes(harbour) == []


@pytest.mark.parametrize("name", ["add_role", "remove_role"])
async def test_roles_take_the_right_of_both(harbour: Harbour, name: str) -> None:
    crew = muster(harbour, P.MANAGE_ROLES, P(0))
    async with deck(harbour) as act:
        with pytest.raises(NotAllowed, match="You may not"):
            await act(crew.cy, name, member="Ben", role="crew")
        with pytest.raises(NotAllowed, match="I may not"):
            await act(crew.mo, name, member="Ben", role="crew")


# --- direct messages -------------------------------------------------------------------------------------------------


async def test_everybody_may_have_themselves_written_to_and_it_comes_once(harbour: Harbour) -> None:
    async with deck(harbour) as act:
        for _ in range(2):
            await act(Asked(harbour.ben, key="call"), "send_direct_message", member="Ben", text="remember the tide")
    assert texts_to(harbour, harbour.ben) == ["remember the tide"]


async def test_only_moderators_write_to_others_and_it_says_for_whom(harbour: Harbour) -> None:
    crew = muster(harbour, MODERATING, P(0))
    async with deck(harbour) as act:
        await act(crew.mo, "send_direct_message", member="Ben", text="see the rules @everyone")
        assert texts_to(harbour, harbour.ben) == ["Mo of Harbour wrote:\nsee the rules @everyone"]
        with pytest.raises(NotAllowed, match="Timeout Members"):
            await act(harbour.ben, "send_direct_message", member="Mo", text="hey")
        with pytest.raises(InvalidInput, match="Bots"):
            await act(crew.mo, "send_direct_message", member="Ada", text="hey")
        harbour.ben.accepts_dms = False
        with pytest.raises(NotAllowed):
            await act(crew.mo, "send_direct_message", member="Ben", text="hey")
    assert texts_to(harbour, crew.mo) == []


async def test_somebody_who_left_may_nothing_any_more(harbour: Harbour) -> None:
    crew = muster(harbour, MODERATING | RUNNING, MODERATING | RUNNING)
    async with running(harbour) as (account, heard):
        del account
        harbour.guild.leave(crew.mo)
        harbour.say("so far")
        await heard.until(heard.texts)
    async with deck(harbour) as act:
        with pytest.raises(NotAllowed, match="cannot see what you may"):
            await act(crew.mo, "set_nickname", member="Ben", nickname="x")
