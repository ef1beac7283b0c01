"""The skill `members` as a model calls it; what may be done to whom is tested with the account."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builtin_skills.moderation_fixture import open_moderation

pytestmark = [pytest.mark.anyio, pytest.mark.proves("V-skill-user-management")]


async def test_members_are_looked_up_as_data(tmp_path: Path) -> None:
    async with open_moderation(tmp_path) as it:
        ana = it.sim.ana
        assert "owns the server" in await it.do(ana, "member_info")
        assert "Ben (ben, id" in await it.do(ana, "member_info", member="Ben")
        listed = await it.do(ana, "list_members")
        assert listed.startswith("3 in all, page 1 of 1:\n<untrusted")
        assert "Ada (Ada, id" in listed
        assert "[bot]" in listed
        assert await it.do(ana, "list_members", name="zz") == "Nobody fits. In all: 0."


async def test_members_are_renamed_given_roles_and_written_to(tmp_path: Path) -> None:
    async with open_moderation(tmp_path) as it:
        ana, ben, guild = it.sim.ana, it.sim.ben, it.sim.guild
        role = guild.add_role("crew")
        it.sim.say("so far")
        await it.do(ana, "set_nickname", member=str(ben.id), nickname="Benny")
        assert guild.members[ben.id].nick == "Benny"
        await it.do(ana, "add_role", member=ben.mention, role=role.mention)
        assert role.id in guild.members[ben.id].roles
        await it.do(ana, "remove_role", member=ben.mention, role=role.mention)
        assert role.id not in guild.members[ben.id].roles
        assert "Sent to" in await it.do(ana, "send_direct_message", member=ben.mention, text="ahoy")
        talk = next(each for each in it.sim.world.channels if each.is_dm)
        assert talk.texts == ["Ana of Harbour wrote:\nahoy"]
