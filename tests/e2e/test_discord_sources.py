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
from tests.e2e.discord import Denizen, Harbour

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

HERON, CRANE = "heron-42", "crane-43"


def agents_see(harbour: Harbour) -> str:
    """All documents of the current snapshot, one after the other."""
    library = harbour.home.folder / "knowledge-snapshots"
    with suppress(FileNotFoundError):  # what is being removed meanwhile may be gone
        root = library / "kept" / json.loads((library / "current.json").read_text())["id"]
        return "\n".join(path.read_text() for path in sorted(root.rglob("*.md")))
    return ""


def on_disk(harbour: Harbour, text: str) -> list[str]:
    """The names of the files that hold the text; what is being removed meanwhile may be gone."""
    found: list[str] = []
    for folder, _, names in os.walk(harbour.home.folder / "knowledge-snapshots"):
        for name in names:
            with suppress(FileNotFoundError):
                found += [name] if text.encode() in (Path(folder) / name).read_bytes() else []
    return found


async def sync(denizen: Denizen) -> None:
    await to_thread.run_sync(denizen.server.post, "/api/sync")


async def test_what_is_said_in_an_open_channel_is_looked_up_until_its_author_has_it_forgotten(harbour: Harbour) -> None:
    add = harbour.home.do
    harbour.configure()
    staff = harbour.guild.add_channel("staff", private_to=[harbour.ada.user])
    async with harbour.run() as denizen:
        harbour.world.say(harbour.ana, harbour.general, f"The heron is {HERON}.")
        harbour.world.say(harbour.ben, harbour.general, f"The crane is {CRANE}.")
        harbour.world.say(harbour.ana, staff, "The owl is owl-44.")
        await harbour.until(lambda: harbour.rows("SELECT 1 FROM posts WHERE text LIKE '%owl-44%'"))
        for channel in (harbour.general, staff):
            done = await to_thread.run_sync(add, "sources", "add", f"discord:{channel.id}", "--id", channel.name or "")
            assert done.code == 0, done.err
        await sync(denizen)
        await harbour.until(lambda: CRANE in agents_see(harbour))
        await harbour.until(lambda: harbour.rows(f"SELECT 1 FROM passages WHERE text LIKE '%{HERON}%'"))
        assert HERON in agents_see(harbour) and on_disk(harbour, "owl-44") == []
        listed = await to_thread.run_sync(add, "sources", "list")
        assert "Not everybody of the server may read the channel." in listed.out
        told = await harbour.world.run_command(
            harbour.ana, harbour.general, "memory forget", {"confirm": "yes"}, wait_s=30
        )
        await told.until_answered(30)
        assert on_disk(harbour, HERON) == []
        assert not harbour.rows(f"SELECT 1 FROM passages WHERE text LIKE '%{HERON}%'")
        await harbour.until(lambda: CRANE in agents_see(harbour))
        assert HERON not in agents_see(harbour)


async def test_a_channel_that_is_closed_is_no_source_any_more(harbour: Harbour) -> None:
    harbour.configure()
    square = harbour.guild.add_channel("square")
    closed = SimOverwrite(harbour.guild.id, 0, DiscordPermission(0), DiscordPermission.VIEW_CHANNEL)
    async with harbour.run() as denizen:
        harbour.world.say(harbour.ana, square, f"The heron is {HERON}.")
        await harbour.until(lambda: harbour.rows(f"SELECT 1 FROM posts WHERE text LIKE '%{HERON}%'"))
        await to_thread.run_sync(harbour.home.do, "sources", "add", f"discord:{square.id}")
        await sync(denizen)
        await harbour.until(lambda: HERON in agents_see(harbour))
        harbour.discord.acts.channels.set_overwrite(harbour.ana, square, closed)
        await harbour.until(lambda: not on_disk(harbour, HERON))
        assert agents_see(harbour) == ""


