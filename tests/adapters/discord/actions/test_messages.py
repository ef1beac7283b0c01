"""Sending, editing, deleting, pinning and publishing in somebody's name, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from denizen.domain.action import PlatformAction
from denizen.domain.conversation import Place
from denizen.domain.delivery import MessageButton, MessageContent
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound
from denizen.testing.discord import DiscordPermission, SimUser
from denizen.testing.discord.state.channels import SimOverwrite
from tests.adapters.discord.account_fixture import AccountFixture, running
from tests.adapters.discord.actions.action_fixture import (
    ActionRequest,
    build_on_behalf_of,
    get_posted_message,
    open_actions,
)
from tests.memory_channel import enter_at_once

pytestmark = [pytest.mark.anyio, pytest.mark.proves("V-skill-discord")]

P = DiscordPermission


def deny_sending(user: SimUser) -> SimOverwrite:
    return SimOverwrite(user.id, 1, deny=P.SEND_MESSAGES)


@pytest.mark.proves("V-skill-utility")
async def test_a_message_is_posted_with_its_embed_and_its_pings(sim: AccountFixture) -> None:
    news = sim.guild.add_channel("news")
    card = {"title": "Ferry", "text": "From pier 3", "fields": {"Leaves": "21:40"}, "image": "https://pier.example/a"}
    async with open_actions(sim) as act:
        done = await act(sim.ben, "send_message", text="hello @Ana", channel="#news", embed=card)
    sent = get_posted_message(sim, done)
    assert sent.channel_id == news.id
    assert sent.content == f"hello <@{sim.ana.id}>"
    assert sent.mentioned.users == [sim.ana]
    assert sent.body.embeds[0]["title"] == "Ferry"
    assert sent.body.embeds[0]["fields"] == [{"name": "Leaves", "value": "21:40", "inline": False}]
    assert done["link"] == f"https://discord.com/channels/{sim.guild.id}/{news.id}/{sent.id}"


async def test_the_same_call_again_gives_the_same_message_and_another_one_another(sim: AccountFixture) -> None:
    async with open_actions(sim) as act:
        first = await act(ActionRequest(sim.ben, key="call"), "send_message", text="once")
        again = await act(ActionRequest(sim.ben, key="call"), "send_message", text="once")
        other = await act(ActionRequest(sim.ben, key="call"), "send_message", text="twice")
    assert first == again
    assert other != first
    assert [each.content for each in sim.mine()] == ["once", "twice"]


async def test_a_reply_stands_under_the_message_that_it_answers(sim: AccountFixture) -> None:
    question = sim.say("when?")
    async with open_actions(sim) as act:
        done = await act(sim.ben, "send_message", text="at nine", reply_to=str(question.id))
    reference = get_posted_message(sim, done).reference
    assert reference is not None
    assert reference.message_id == question.id


@pytest.mark.parametrize("call", ["@everyone", "@here", "@crew", "<@&{crew}>"])
async def test_who_may_not_ping_everybody_does_not_by_the_account_that_may(sim: AccountFixture, call: str) -> None:
    crew = sim.guild.add_role("crew")
    sim.guild.set_roles(sim.ada.user, [sim.guild.add_role("loud", permissions=P.MENTION_EVERYONE)])
    async with open_actions(sim) as act:
        sent = get_posted_message(sim, await act(sim.ben, "send_message", text=call.format(crew=crew.id)))
    assert not sent.mentioned.everyone
    assert not sent.mentioned.roles


async def test_who_may_ping_everybody_does_when_the_account_may_too(sim: AccountFixture) -> None:
    crew = sim.guild.add_role("crew")
    text = f"@everyone and <@&{crew.id}>"
    async with open_actions(sim) as act:
        refused = get_posted_message(sim, await act(sim.ana, "send_message", text=text))
        assert not refused.mentioned.everyone
        assert not refused.mentioned.roles
    sim.guild.set_roles(sim.ada.user, [sim.guild.add_role("loud", permissions=P.MENTION_EVERYONE)])
    async with open_actions(sim) as act:
        sent = get_posted_message(sim, await act(sim.ana, "send_message", text=text))
        assert sent.mentioned.everyone
        assert sent.mentioned.roles == [crew.id]


async def test_a_role_that_everybody_may_ping_is_pinged(sim: AccountFixture) -> None:
    crew = sim.guild.add_role("crew", mentionable=True)
    async with open_actions(sim) as act:
        sent = get_posted_message(sim, await act(sim.ben, "send_message", text="@crew come"))
    assert sent.mentioned.roles == [crew.id]


async def test_where_the_asker_may_not_write_nothing_is_written(sim: AccountFixture) -> None:
    rules = sim.guild.add_channel("rules", overwrites=[deny_sending(sim.ben)])
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match=r"You may not do that here.*'Send Messages'"):
            await act(sim.ben, "send_message", text="hi", channel="rules")
        await act(sim.ana, "send_message", text="hi", channel="rules")
    assert len(sim.mine(rules)) == 1


async def test_where_the_account_may_not_write_it_says_what_it_lacks(sim: AccountFixture) -> None:
    sim.guild.add_channel("rules", overwrites=[deny_sending(sim.ada.user)])
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="I may not do that here") as caught:
            await act(sim.ana, "send_message", text="hi", channel="rules")
    assert "Send Messages" in caught.value.fix


@pytest.mark.parametrize("by", ["name", "id", "link"])
async def test_a_channel_that_the_asker_cannot_see_does_not_exist(sim: AccountFixture, by: str) -> None:
    office = sim.guild.add_channel("office", private_to=[sim.ada.user])
    secret = sim.world.say(sim.ana, office, "the code is 4711")
    async with open_actions(sim) as act:
        if by == "link":
            link = f"https://discord.com/channels/{sim.guild.id}/{office.id}/{secret.id}"
            with pytest.raises(NotFound, match="There is no channel"):
                await act(sim.ben, "delete_message", message=link)
        else:
            with pytest.raises(NotFound, match="There is no channel"):
                await act(sim.ben, "send_message", text="hi", channel=str(office.id) if by == "id" else "office")
    assert not secret.state.deleted
    assert not sim.mine(office)


async def test_a_private_thread_is_there_for_those_who_are_in_it_only(sim: AccountFixture) -> None:
    thread = sim.world.open_thread(sim.ana, sim.general, "birthday", private=True)
    sim.world.invite_to(sim.ana, thread, sim.ada.user)
    async with open_actions(sim) as act:
        with pytest.raises(NotFound):
            await act(sim.ben, "send_message", text="hi", channel="birthday")
        with pytest.raises(NotFound):
            await act(sim.ben, "send_message", text="hi", channel=str(thread.id))
        await act(sim.ana, "send_message", text="hi", channel="birthday")
    assert len(sim.mine(thread)) == 1


async def test_a_text_that_is_too_long_or_empty_is_refused(sim: AccountFixture) -> None:
    async with open_actions(sim) as act:
        with pytest.raises(InvalidInput, match="2000 characters"):
            await act(sim.ben, "send_message", text="x" * 2001)
        with pytest.raises(InvalidInput, match="empty"):
            await act(sim.ben, "send_message", text=" ", embed={"title": ""})
        with pytest.raises(InvalidInput, match="https"):
            await act(sim.ben, "send_message", embed={"image": "file:///etc/passwd"})
    assert not sim.mine()


async def test_an_own_answer_is_edited_and_deleted_for_whom_it_answered(sim: AccountFixture) -> None:
    question = sim.world.say(sim.ben, sim.general, "when?")
    answer = sim.world.say(sim.ada.user, sim.general, "at nine", reply_to=question)
    async with open_actions(sim) as act:
        await act(sim.ben, "edit_message", message=str(answer.id), text="at ten @everyone")
        assert answer.content == "at ten @\u200beveryone"
        await act(sim.ben, "delete_message", message=str(answer.id), own=True)
    assert answer.state.deleted


async def test_an_own_message_for_somebody_else_takes_the_right_to_manage_messages(sim: AccountFixture) -> None:
    notice = sim.world.say(sim.ada.user, sim.general, "closed today")
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="'Manage Messages'"):
            await act(sim.ben, "edit_message", message=str(notice.id), text="open")
        for own in (True, False):
            with pytest.raises(NotAllowed, match="'Manage Messages'"):
                await act(sim.ben, "delete_message", message=str(notice.id), own=own)
        await act(sim.ana, "edit_message", message=str(notice.id), embed={"title": "Open"})
        assert (notice.content, notice.body.embeds[0]["title"]) == ("closed today", "Open")
        await act(sim.ana, "delete_message", message=str(notice.id))
    assert notice.state.deleted


async def test_a_message_is_posted_when_its_room_is_free_and_nothing_else_waits_for_that(sim: AccountFixture) -> None:
    thread = sim.world.open_thread(sim.ana, sim.general, "talk", text="hi")
    entered: list[Place] = []

    @asynccontextmanager
    async def enter(place: Place) -> AsyncGenerator[None]:
        entered.append(place)
        room = sim.general if not place.thread else thread
        before = len(sim.mine(room))
        yield
        assert len(sim.mine(room)) == before + 1

    async with running(sim) as (account, _):
        for action in (
            PlatformAction("send_message", {"text": "hello"}),
            PlatformAction("send_message", {"text": "hello", "channel": str(thread.id)}),
            PlatformAction("create_poll", {"question": "Tea?", "answers": ["yes", "no"]}),
        ):
            warrant = build_on_behalf_of(sim, sim.ana)
            await account.check_action(action, warrant)
            told = await account.act(action, warrant, enter=enter)
            await account.act(PlatformAction("read_reactions", {"message": told["link"]}), warrant, enter=enter)
    assert entered == [sim.place(), Place("discord", str(sim.general.id), str(thread.id)), sim.place()]


@pytest.mark.proves("P2")
async def test_a_card_that_asks_for_a_decision_is_not_changed_by_anybody(sim: AccountFixture) -> None:
    buttons = (MessageButton("Approve", action="once:1"), MessageButton("Deny", action="no:1", asks_why=True))
    async with running(sim) as (account, _):
        card = await account.post(sim.place(), MessageContent("Delete everything?", buttons=buttons), nonce="card")
        for name, more in (("edit_message", {"text": "Say hello?"}), ("delete_message", {})):
            with pytest.raises(NotAllowed, match="it stays as it is"):
                await account.act(
                    PlatformAction(name, {"message": card, **more}),
                    build_on_behalf_of(sim, sim.ana),
                    enter=enter_at_once,
                )
    assert [each.content for each in sim.mine()] == ["Delete everything?"]


async def test_what_is_written_beside_a_voice_channel_is_for_those_who_may_join_it(sim: AccountFixture) -> None:
    closed = SimOverwrite(sim.ben.id, 1, deny=P.CONNECT)
    bridge = sim.guild.add_channel("bridge", kind="voice", overwrites=[closed])
    said = sim.world.say(sim.ada.user, bridge, "we sail at nine")
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="'Connect'"):
            await act(sim.ben, "send_message", text="hi", channel="bridge")
        with pytest.raises(NotFound, match="no such message"):
            await act(sim.ben, "add_reaction", message=str(said.id), emoji="⚓", channel="bridge")
        await act(sim.ana, "send_message", text="hi", channel="bridge")
    assert len(sim.mine(bridge)) == 2


async def test_messages_of_others_take_the_right_of_both(sim: AccountFixture) -> None:
    said = sim.say("spam")
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="You may not"):
            await act(sim.ben, "delete_message", message=str(said.id))
        with pytest.raises(NotAllowed, match="not mine"):
            await act(sim.ana, "delete_message", message=str(said.id), own=True)
        with pytest.raises(NotAllowed, match="not mine"):
            await act(sim.ana, "edit_message", message=str(said.id), text="ham")
        with pytest.raises(NotAllowed, match="I may not"):
            await act(sim.ana, "delete_message", message=str(said.id))
    keeper = sim.guild.add_role("keeper", permissions=P.MANAGE_MESSAGES)
    sim.guild.set_roles(sim.ada.user, [keeper])
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="You may not"):
            await act(sim.ben, "delete_message", message=str(said.id))
        assert not said.state.deleted
        await act(sim.ana, "delete_message", message=str(said.id))
    assert said.state.deleted


async def test_pinning_takes_the_right_of_both(sim: AccountFixture) -> None:
    said = sim.say("the rules")
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match=r"You may not.*'Pin Messages'"):
            await act(sim.ben, "pin_message", message=str(said.id))
        with pytest.raises(NotAllowed, match="I may not"):
            await act(sim.ana, "pin_message", message=str(said.id))
    sim.guild.set_roles(sim.ada.user, [sim.guild.add_role("pins", permissions=P.PIN_MESSAGES)])
    async with open_actions(sim) as act:
        await act(sim.ana, "pin_message", message=str(said.id))
        assert said.pinned
        await act(sim.ana, "unpin_message", message=str(said.id))
    assert not said.pinned


async def test_a_message_is_published_once_by_who_may(sim: AccountFixture) -> None:
    news = sim.guild.add_channel("news", kind="announcement")
    said = sim.world.say(sim.ada.user, news, "we open")
    async with open_actions(sim) as act:
        with pytest.raises(NotAllowed, match="You may not"):
            await act(sim.ben, "crosspost_message", message=str(said.id), channel="news")
        for _ in range(2):
            await act(sim.ana, "crosspost_message", message=str(said.id), channel="news")
        plain = sim.say("no news")
        with pytest.raises(InvalidInput, match="announcement"):
            await act(sim.ana, "crosspost_message", message=str(plain.id))
    assert said.flags & 1
    assert len(sim.discord.requests_to("POST", "/crosspost")) == 1


async def test_a_link_into_another_channel_than_the_named_one_is_refused_where_something_is_written(
    sim: AccountFixture,
) -> None:
    news = sim.guild.add_channel("news")
    notice = sim.world.say(sim.ada.user, news, "closed")
    link = f"https://discord.com/channels/{sim.guild.id}/{news.id}/{notice.id}"
    async with open_actions(sim) as act:
        with pytest.raises(InvalidInput, match="another channel"):
            await act(sim.ana, "edit_message", message=link, text="open")
        await act(sim.ana, "edit_message", message=link, text="open", channel="news")
    assert notice.content == "open"


async def test_an_unknown_action_and_unknown_details_are_said(sim: AccountFixture) -> None:
    async with open_actions(sim) as act:
        with pytest.raises(InvalidInput, match="no action") as caught:
            await act(sim.ana, "send_mesage", text="x")
        assert "send_message" in caught.value.fix
        with pytest.raises(InvalidInput, match="does not know txt"):
            await act(sim.ana, "send_message", txt="x")
