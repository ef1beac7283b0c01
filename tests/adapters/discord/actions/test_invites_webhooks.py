"""Invitations, webhooks and events in somebody's name."""

from __future__ import annotations

from typing import Any

import pytest

from denizen.domain.errors import InvalidInput, NotAllowed, NotFound
from denizen.domain.json import Json
from denizen.testing.discord import DiscordPermission
from denizen.testing.discord.state.channels import SimOverwrite
from tests.adapters.discord.account_fixture import AccountFixture, RecordingListener, running
from tests.adapters.discord.actions.action_fixture import ActionRequest, bind_action, open_actions
from tests.adapters.discord.actions.ranked_members import RUNNING, add_ranked_members, list_direct_texts, writes

pytestmark = [pytest.mark.anyio, pytest.mark.proves("V-skill-server-management")]

P = DiscordPermission
LONG_AGO = "2020-01-01T00:00:00+00:00"
START, END = "2099-01-01T20:00:00+00:00", "2099-01-01T22:00:00+00:00"


# --- invitations -----------------------------------------------------------------------------------------------------


async def test_an_invitation_is_made_once_listed_and_deleted(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_GUILD | P.MANAGE_CHANNELS, RUNNING)
    async with open_actions(sim) as act:
        made = await act(sim.ben, "create_invite", hours=2, uses=5)
        assert made == await act(sim.ben, "create_invite", hours=2, uses=5)
        code, invite = next(iter(sim.world.store.invites.items()))
        assert (invite.max_age_s, invite.max_uses, invite.channel) == (7200, 5, sim.general)
        assert str(made["url"]).endswith(code)
        listed: Any = await act(crew.mo, "list_invites")
        assert [row["code"] for row in listed["invites"]] == [code]
        with pytest.raises(NotAllowed):
            await act(sim.ben, "delete_invite", invite=code)
        await act(crew.mo, "delete_invite", invite=str(made["url"]))
        assert not sim.world.store.invites
        with pytest.raises(NotFound):
            await act(crew.mo, "delete_invite", invite=code)


async def test_nobody_is_invited_where_the_asker_may_not_invite(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P(0), RUNNING)
    cellar = sim.guild.add_channel("cellar", private_to=[sim.ada.user])
    bow = sim.guild.add_channel("bow", overwrites=[SimOverwrite(crew.crew.id, 0, deny=P.CREATE_INSTANT_INVITE)])
    async with open_actions(sim) as act:
        with pytest.raises(NotFound):
            await act(sim.ben, "create_invite", channel=cellar.mention)
        with pytest.raises(NotAllowed, match="Create Invite"):
            await act(sim.ben, "create_invite", channel=bow.mention)
        with pytest.raises(NotAllowed, match="Manage Server"):
            await act(sim.ben, "list_invites")


async def test_invitations_to_hidden_channels_are_neither_listed_nor_deleted(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_GUILD | P.MANAGE_CHANNELS, RUNNING)
    sim.guild.add_channel("cellar", private_to=[sim.ada.user])
    async with open_actions(sim) as act:
        made = await act(sim.ana, "create_invite", channel="cellar")
        listed: Any = await act(crew.mo, "list_invites")
        assert listed["invites"] == []
        with pytest.raises(NotFound):
            await act(crew.mo, "delete_invite", invite=str(made["url"]))


# --- webhooks --------------------------------------------------------------------------------------------------------


async def test_the_address_of_a_webhook_goes_to_the_asker_alone_and_into_no_text(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_WEBHOOKS, RUNNING)
    heard = RecordingListener()
    async with running(sim, heard) as (account, _):
        act = bind_action(sim, account)
        made = await act(ActionRequest(crew.mo, key="call"), "create_webhook", name="news")
        again = await act(ActionRequest(crew.mo, key="call"), "create_webhook", name="news", since=LONG_AGO)
        listed = await act(crew.mo, "list_webhooks")
        await heard.until(lambda: any(each.is_mine for each in heard.arrivals))
    hook = sim.world.store.webhooks[int(str(made["id"]))]
    assert made == again == {"id": str(hook.id), "name": "news", "channel": str(sim.general.id)}
    assert len(sim.world.store.webhooks) == 1
    talk = next(each for each in sim.world.channels if each.is_dm and crew.mo in each.recipients)
    [said] = talk.messages
    assert hook.token in str(said.body.components)
    assert hook.token not in f"{made}{again}{listed}{list_direct_texts(sim, crew.mo)}{sim.general.texts}"
    assert all(hook.token not in f"{each.post}{each.question}" for each in heard.arrivals)