async def test_what_is_deleted_on_discord_is_out_of_the_documents_at_once_and_the_rest_comes_back(
    harbour: Harbour,
) -> None:
    harbour.configure()
    thread = harbour.world.open_thread(harbour.ana, harbour.general, "birds")
    async with harbour.run() as denizen:
        one, *several = [harbour.world.say(harbour.ana, harbour.general, f"The heron is {HERON}.") for _ in range(3)]
        harbour.world.say(harbour.ana, thread, f"The heron is {HERON}.")
        harbour.world.say(harbour.ben, harbour.general, f"The crane is {CRANE}.")
        await harbour.until(lambda: len(harbour.rows("SELECT 1 FROM posts WHERE text LIKE 'The %'")) == 5)
        await to_thread.run_sync(harbour.home.do, "sources", "add", f"discord:{harbour.general.id}")
        await sync(denizen)
        await harbour.until(lambda: harbour.rows(f"SELECT 1 FROM passages WHERE text LIKE '%{HERON}%'"))
        harbour.world.delete(one)
        harbour.world.delete_many(harbour.ana, several)
        harbour.world.delete_channel(thread)
        await harbour.until(lambda: not on_disk(harbour, HERON))
        await harbour.until(lambda: CRANE in agents_see(harbour))
        await harbour.until(lambda: not harbour.rows(f"SELECT 1 FROM passages WHERE text LIKE '%{HERON}%'"))
        assert on_disk(harbour, HERON) == []


async def test_a_deletion_is_not_lost_when_it_is_killed_right_after_it(harbour: Harbour) -> None:
    harbour.configure()
    async with harbour.run() as denizen:
        gone = harbour.world.say(harbour.ana, harbour.general, f"The heron is {HERON}.")
        harbour.world.say(harbour.ben, harbour.general, f"The crane is {CRANE}.")
        await harbour.until(lambda: len(harbour.rows("SELECT 1 FROM posts WHERE text LIKE 'The %'")) == 2)
        await to_thread.run_sync(harbour.home.do, "sources", "add", f"discord:{harbour.general.id}")
        await sync(denizen)
        await harbour.until(lambda: HERON in agents_see(harbour))
        harbour.world.delete(gone)
        await harbour.until(lambda: harbour.rows("SELECT 1 FROM posts WHERE deleted_at IS NOT NULL"))
        await denizen.kill()
    async with harbour.run():
        await harbour.until(lambda: not on_disk(harbour, HERON))
        await harbour.until(lambda: CRANE in agents_see(harbour))
        assert HERON not in agents_see(harbour)


async def test_what_was_deleted_while_it_was_down_is_out_once_it_is_back_and_nothing_else(harbour: Harbour) -> None:
    harbour.configure()
    square, away = harbour.guild.add_channel("square"), harbour.discord.world.add_guild("Away", owner=harbour.ana)
    away.join(harbour.ada.user)
    threads = [harbour.world.open_thread(harbour.ana, harbour.general, name) for name in ("old", "birds")]
    rooms = [square, *threads, away.add_channel("far")]
    async with harbour.run() as denizen:
        for room in rooms:
            harbour.world.say(harbour.ana, room, f"The heron is {HERON} in {room.name}.")
        await harbour.until(lambda: len(harbour.rows("SELECT 1 FROM posts WHERE text LIKE 'The %'")) == 4)
        for room in (square, harbour.general):
            await to_thread.run_sync(harbour.home.do, "sources", "add", f"discord:{room.id}", "--id", room.name or "")
        await sync(denizen)
        await harbour.until(lambda: agents_see(harbour).count(f"{HERON} in") == 3)
    harbour.world.archive(harbour.ana, threads[0])
    for room in (square, threads[1]):
        harbour.world.delete_channel(room)
    away.set_available(available=False)
    async with harbour.run():
        await harbour.until(lambda: "in square" not in agents_see(harbour) and not on_disk(harbour, "in birds"))
        await harbour.until(lambda: f"{HERON} in old" in agents_see(harbour))
        gone = harbour.rows("SELECT text FROM posts WHERE deleted_at IS NOT NULL ORDER BY text")
        assert [text.split()[-1] for (text,) in gone] == ["birds.", "square."]
        away.set_available(available=True)
        assert await harbour.settle() == []
    assert len(harbour.rows("SELECT 1 FROM posts WHERE deleted_at IS NOT NULL")) == 2
