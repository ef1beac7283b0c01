"""A channel of Discord as a source of knowledge: what everybody may read there, until somebody takes it back."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from anyio import to_thread

from denizen.testing.discord import DiscordPermission
from denizen.testing.discord.state.channels import SimOverwrite
from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.deployment import Denizen
from tests.e2e.discord import DiscordDeployment

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

HERON, CRANE = "heron-42", "crane-43"


def agents_see(deployment: DiscordDeployment) -> str:
    """All documents of the current snapshot, one after the other."""
    library = deployment.home.folder / "knowledge-snapshots"
    with suppress(FileNotFoundError):  # what is being removed meanwhile may be gone
        root = library / "kept" / json.loads((library / "current.json").read_text())["id"]
        return "\n".join(path.read_text() for path in sorted(root.rglob("*.md")))
    return ""


def on_disk(deployment: DiscordDeployment, text: str) -> list[str]:
    """The names of the files that hold the text; what is being removed meanwhile may be gone."""
    found: list[str] = []
    for folder, _, names in os.walk(deployment.home.folder / "knowledge-snapshots"):
        for name in names:
            with suppress(FileNotFoundError):
                found += [name] if text.encode() in (Path(folder) / name).read_bytes() else []
    return found


async def sync(denizen: Denizen) -> None:
    await to_thread.run_sync(denizen.server.post, "/api/sync")


async def test_what_is_said_in_an_open_channel_is_looked_up_until_its_author_has_it_forgotten(
    deployment: DiscordDeployment,
) -> None:
    add = deployment.home.do
    deployment.configure()
    staff = deployment.guild.add_channel("staff", private_to=[deployment.ada.user])
    async with deployment.run() as denizen:
        deployment.world.say(deployment.ana, deployment.general, f"The heron is {HERON}.")
        deployment.world.say(deployment.ben, deployment.general, f"The crane is {CRANE}.")
        deployment.world.say(deployment.ana, staff, "The owl is owl-44.")
        await deployment.until(lambda: deployment.rows("SELECT 1 FROM posts WHERE text LIKE '%owl-44%'"))
        for channel in (deployment.general, staff):
            done = await to_thread.run_sync(add, "sources", "add", f"discord:{channel.id}", "--id", channel.name or "")
            assert done.code == 0, done.err
        await sync(denizen)
        await deployment.until(lambda: CRANE in agents_see(deployment))
        await deployment.until(lambda: deployment.rows(f"SELECT 1 FROM passages WHERE text LIKE '%{HERON}%'"))
        assert HERON in agents_see(deployment) and on_disk(deployment, "owl-44") == []
        listed = await to_thread.run_sync(add, "sources", "list")
        assert "Not everybody of the server may read the channel." in listed.out
        await deployment.run_command(deployment.ana, "memory forget", confirm="yes")
        assert on_disk(deployment, HERON) == []
        assert not deployment.rows(f"SELECT 1 FROM passages WHERE text LIKE '%{HERON}%'")
        await deployment.until(lambda: CRANE in agents_see(deployment))
        assert HERON not in agents_see(deployment)


async def test_a_channel_that_is_closed_is_no_source_any_more(deployment: DiscordDeployment) -> None:
    deployment.configure()
    square = deployment.guild.add_channel("square")
    closed = SimOverwrite(deployment.guild.id, 0, DiscordPermission(0), DiscordPermission.VIEW_CHANNEL)
    async with deployment.run() as denizen:
        deployment.world.say(deployment.ana, square, f"The heron is {HERON}.")
        await deployment.until(lambda: deployment.rows(f"SELECT 1 FROM posts WHERE text LIKE '%{HERON}%'"))
        await to_thread.run_sync(deployment.home.do, "sources", "add", f"discord:{square.id}")
        await sync(denizen)
        await deployment.until(lambda: HERON in agents_see(deployment))
        deployment.discord.acts.channels.set_overwrite(deployment.ana, square, closed)
        await deployment.until(lambda: not on_disk(deployment, HERON))
        assert agents_see(deployment) == ""


async def test_what_is_deleted_on_discord_is_out_of_the_documents_at_once_and_the_rest_comes_back(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure()
    thread = deployment.world.open_thread(deployment.ana, deployment.general, "birds")
    async with deployment.run() as denizen:
        one, *several = [
            deployment.world.say(deployment.ana, deployment.general, f"The heron is {HERON}.") for _ in range(3)
        ]
        deployment.world.say(deployment.ana, thread, f"The heron is {HERON}.")
        deployment.world.say(deployment.ben, deployment.general, f"The crane is {CRANE}.")
        await deployment.until(lambda: len(deployment.rows("SELECT 1 FROM posts WHERE text LIKE 'The %'")) == 5)
        await to_thread.run_sync(deployment.home.do, "sources", "add", f"discord:{deployment.general.id}")
        await sync(denizen)
        await deployment.until(lambda: deployment.rows(f"SELECT 1 FROM passages WHERE text LIKE '%{HERON}%'"))
        deployment.world.delete(one)
        deployment.world.delete_many(deployment.ana, several)
        deployment.world.delete_channel(thread)
        await deployment.until(lambda: not on_disk(deployment, HERON))
        await deployment.until(lambda: CRANE in agents_see(deployment))
        await deployment.until(lambda: not deployment.rows(f"SELECT 1 FROM passages WHERE text LIKE '%{HERON}%'"))
        assert on_disk(deployment, HERON) == []


async def test_a_deletion_is_not_lost_when_it_is_killed_right_after_it(deployment: DiscordDeployment) -> None:
    deployment.configure()
    async with deployment.run() as denizen:
        gone = deployment.world.say(deployment.ana, deployment.general, f"The heron is {HERON}.")
        deployment.world.say(deployment.ben, deployment.general, f"The crane is {CRANE}.")
        await deployment.until(lambda: len(deployment.rows("SELECT 1 FROM posts WHERE text LIKE 'The %'")) == 2)
        await to_thread.run_sync(deployment.home.do, "sources", "add", f"discord:{deployment.general.id}")
        await sync(denizen)
        await deployment.until(lambda: HERON in agents_see(deployment))
        deployment.world.delete(gone)
        await deployment.until(lambda: deployment.rows("SELECT 1 FROM posts WHERE deleted_at IS NOT NULL"))
        await denizen.kill()
    async with deployment.run():
        await deployment.until(lambda: not on_disk(deployment, HERON))
        await deployment.until(lambda: CRANE in agents_see(deployment))
        assert HERON not in agents_see(deployment)


async def test_what_was_deleted_while_it_was_down_is_out_once_it_is_back_and_nothing_else(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure()
    square, away = (
        deployment.guild.add_channel("square"),
        deployment.discord.world.add_guild("Away", owner=deployment.ana),
    )
    away.join(deployment.ada.user)
    threads = [deployment.world.open_thread(deployment.ana, deployment.general, name) for name in ("old", "birds")]
    rooms = [square, *threads, away.add_channel("far")]
    async with deployment.run() as denizen:
        for room in rooms:
            deployment.world.say(deployment.ana, room, f"The heron is {HERON} in {room.name}.")
        await deployment.until(lambda: len(deployment.rows("SELECT 1 FROM posts WHERE text LIKE 'The %'")) == 4)
        for room in (square, deployment.general):
            await to_thread.run_sync(
                deployment.home.do, "sources", "add", f"discord:{room.id}", "--id", room.name or ""
            )
        await sync(denizen)
        await deployment.until(lambda: agents_see(deployment).count(f"{HERON} in") == 3)
    deployment.world.archive(deployment.ana, threads[0])
    for room in (square, threads[1]):
        deployment.world.delete_channel(room)
    away.set_available(available=False)
    async with deployment.run():
        await deployment.until(
            lambda: "in square" not in agents_see(deployment) and not on_disk(deployment, "in birds")
        )
        await deployment.until(lambda: f"{HERON} in old" in agents_see(deployment))
        gone = deployment.rows("SELECT text FROM posts WHERE deleted_at IS NOT NULL ORDER BY text")
        assert [text.split()[-1] for (text,) in gone] == ["birds.", "square."]
        away.set_available(available=True)
        assert await deployment.settle() == []
    assert len(deployment.rows("SELECT 1 FROM posts WHERE deleted_at IS NOT NULL")) == 2


@pytest.mark.proves("S23", "S-prompt-bot")
async def test_an_agent_looks_into_its_documents_by_itself_and_not_over_http(deployment: DiscordDeployment) -> None:
    deployment.home.variables["CI_KEY"] = "a-key-of-enough-characters"
    keys = 'server:\n  api_keys: [{name: ci, key: "${CI_KEY}"}]\n'
    deployment.configure(agents={"ada": "answers_from: sources"}, rest=keys)
    (deployment.home.folder / "knowledge").mkdir()
    (deployment.home.folder / "knowledge" / "rules.md").write_text("Tea at five.\n")
    looks = ModelAnswer(calls=[ModelCall("bash", {"command": "cat shared/rules.md"})])
    deployment.provider.script(looks, ModelAnswer(text="At five."))
    async with deployment.run() as denizen:
        if denizen.lines("the tools bash and bash_batch are off"):
            pytest.skip("nothing shuts programs in here")
        assert (await to_thread.run_sync(denizen.server.post, "/api/sandbox/shell")).status == 401
        deployment.ask(deployment.ana, "when is tea?")
        await deployment.until(lambda: deployment.said() == ["At five."])
    prompt = str(deployment.requests[-1].body["messages"])
    assert "Tea at five." in prompt
    assert "Answer only from your sources, your knowledge files: read them, do not only list them" in prompt
