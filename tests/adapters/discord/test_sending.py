"""Posting, editing, deleting, reacting and threads, as people then see them."""

from __future__ import annotations

import pytest

from denizen.domain.conversation import Place
from denizen.domain.delivery import Button, Content, Embed, File
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.domain.room import RoomKind
from denizen.testing.discord import DiscordPermission
from tests.adapters.discord.listening import Harbour, running

pytestmark = pytest.mark.anyio

MESSAGES = "/channels/{channel_id}/messages"


async def test_a_reply_refers_to_its_question(harbour: Harbour) -> None:
    question = harbour.say("what time is it?")
    async with running(harbour) as (account, _):
        sent = await account.post(harbour.place(), Content("noon"), nonce="n1", reply_to=str(question.id))
    answer = harbour.mine()[0]
    assert str(answer.id) == sent
    assert answer.content == "noon"
    assert answer.reference is not None
    assert answer.reference.message_id == question.id
    assert harbour.ana not in answer.mentions


async def test_a_reply_to_a_message_that_is_gone_becomes_a_plain_message(harbour: Harbour) -> None:
    question = harbour.say("never mind")
    harbour.world.delete(question)
    async with running(harbour) as (account, _):
        await account.post(harbour.place(), Content("noon"), nonce="n1", reply_to=str(question.id))
    assert harbour.mine()[0].content == "noon"


async def test_the_same_nonce_gives_the_earlier_message_also_in_another_process(harbour: Harbour) -> None:
    async with running(harbour) as (account, _):
        first = await account.post(harbour.place(), Content("once"), nonce="n1")
        assert await account.post(harbour.place(), Content("once"), nonce="n1") == first
    async with running(harbour) as (account, _):
        assert await account.post(harbour.place(), Content("once"), nonce="n1") == first
        assert await account.post(harbour.place(), Content("once"), nonce="n2") != first
    assert len(harbour.mine()) == 2


async def test_a_post_whose_answer_got_lost_is_not_sent_twice(harbour: Harbour) -> None:
    async with running(harbour) as (account, _):
        harbour.discord.faults.drop("POST", "/messages", when="after")
        with pytest.raises(Unavailable):
            await account.post(harbour.place(), Content("once"), nonce="n1")
        await account.post(harbour.place(), Content("once"), nonce="n1")
    assert [each.content for each in harbour.mine()] == ["once"]


@pytest.mark.proves("CW8")
async def test_nobody_is_pinged_but_those_who_are_named(harbour: Harbour) -> None:
    crew = harbour.guild.add_role("crew", mentionable=True)
    harbour.guild.set_roles(harbour.ben, [crew])
    text = f"@everyone @here {harbour.ana.mention} {harbour.ben.mention} {crew.mention}"
    harbour.guild.set_roles(
        harbour.ada.user, [harbour.guild.add_role("may", permissions=DiscordPermission.ADMINISTRATOR)]
    )
    async with running(harbour) as (account, _):
        await account.post(harbour.place(), Content(text), nonce="n1")
        ping = Content(text, ping_users=frozenset({str(harbour.ben.id)}), ping_roles=frozenset({str(crew.id)}))
        await account.post(harbour.place(), ping, nonce="n2")
    silent, loud = harbour.mine()
    assert (silent.mentions, silent.mention_roles, silent.mention_everyone) == ([], [], False)
    assert (loud.mentions, loud.mention_roles, loud.mention_everyone) == ([harbour.ben], [crew.id], False)


async def test_embeds_files_and_buttons_arrive(harbour: Harbour) -> None:
    content = Content(
        "look",
        embeds=(Embed("A map", "of the coast", image="attachment://the map.png", fields=(("scale", "1:100"),)),),
        files=(File("the map.png", "image/png", b"\x89PNG"), File("notes", "text/plain", b"deep water")),
        buttons=(Button("More", value="tell me more"), Button("Site", url="https://example.org/")),
    )
    async with running(harbour) as (account, _):
        await account.post(harbour.place(), content, nonce="n1")
    message = harbour.mine()[0]
    assert [(each.filename, each.content) for each in message.attachments] == [("notes.txt", b"deep water")]
    assert message.embeds[0]["title"] == "A map"
    assert message.embeds[0]["image"]["url"].endswith("/the_map.png")
    assert message.embeds[0]["fields"][0]["value"] == "1:100"
    buttons = message.components[0]["components"]
    assert [(each["label"], each.get("custom_id"), each.get("url")) for each in buttons] == [
        ("More", "say:0:tell me more", None),
        ("Site", None, "https://example.org/"),
    ]


async def test_an_edit_replaces_everything(harbour: Harbour) -> None:
    full = Content("before", files=(File("a.txt", "text/plain", b"a"),), buttons=(Button("More", value="more"),))
    async with running(harbour) as (account, _):
        sent = await account.post(harbour.place(), full, nonce="n1")
        await account.edit(harbour.place(), sent, Content("after"))
    message = harbour.mine()[0]
    assert (message.content, list(message.attachments), list(message.components)) == ("after", [], [])


