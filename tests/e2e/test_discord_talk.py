"""People on Discord talk with an agent of a real `denizen run`: mentions, direct messages, threads, slash commands."""

from __future__ import annotations

from base64 import b64encode

import pytest

from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.discord import Harbour

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@pytest.mark.proves("C14", "CW8", "LW7")
async def test_a_mention_is_answered_by_a_reply_after_typing_and_only_who_is_named_is_pinged(harbour: Harbour) -> None:
    harbour.configure()
    async with harbour.run():
        answer = harbour.hold("Hello @Ana and @everyone.")
        question = harbour.ask(harbour.ana, "hello")
        await harbour.until(lambda: harbour.discord.typing(harbour.general))
        await harbour.until(lambda: harbour.requests)
        assert harbour.said() == []
        answer.release()
        await harbour.until(harbour.said)
    [reply] = harbour.posts()
    assert reply.content == f"Hello {harbour.ana.mention} and @\N{ZERO WIDTH SPACE}everyone."
    assert reply.reference is not None
    assert reply.reference.message_id == question.id
    assert reply.mentions == [harbour.ana]
    assert not reply.mention_everyone
    [asked] = [m["content"] for m in harbour.requests[0].body["messages"] if m["role"] == "user"]
    assert "hello" in asked
    assert harbour.ada.mention not in asked


async def test_a_direct_message_needs_no_mention(harbour: Harbour) -> None:
    harbour.configure()
    direct = harbour.world.open_dm(harbour.ben, harbour.ada.user)
    harbour.script("Quietly: yes.")
    async with harbour.run():
        harbour.world.say(harbour.ben, direct, "Between us: does it work?")
        await harbour.until(lambda: harbour.said(direct) == ["Quietly: yes."])
    assert harbour.said() == []


@pytest.mark.proves("S34", "S35", "SW11")
async def test_a_thread_in_which_it_was_mentioned_is_followed_after_a_restart_too(harbour: Harbour) -> None:
    crew = harbour.guild.add_role("crew", mentionable=True)
    harbour.configure(conduct=[f'mention_roles: ["{crew.id}"]'])
    thread = harbour.world.open_thread(harbour.ana, harbour.general, "plans")
    async with harbour.run():
        harbour.script("I listen.")
        harbour.world.say(harbour.ana, thread, f"{crew.mention} listen please")
        await harbour.until(lambda: harbour.said(thread) == ["I listen."])
        harbour.script("Still here.")
        harbour.world.say(harbour.ben, thread, "and to me?")
        await harbour.until(lambda: harbour.said(thread)[1:] == ["Still here."])
    async with harbour.run():
        harbour.script("After a nap, too.")
        harbour.world.say(harbour.ben, thread, "and now?")
        await harbour.until(lambda: harbour.said(thread)[2:] == ["After a nap, too."])
        harbour.world.say(harbour.ben, harbour.general, "nobody is meant here")
        assert await harbour.settle() == []


@pytest.mark.proves("S34", "SW11")
async def test_a_mention_in_a_channel_opens_one_thread_and_the_talk_goes_on_there(harbour: Harbour) -> None:
    harbour.configure(conduct=["threads: open"])
    async with harbour.run():
        harbour.script("Let us talk here.", "Gladly.")
        question = harbour.ask(harbour.ana, "where do we talk?")
        await harbour.until(lambda: harbour.guild.threads)
        [thread] = harbour.guild.threads.values()
        assert thread.id == question.id
        await harbour.until(lambda: harbour.said(thread) == ["Let us talk here."])
        harbour.ask(harbour.ana, "tell me more", thread)
        await harbour.until(lambda: harbour.said(thread)[1:] == ["Gladly."])
    assert len(harbour.guild.threads) == 1
    assert harbour.said() == []


async def test_slash_commands_ask_the_agent_and_tell_what_can_be_done(harbour: Harbour) -> None:
    harbour.configure()
    async with harbour.run():
        await harbour.until(lambda: harbour.discord.requests_to("PUT", "commands"))
        harbour.script("Forty-two.")
        asked = await harbour.world.run_command(harbour.ana, harbour.general, "ask", {"text": "the number?"}, wait_s=30)
        answer = await asked.until_answered(30)
        assert (answer.content, answer.ephemeral) == ("Forty-two.", False)
        help_ = await harbour.world.run_command(harbour.ben, harbour.general, "help", wait_s=30)
        told = await help_.until_answered(30)
        assert told.ephemeral
        assert "`/ask`" in told.content
        assert "`/allow`" not in told.content
    assert len(harbour.requests) == 1


