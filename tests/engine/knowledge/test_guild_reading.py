"""What people add for their community keeps nobody else from being read, however long it takes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from denizen.domain.source import Source, SourceChange, SourceKind, SyncStatus
from denizen.engine.knowledge.schedule import SyncSchedule
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, UnreliableReader, give_way, write
from tests.engine.knowledge.test_sync import NO_TALK
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

SLOW, GOOD = "111", "222"


async def add_site(engine: KnowledgeFixture, guild: str, name: str = "site", *, silent: bool) -> Source:
    """Adds a site whose page answers, or never does, as those who manage the community add it."""
    root = f"https://{name}-{guild}.example"
    engine.web.put(f"{root}/sitemap.xml", f"<urlset><url><loc>{root}/a.html</loc></url></urlset>", kind="text/xml")
    engine.web.put(f"{root}/a.html", "words")
    engine.web.silent |= {f"{root}/a.html"} if silent else set()
    change = SourceChange(guild=guild, output_path=name)
    return await engine.catalog.add(f"{root}/sitemap.xml", change, source_id=f"{guild}-{name}", is_made_by_guild=True)


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(HANG_LIMIT_S):
        while not is_so():
            await give_way()


def silent_asked(engine: KnowledgeFixture) -> int:
    return sum(url in engine.web.silent for url in engine.web.asked)


async def test_the_operators_sources_are_read_and_published_while_those_of_many_servers_never_answer(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    for number in range(6):
        source = await add_site(engine, f"{SLOW}{number}", silent=True)
        await engine.sync.ask(source.id)
    await until(lambda: silent_asked(engine) == 4)
    await engine.add(write(tmp_path / "open", {"a.md": "A"}))
    ended = await engine.run()
    assert (ended.status, ended.sources, engine.files()) == (SyncStatus.DONE, ("open",), {"docs/open/a.md": "A"})
    assert silent_asked(engine) == 4


async def test_one_server_takes_one_place_however_many_sources_it_has(engine: KnowledgeFixture) -> None:
    for number in range(6):
        source = await add_site(engine, SLOW, f"site{number}", silent=True)
        await engine.sync.ask(source.id)
    await until(lambda: silent_asked(engine) == 1)
    good = await add_site(engine, GOOD, silent=False)
    assert (await engine.run(good.id)).changed == (good.id,)
    assert list(engine.files()) == [f"guild-{GOOD}/site/a.html.md"]
    assert silent_asked(engine) == 1


async def test_each_server_has_a_run_of_its_own_when_its_sources_are_due(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    slow, good = await add_site(engine, SLOW, silent=True), await add_site(engine, GOOD, silent=False)
    await engine.add(write(tmp_path / "open", {"a.md": "A"}))
    schedule = SyncSchedule(engine.sync, engine.catalog, engine.clock, lambda: timedelta(hours=1), NO_TALK)
    async with anyio.create_task_group() as group:
        group.start_soon(schedule.run)
        with anyio.fail_after(HANG_LIMIT_S):
            while len([run for run in await engine.sync.list_runs() if run.ended_at]) < 2 or not silent_asked(engine):
                await give_way()
        group.cancel_scope.cancel()
    runs = await engine.sync.list_runs()
    assert {run.sources: run.status for run in runs} == {
        ("open",): SyncStatus.DONE,
        (good.id,): SyncStatus.DONE,
        (slow.id,): SyncStatus.RUNNING,
    }
    assert list(engine.files()) == ["docs/open/a.md", f"guild-{GOOD}/site/a.html.md"]


async def test_a_reading_that_takes_too_long_ends_is_not_tried_again_and_frees_its_place(
    engine: KnowledgeFixture,
) -> None:
    source, other = await add_site(engine, SLOW, silent=False), await add_site(engine, SLOW, "other", silent=False)
    await engine.run(source.id)
    before = engine.files()
    page = source.location.replace("sitemap.xml", "a.html")
    engine.web.silent.add(page)
    engine.web.asked.clear()
    engine.reading._guild_limit_s = 0.3
    ended = await engine.run(source.id, reset=True)
    engine.reading._guild_limit_s = HANG_LIMIT_S
    assert (ended.status, engine.clock.sleeps) == (SyncStatus.FAILED, [])
    assert "took too long" in ended.failed[source.id] and "Look whether its place answers" in ended.failed[source.id]
    assert engine.web.asked.count(page) <= 1
    state = (await engine.catalog.get(source.id)).state
    assert state is not None and (state.error_code, state.taken is not None) == ("source_slow", True)
    assert engine.files() == before
    assert (await engine.run(other.id)).changed == (other.id,)


async def test_what_was_removed_while_it_waited_for_its_turn_is_not_read(tmp_path: Path) -> None:
    reader = UnreliableReader()
    reader.waits = anyio.Event()
    async with KnowledgeFixture(tmp_path, {SourceKind.GIT: reader}) as engine:
        slow = await engine.catalog.add(
            "owner/slow", SourceChange(guild=SLOW), source_id=f"{SLOW}-slow", is_made_by_guild=True
        )
        await engine.sync.ask(slow.id)
        await until(reader.reached.is_set)
        waiting = await add_site(engine, SLOW, silent=False)
        run = await engine.sync.ask(waiting.id)
        await until(lambda: engine.reading._guild_turns[SLOW].statistics().tasks_waiting == 1)
        await engine.catalog.remove(waiting.id)
        reader.waits.set()
        with anyio.fail_after(HANG_LIMIT_S):
            ended = await engine.sync.wait(run)
        assert (ended.status, ended.changed, engine.web.asked) == (SyncStatus.DONE, (), [])
