"""Registering slash commands: what Discord is told, and how often."""

from __future__ import annotations

import logging

import pytest

from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.ports.channel import CommandOption, CommandSpec
from tests.adapters.discord.account_fixture import AccountFixture, RecordingListener, running

pytestmark = pytest.mark.anyio

ASK = CommandSpec("ask", "Ask something", (CommandOption("text", "What", required=True),), public=True)
HELP = CommandSpec("help", "What there is")
ALLOW = CommandSpec("allow", "Who may talk", groups=(CommandSpec("add", "Let in", (CommandOption("who", "Whom"),)),))


def writes(sim: AccountFixture) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.how, each.names) for each in sim.world.store.interactions.command_writes]


def names(sim: AccountFixture, guild: int | None = None) -> set[str]:
    return {each.name for each in sim.world.store.interactions.commands.values() if each.guild_id == guild}


async def test_the_first_registration_is_one_write(sim: AccountFixture) -> None:
    async with running(sim, RecordingListener([ASK, HELP, ALLOW])):
        await sim.discord.until(lambda: len(names(sim)) == 3)
    assert [how for how, _ in writes(sim)] == ["overwrite"]


@pytest.mark.proves("TW18")
async def test_a_restart_writes_nothing_and_commands_are_never_gone(sim: AccountFixture) -> None:
    async with running(sim, RecordingListener([ASK, HELP, ALLOW])) as (account, _):
        await account.sync_commands()
        before = writes(sim)
        assert await account.sync_commands() == 0
    async with running(sim, RecordingListener([ASK, HELP, ALLOW])) as (account, _):
        assert await account.sync_commands() == 0
    assert writes(sim) == before


@pytest.mark.proves("TW18", "T35")
async def test_a_change_is_written_alone(sim: AccountFixture) -> None:
    heard = RecordingListener([ASK, HELP])
    async with running(sim, heard) as (account, _):
        await account.sync_commands()
        begun = len(writes(sim))
        heard.commands = [CommandSpec("ask", "Ask me something", ASK.options), ALLOW]
        assert await account.sync_commands() == 3
        assert await account.sync_commands() == 0
    assert writes(sim)[begun:] == [("create", ("allow",)), ("edit", ("ask",)), ("delete", ("help",))]


async def test_an_unchanged_offer_is_not_even_looked_at_again(sim: AccountFixture) -> None:
    async with running(sim, RecordingListener([ASK, HELP])) as (account, _):
        await account.sync_commands()
        begun = len(sim.discord.requests_to("GET", "/commands"))
        await account.sync_commands()
    assert len(sim.discord.requests_to("GET", "/commands")) == begun


async def test_commands_of_others_stay_and_old_ones_of_ours_go(sim: AccountFixture) -> None:
    async with running(sim, RecordingListener([ASK, CommandSpec("foreign", "Theirs"), CommandSpec("old", "Ours")])) as (
        one,
        _,
    ):
        await one.sync_commands()
    async with running(sim, RecordingListener([ASK, HELP]), owned_commands=frozenset({"old"})) as (account, _):
        await account.sync_commands()
    assert names(sim) == {"ask", "help", "foreign"}


@pytest.mark.proves("L-config-guild")
async def test_commands_can_be_registered_in_one_guild_only(sim: AccountFixture) -> None:
    async with running(sim, RecordingListener([ASK, HELP]), commands_guild=str(sim.guild.id)) as (account, _):
        await account.sync_commands()
    assert names(sim) == set()
    assert names(sim, sim.guild.id) == {"ask", "help"}


@pytest.mark.proves("L-config-guild", "TW18")
async def test_commands_that_are_kept_to_one_guild_are_no_longer_registered_in_all(sim: AccountFixture) -> None:
    async with running(sim, RecordingListener([ASK, HELP, CommandSpec("foreign", "Theirs")])) as (account, _):
        await account.sync_commands()
    for _ in range(2):
        heard = RecordingListener([ASK, HELP])
        async with running(sim, heard, commands_guild=str(sim.guild.id)) as (account, _):
            await account.sync_commands()
        assert (names(sim), names(sim, sim.guild.id)) == ({"foreign"}, {"ask", "help"})
    first, *later = [how for how, _ in writes(sim)]
    assert (first, later) == ("overwrite", ["overwrite", "delete", "delete"])


async def test_a_guild_that_is_not_open_to_commands_is_told_and_the_account_goes_on(
    sim: AccountFixture, caplog: pytest.LogCaptureFixture
) -> None:
    other = sim.world.add_guild("Elsewhere", owner=sim.ben)
    with caplog.at_level(logging.WARNING, "denizen.discord"):
        async with running(sim, RecordingListener([ASK]), commands_guild=str(other.id)) as (account, heard):
            with pytest.raises(NotAllowed):
                await account.sync_commands()
            sim.say("still there?")
            await heard.until(lambda: heard.arrivals)
    assert any("registering slash commands failed" in each for each in caplog.messages)


async def test_one_command_that_cannot_be_registered_does_not_keep_the_others(sim: AccountFixture) -> None:
    async with running(sim, RecordingListener([ASK, CommandSpec("Bad Name", "x"), HELP])) as (account, _):
        with pytest.raises(InvalidInput) as caught:
            await account.sync_commands()
    assert "Bad Name" in caught.value.message
    assert names(sim) == {"ask", "help"}
