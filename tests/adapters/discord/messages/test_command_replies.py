"""An answer to a command arrives once, in whatever state the process or the ticket is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from denizen.adapters.discord.messages.command_replies import CommandTicket, parse_ticket
from denizen.domain.delivery import MessageContent, OutgoingFile
from denizen.domain.errors import Unavailable
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec
from denizen.testing.discord.state.interactions import SimInteraction
from tests.adapters.discord.account_fixture import AccountFixture, RecordingListener, running
from tests.clock import ManualClock

pytestmark = pytest.mark.anyio

ASK = CommandSpec("ask", "Ask something", (CommandOption("text", "What", required=True),), public=True)
THINK = CommandSpec("think", "Ask in private")


def pending() -> RecordingListener:
    heard = RecordingListener([ASK, THINK])
    heard.reply = CommandReply(is_pending=True)
    return heard


async def ask(sim: AccountFixture, heard: RecordingListener, command: str = "ask") -> tuple[SimInteraction, str]:
    """Returns the interaction and its ticket."""
    options = {"text": "why?"} if command == "ask" else {}
    interaction = await sim.world.run_command(sim.ana, sim.general, command, options)
    await heard.until(lambda: heard.calls)
    return interaction, heard.calls[-1].ticket


def list_answers(interaction: SimInteraction) -> list[str]:
    return [each.content for each in interaction.response.messages if not each.state.deleted]


async def test_the_first_piece_takes_the_place_of_thinking_and_others_follow(sim: AccountFixture) -> None:
    async with running(sim, pending()) as (account, heard):
        await account.sync_commands()
        interaction, ticket = await ask(sim, heard)
        ids = [
            await account.post(sim.place(), MessageContent(text), nonce=text, ticket=ticket, reply_to="1")
            for text in ("one", "two", "three")
        ]
        assert await account.post(sim.place(), MessageContent("two"), nonce="two", ticket=ticket) == ids[1]
    assert list_answers(interaction) == ["one", "two", "three"]
    assert ids == [str(each.id) for each in interaction.response.messages]


async def test_a_lost_answer_is_not_given_twice(sim: AccountFixture) -> None:
    async with running(sim, pending()) as (account, heard):
        await account.sync_commands()
        interaction, ticket = await ask(sim, heard)
        for method, text in (("PATCH", "one"), ("POST", "two")):
            sim.discord.faults.drop(method, "/webhooks", when="after")
            with pytest.raises(Unavailable):
                await account.post(sim.place(), MessageContent(text), nonce=text, ticket=ticket)
            await account.post(sim.place(), MessageContent(text), nonce=text, ticket=ticket)
    assert list_answers(interaction) == ["one", "two"]


async def test_what_an_earlier_process_gave_is_found_again(sim: AccountFixture) -> None:
    async with running(sim, pending()) as (account, heard):
        await account.sync_commands()
        interaction, ticket = await ask(sim, heard)
        ids = [
            await account.post(sim.place(), MessageContent(text), nonce=text, ticket=ticket) for text in ("one", "two")
        ]
    async with running(sim, pending()) as (account, _):
        again = [
            await account.post(sim.place(), MessageContent(text), nonce=text, ticket=ticket)
            for text in ("one", "two", "three")
        ]
    assert again[:2] == ids
    assert list_answers(interaction) == ["one", "two", "three"]


async def test_a_command_is_answered_by_the_next_process(sim: AccountFixture) -> None:
    async with running(sim, pending()) as (account, heard):
        await account.sync_commands()
        interaction, ticket = await ask(sim, heard)
    async with running(sim, pending()) as (account, _):
        await account.post(sim.place(), MessageContent("one"), nonce="n1", ticket=ticket)
    assert list_answers(interaction) == ["one"]
    assert interaction.finished


async def test_after_the_preview_was_deleted_the_answer_follows(sim: AccountFixture) -> None:
    async with running(sim, pending()) as (account, heard):
        await account.sync_commands()
        interaction, ticket = await ask(sim, heard)
        preview = await account.post(sim.place(), MessageContent("looking ..."), nonce="p", ticket=ticket)
        await account.edit(sim.place(), preview, MessageContent("found ..."))
        await account.delete(sim.place(), preview)
        await account.post(sim.place(), MessageContent("because"), nonce="n1", ticket=ticket)
    assert list_answers(interaction) == ["because"]


async def test_private_answers_stay_private_with_their_files(sim: AccountFixture) -> None:
    async with running(sim, pending()) as (account, heard):
        await account.sync_commands()
        interaction, ticket = await ask(sim, heard, "think")
        await account.post(sim.place(), MessageContent("one"), nonce="n1", ticket=ticket)
        file = OutgoingFile("a.txt", "text/plain", b"a")
        await account.post(sim.place(), MessageContent("two", files=(file,)), nonce="n2", ticket=ticket)
    assert [each.origin.seen_by for each in interaction.response.messages] == [sim.ana, sim.ana]
    assert [each.filename for each in interaction.response.messages[1].body.attachments] == ["a.txt"]


async def test_after_a_quarter_of_an_hour_the_answer_is_a_plain_message(sim: AccountFixture) -> None:
    async with running(sim, pending()) as (account, heard):
        await account.sync_commands()
        interaction, ticket = await ask(sim, heard)
    async with running(sim, pending(), clock=ManualClock(datetime.now(UTC) + timedelta(minutes=15))) as (account, _):
        await account.post(sim.place(), MessageContent("late"), nonce="n1", ticket=ticket)
        assert await account.post(sim.place(), MessageContent("late"), nonce="n1", ticket=ticket)
    assert interaction.text is None
    assert [each.content for each in sim.mine() if each.content] == ["late"]


async def test_a_ticket_that_discord_ended_leads_to_a_plain_message(sim: AccountFixture) -> None:
    async with running(sim, pending()) as (account, heard):
        await account.sync_commands()
        _, ticket = await ask(sim, heard)
        sim.world.rules.token_life = timedelta(0)
        await account.post(sim.place(), MessageContent("late"), nonce="n1", ticket=ticket)
        await account.post(sim.place(), MessageContent("typed"), nonce="n2", ticket="not a ticket")
    assert [each.content for each in sim.mine() if each.content] == ["late", "typed"]


async def test_the_pieces_of_an_answer_stand_together_below_what_was_said_since_the_command(
    sim: AccountFixture,
) -> None:
    async with running(sim, pending()) as (account, heard):
        await account.sync_commands()
        _, ticket = await ask(sim, heard)
        sim.say("meanwhile")
        await heard.until(lambda: heard.texts() == ["meanwhile"])
        sim.discord.faults.drop("POST", "/webhooks", when="after")
        with pytest.raises(Unavailable):
            await account.post(sim.place(), MessageContent("one"), nonce="n1", ticket=ticket, goes_on=True)
    async with running(sim, pending()) as (account, _):
        await account.post(sim.place(), MessageContent("one"), nonce="n1", ticket=ticket, goes_on=True)
        await account.post(sim.place(), MessageContent("two"), nonce="n2", ticket=ticket)
    assert sim.general.texts == ["-# My answer is below.", "meanwhile", "one", "two"]


async def test_an_answer_stands_at_its_command_where_nothing_was_said_since(sim: AccountFixture) -> None:
    async with running(sim, pending()) as (account, heard):
        await account.sync_commands()
        interaction, ticket = await ask(sim, heard)
        await account.post(sim.place(), MessageContent("one"), nonce="n1", ticket=ticket, goes_on=True)
        await account.post(sim.place(), MessageContent("two"), nonce="n2", ticket=ticket)
    assert list_answers(interaction) == ["one", "two"]


@pytest.mark.parametrize(("command", "goes_on"), [("ask", False), ("think", True)], ids=["one message", "private"])
async def test_an_answer_of_one_message_or_for_one_person_stands_at_its_command(
    sim: AccountFixture, command: str, *, goes_on: bool
) -> None:
    async with running(sim, pending()) as (account, heard):
        await account.sync_commands()
        interaction, ticket = await ask(sim, heard, command)
        sim.say("meanwhile")
        await heard.until(lambda: heard.arrivals)
        await account.post(sim.place(), MessageContent("one"), nonce="n1", ticket=ticket, goes_on=goes_on)
    assert list_answers(interaction) == ["one"]


async def test_a_ticket_is_text_and_back() -> None:
    ticket = CommandTicket("123", "aW50.er_act-ion", datetime(2026, 11, 22, 12, tzinfo=UTC))
    assert parse_ticket(str(ticket)) == ticket
    assert ticket.holds(ticket.created_at + timedelta(minutes=14))
    assert not ticket.holds(ticket.created_at + timedelta(minutes=15))
    assert parse_ticket("") is None
