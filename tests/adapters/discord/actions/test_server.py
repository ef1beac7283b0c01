"""Channels, permissions, roles and emojis in somebody's name: nobody gets, sees or gives more than they have."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from denizen.domain.errors import InvalidInput, NotAllowed, NotFound
from denizen.domain.json import Json
from denizen.testing.discord import ChannelKind, DiscordPermission
from denizen.testing.discord.state.channels import SimOverwrite
from tests.adapters.discord.account_fixture import AccountFixture
from tests.adapters.discord.actions.action_fixture import ActionRequest, open_actions
from tests.adapters.discord.actions.ranked_members import RUNNING, add_ranked_members, get_audit_reason, writes

pytestmark = [pytest.mark.anyio, pytest.mark.proves("V-skill-server-management")]

P = DiscordPermission
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and so on").decode()
LONG_AGO, TO_COME = "2020-01-01T00:00:00+00:00", "2099-01-01T00:00:00+00:00"


async def test_the_server_is_described_with_the_channels_that_the_asker_sees(sim: AccountFixture) -> None:
    sim.guild.add_channel("cellar", private_to=[sim.ada.user])
    sim.guild.add_emoji("anchor")
    async with open_actions(sim) as act:
        found = await act(sim.ben, "server_info")
    assert (found["name"], found["owner"], found["members"]) == ("Harbour", str(sim.ana.id), 3)
    assert found["channels"] == {"text": 1}
    assert found["emojis"] == ["anchor"]


# --- channels --------------------------------------------------------------------------------------------------------


async def test_channels_are_listed_that_the_asker_and_everybody_here_can_see(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P(0), RUNNING)
    decks = sim.guild.add_channel("decks", kind="category")
    bow = sim.guild.add_channel("bow", category=decks, topic="front")
    bridge = sim.guild.add_channel("bridge", private_to=[crew.mods, sim.ada.user])
    sim.guild.add_channel("cellar", private_to=[sim.ada.user])
    async with open_actions(sim) as act:
        listed: Any = await act(crew.mo, "list_channels")
        assert [row["name"] for row in listed["channels"]] == ["general", "bow"]
        assert listed["channels"][1] == {
            "id": str(bow.id),
            "name": "bow",
            "kind": "text",
            "category": "decks",
            "topic": "front",
        }
        among: Any = await act(ActionRequest(crew.mo, bridge), "list_channels", name="BR")
        assert [row["id"] for row in among["channels"]] == [str(bridge.id)]


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("text", ChannelKind.TEXT),
        ("voice", ChannelKind.VOICE),
        ("forum", ChannelKind.FORUM),
        ("stage", ChannelKind.STAGE),
        ("announcement", ChannelKind.ANNOUNCEMENT),
        ("category", ChannelKind.CATEGORY),
    ],
)
async def test_channels_of_every_kind_are_made(sim: AccountFixture, kind: str, made: ChannelKind) -> None:
    crew = add_ranked_members(sim, P.MANAGE_CHANNELS, RUNNING)
    async with open_actions(sim) as act:
        done = await act(crew.mo, "create_channel", name="bow", kind=kind)
    assert sim.guild.channels[int(str(done["id"]))].kind is made
    assert get_audit_reason(sim, "POST", "channels") == f"Asked for by mo ({crew.mo.id})"


async def test_a_private_channel_is_seen_by_those_it_is_for_and_who_made_it(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_CHANNELS, RUNNING)
    async with open_actions(sim) as act:
        done = await act(crew.mo, "create_channel", name="talk", topic="t", private_to=["crew", "Cy"])
    channel = sim.guild.channels[int(str(done["id"]))]
    assert channel.overwrites[sim.guild.id].deny == P.VIEW_CHANNEL
    seeing = {each.id for each in channel.overwrites.values() if each.allow == P.VIEW_CHANNEL}
    assert seeing == {crew.crew.id, crew.cy.id, crew.mo.id, sim.ada.id}
    assert channel.settings.topic == "t"


async def test_a_repeated_call_finds_the_channel_that_the_first_one_made(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_CHANNELS, RUNNING)
    old = sim.guild.add_channel("low-tide")
    async with open_actions(sim) as act:
        again = await act(crew.mo, "create_channel", name="Low Tide", since=LONG_AGO)
        new = await act(crew.mo, "create_channel", name="Low Tide", since=TO_COME)
        other = await act(crew.mo, "create_channel", name="low-tide", kind="voice", since=LONG_AGO)
    assert again["id"] == str(old.id)
    assert len({str(each["id"]) for each in (again, new, other)}) == 3


async def test_a_channel_is_changed_and_moved_where_the_asker_manages_both(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_CHANNELS, RUNNING)
    decks = sim.guild.add_channel("decks", kind="category")
    shut = sim.guild.add_channel(
        "shut", kind="category", overwrites=[SimOverwrite(crew.mods.id, 0, deny=P.MANAGE_CHANNELS)]
    )
    general = sim.general
    async with open_actions(sim) as act:
        await act(crew.mo, "edit_channel", channel="general", name="plaza", topic="talk", nsfw=True, category="decks")
        assert (general.name, general.settings.topic, general.settings.nsfw, general.parent) == (
            "plaza",
            "talk",
            True,
            decks,
        )
        await act(crew.mo, "edit_channel", channel=general.mention, category="", topic="")
        assert (general.parent, general.settings.topic) == (None, "")
        with pytest.raises(NotAllowed, match="Manage Channels"):
            await act(crew.mo, "edit_channel", channel=general.mention, category="shut")
        with pytest.raises(NotAllowed, match="Manage Channels"):
            await act(crew.mo, "create_channel", name="x", category=shut.mention)
        with pytest.raises(InvalidInput, match="stay as it is"):
            await act(crew.mo, "edit_channel", channel=general.mention)
        with pytest.raises(InvalidInput, match="has no topic"):
            await act(crew.mo, "edit_channel", channel="decks", topic="x")


async def test_channels_and_threads_are_deleted_by_who_manages_them(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_CHANNELS, RUNNING)
    bow = sim.guild.add_channel("bow")
    thread = sim.world.open_thread(sim.ben, sim.general, "talk")
    async with open_actions(sim) as act:
        await act(crew.mo, "delete_channel", channel="bow", reason="storm")
        assert bow.deleted
        with pytest.raises(NotAllowed, match="Manage Threads"):
            await act(crew.mo, "delete_channel", channel=thread.mention)
        await act(sim.ana, "delete_channel", channel=thread.mention)
        assert thread.deleted
    assert get_audit_reason(sim, "DELETE", str(bow.id)) == f"Asked for by mo ({crew.mo.id}): storm"


@pytest.mark.parametrize("name", ["edit_channel", "delete_channel", "set_channel_permission"])
async def test_a_hidden_channel_is_not_there(sim: AccountFixture, name: str) -> None:
    crew = add_ranked_members(sim, P.MANAGE_CHANNELS | P.MANAGE_ROLES, RUNNING)
    cellar = sim.guild.add_channel("cellar", private_to=[sim.ada.user])
    details: dict[str, Json] = {"name": "x"} if name == "edit_channel" else {}
    details |= {"who": "crew", "allow": ["View Channel"]} if name == "set_channel_permission" else {}
    async with open_actions(sim) as act:
        for channel in ("cellar", cellar.mention, str(cellar.id)):
            with pytest.raises(NotFound):
                await act(crew.mo, name, channel=channel, **details)
    assert writes(sim) == []


@pytest.mark.parametrize(
    ("name", "details"),
    [
        ("create_channel", {"name": "x"}),
        ("edit_channel", {"channel": "general", "name": "x"}),
        ("delete_channel", {"channel": "general"}),
        ("set_channel_permission", {"channel": "general", "who": "crew", "deny": ["Send Messages"]}),
        ("create_role", {"name": "x"}),
        ("edit_role", {"role": "crew", "name": "x"}),
        ("delete_role", {"role": "crew"}),
        ("create_emoji", {"name": "wave", "picture": PNG}),
        ("delete_emoji", {"emoji": "anchor"}),
    ],
)
async def test_everything_takes_the_right_of_both(sim: AccountFixture, name: str, details: dict[str, Json]) -> None:
    sim.guild.add_emoji("anchor")
    crew = add_ranked_members(sim, RUNNING, P(0))
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="You may not"):
            await act(sim.ben, name, **details)
        with pytest.raises(NotAllowed, match="I may not"):
            await act(crew.mo, name, **details)
    assert writes(sim) == []


# --- permissions of a channel ----------------------------------------------------------------------------------------


async def test_a_permission_is_allowed_denied_and_left_to_the_roles_again(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_ROLES, RUNNING)
    place = {"channel": "general", "who": "crew"}
    async with open_actions(sim) as act:
        await act(crew.mo, "set_channel_permission", **place, allow=["send_messages"], deny=["Attach Files"])
        await sim.discord.until(lambda: crew.crew.id in sim.general.overwrites)
        made = sim.general.overwrites[crew.crew.id]
        assert (made.allow, made.deny) == (P.SEND_MESSAGES, P.ATTACH_FILES)
    async with open_actions(sim) as act:
        await act(crew.mo, "set_channel_permission", **place, clear=["Send Messages", "Attach Files"])
        assert crew.crew.id not in sim.general.overwrites
        await act(crew.mo, "set_channel_permission", channel="general", who="Ben", deny=["Add Reactions"])
        await act(crew.mo, "set_channel_permission", channel="general", who="@everyone", deny=["Embed Links"])
    assert sim.general.overwrites[sim.ben.id].deny == P.ADD_REACTIONS
    assert sim.general.overwrites[sim.guild.id].deny == P.EMBED_LINKS


@pytest.mark.parametrize("way", ["allow", "deny", "clear"])
async def test_nobody_touches_a_permission_that_they_do_not_have_there(sim: AccountFixture, way: str) -> None:
    crew = add_ranked_members(sim, P.MANAGE_ROLES, RUNNING | P.MANAGE_MESSAGES)
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match=r"You cannot give or take .*Manage Messages"):
            await act(crew.mo, "set_channel_permission", channel="general", who="crew", **{way: ["Manage Messages"]})
        with pytest.raises(NotAllowed, match=r"I cannot give or take .*Mute Members"):
            await act(sim.ana, "set_channel_permission", channel="general", who="crew", **{way: ["Mute Members"]})
    assert writes(sim) == []


async def test_the_right_to_hand_out_rights_is_handed_out_by_administrators_only(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_ROLES, RUNNING)
    wanted: dict[str, Json] = {"channel": "general", "who": "crew", "allow": ["Manage Roles"]}
    async with open_actions(sim) as act:
        for asker in (crew.mo, sim.ana):
            with pytest.raises(NotAllowed, match="administrators"):
                await act(asker, "set_channel_permission", **wanted)
    crew.own.permissions = P.ADMINISTRATOR
    async with open_actions(sim) as act:
        await act(sim.ana, "set_channel_permission", **wanted)
    assert sim.general.overwrites[crew.crew.id].allow == P.MANAGE_ROLES


async def test_permissions_are_set_downwards_only(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_ROLES, RUNNING)
    async with open_actions(sim) as act:
        for who in ("captains", "mods", crew.own.mention, "Cy", "Ana", "Ada", "Mo"):
            with pytest.raises(NotAllowed):
                await act(crew.mo, "set_channel_permission", channel="general", who=who, deny=["View Channel"])
    assert writes(sim) == []


async def test_what_is_no_permission_is_refused_with_what_is_like_it(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_ROLES, RUNNING)
    async with open_actions(sim) as act:
        with pytest.raises(InvalidInput) as caught:
            await act(crew.mo, "set_channel_permission", channel="general", who="crew", allow=["Send Massages"])
        assert "send messages" in caught.value.fix
        with pytest.raises(InvalidInput, match="one of allow"):
            await act(crew.mo, "set_channel_permission", channel="general", who="crew")


# --- roles -----------------------------------------------------------------------------------------------------------


async def test_a_role_is_made_changed_and_deleted(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_ROLES | P.KICK_MEMBERS, RUNNING | P.KICK_MEMBERS)
    async with open_actions(sim) as act:
        done = await act(crew.mo, "create_role", name="bouncers", permissions=["Kick Members"], color="#1E90FF")
        role = sim.guild.roles[int(str(done["id"]))]
        assert (role.permissions, role.color, role.hoist) == (P.KICK_MEMBERS, 0x1E90FF, False)
        again = await act(crew.mo, "create_role", name="bouncers", since=LONG_AGO)
        assert again["id"] == done["id"]
    async with open_actions(sim) as act:
        await act(crew.mo, "edit_role", role="bouncers", name="guests", forbid=["Kick Members"], hoist=True)
        assert (role.name, role.permissions, role.hoist, role.color) == ("guests", P(0), True, 0x1E90FF)
        await act(crew.mo, "delete_role", role=role.mention, reason="over")
        assert role.id not in sim.guild.roles
    assert get_audit_reason(sim, "DELETE", "roles") == f"Asked for by mo ({crew.mo.id}): over"


async def test_roles_are_listed_with_what_they_may_beyond_everybody(sim: AccountFixture) -> None:
    add_ranked_members(sim, P.KICK_MEMBERS | P.SEND_MESSAGES, P.ADMINISTRATOR)
    async with open_actions(sim) as act:
        found: Any = await act(sim.ben, "list_roles")
    rows = {row["name"]: row for row in found["roles"]}
    assert list(rows) == ["Ada", "captains", "mods", "crew", "@everyone"]
    assert (rows["mods"]["permissions"], rows["mods"]["members"]) == (["Kick Members"], 1)
    assert (rows["Ada"]["permissions"], rows["Ada"]["is_managed"]) == (["Administrator"], True)


@pytest.mark.parametrize("wanted", ["Ban Members", "Administrator", "Manage Server"])
async def test_no_role_gets_more_than_who_makes_or_changes_it(sim: AccountFixture, wanted: str) -> None:
    crew = add_ranked_members(sim, P.MANAGE_ROLES, P.ADMINISTRATOR)
    crew.crew.permissions = P.MANAGE_GUILD | P.BAN_MEMBERS
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="You cannot give or take"):
            await act(crew.mo, "create_role", name="x", permissions=[wanted])
        way = "allow" if wanted == "Administrator" else "forbid"
        with pytest.raises(NotAllowed, match="You cannot give or take"):
            await act(crew.mo, "edit_role", role="crew", **{way: [wanted]})
    assert writes(sim) == []


async def test_the_owner_gives_no_role_what_the_account_has_not(sim: AccountFixture) -> None:
    add_ranked_members(sim, P(0), RUNNING)
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="I cannot give or take"):
            await act(sim.ana, "create_role", name="x", permissions=["Ban Members"])
        await act(sim.ana, "edit_role", role="crew", allow=["Manage Channels"])


@pytest.mark.parametrize("name", ["edit_role", "delete_role"])
async def test_no_role_is_touched_at_or_above_ones_own(sim: AccountFixture, name: str) -> None:
    crew = add_ranked_members(sim, P.MANAGE_ROLES, RUNNING)
    details: dict[str, Json] = {"name": "x"} if name == "edit_role" else {}
    async with open_actions(sim) as act:
        for role in ("mods", "captains", crew.own.mention, "@everyone"):
            with pytest.raises(NotAllowed):
                await act(crew.mo, name, role=role, **details)
        crew.captains.position, crew.own.position = crew.own.position, crew.captains.position
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="as high as mine"):
            await act(sim.ana, name, role="captains", **details)
    assert writes(sim) == []


# --- emojis ----------------------------------------------------------------------------------------------------------


async def test_an_emoji_is_made_once_and_deleted_by_name_id_or_as_it_is_written(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.CREATE_GUILD_EXPRESSIONS | P.MANAGE_GUILD_EXPRESSIONS, RUNNING)
    async with open_actions(sim) as act:
        for written in ("anchor", "{0}", "<:anchor:{0}>", ":anchor:"):
            made = await act(crew.mo, "create_emoji", name="anchor", picture=PNG)
            again = await act(crew.mo, "create_emoji", name="anchor", picture=PNG, since=LONG_AGO)
            assert made == again
            assert [each.name for each in sim.guild.expressions.emojis.values()] == ["anchor"]
            await act(crew.mo, "delete_emoji", emoji=written.format(made["id"]))
            assert not sim.guild.expressions.emojis
    assert get_audit_reason(sim, "POST", "emojis") == f"Asked for by mo ({crew.mo.id})"


@pytest.mark.parametrize("picture", [base64.b64encode(b"<svg/>").decode(), "???", PNG + "A" * 400_000])
async def test_what_is_no_small_picture_becomes_no_emoji(sim: AccountFixture, picture: str) -> None:
    crew = add_ranked_members(sim, P.CREATE_GUILD_EXPRESSIONS, RUNNING)
    async with open_actions(sim) as act:
        with pytest.raises(InvalidInput):
            await act(crew.mo, "create_emoji", name="wave", picture=picture)