async def test_who_takes_no_direct_messages_gets_no_webhook(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_WEBHOOKS, RUNNING)
    crew.mo.accepts_dms = False
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="could not send you its address"):
            await act(crew.mo, "create_webhook", name="news")
    assert not sim.world.store.webhooks


async def test_webhooks_are_listed_and_deleted_by_who_manages_them(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_WEBHOOKS, RUNNING)
    cellar = sim.guild.add_channel("cellar", private_to=[sim.ada.user])
    async with open_actions(sim) as act:
        await act(sim.ana, "create_webhook", name="hidden", channel=cellar.mention)
        made = await act(crew.mo, "create_webhook", name="news")
        listed: Any = await act(crew.mo, "list_webhooks")
        assert [row["id"] for row in listed["webhooks"]] == [made["id"]]
        with pytest.raises(NotFound):
            await act(crew.mo, "delete_webhook", webhook="hidden")
        for name, details in (("list_webhooks", {}), ("delete_webhook", {"webhook": "news"})):
            with pytest.raises(NotAllowed, match="Manage Webhooks"):
                await act(sim.ben, name, **details)
        await act(crew.mo, "delete_webhook", webhook="news")
    assert [each.name for each in sim.world.store.webhooks.values()] == ["hidden"]


async def test_a_webhook_takes_the_right_there(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.MANAGE_WEBHOOKS, RUNNING)
    sim.guild.add_channel("decks", kind="category")
    bow = sim.guild.add_channel("bow", overwrites=[SimOverwrite(crew.mods.id, 0, deny=P.MANAGE_WEBHOOKS)])
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="Manage Webhooks"):
            await act(crew.mo, "create_webhook", name="x", channel=bow.mention)
        with pytest.raises(InvalidInput):
            await act(crew.mo, "create_webhook", name="x", channel="decks")
    assert writes(sim) == []


# --- events ----------------------------------------------------------------------------------------------------------


async def test_an_event_is_planned_once_listed_and_called_off(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.CREATE_EVENTS | P.MANAGE_EVENTS, RUNNING | P.CONNECT)
    quay = sim.guild.add_channel("quay", kind="voice")
    async with open_actions(sim) as act:
        race = await act(
            crew.mo, "create_event", name="Race", start=START, end=END, location="pier 3", description="fast"
        )
        assert (
            await act(crew.mo, "create_event", name="Race", start=START, end=END, location="pier 3", since=LONG_AGO)
        ) == race
        swim = await act(crew.mo, "create_event", name="Swim", start=START, channel="quay")
        listed: Any = await act(sim.ben, "list_events")
        assert {row["name"]: row["where"] for row in listed["events"]} == {"Race": "pier 3", "Swim": quay.mention}
        await act(crew.mo, "cancel_event", event="race")
        await act(crew.mo, "cancel_event", event=str(swim["id"]))
        assert not sim.guild.events


async def test_an_event_is_where_and_when_it_can_be(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.CREATE_EVENTS, RUNNING | P.CONNECT)
    wrong: list[dict[str, Json]] = [
        {"start": START},
        {"start": START, "location": "pier 3"},
        {"start": START, "end": END, "location": "pier 3", "channel": "general"},
        {"start": START, "channel": "general"},
        {"start": LONG_AGO, "end": END, "location": "pier 3"},
    ]
    async with open_actions(sim) as act:
        for details in wrong:
            with pytest.raises(InvalidInput):
                await act(crew.mo, "create_event", name="Race", **details)


async def test_events_take_the_rights_of_both_and_those_in_hidden_channels_are_not_there(sim: AccountFixture) -> None:
    crew = add_ranked_members(sim, P.CREATE_EVENTS | P.MANAGE_EVENTS, RUNNING | P.CONNECT)
    cabin = sim.guild.add_channel(
        "cabin",
        kind="voice",
        overwrites=[SimOverwrite(sim.guild.id, 0, deny=P.VIEW_CHANNEL), SimOverwrite(sim.ada.id, 1, P.VIEW_CHANNEL)],
    )
    async with open_actions(sim) as act:
        await act(sim.ana, "create_event", name="Secret", start=START, channel=cabin.mention)
        listed: Any = await act(crew.mo, "list_events")
        assert listed["events"] == []
        with pytest.raises(NotFound):
            await act(crew.mo, "cancel_event", event="Secret")
        with pytest.raises(NotFound):
            await act(crew.mo, "create_event", name="x", start=START, channel=cabin.mention)
        with pytest.raises(NotAllowed, match="Create Events"):
            await act(sim.ben, "create_event", name="x", start=START, end=END, location="y")
        with pytest.raises(NotAllowed, match="Manage Events"):
            await act(sim.ben, "cancel_event", event="Secret")
    assert len(sim.guild.events) == 1
