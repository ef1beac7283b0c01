"""What is known to be refused before people are asked about a call: the account lacks a right, or the asker does."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.domain.json import JsonObject
from denizen.testing.discord import DiscordPermission
from tests.builtin_skills.moderation_fixture import ModerationFixture, open_moderation, tomorrow

pytestmark = pytest.mark.anyio

BEN: JsonObject = {"member": "Ben"}
CALLS: list[tuple[str, JsonObject, str]] = [
    ("ban_member", BEN, "Ban Members"),
    ("kick_member", BEN, "Kick Members"),
    ("timeout_member", {**BEN, "minutes": 5}, "Timeout Members"),
    ("end_timeout", BEN, "Timeout Members"),
    ("unban_member", {"user": "123456"}, "Ban Members"),
    ("warn_member", {**BEN, "reason": "spam"}, ""),
    ("remove_warning", {"number": 1}, ""),
    ("purge_messages", {"count": 1}, "Manage Messages"),
    ("set_slow_mode", {"seconds": 5}, "Manage Channels"),
    ("set_nickname", {**BEN, "nickname": "B"}, "Manage Nicknames"),
    ("add_role", {**BEN, "role": "crew"}, "Manage Roles"),
    ("remove_role", {**BEN, "role": "crew"}, "Manage Roles"),
    ("send_direct_message", {**BEN, "text": "hello"}, ""),
    ("create_channel", {"name": "new"}, "Manage Channels"),
    ("edit_channel", {"channel": "general", "topic": "new"}, "Manage Channels"),
    ("delete_channel", {"channel": "general"}, "Manage Channels"),
    ("set_channel_permission", {"channel": "general", "who": "crew", "allow": ["Send Messages"]}, "Manage Roles"),
    ("create_role", {"name": "new"}, "Manage Roles"),
    ("edit_role", {"role": "crew", "name": "old"}, "Manage Roles"),
    ("delete_role", {"role": "crew"}, "Manage Roles"),
    ("create_emoji", {"name": "wave", "url": "https://x.example/wave.png"}, "Create Expressions"),
    ("create_invite", {}, ""),
    ("create_event", {"name": "e", "start": tomorrow(), "end": tomorrow(), "location": "here"}, "Create Events"),
    ("create_webhook", {"name": "hook"}, "Manage Webhooks"),
    ("pin_message", {"message": "MESSAGE"}, "Pin Messages"),
    ("delete_message", {"message": "MESSAGE"}, "Manage Messages"),
    ("send_message", {"text": "hello"}, ""),
    ("create_thread", {"name": "talk", "text": "hello"}, ""),
    ("post_role_menu", {"text": "choose", "roles": ["crew"]}, "Manage Roles"),
]
"""Calls that an administrator may make, each with the right that the account needs beyond those of everybody."""


async def find_refusals(it: ModerationFixture) -> dict[str, str]:
    message = str(it.sim.world.say(it.sim.ben, it.sim.general, "words").id)
    found: dict[str, str] = {}
    for tool, args, _ in CALLS:
        filled = {name: message if value == "MESSAGE" else value for name, value in args.items()}
        found[tool] = await it.find_refusal(it.sim.ana, tool, **filled)
    return found


async def test_a_right_that_the_account_lacks_is_named_before_anybody_is_asked(tmp_path: Path) -> None:
    async with open_moderation(tmp_path, rights=DiscordPermission(0)) as it:
        found = await find_refusals(it)
        needed = {tool: right for tool, _, right in CALLS if right}
        assert {tool: found[tool] for tool, right in needed.items() if f"permission '{right}'" not in found[tool]} == {}
        assert {found[tool] for tool, _, right in CALLS if not right} == {""}


async def test_a_check_of_a_call_that_may_be_made_changes_nothing(tmp_path: Path) -> None:
    async with open_moderation(tmp_path) as it:
        before = len(it.sim.discord.requests)
        assert {tool: why for tool, why in (await find_refusals(it)).items() if why} == {}
        assert {each.method for each in it.sim.discord.requests[before:]} == {"GET"}
        assert not [path for path in tmp_path.rglob("*") if path.is_file()]
        assert await it.do(it.sim.ana, "create_role", name="new")


async def test_an_emoji_with_a_bad_name_or_without_a_place_is_refused_before_its_picture_is_loaded(
    tmp_path: Path,
) -> None:
    async with open_moderation(tmp_path) as it:
        picture = "https://x.example/wave.png"
        assert "name" in await it.find_refusal(it.sim.ana, "create_emoji", name="größe", url=picture)
        for number in range(50):
            it.sim.guild.add_emoji(f"still{number}")
        assert not await it.find_refusal(it.sim.ana, "create_emoji", name="wave", url=picture), "one that moves may fit"
        for number in range(50):
            it.sim.guild.add_emoji(f"moving{number}", animated=True)
        assert "can have no more" in await it.find_refusal(it.sim.ana, "create_emoji", name="wave", url=picture)


async def test_what_the_asker_may_not_do_is_told_too(tmp_path: Path) -> None:
    async with open_moderation(tmp_path) as it:
        assert "You may not do that here" in await it.find_refusal(it.sim.ben, "ban_member", member="Ana")
        assert "owner of the server" in await it.find_refusal(it.sim.ana, "ban_member", member=str(it.sim.ana.id))
        assert "no member" in await it.find_refusal(it.sim.ana, "warn_member", member="Nobody", reason="spam")
