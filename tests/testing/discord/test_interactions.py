"""Commands, buttons, selects and modals between people in the simulation and discord.py."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import aiohttp
import discord
import pytest

from denizen.testing.discord import DiscordPermission, DiscordServer, RefusedError, open_discord
from denizen.testing.discord.fixtures import DiscordFixture, build_discord_fixture
from denizen.testing.discord.state.messages import MessageKind
from tests.clock import ManualClock
from tests.testing.discord.bots import Bot, running, text_channel
from tests.testing.discord.interaction_bot import Choice, InteractionBot

pytestmark = pytest.mark.anyio


async def test_commands_are_registered_once_and_each_write_is_counted(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, InteractionBot) as bot:
        ids = {each.name: each.id for each in await bot.tree.fetch_commands()}
        assert set(ids) == {"echo", "think", "follow", "idle", "ask", "choose", "fruit", "memory"}
        await bot.tree.sync()
        assert {each.name: each.id for each in await bot.tree.fetch_commands()} == ids
        writes = sim.world.store.interactions.command_writes
        assert [(each.how, each.guild_id, len(each.names)) for each in writes] == [("overwrite", None, 8)] * 2


async def test_a_command_is_answered(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, InteractionBot):
        used = await sim.world.run_command(sim.ben, sim.general, "echo", {"text": "hi", "to": sim.ana})
        assert used.acknowledged and used.text == f"hi {sim.ana.id}"
        answer = sim.general.messages[-1]
        assert (answer.kind, answer.author) == (MessageKind.CHAT_INPUT_COMMAND, sim.ada.user)
        assert answer.origin.interaction is not None and answer.origin.interaction["user"]["id"] == str(sim.ben.id)
        dm = sim.world.open_dm(sim.ben, sim.ada.user)
        assert (await sim.world.run_command(sim.ben, dm, "echo", {"text": "in private"})).text == "in private"


async def test_a_deferred_answer_waits_visibly_and_then_has_its_text(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, InteractionBot) as bot:
        used = await sim.world.run_command(sim.ana, sim.general, "think")
        assert used.response.original is not None and used.response.original.loading and not used.finished
        assert sim.general.messages == [used.response.original]
        bot.gate.set()
        assert (await used.until_answered()).content == "thought"
        assert [each.content for each in await used.until_followups()] == ["and another thing"]
        assert sim.general.texts == ["thought", "and another thing"]
        followup = sim.general.messages[1]
        assert followup.reference is not None and followup.reference.message_id == used.response.original.id


async def test_the_first_follow_up_takes_the_place_of_the_deferred_answer(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, InteractionBot):
        used = await sim.world.run_command(sim.ana, sim.general, "follow")
        await used.until_followups()
        await sim.discord.until(lambda: sim.general.texts == ["second"])


async def test_an_ephemeral_answer_is_in_no_channel(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, InteractionBot) as bot:
        bot.gate.set()
        used = await sim.world.run_command(sim.ana, sim.general, "think", {"hidden": True})
        assert (await used.until_answered()).origin.seen_by is sim.ana
        assert (await used.until_followups())[0].ephemeral
        forgot = await sim.world.run_command(sim.ana, sim.general, "memory forget", {"count": 3})
        assert forgot.text == "forgot 3" and not sim.general.messages


async def test_a_modal_is_filled_in_and_sent(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, InteractionBot):
        opened = await sim.world.run_command(sim.ana, sim.general, "ask")
        assert opened.response.modal is not None and opened.response.modal["title"] == "Name"
        with pytest.raises(RefusedError):
            await sim.world.submit_modal(sim.ana, opened, {"name": "too long"})
        sent = await sim.world.submit_modal(sim.ana, opened, {"name": "Ana"})
        assert sent.text == "hello Ana"


async def test_buttons_and_selects_work_also_after_a_restart(sim: DiscordFixture) -> None:
    world = sim.world
    async with running(sim.discord, sim.ada, InteractionBot):
        used = await world.run_command(sim.ana, sim.general, "choose")
        message = await used.until_answered()

    class RestartedBot(Bot):
        async def setup_hook(self) -> None:
            self.add_view(Choice())

    async with running(sim.discord, sim.ada, RestartedBot):
        picked = await world.press(sim.ana, message, "who", [sim.ana, sim.ben])
        assert [each.content for each in await picked.until_followups()] == ["ana ben"]
        pressed = await world.press(sim.ben, message, "yes")
        assert pressed.acknowledged and message.content == "ben said yes"
        with pytest.raises(RefusedError):
            await world.press(sim.ben, message, "yes")


async def test_choices_are_offered_while_one_types(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, InteractionBot):
        offered = await sim.world.autocomplete(sim.ana, sim.general, "fruit", {"name": "ap"}, "name")
        assert [each["value"] for each in offered] == ["apple", "apricot"]


async def test_what_a_person_may_not_or_cannot_use_is_refused(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, InteractionBot):
        use = sim.world.run_command
        for name, options, number in (
            ("nothing", {}, 10063),
            ("idle", {}, 50013),
            ("echo", {}, 50035),
            ("echo", {"text": 3}, 50035),
            ("echo", {"text": "a", "other": "b"}, 50035),
        ):
            with pytest.raises(RefusedError) as caught:
                await use(sim.ben, sim.general, name, options)
            assert caught.value.number == number, name


@contextmanager
def expect_refusal(number: int) -> Generator[None, None, None]:
    with pytest.raises(discord.HTTPException) as caught:
        yield
    assert caught.value.code == number


async def test_answers_have_their_deadlines() -> None:
    clock = ManualClock()
    async with open_discord(clock=clock) as server:
        sim = build_discord_fixture(server)
        async with running(server, sim.ada, InteractionBot) as bot:
            late = await sim.world.run_command(sim.ana, sim.general, "idle", wait_s=0)
            await server.until(lambda: bot.idle)
            with expect_refusal(10015):
                await bot.idle[0].followup.send("before the first answer")
            clock.advance(4)
            with expect_refusal(10062):
                await bot.idle[0].response.send_message("late")
            assert not late.acknowledged
            in_time = await sim.world.run_command(sim.ana, sim.general, "idle", wait_s=0)
            await server.until(lambda: len(bot.idle) == 2)
            await bot.idle[1].response.send_message("in time")
            assert in_time.text == "in time"
            clock.advance(minutes=16)
            with expect_refusal(50027):
                await bot.idle[1].followup.send("much later")


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ([{"type": 3, "name": "a"}, {"type": 4, "name": "a"}], ("options", "1")),
        ([{"type": 1, "name": "go", "options": [{"type": 3, "name": "b"}] * 2}], ("options", "0", "options", "1")),
        ([{"type": 3, "name": "a", "autocomplete": True, "choices": [{"name": "x", "value": "x"}]}], ("options", "0")),
    ],
    ids=["duplicate", "duplicate within", "autocomplete and choices"],
)
async def test_options_that_contradict_each_other_are_refused(
    sim: DiscordFixture, options: list[dict[str, Any]], place: tuple[str, ...]
) -> None:
    def describe(each: dict[str, Any]) -> dict[str, Any]:
        inner = {"options": [describe(one) for one in each["options"]]} if "options" in each else {}
        return {**each, "description": "d", **inner}

    with pytest.raises(RefusedError, match="50035") as caught:
        sim.discord.acts.commands.create(
            sim.ada, None, {"name": "ask", "description": "d", "options": [describe(each) for each in options]}
        )
    found = caught.value.errors
    for part in place:
        assert found is not None
        found = found[part]


async def test_a_second_first_answer_is_refused(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, InteractionBot):
        used = await sim.world.run_command(sim.ana, sim.general, "echo", {"text": "once"})
        url = f"{sim.discord.api_url}/interactions/{used.id}/{used.token}/callback"
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, json={"type": 4, "data": {"content": "b"}}) as answer,
        ):
            assert (answer.status, (await answer.json())["code"]) == (400, 40060)
        assert sim.general.texts == ["once"]


async def test_a_webhook_speaks_under_its_own_name(sim: DiscordFixture, discord_server: DiscordServer) -> None:
    role = sim.guild.add_role("hooks", permissions=DiscordPermission.MANAGE_WEBHOOKS)
    sim.guild.set_roles(sim.ada.user, [role])
    async with running(discord_server, sim.ada, Bot) as bot:
        hook = await text_channel(bot, sim.general).create_webhook(name="Herald")
        sent = await hook.send("news", username="Crier", wait=True)
        await sent.edit(content="good news")
        await discord_server.until(lambda: bot.heard)
        assert bot.heard[0].author.name == "Crier" and bot.heard[0].webhook_id == hook.id
        assert sim.general.texts == ["good news"]
