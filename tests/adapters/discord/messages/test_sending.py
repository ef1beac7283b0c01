"""Posting, editing, deleting, reacting and threads, as people then see them."""

from __future__ import annotations

import pytest

from denizen.domain.conversation import Place
from denizen.domain.delivery import EmbedCard, MessageButton, MessageContent, OutgoingFile
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.domain.room import RoomKind
from denizen.testing.discord import DiscordPermission
from tests.adapters.discord.account_fixture import AccountFixture, running

pytestmark = pytest.mark.anyio

MESSAGES = "/channels/{channel_id}/messages"


async def test_a_reply_refers_to_its_question(sim: AccountFixture) -> None:
    question = sim.say("what time is it?")
    async with running(sim) as (account, _):
        sent = await account.post(sim.place(), MessageContent("noon"), nonce="n1", reply_to=str(question.id))
    answer = sim.mine()[0]
    assert str(answer.id) == sent
    assert answer.content == "noon"
    assert answer.reference is not None
    assert answer.reference.message_id == question.id
    assert sim.ana not in answer.mentioned.users


async def test_a_reply_to_a_message_that_is_gone_becomes_a_plain_message(sim: AccountFixture) -> None:
    question = sim.say("never mind")
    sim.world.delete(question)
    async with running(sim) as (account, _):
        await account.post(sim.place(), MessageContent("noon"), nonce="n1", reply_to=str(question.id))
    assert sim.mine()[0].content == "noon"