async def test_deleting_what_is_gone_is_no_error(harbour: Harbour) -> None:
    async with running(harbour) as (account, _):
        sent = await account.post(harbour.place(), Content("oops"), nonce="n1")
        await account.delete(harbour.place(), sent)
        await account.delete(harbour.place(), sent)
    assert harbour.mine() == []


async def test_reactions_come_and_go(harbour: Harbour) -> None:
    question = harbour.say("well?")
    emoji = harbour.guild.add_emoji("wave")
    async with running(harbour) as (account, _):
        await account.react(harbour.place(), str(question.id), "👀")
        await account.react(harbour.place(), str(question.id), f"<:wave:{emoji.id}>")
        assert [each.emoji.key for each in question.reactions] == ["👀", emoji.key]
        await account.react(harbour.place(), str(question.id), "👀", on=False)
    assert [each.emoji.key for each in question.reactions] == [emoji.key]


async def test_a_thread_is_opened_once_for_a_message(harbour: Harbour) -> None:
    question = harbour.say("a long story")
    async with running(harbour) as (account, _):
        room = await account.open_thread(harbour.place(), str(question.id), "A long story\n" + "x" * 200)
        again = await account.open_thread(harbour.place(), str(question.id), "Another title")
        inside = await account.open_thread(room.place, "1", "No thread in a thread")
        await account.post(room.place, Content("once upon a time"), nonce="n1")
    thread = harbour.guild.threads[int(room.id)]
    assert room.kind is RoomKind.THREAD
    assert len(room.name) == 100
    assert room.id == again.id == inside.id
    assert [each.content for each in harbour.mine(thread)] == ["once upon a time"]


async def test_there_are_no_threads_in_a_direct_talk(harbour: Harbour) -> None:
    talk = harbour.world.open_dm(harbour.ana, harbour.ada.user)
    message = harbour.say("hello", talk)
    async with running(harbour) as (account, _):
        with pytest.raises(InvalidInput):
            await account.open_thread(harbour.place(talk), str(message.id), "A thread")
        await account.post(harbour.place(talk), Content("hello to you"), nonce="n1")
    assert [each.content for each in harbour.mine(talk)] == ["hello to you"]


async def test_a_missing_permission_is_named_with_what_to_do(harbour: Harbour) -> None:
    harbour.guild.everyone.permissions &= ~(DiscordPermission.SEND_MESSAGES | DiscordPermission.ATTACH_FILES)
    async with running(harbour) as (account, _):
        with pytest.raises(NotAllowed) as caught:
            await account.post(harbour.place(), Content("x", files=(File("a", "text/plain", b"a"),)), nonce="n1")
    assert "Send Messages, Attach Files" in caught.value.why
    assert "Send Messages, Attach Files" in caught.value.fix


async def test_what_is_not_there_is_not_found(harbour: Harbour) -> None:
    async with running(harbour) as (account, _):
        with pytest.raises(NotFound):
            await account.edit(harbour.place(), "1234", Content("x"))
        with pytest.raises(NotFound):
            await account.post(Place("discord", "1234"), Content("x"), nonce="n1")


@pytest.mark.parametrize("content", [Content("x" * 2001), Content(), Content("x", files=(File("a", "", b""),) * 11)])
async def test_what_discord_does_not_take_is_invalid(harbour: Harbour, content: Content) -> None:
    async with running(harbour) as (account, _):
        with pytest.raises(InvalidInput) as caught:
            await account.post(harbour.place(), content, nonce="n1")
    assert caught.value.code == "discord_rejected"


async def test_an_id_that_is_none_is_invalid(harbour: Harbour) -> None:
    async with running(harbour) as (account, _):
        with pytest.raises(InvalidInput):
            await account.post(Place("discord", "general"), Content("x"), nonce="n1")


async def test_a_rate_limit_is_waited_out(harbour: Harbour) -> None:
    async with running(harbour) as (account, _):
        harbour.discord.limits.strike(2, method="POST", route="/messages")
        await account.post(harbour.place(), Content("patience"), nonce="n1")
    assert [each.content for each in harbour.mine()] == ["patience"]


async def test_a_rate_limit_that_lasts_too_long_is_told_with_its_time(harbour: Harbour) -> None:
    async with running(harbour) as (account, _):
        harbour.discord.limits.strike(method="POST", route="/messages", retry_after_s=600)
        with pytest.raises(Unavailable) as caught:
            await account.post(harbour.place(), Content("now"), nonce="n1")
    assert caught.value.retry_after_s == 600


async def test_a_server_that_fails_is_unavailable(harbour: Harbour) -> None:
    async with running(harbour) as (account, _):
        harbour.discord.faults.fail("POST", MESSAGES, status=503)
        with pytest.raises(Unavailable) as caught:
            await account.post(harbour.place(), Content("x"), nonce="n1")
    assert caught.value.code == "discord_server_error"
    assert harbour.ada.token not in caught.value.explain()


async def test_it_can_send_while_the_gateway_is_away(harbour: Harbour) -> None:
    async with running(harbour) as (account, _):
        harbour.discord.faults.refuse_gateway(100)
        harbour.discord.faults.cut_gateway()
        await account.post(harbour.place(), Content("still here"), nonce="n1")
        assert harbour.mine()[0].content == "still here"
