"""The skill `server` as a model calls it; what may be done is tested with the account."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builtin_skills.moderation_fixture import open_moderation, tomorrow

pytestmark = [pytest.mark.anyio, pytest.mark.proves("V-skill-server-management")]

PNG = b"\x89PNG\r\n\x1a\n and so on"


def last_id(text: str) -> int:
    """Of the first mention in it."""
    return int("".join(each for each in text.partition("<")[2].partition(">")[0] if each.isdecimal()))


async def test_channels_are_made_changed_listed_and_deleted(tmp_path: Path) -> None:
    async with open_moderation(tmp_path) as it:
        ana, guild = it.sim.ana, it.sim.guild
        made = last_id(await it.do(ana, "create_channel", name="bow", topic="front", private_to=["Ana"]))
        await it.do(ana, "edit_channel", channel=str(made), name="stern", nsfw=True)
        assert (guild.channels[made].name, guild.channels[made].settings.nsfw) == ("stern", True)
        listed = await it.do(ana, "list_channels")
        assert listed.startswith("<untrusted")
        assert "#general" in listed
        assert "stern" not in listed, "not everybody in #general sees it"
        assert await it.do(ana, "list_channels", name="nowhere") == "No channel fits."
        await it.do(ana, "delete_channel", key="call", channel=str(made))
        assert "already" in await it.do(ana, "delete_channel", key="call", channel=str(made))
        assert made not in guild.channels


async def test_a_call_that_runs_again_makes_nothing_twice(tmp_path: Path) -> None:
    async with open_moderation(tmp_path) as it:
        ana, guild = it.sim.ana, it.sim.guild
        it.files["https://web.example/a.png"] = PNG
        before = len(guild.channels), len(guild.roles)
        for key in ("first", "first", "second"):
            await it.do(ana, "create_channel", key=f"channel {key}", name="bow")
            await it.do(ana, "create_role", key=f"role {key}", name="crew")
            await it.do(ana, "create_emoji", key=f"emoji {key}", name="anchor", url="https://web.example/a.png")
            await it.do(ana, "create_webhook", key=f"hook {key}", name="news")
            await it.do(
                ana,
                "create_event",
                key=f"event {key}",
                name="Race",
                start=tomorrow(),
                end=tomorrow()[:-5] + "22:00",
                location="pier",
            )
        assert (len(guild.channels) - before[0], len(guild.roles) - before[1]) == (2, 2)
        assert len(guild.expressions.emojis) == len(guild.events) == len(it.sim.world.store.webhooks) == 2


async def test_roles_and_permissions_are_created_changed_and_deleted(tmp_path: Path) -> None:
    async with open_moderation(tmp_path) as it:
        ana, guild = it.sim.ana, it.sim.guild
        role = guild.roles[last_id(await it.do(ana, "create_role", name="crew", permissions=["Kick Members"]))]
        await it.do(ana, "edit_role", role=str(role.id), forbid=["kick members"], color="#112233")
        assert (role.permissions.value, role.color) == (0, 0x112233)
        await it.do(ana, "set_channel_permission", channel="general", who=role.mention, deny=["Send Messages"])
        assert role.id in it.sim.general.overwrites
        assert "crew (id" in await it.do(ana, "list_roles")
        assert "is deleted" in await it.do(ana, "delete_role", role=role.mention)
        assert "Harbour (id" in await it.do(ana, "server_info")
        assert not it.specs["server_info"].flow.reads, "owners and managers wrote all of it"


async def test_emojis_come_from_pictures_that_are_small_enough(tmp_path: Path) -> None:
    async with open_moderation(tmp_path) as it:
        ana = it.sim.ana
        it.files |= {"https://web.example/big.png": PNG + b"x" * 300_000, "https://web.example/a.png": PNG}
        for url, why in (("https://web.example/none.png", "HTTP 404"), ("https://web.example/big.png", "256 KB")):
            assert why in await it.refused(ana, "create_emoji", name="anchor", url=url)
        assert (
            await it.do(ana, "create_emoji", name="anchor", url="https://web.example/a.png")
            == "Made the emoji :anchor:."
        )
        assert "anchor is deleted" in await it.do(ana, "delete_emoji", emoji="anchor")


async def test_invitations_events_and_webhooks_are_created_listed_and_deleted(tmp_path: Path) -> None:
    async with open_moderation(tmp_path) as it:
        ana = it.sim.ana
        assert await it.do(ana, "list_invites") == "There are no invitations."
        url = (await it.do(ana, "create_invite", hours=1)).split()[0]
        assert url.rpartition("/")[2] in await it.do(ana, "list_invites")
        assert "is deleted" in await it.do(ana, "delete_invite", invite=url)
        assert await it.do(ana, "list_events") == "Nothing is planned."
        assert "not a time" in await it.refused(
            ana, "create_event", name="x", start="soon", end=tomorrow(), location="y"
        )
        end = tomorrow()[:-5] + "22:00"
        assert "Planned: https://" in await it.do(
            ana, "create_event", name="Race", start=tomorrow(), end=end, location="pier 3"
        )
        assert "Race (id" in await it.do(ana, "list_events")
        assert "called off" in await it.do(ana, "cancel_event", event="Race")
        assert await it.do(ana, "list_webhooks") == "There are no webhooks."
        made = await it.do(ana, "create_webhook", name="news")
        token = next(iter(it.sim.world.store.webhooks.values())).token
        listed = await it.do(ana, "list_webhooks")
        assert token not in made + listed
        assert "news (id" in listed
        assert "is deleted" in await it.do(ana, "delete_webhook", webhook="news")