@pytest.mark.proves("V11", "CW9", "C14")
async def test_a_long_answer_comes_in_order_as_a_reply_and_plain_messages_with_whole_code_fences(
    harbour: Harbour,
) -> None:
    code = [f"step_{number} = {'x' * 40!r}" for number in range(80)]
    tail = [f"{number}. {'because, ' * 6}that is it" for number in range(30)]
    harbour.configure()
    harbour.script("\n".join(["Here:", "```python", *code, "```", *tail]))
    async with harbour.run():
        question = harbour.ask(harbour.ana, "show me the code")
        await harbour.until(lambda: any("29. because" in text for text in harbour.said()))
    posts = harbour.posts()
    assert len(posts) > 2
    assert [post.reference.message_id if post.reference else None for post in posts] == [
        question.id,
        *[None] * (len(posts) - 1),
    ]
    assert all(post.content.count("```") % 2 == 0 for post in posts)
    lines = [line for post in posts for line in post.content.splitlines()]
    assert [line for line in lines if line.startswith("step_")] == code
    assert [line for line in lines if "because" in line] == tail


@pytest.mark.proves("L9")
async def test_a_picture_in_a_tools_result_is_shown_and_its_data_reaches_neither_model_nor_text(
    harbour: Harbour,
) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    notes = harbour.home.folder / "agents/ada/notes/rooms" / f"discord-{harbour.general.id}"
    notes.mkdir(parents=True)
    data = b64encode(picture).decode()
    (notes / "logo.md").write_text(f"Our logo: data:image/png;base64,{data}\n", encoding="utf-8")
    harbour.configure()
    harbour.script(ModelAnswer(calls=[ModelCall("read_note", {"name": "logo"})]), "This is our logo.")
    async with harbour.run():
        harbour.ask(harbour.ana, "show me the logo")
        await harbour.until(lambda: any(post.embeds for post in harbour.posts()))
        assert data not in str(harbour.requests[1].body)
    [post] = harbour.posts()
    assert post.content == "This is our logo."
    [embed] = post.embeds
    [file] = harbour.discord.store.files.values()
    assert embed["image"]["url"].endswith(file.filename)
    assert (file.content, file.content_type) == (picture, "image/png")


@pytest.mark.proves("C25")
async def test_a_picture_that_the_model_makes_is_attached_to_the_last_part_of_its_answer(harbour: Harbour) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    harbour.configure(overrides="local/scripted: {image_output: true}")
    harbour.script(ModelAnswer(text="A rose.", images=[f"data:image/png;base64,{b64encode(picture).decode()}"]))
    async with harbour.run():
        harbour.ask(harbour.ana, "draw a rose")
        await harbour.until(lambda: any(post.embeds for post in harbour.posts()))
    [post] = harbour.posts()
    [file] = harbour.discord.store.files.values()
    assert (post.content, file.content, file.content_type) == ("A rose.", picture, "image/png")
    assert harbour.requests[0].body["modalities"] == ["image", "text"]


@pytest.mark.proves("V12")
async def test_a_slow_answer_has_a_status_message_that_becomes_the_answer(harbour: Harbour) -> None:
    harbour.configure(preview=True)
    async with harbour.run():
        answer = harbour.hold("At last.")
        harbour.ask(harbour.ana, "take your time")
        await harbour.until(harbour.said)
        [status] = harbour.posts()
        assert status.content == "-# thinking …"
        answer.release()
        await harbour.until(lambda: harbour.said() == ["At last."])
        assert harbour.posts() == [status]


@pytest.mark.proves("C17")
async def test_a_second_mention_waits_its_turn_and_other_places_do_not_wait_for_it(harbour: Harbour) -> None:
    harbour.configure()
    direct = harbour.world.open_dm(harbour.ben, harbour.ada.user)
    async with harbour.run():
        first = harbour.hold("First.")
        harbour.ask(harbour.ana, "one")
        await harbour.until(lambda: harbour.requests)
        harbour.script("Aside.", "Second.", "Third.")
        harbour.ask(harbour.ben, "two")
        harbour.ask(harbour.ana, "three")
        harbour.world.say(harbour.ben, direct, "aside")
        await harbour.until(lambda: harbour.said(direct) == ["Aside."])
        assert harbour.said() == []
        assert len(harbour.requests) == 2
        first.release()
        await harbour.until(lambda: harbour.said() == ["First.", "Second.", "Third."])
    asked = [post.reference.message_id for post in harbour.posts() if post.reference]
    assert asked == [m.id for m in harbour.general.messages if m.author is not harbour.ada.user]
