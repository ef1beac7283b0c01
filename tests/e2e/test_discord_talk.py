"""People on Discord talk with an agent of a real `denizen run`: mentions, direct messages, threads, slash commands."""

from __future__ import annotations

import re
from base64 import b64encode
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from denizen.testing.discord import DiscordPermission, file
from denizen.testing.discord.state.channels import SimOverwrite
from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.clock import OffsetClock
from tests.e2e.discord import DiscordDeployment, open_deployment
from tests.e2e.home import Home
from tests.e2e.provider import Provider

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@pytest.mark.proves("C14", "CW7", "CW8", "L1", "LW7", "SW11")
async def test_a_mention_is_answered_by_a_reply_after_typing_and_only_who_is_named_is_pinged(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure()
    hook = deployment.world.add_person("j.r. Hook-Lee")
    deployment.guild.join(hook)
    async with deployment.run():
        answer = deployment.hold("Hello @Ana, @J.R. Hook-Lee and @everyone.")
        question = deployment.ask(deployment.ana, "hello")
        await deployment.until(lambda: deployment.discord.typing(deployment.general))
        await deployment.until(lambda: deployment.requests)
        assert deployment.said() == []
        answer.release()
        await deployment.until(deployment.said)
    assert not deployment.guild.threads, "no thread where nobody asked for one"
    [reply] = deployment.posts()
    assert reply.content == f"Hello {deployment.ana.mention}, {hook.mention} and @\N{ZERO WIDTH SPACE}everyone."
    assert reply.reference is not None
    assert reply.reference.message_id == question.id
    assert reply.mentioned.users == [deployment.ana, hook]
    assert not reply.mentioned.everyone
    [asked] = [m["content"] for m in deployment.requests[0].body["messages"] if m["role"] == "user"]
    assert asked.splitlines()[-1] == "Ana: hello"
    assert deployment.ada.mention not in asked


@pytest.mark.proves("L1")
async def test_a_mere_mention_gets_a_greeting_and_costs_nothing(deployment: DiscordDeployment) -> None:
    deployment.configure()
    async with deployment.run():
        deployment.world.say(deployment.ana, deployment.general, deployment.ada.mention)
        await deployment.until(lambda: deployment.said() == ["Hello! How can I help?"])
    assert deployment.requests == []


@pytest.mark.proves("S35-signals")
async def test_it_types_under_eyes_while_it_works_and_a_thumb_shows_that_it_is_done(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure()
    async with deployment.run():
        answer = deployment.hold("Hello.")
        question = deployment.ask(deployment.ana, "hello")

        def signs() -> list[str | None]:
            return [each.emoji.name for each in question.state.reactions if each.users == [deployment.ada.user]]

        await deployment.until(lambda: signs() == ["👀"] and deployment.discord.typing(deployment.general))
        answer.release()
        await deployment.until(lambda: signs() == ["👍"] and deployment.said() == ["Hello."])


async def test_where_it_may_not_read_the_history_it_answers_without_a_reference(deployment: DiscordDeployment) -> None:
    everyone = deployment.guild.id
    deployment.general.overwrites[everyone] = SimOverwrite(everyone, 0, deny=DiscordPermission.READ_MESSAGE_HISTORY)
    deployment.configure()
    deployment.script("Here I am.")
    async with deployment.run():
        deployment.ask(deployment.ana, "are you there?")
        await deployment.until(lambda: deployment.said() == ["Here I am."])
    [reply] = deployment.posts()
    assert reply.reference is None


async def test_asked_where_it_may_not_write_it_reacts_or_writes_directly_and_owners_read_of_it(
    deployment: DiscordDeployment,
) -> None:
    everyone, no_posts = deployment.guild.id, DiscordPermission.SEND_MESSAGES
    silent = [SimOverwrite(everyone, 0, deny=no_posts)]
    mute = [SimOverwrite(everyone, 0, deny=no_posts | DiscordPermission.ADD_REACTIONS)]
    notices = deployment.guild.add_channel("notices", overwrites=silent)
    archive = deployment.guild.add_channel("archive", overwrites=mute)
    owners = deployment.guild.add_channel("owners", private_to=[deployment.ada.user])
    deployment.configure(rest=f'gate: {{observer: {{alert_channel: "{owners.id}"}}}}\n')
    direct = deployment.world.open_dm(deployment.ana, deployment.ada.user)
    async with deployment.run():
        asked = deployment.world.say(deployment.ana, notices, f"{deployment.ada.mention} hello")
        await deployment.until(lambda: [each.emoji.key for each in asked.state.reactions] == ["⚠️"])
        deployment.world.say(deployment.ana, archive, f"{deployment.ada.mention} hello")
        words = "I may not write in #archive of Harbour, so I cannot answer you there."
        await deployment.until(lambda: deployment.said(direct) == [words])
        await deployment.until(lambda: len(deployment.said(owners)) == 2)
    assert deployment.requests == []


@pytest.mark.proves("T-config-discord")
async def test_guilds_mentions_and_direct_messages_that_are_not_wanted_are_left_alone(
    deployment: DiscordDeployment,
) -> None:
    away = deployment.world.add_guild("Away", owner=deployment.ana)
    away.join(deployment.ben)
    away.join(deployment.ada.user)
    direct = deployment.world.open_dm(deployment.ben, deployment.ada.user)
    switches = ["mentions: false", "direct_messages: false", "keywords: ['^hey']"]
    deployment.configure(conduct=[f"guilds: ['{deployment.guild.id}']", *switches])
    deployment.script("Here.")
    async with deployment.run():
        deployment.ask(deployment.ben, "and me?")
        deployment.world.say(deployment.ben, direct, "and me?")
        deployment.world.say(deployment.ben, away.add_channel("lobby"), "hey you")
        deployment.world.say(deployment.ben, deployment.general, "hey you")
        await deployment.until(lambda: deployment.said() == ["Here."])
    assert len(deployment.requests) == 1


@pytest.mark.proves("C-config-channels", "C14")
async def test_a_channel_that_is_listed_is_answered_in_as_are_its_threads_and_no_other(
    deployment: DiscordDeployment,
) -> None:
    lobby = deployment.guild.add_channel("lobby")
    inside, outside = (
        deployment.world.open_thread(deployment.ana, each, "plans") for each in (deployment.general, lobby)
    )
    deployment.configure(conduct=[f"channels: ['{deployment.general.id}']"])
    deployment.script("Here.", "Here.")
    async with deployment.run():
        for room in (lobby, outside, deployment.general, inside):
            deployment.ask(deployment.ben, "and here?", room)
        await deployment.until(lambda: (deployment.said(), deployment.said(inside)) == (["Here."], ["Here."]))
    assert len(deployment.requests) == 2


async def test_a_direct_message_needs_no_mention(deployment: DiscordDeployment) -> None:
    deployment.configure()
    direct = deployment.world.open_dm(deployment.ben, deployment.ada.user)
    deployment.script("Quietly: yes.")
    async with deployment.run():
        deployment.world.say(deployment.ben, direct, "Between us: does it work?")
        await deployment.until(lambda: deployment.said(direct) == ["Quietly: yes."])
    assert deployment.said() == []


@pytest.mark.proves("S34", "S35", "SW11")
async def test_a_thread_in_which_it_was_mentioned_is_followed_after_a_restart_too(
    deployment: DiscordDeployment,
) -> None:
    crew = deployment.guild.add_role("crew", mentionable=True)
    deployment.configure(conduct=[f'mention_roles: ["{crew.id}"]'])
    thread = deployment.world.open_thread(deployment.ana, deployment.general, "plans")
    async with deployment.run():
        deployment.script("I listen.")
        deployment.world.say(deployment.ana, thread, f"{crew.mention} listen please")
        await deployment.until(lambda: deployment.said(thread) == ["I listen."])
        deployment.script("Still here.")
        deployment.world.say(deployment.ben, thread, "and to me?")
        await deployment.until(lambda: deployment.said(thread)[1:] == ["Still here."])
    async with deployment.run():
        deployment.script("After a nap, too.")
        deployment.world.say(deployment.ben, thread, "and now?")
        await deployment.until(lambda: deployment.said(thread)[2:] == ["After a nap, too."])
        deployment.world.say(deployment.ben, deployment.general, "nobody is meant here")
        assert await deployment.settle() == []


@pytest.mark.proves("S34", "SW11")
async def test_a_mention_in_a_channel_opens_one_thread_and_the_talk_goes_on_there(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure(conduct=["threads: open"])
    async with deployment.run():
        deployment.script("Let us talk here.", "Gladly.")
        question = deployment.ask(deployment.ana, "where do we talk?")
        await deployment.until(lambda: deployment.guild.threads)
        [thread] = deployment.guild.threads.values()
        assert thread.id == question.id
        await deployment.until(lambda: deployment.said(thread) == ["Let us talk here."])
        deployment.ask(deployment.ana, "tell me more", thread)
        await deployment.until(lambda: deployment.said(thread)[1:] == ["Gladly."])
    assert len(deployment.guild.threads) == 1
    assert deployment.said() == []


async def test_slash_commands_ask_the_agent_and_tell_what_can_be_done(deployment: DiscordDeployment) -> None:
    deployment.configure()
    async with deployment.run():
        await deployment.until(lambda: deployment.discord.requests_to("PUT", "commands"))
        deployment.script("Forty-two.")
        answer = await deployment.run_command(deployment.ana, "ask", text="the number?")
        assert (answer.content, answer.ephemeral) == ("Forty-two.", False)
        told = await deployment.run_command(deployment.ben, "help")
        assert told.ephemeral
        assert "`/ask`" in told.content
        assert "`/allow`" not in told.content
    assert len(deployment.requests) == 1


@pytest.mark.proves("V11", "CW9", "C14", "SW11")
async def test_a_long_answer_comes_in_order_as_a_reply_and_plain_messages_with_whole_code_fences(
    deployment: DiscordDeployment,
) -> None:
    code = [f"step_{number} = {'x' * 40!r}" for number in range(80)]
    tail = [f"{number}. {'because, ' * 6}that is it" for number in range(30)]
    deployment.configure()
    deployment.script("\n".join(["Here:", "```python", *code, "```", *tail]))
    async with deployment.run():
        question = deployment.ask(deployment.ana, "show me the code")
        await deployment.until(lambda: any("29. because" in text for text in deployment.said()))
    posts = deployment.posts()
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
    deployment: DiscordDeployment,
) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    notes = deployment.home.folder / "agents/ada/notes/rooms" / f"discord-{deployment.general.id}"
    notes.mkdir(parents=True)
    data = b64encode(picture).decode()
    (notes / "logo.md").write_text(f"Our logo: data:image/png;base64,{data}\n", encoding="utf-8")
    deployment.configure()
    deployment.script(ModelAnswer(calls=[ModelCall("read_note", {"name": "logo"})]), "This is our logo.")
    async with deployment.run():
        deployment.ask(deployment.ana, "show me the logo")
        await deployment.until(lambda: any(post.body.embeds for post in deployment.posts()))
        assert data not in str(deployment.requests[1].body)
    [post] = deployment.posts()
    assert post.content == "This is our logo."
    [embed] = post.body.embeds
    [file] = deployment.discord.store.files.by_id.values()
    assert embed["image"]["url"].endswith(file.filename)
    assert (file.content, file.content_type) == (picture, "image/png")


@pytest.mark.proves("C25")
async def test_a_picture_that_the_model_makes_is_attached_to_the_last_part_of_its_answer(
    deployment: DiscordDeployment,
) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    deployment.configure(overrides="local/scripted: {image_output: true}")
    deployment.script(ModelAnswer(text="A rose.", images=[f"data:image/png;base64,{b64encode(picture).decode()}"]))
    async with deployment.run():
        deployment.ask(deployment.ana, "draw a rose")
        await deployment.until(lambda: any(post.body.embeds for post in deployment.posts()))
    [post] = deployment.posts()
    [file] = deployment.discord.store.files.by_id.values()
    assert (post.content, file.content, file.content_type) == ("A rose.", picture, "image/png")
    assert deployment.requests[0].body["modalities"] == ["image", "text"]


@pytest.mark.proves("V12")
async def test_a_slow_answer_has_a_status_message_that_gives_way_to_it(deployment: DiscordDeployment) -> None:
    deployment.configure(preview=True)
    async with deployment.run():
        answer = deployment.hold("At last.")
        deployment.ask(deployment.ana, "take your time")
        await deployment.until(deployment.said)
        [status] = deployment.posts()
        assert status.content == "-# thinking …"
        answer.release()
        await deployment.until(lambda: deployment.said() == ["At last."])
        assert status not in deployment.posts()


@pytest.mark.proves("C14", "C17")
async def test_a_second_mention_waits_its_turn_and_other_places_do_not_wait_for_it(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure()
    direct = deployment.world.open_dm(deployment.ben, deployment.ada.user)
    async with deployment.run():
        first = deployment.hold("First.")
        deployment.ask(deployment.ana, "one")
        await deployment.until(lambda: deployment.requests)
        deployment.script("Aside.", "Second.", "Third.")
        deployment.ask(deployment.ben, "two")
        deployment.ask(deployment.ana, "three")
        deployment.world.say(deployment.ben, direct, "aside")
        await deployment.until(lambda: deployment.said(direct) == ["Aside."])
        assert deployment.said() == []
        assert len(deployment.requests) == 2
        first.release()
        await deployment.until(lambda: deployment.said() == ["First.", "Second.", "Third."])
    asked = [post.reference.message_id for post in deployment.posts() if post.reference]
    assert asked == [m.id for m in deployment.general.messages if m.author is not deployment.ada.user]


@pytest.mark.proves("C9", "C28", "E5")
async def test_a_thread_sees_its_channel_as_people_left_it_without_the_copy_and_the_notices_of_discord(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure(agents={"ada": "context: transcript"})
    deployment.script("Gladly.")
    world, ana, ben = deployment.world, deployment.ana, deployment.ben
    world.pin(ana, world.say(ben, deployment.general, "it rains"))
    async with deployment.run():
        first = world.say(ana, deployment.general, "shall we go inside?")
        world.pin(ana, first)
        thread = world.open_thread(ana, first, "inside")
        world.say(ben, deployment.general, "the sun is back")
        deployment.ask(ana, "join us", thread)
        await deployment.until(lambda: deployment.said(thread) == ["Gladly."])
    told = "\n".join(str(each["content"]) for each in deployment.requests[0].body["messages"])
    assert told == "Ben: it rains\nAna: shall we go inside?\nAna: @Ada join us\nada:"


@pytest.mark.proves("C12")
async def test_a_participant_reads_a_text_file_that_a_colleague_attached(deployment: DiscordDeployment) -> None:
    deployment.configure(agents={"ada": "context: transcript"})
    deployment.script("Sail.")
    async with deployment.run():
        files = [file("plan.txt", "1. sail\n2. anchor", "text/plain"), file("log.txt", "x" * (256 * 1024 + 1))]
        deployment.world.say(deployment.ben, deployment.general, "our plan", attachments=files)
        deployment.world.say(deployment.ben, deployment.general, f"{deployment.ana.mention} agreed?")
        deployment.ask(deployment.ana, "what is planned?")
        await deployment.until(lambda: deployment.said() == ["Sail."])
    [first, *_] = [str(each["content"]) for each in deployment.requests[0].body["messages"]]
    told = re.sub(r"http://\S+/cdn/attachments/\d+/\d+/", "CDN/", first)
    assert "Ben: our plan [plan.txt, text/plain, 17 bytes, CDN/plan.txt]\n> 1. sail\n> 2. anchor\n[log.txt, " in told
    assert "262145 bytes, CDN/log.txt]\nBen: @Ana agreed?\n" in told, "what is larger than 256 KB is only named"
    assert told.endswith("\nAna: @Ada what is planned?")


@pytest.mark.proves("C-config-message-limit", "C14", "C21")
@pytest.mark.parametrize(("conduct", "limit"), [((), 2000), (("message_limit: 900",), 900)])
async def test_a_long_answer_is_split_at_the_limit_and_its_first_part_is_the_reply(
    conduct: tuple[str, ...], limit: int, deployment: DiscordDeployment
) -> None:
    words = " ".join(f"word{number}" for number in range(600))
    deployment.configure(conduct=conduct)
    deployment.script(words)
    async with deployment.run():
        question = deployment.ask(deployment.ana, "tell me all")
        await deployment.until(lambda: " ".join(deployment.said()) == words)
    assert [len(text) > limit - 10 for text in deployment.said()[:-1]] == [True] * (len(words) // limit)
    assert max(map(len, deployment.said())) <= limit
    references = [post.reference and post.reference.message_id for post in deployment.posts()]
    assert references == [question.id] + [None] * (len(words) // limit)


@pytest.mark.proves("C-config-timestamps", "C13")
async def test_the_time_stands_where_talk_has_paused_in_the_zone_that_is_configured(
    home: Home, provider: Provider
) -> None:
    clock = OffsetClock(timedelta(minutes=-31))
    async with open_deployment(home, provider, clock=clock) as deployment:
        deployment.configure(agents={"ada": "context: transcript, timestamps: {enabled: true, zone: Asia/Tokyo}"})
        deployment.script("Yes.")
        said = []
        async with deployment.run():
            for minutes, text in ((-31, "one"), (-22, "two"), (-11, "three")):
                clock.offset = timedelta(minutes=minutes)
                said.append(deployment.world.say(deployment.ben, deployment.general, text))
            clock.offset = timedelta()
            deployment.ask(deployment.ana, "four")
            await deployment.until(lambda: deployment.said() == ["Yes."])
    first, _, third = [f"{post.timestamp.astimezone(ZoneInfo('Asia/Tokyo')):%Y-%m-%d %H:%M}" for post in said]
    told = "\n".join(str(each["content"]) for each in deployment.requests[0].body["messages"])
    assert re.sub(r"\[[^]]*\]\nAna", "[now]\nAna", told) == (
        f"[{first} Asia/Tokyo]\nBen: one\nBen: two\n[{third}]\nBen: three\n[now]\nAna: @Ada four\nada:"
    )
