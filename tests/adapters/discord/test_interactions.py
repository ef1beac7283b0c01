"""Slash commands, completions and buttons as people use them."""

from __future__ import annotations

from typing import Any

import anyio
import discord
import pytest

from denizen.adapters.discord.interactions import find_room
from denizen.domain.delivery import MessageButton, MessageContent
from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec
from tests.adapters.discord.account_fixture import AccountFixture, RecordingListener, running, waiting_for

pytestmark = pytest.mark.anyio

ASK = CommandSpec("ask", "Ask something", (CommandOption("text", "What", required=True),), public=True)
HELP = CommandSpec("help", "What there is")
ALLOW = CommandSpec(
    "allow", "Who may talk", groups=(CommandSpec("add", "Let in", (CommandOption("who", "Whom", suggests=True),)),)
)


def listener(reply: CommandReply | None = None) -> RecordingListener:
    heard = RecordingListener([ASK, HELP, ALLOW])
    heard.reply = reply or heard.reply
    return heard


async def test_a_command_is_heard_with_all_that_was_given(sim: AccountFixture) -> None:
    crew = sim.guild.add_role("crew")
    sim.guild.set_roles(sim.ben, [crew])
    async with running(sim, listener()) as (account, heard):
        await account.sync_commands()
        interaction = await sim.world.run_command(sim.ben, sim.general, "allow add", {"who": "Ana"})
        await interaction.until_answered()
    call = heard.calls[0]
    assert (call.name, call.group, dict(call.options)) == ("allow", "add", {"who": "Ana"})
    assert (call.author_id, call.author_name) == (str(sim.ben.id), "Ben")
    assert call.roles == frozenset({str(crew.id)})
    assert call.room.id == str(sim.general.id)
    assert call.id == str(interaction.id)
    assert call.ticket


async def test_a_private_reply_is_seen_by_its_user_only(sim: AccountFixture) -> None:
    async with running(sim, listener(CommandReply("These: /ask"))) as (account, _):
        await account.sync_commands()
        interaction = await sim.world.run_command(sim.ana, sim.general, "help")
        answer = await interaction.until_answered()
    assert answer.content == "These: /ask"
    assert answer.origin.seen_by is sim.ana
    assert len(interaction.response.messages) == 1


@pytest.mark.parametrize(("command", "private"), [("ask", True), ("help", False)])
async def test_a_reply_is_as_private_as_it_says_whatever_was_expected(
    sim: AccountFixture, command: str, private: bool
) -> None:
    async with running(sim, listener(CommandReply("So it is", private=private))) as (account, _):
        await account.sync_commands()
        options = {"text": "well?"} if command == "ask" else {}
        interaction = await sim.world.run_command(sim.ana, sim.general, command, options)
        await sim.discord.until(lambda: any(each.content for each in interaction.response.messages))
    seen = [each for each in interaction.response.messages if not each.state.deleted]
    assert [(each.content, each.origin.seen_by) for each in seen] == [("So it is", sim.ana if private else None)]


@pytest.mark.proves("LW7")
async def test_a_long_reply_comes_in_pieces(sim: AccountFixture) -> None:
    text = "\n".join(f"line {number} {'x' * 90}" for number in range(60))
    async with running(sim, listener(CommandReply(text))) as (account, _):
        await account.sync_commands()
        interaction = await sim.world.run_command(sim.ana, sim.general, "help")
        await interaction.until_followups(2)
    assert all(len(each.content) <= 2000 and each.origin.seen_by is sim.ana for each in interaction.response.messages)
    assert "\n".join(each.content for each in interaction.response.messages).split() == text.split()


async def test_a_reply_without_words_leaves_nothing_behind(sim: AccountFixture) -> None:
    async with running(sim, listener(CommandReply(""))) as (account, _):
        await account.sync_commands()
        interaction = await sim.world.run_command(sim.ana, sim.general, "help")
        await sim.discord.until(
            lambda: interaction.response.original is not None and interaction.response.original.state.deleted
        )


async def test_a_command_is_acknowledged_at_once_though_its_room_is_busy(sim: AccountFixture) -> None:
    release = anyio.Event()
    heard = listener()
    heard.on["message"] = waiting_for(release)
    async with running(sim, heard) as (account, _):
        await account.sync_commands()
        sim.say("something that takes long")
        await heard.until(lambda: heard.arrivals)
        interaction = await sim.world.run_command(sim.ana, sim.general, "help")
        assert interaction.acknowledged
        assert heard.calls == []
        release.set()
        await interaction.until_answered()


async def test_a_refusal_is_said_in_plain_words(sim: AccountFixture) -> None:
    heard = listener()

    async def refuse(_: object) -> None:
        raise NotAllowed("That is for owners.", why="the setting owners", fix="edit the file")

    heard.on["command"] = refuse
    async with running(sim, heard) as (account, _):
        await account.sync_commands()
        interaction = await sim.world.run_command(sim.ben, sim.general, "help")
        assert (await interaction.until_answered()).content == "That is for owners."
        heard.on["command"] = _invalid
        interaction = await sim.world.run_command(sim.ben, sim.general, "help")
        assert (await interaction.until_answered()).content == "There is no mode 'fats'. Did you mean 'fast'?"


async def _invalid(_: object) -> None:
    raise InvalidInput("There is no mode 'fats'.", fix="Did you mean 'fast'?")


@pytest.mark.proves("SW8-errors")
async def test_a_bug_is_told_with_a_reference_and_nothing_from_inside(
    sim: AccountFixture, caplog: pytest.LogCaptureFixture
) -> None:
    heard = listener()

    async def fail(_: object) -> None:
        raise KeyError("secret table")

    heard.on["command"] = fail
    async with running(sim, heard) as (account, _):
        await account.sync_commands()
        interaction = await sim.world.run_command(sim.ana, sim.general, "help")
        text = (await interaction.until_answered()).content
    reference = next(each.__dict__["reference"] for each in caplog.records if hasattr(each, "reference"))
    assert text == f"Something went wrong inside. Reference: {reference}."


