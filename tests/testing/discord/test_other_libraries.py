"""Bots on the libraries of another language work as they do on Discord: discord.js and oceanic.js."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import STDOUT

import anyio
import pytest
from anyio.streams.text import TextReceiveStream

from denizen.testing.discord.fixtures import DiscordFixture
from denizen.testing.discord.rest.api import PREFIX
from tests.npm_packages import NODE, install_packages
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

SCRIPTS = Path(__file__).parent / "npm"


@asynccontextmanager
async def running_script(sim: DiscordFixture, script: str) -> AsyncGenerator[None]:
    """Runs a bot until the block ends. A script that ends by itself has failed, with what it wrote."""
    modules = await anyio.to_thread.run_sync(install_packages, SCRIPTS)
    api = sim.discord.api_url.removesuffix(PREFIX.removeprefix("/api"))
    command = [str(NODE), str(SCRIPTS / script), api, sim.ada.token, str(sim.general.id)]
    environ = {"PATH": "/usr/bin:/bin", "NODE_PATH": str(modules)}
    async with (
        await anyio.open_process(command, env=environ, stderr=STDOUT) as process,
        anyio.create_task_group() as group,
    ):

        async def watch() -> None:
            assert process.stdout is not None
            said = "".join([text async for text in TextReceiveStream(process.stdout)])
            pytest.fail(f"{script} ended:\n{said}")

        group.start_soon(watch)
        try:
            yield
        finally:
            group.cancel_scope.cancel()
            process.kill()


@pytest.mark.parametrize("script", ["discordjs_bot.cjs", "oceanic_bot.cjs"])
async def test_a_bot_on_another_library_reads_posts_and_answers(sim: DiscordFixture, script: str) -> None:
    world, general = sim.world, sim.general
    for text in ("one", "two"):
        world.say(sim.ana, general, text)
    with anyio.fail_after(HANG_LIMIT_S):
        async with running_script(sim, script):
            await sim.discord.until(lambda: "ready" in general.texts, HANG_LIMIT_S)
            _, _, tide, ready = general.messages
            assert tide.content == "Harbour: 3 members, one, two"
            assert [each["title"] for each in tide.body.embeds] == ["Tide"]
            assert [each.emoji.key for each in tide.state.reactions] == ["👍"]
            assert [each.content for each in ready.body.attachments] == [b"high"]
            (thread,) = sim.guild.threads.values()
            assert (thread.name, thread.texts[-1]) == ("Tide talk", "inside")
            asked = await world.run_command(sim.ben, general, "ask", wait_s=HANG_LIMIT_S)
            assert asked.text == "Press it."
            assert [each.content for each in await asked.until_followups()] == ["Only you see this."]
            opened = await world.press(sim.ben, general.messages[-1], "open", wait_s=HANG_LIMIT_S)
            sent = await world.submit_modal(sim.ben, opened, {"name": "Ben"}, wait_s=HANG_LIMIT_S)
            assert (await sent.until_answered()).content == "Hello Ben"
            question = world.say(sim.ana, general, "hi")
            await sim.discord.until(lambda: general.texts[-1] == "You said: hi", HANG_LIMIT_S)
            assert general.messages[-1].reference is not None
            assert general.messages[-1].reference.message_id == question.id