async def test_the_same_nonce_gives_the_earlier_message_also_in_another_process(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        first = await account.post(sim.place(), MessageContent("once"), nonce="n1")
        assert await account.post(sim.place(), MessageContent("once"), nonce="n1") == first
    async with running(sim) as (account, _):
        assert await account.post(sim.place(), MessageContent("once"), nonce="n1") == first
        assert await account.post(sim.place(), MessageContent("once"), nonce="n2") != first
    assert len(sim.mine()) == 2


async def test_a_post_whose_answer_got_lost_is_not_sent_twice(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        sim.discord.faults.drop("POST", "/messages", when="after")
        with pytest.raises(Unavailable):
            await account.post(sim.place(), MessageContent("once"), nonce="n1")
        await account.post(sim.place(), MessageContent("once"), nonce="n1")
    assert [each.content for each in sim.mine()] == ["once"]


@pytest.mark.proves("CW8")
async def test_nobody_is_pinged_but_those_who_are_named(sim: AccountFixture) -> None:
    crew = sim.guild.add_role("crew", mentionable=True)
    sim.guild.set_roles(sim.ben, [crew])
    text = f"@everyone @here {sim.ana.mention} {sim.ben.mention} {crew.mention}"
    sim.guild.set_roles(sim.ada.user, [sim.guild.add_role("may", permissions=DiscordPermission.ADMINISTRATOR)])
    async with running(sim) as (account, _):
        await account.post(sim.place(), MessageContent(text), nonce="n1")
        ping = MessageContent(text, ping_users=frozenset({str(sim.ben.id)}), ping_roles=frozenset({str(crew.id)}))
        await account.post(sim.place(), ping, nonce="n2")
    silent, loud = sim.mine()
    assert (silent.mentioned.users, silent.mentioned.roles, silent.mentioned.everyone) == ([], [], False)
    assert (loud.mentioned.users, loud.mentioned.roles, loud.mentioned.everyone) == ([sim.ben], [crew.id], False)


async def test_embeds_files_and_buttons_arrive(sim: AccountFixture) -> None:
    content = MessageContent(
        "look",
        embeds=(EmbedCard("A map", "of the coast", image="attachment://the map.png", fields=(("scale", "1:100"),)),),
        files=(
            OutgoingFile("the map.png", "image/png", b"\x89PNG"),
            OutgoingFile("notes", "text/plain", b"deep water"),
        ),
        buttons=(MessageButton("More", value="tell me more"), MessageButton("Site", url="https://example.org/")),
    )
    async with running(sim) as (account, _):
        await account.post(sim.place(), content, nonce="n1")
    message = sim.mine()[0]
    assert [(each.filename, each.content) for each in message.body.attachments] == [("notes.txt", b"deep water")]
    assert message.body.embeds[0]["title"] == "A map"
    assert message.body.embeds[0]["image"]["url"].endswith("/the_map.png")
    assert message.body.embeds[0]["fields"][0]["value"] == "1:100"
    buttons = message.body.components[0]["components"]
    assert [(each["label"], each.get("custom_id"), each.get("url")) for each in buttons] == [
        ("More", "say:0:tell me more", None),
        ("Site", None, "https://example.org/"),
    ]


async def test_an_edit_replaces_everything(sim: AccountFixture) -> None:
    full = MessageContent(
        "before", files=(OutgoingFile("a.txt", "text/plain", b"a"),), buttons=(MessageButton("More", value="more"),)
    )
    async with running(sim) as (account, _):
        sent = await account.post(sim.place(), full, nonce="n1")
        await account.edit(sim.place(), sent, MessageContent("after"))
    message = sim.mine()[0]
    assert (message.content, list(message.body.attachments), list(message.body.components)) == ("after", [], [])


async def test_deleting_what_is_gone_is_no_error(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        sent = await account.post(sim.place(), MessageContent("oops"), nonce="n1")
        await account.delete(sim.place(), sent)
        await account.delete(sim.place(), sent)
    assert sim.mine() == []


async def test_reactions_come_and_go(sim: AccountFixture) -> None:
    question = sim.say("well?")
    emoji = sim.guild.add_emoji("wave")
    async with running(sim) as (account, _):
        await account.react(sim.place(), str(question.id), "👀")
        await account.react(sim.place(), str(question.id), f"<:wave:{emoji.id}>")
        assert [each.emoji.key for each in question.state.reactions] == ["👀", emoji.key]
        await account.react(sim.place(), str(question.id), "👀", on=False)
    assert [each.emoji.key for each in question.state.reactions] == [emoji.key]


async def test_a_thread_is_opened_once_for_a_message(sim: AccountFixture) -> None:
    question = sim.say("a long story")
    async with running(sim) as (account, _):
        room = await account.open_thread(sim.place(), str(question.id), "A long story\n" + "x" * 200)
        again = await account.open_thread(sim.place(), str(question.id), "Another title")
        inside = await account.open_thread(room.place, "1", "No thread in a thread")
        await account.post(room.place, MessageContent("once upon a time"), nonce="n1")
    thread = sim.guild.threads[int(room.id)]
    assert room.kind is RoomKind.THREAD
    assert len(room.name) == 100
    assert room.id == again.id == inside.id
    assert [each.content for each in sim.mine(thread)] == ["once upon a time"]


async def test_there_are_no_threads_in_a_direct_talk(sim: AccountFixture) -> None:
    talk = sim.world.open_dm(sim.ana, sim.ada.user)
    message = sim.say("hello", talk)
    async with running(sim) as (account, _):
        with pytest.raises(InvalidInput):
            await account.open_thread(sim.place(talk), str(message.id), "A thread")
        await account.post(sim.place(talk), MessageContent("hello to you"), nonce="n1")
    assert [each.content for each in sim.mine(talk)] == ["hello to you"]


async def test_somebody_is_written_to_in_direct_messages(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        place = await account.open_direct(str(sim.ana.id))
        await account.post(place, MessageContent("between us"), nonce="n1")
        assert await account.open_direct(str(sim.ana.id)) == place
    assert [each.content for each in sim.mine(sim.world.open_dm(sim.ana, sim.ada.user))] == ["between us"]


async def test_a_missing_permission_is_named_with_what_to_do(sim: AccountFixture) -> None:
    sim.guild.everyone.permissions &= ~(DiscordPermission.SEND_MESSAGES | DiscordPermission.ATTACH_FILES)
    async with running(sim) as (account, _):
        with pytest.raises(NotAllowed) as caught:
            await account.post(
                sim.place(), MessageContent("x", files=(OutgoingFile("a", "text/plain", b"a"),)), nonce="n1"
            )
    assert "Send Messages, Attach Files" in caught.value.why
    assert "Send Messages, Attach Files" in caught.value.fix


async def test_what_is_not_there_is_not_found(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        with pytest.raises(NotFound):
            await account.edit(sim.place(), "1234", MessageContent("x"))
        with pytest.raises(NotFound):
            await account.post(Place("discord", "1234"), MessageContent("x"), nonce="n1")


@pytest.mark.parametrize(
    "content",
    [MessageContent("x" * 2001), MessageContent(), MessageContent("x", files=(OutgoingFile("a", "", b""),) * 11)],
)
async def test_what_discord_does_not_take_is_invalid(sim: AccountFixture, content: MessageContent) -> None:
    async with running(sim) as (account, _):
        with pytest.raises(InvalidInput) as caught:
            await account.post(sim.place(), content, nonce="n1")
    assert caught.value.code == "discord_rejected"


async def test_an_id_that_is_none_is_invalid(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        with pytest.raises(InvalidInput):
            await account.post(Place("discord", "general"), MessageContent("x"), nonce="n1")


async def test_a_rate_limit_is_waited_out(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        sim.discord.limits.strike(2, method="POST", route="/messages")
        await account.post(sim.place(), MessageContent("patience"), nonce="n1")
    assert [each.content for each in sim.mine()] == ["patience"]


async def test_a_rate_limit_that_lasts_too_long_is_told_with_its_time(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        sim.discord.limits.strike(method="POST", route="/messages", retry_after_s=600)
        with pytest.raises(Unavailable) as caught:
            await account.post(sim.place(), MessageContent("now"), nonce="n1")
    assert caught.value.retry_after_s == 600


async def test_a_server_that_fails_is_unavailable(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        sim.discord.faults.fail("POST", MESSAGES, status=503)
        with pytest.raises(Unavailable) as caught:
            await account.post(sim.place(), MessageContent("x"), nonce="n1")
    assert caught.value.code == "discord_server_error"
    assert sim.ada.token not in caught.value.explain()


async def test_it_can_send_while_the_gateway_is_away(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        sim.discord.faults.refuse_gateway(100)
        sim.discord.faults.cut_gateway()
        await account.post(sim.place(), MessageContent("still here"), nonce="n1")
        assert sim.mine()[0].content == "still here"