async def test_a_turn_that_was_opened_answers_with_the_ticket(sim: AccountFixture) -> None:
    async with running(sim, listener(CommandReply(is_pending=True))) as (account, heard):
        await account.sync_commands()
        interaction = await sim.world.run_command(sim.ana, sim.general, "ask", {"text": "why?"})
        await heard.until(lambda: heard.calls)
        assert interaction.text is None
        await account.post(sim.place(), MessageContent("because"), nonce="n1", ticket=heard.calls[0].ticket)
        assert interaction.text == "because"
        await heard.until(lambda: "because" in heard.texts())
    answer = next(each for each in heard.arrivals if each.post.text == "because")
    assert answer.is_mine
    assert not answer.is_edit


async def test_completions_come_from_the_listener(sim: AccountFixture) -> None:
    heard = listener()
    heard.suggestions = ["Ana", "Anton", "x" * 200, *(f"name {number}" for number in range(40))]
    async with running(sim, heard) as (account, _):
        await account.sync_commands()
        choices = await sim.world.autocomplete(sim.ana, sim.general, "allow add", {"who": "an"}, "who")
    assert "suggest who an" in heard.log
    assert [each["name"] for each in choices[:2]] == ["Ana", "Anton"]
    assert len(choices) == 25


async def test_completions_that_take_too_long_are_none(sim: AccountFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("denizen.adapters.discord.interactions.SUGGESTION_TIMEOUT_S", 0.01)
    heard = listener()
    heard.on["suggest"] = waiting_for(anyio.Event())
    async with running(sim, heard) as (account, _):
        await account.sync_commands()
        choices = await sim.world.autocomplete(sim.ana, sim.general, "allow add", {"who": "an"}, "who")
    assert choices == []


async def test_completions_that_fail_are_none(sim: AccountFixture) -> None:
    heard = listener()
    heard.on["suggest"] = _invalid
    async with running(sim, heard) as (account, _):
        await account.sync_commands()
        choices = await sim.world.autocomplete(sim.ana, sim.general, "allow add", {"who": "an"}, "who")
    assert choices == []


async def test_a_button_says_its_value_also_after_a_restart(sim: AccountFixture) -> None:
    long = "tell me everything about " + "boats " * 30
    content = MessageContent(
        "More?", buttons=(MessageButton("Yes", value="yes, more"), MessageButton("All", value=long))
    )
    async with running(sim) as (account, _):
        await account.post(sim.place(), content, nonce="n1")
    message = sim.mine()[0]
    async with running(sim) as (_, heard):
        first = await sim.world.press(sim.ben, message, "say:0:yes, more")
        await sim.world.press(sim.ben, message, "say#1")
        await heard.until(lambda: len(heard.presses) == 2)
    assert first.acknowledged
    assert first.response.original is None
    assert [each.value for each in heard.presses] == ["yes, more", "All"]
    press = heard.presses[0]
    assert (press.message_id, press.author_id, press.author_name) == (str(message.id), str(sim.ben.id), "Ben")
    assert press.room.id == str(sim.general.id)


async def test_a_command_that_another_process_answers_is_left_to_it(sim: AccountFixture) -> None:
    one, two = listener(), listener()
    async with running(sim, one) as (account, _), running(sim, two):
        await account.sync_commands()
        interaction = await sim.world.run_command(sim.ana, sim.general, "help")
        await interaction.until_answered()
        await sim.discord.until(lambda: _callbacks(sim) == 2)
        await anyio.wait_all_tasks_blocked()
    assert len(one.calls) + len(two.calls) == 1


def _callbacks(sim: AccountFixture) -> int:
    return len([each for each in sim.discord.requests_to("POST", "/callback") if each.status])


async def test_a_command_in_a_direct_talk_is_heard(sim: AccountFixture) -> None:
    talk = sim.world.open_dm(sim.ana, sim.ada.user)
    async with running(sim, listener()) as (account, heard):
        await account.sync_commands()
        interaction = await sim.world.run_command(sim.ana, talk, "help")
        await interaction.until_answered()
    assert heard.calls[0].room.id == str(talk.id)
    assert heard.calls[0].roles == frozenset()


@pytest.mark.parametrize(
    ("kind", "context", "is_seen"),
    [
        (discord.ChannelType.private, 1, True),
        (discord.ChannelType.private, 2, False),
        (discord.ChannelType.group, 2, False),
        (discord.ChannelType.group, None, False),
    ],
)
async def test_talks_of_people_among_themselves_are_no_rooms_although_commands_can_be_given_there(
    kind: discord.ChannelType, context: int | None, is_seen: bool
) -> None:
    user = {"id": "5", "username": "eve", "discriminator": "0", "avatar": None, "global_name": None}
    channel = {"id": "7", "type": kind.value, "recipients": [user], "last_message_id": None, "name": "us", "icon": None}
    data: dict[str, Any] = {
        "id": "1",
        "type": 2,
        "token": "t",
        "version": 1,
        "application_id": "2",
        "attachment_size_limit": 1,
        "channel": channel,
        "user": user,
    }
    if context is not None:
        data["context"] = context
    state = discord.Client(intents=discord.Intents.none())._connection
    state.user = discord.ClientUser(state=state, data={**user, "id": "2"})  # pyright: ignore[reportArgumentType]
    interaction = discord.Interaction(data=data, state=state)  # pyright: ignore[reportArgumentType]
    assert (find_room(interaction) is not None) == is_seen
