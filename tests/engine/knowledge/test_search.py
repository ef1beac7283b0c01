"""What was read is indexed file by file, and found by words and by meaning."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from denizen.domain.embedding_progress import EmbeddingProgress
from denizen.domain.errors import NotFound
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.knowledge.index import (
    EMBED_PAUSE_S,
    EMBEDDED_AT_ONCE,
    FILES_AT_ONCE,
    PER_DOCUMENT,
    REST_S,
    DocumentIndexer,
    DocumentSearch,
)
from denizen.engine.knowledge.sync import SyncState, follow_sync
from denizen.ports.documents import IndexSize
from denizen.ports.source import ReadingProgress
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, ThemeEmbedder, write
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

GUIDE = "# Harbour\n\n## Berths\n\nA berth is ten euros a night.\n\n## Water\n\nDrinking water is free.\n"


class SearchFixture:
    """Knowledge with a folder of documents, an index of it and a search."""

    def __init__(self, root: Path) -> None:
        self.engine, self.embedder = KnowledgeFixture(root), ThemeEmbedder()
        budgeted = BudgetedEmbedder(lambda: self.embedder)
        self.indexing = DocumentIndexer(
            self.engine.store, self.engine.library, budgeted, self.engine.clock, sleep=self.engine.clock.sleep
        )
        self.search = DocumentSearch(self.engine.store, self.engine.library, budgeted)
        self.folder = root / "guide"

    async def publish(self, **files: str) -> None:
        write(self.folder, {f"{name}.md": text for name, text in files.items()})
        if not await self.engine.catalog.list_known():
            await self.engine.add(self.folder, "guide")
        await self.engine.run()
        await self.indexing.catch_up()

    async def find(self, question: str, limit: int = 6) -> list[str]:
        found = await self.search(question, limit=limit)
        return [f"{each.path}:{each.passage.first_line}-{each.passage.last_line}" for each in found]


def _has_text(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[SearchFixture]:
    kit = SearchFixture(tmp_path)
    async with kit.engine:
        yield kit


async def test_what_was_found_is_explained_by_its_places_in_both_rankings(kit: SearchFixture) -> None:
    await kit.publish(harbour=GUIDE, boats="Boats and vessels moor here.\n", prices="A night costs ten euros.\n")
    await kit.indexing.embed_all()
    explained = {each.found.path: each for each in await kit.search.explain("What does a berth cost?")}
    both, meaning = explained["docs/guide/harbour.md"], explained["docs/guide/boats.md"]
    assert (both.word_place, both.meaning_place) == (1, 1)
    assert (meaning.word_place, meaning.coverage) == (0, 0)
    assert meaning.meaning_place > 1
    assert both.similarity > meaning.similarity > 0
    assert [each.found for each in await kit.search.explain("What does a berth cost?")] == list(
        await kit.search("What does a berth cost?")
    )


async def test_passages_are_found_with_their_path_and_lines_as_soon_as_they_are_indexed(kit: SearchFixture) -> None:
    await kit.publish(harbour=GUIDE)
    assert await kit.find("How much is a berth?") == ["docs/guide/harbour.md:1-5"]
    assert await kit.find("zebra") == await kit.find("") == []
    (found,) = await kit.search("berths")
    assert (found.source_id, found.passage.title) == ("guide", "Harbour > Berths")


async def test_meaning_finds_what_no_word_does_once_it_is_there(kit: SearchFixture) -> None:
    await kit.publish(harbour=GUIDE)
    assert await kit.find("my vessel") == []
    assert await kit.indexing.count_without_embedding() == 2
    assert await kit.indexing.embed_all() == 2
    assert await kit.find("my vessel") == ["docs/guide/harbour.md:1-5"]
    assert await kit.find("thirst") == ["docs/guide/harbour.md:7-9"]
    assert await kit.find("zebra") == []
    assert await kit.indexing.count_without_embedding() == 0


async def test_what_is_indexed_when_indexing_breaks_off_is_found_and_not_indexed_again(kit: SearchFixture) -> None:
    files = {f"part-{number:04}.md": f"# Berth {number}\n" for number in range(FILES_AT_ONCE + 9)}
    await kit.engine.add(write(kit.folder, files), "guide")
    await kit.engine.run()
    told: list[ReadingProgress] = []
    with anyio.CancelScope() as scope:
        await kit.indexing.catch_up(lambda progress: scope.cancel() if progress.done else None)
    assert scope.cancelled_caught
    assert await kit.find("7") == ["docs/guide/part-0007.md:1-1"]
    assert await kit.indexing.size() == IndexSize(FILES_AT_ONCE, FILES_AT_ONCE)
    await kit.indexing.catch_up(told.append)
    assert told == [ReadingProgress("indexing", 0, 9), ReadingProgress("indexed", 9, 9)]
    assert await kit.indexing.size() == IndexSize(len(files), len(files))


async def test_a_file_that_is_gone_while_it_is_indexed_is_indexed_once_it_is_back(kit: SearchFixture) -> None:
    await kit.engine.add(write(kit.folder, {"harbour.md": GUIDE, "empty.md": ""}), "guide")
    await kit.engine.run()
    (kept,) = [path for path in (kit.engine.root / "library/objects").rglob("*") if _has_text(path, GUIDE)]
    away = kept.rename(kit.engine.root / "away")
    await kit.indexing.catch_up()
    assert await kit.indexing.size() == IndexSize(1, 0)
    away.rename(kept)
    await kit.publish(town="# Town\n\nA town.\n")
    assert await kit.find("berth") == ["docs/guide/harbour.md:1-5"]


async def test_a_sync_is_followed_until_what_it_published_is_indexed(kit: SearchFixture) -> None:
    engine = kit.engine
    await engine.add(write(kit.folder, {"harbour.md": GUIDE}), "guide")
    told: list[SyncState] = []
    async with anyio.create_task_group() as group:
        group.start_soon(engine.indexing.keep_indexed)
        await anyio.wait_all_tasks_blocked()
        engine.indexing.hurry()
        assert engine.indexing.progress == ReadingProgress("indexing")
        run = await engine.run()
        with anyio.fail_after(HANG_LIMIT_S):
            states = follow_sync(engine.sync, run.id, lambda: engine.indexing.progress, sleep=engine.clock.sleep)
            told += [state async for state in states]
        assert await kit.find("berth") == ["docs/guide/harbour.md:1-5"]
        group.cancel_scope.cancel()
    assert told[-1].is_over
    assert not any(state.is_over for state in told[:-1])
    engine.indexing.hurry()
    assert engine.indexing.progress is None, "nobody would index it here"


async def test_words_do_while_the_embedder_is_away(kit: SearchFixture) -> None:
    kit.embedder.is_away = True
    await kit.publish(harbour=GUIDE)
    assert await kit.indexing.embed_all() == 0
    assert await kit.find("berth") == ["docs/guide/harbour.md:1-5"]


async def test_only_what_changed_is_indexed_and_given_meaning_again(kit: SearchFixture) -> None:
    await kit.publish(harbour=GUIDE, town="# Town\n\nA town.\n")
    await kit.indexing.embed_all()
    before = len(kit.embedder.texts)
    told: list[ReadingProgress] = []
    await kit.publish(harbour=GUIDE.replace("ten", "twelve"))
    assert await kit.indexing.catch_up(told.append) == (await kit.engine.snapshots.status()).current
    assert told == []
    await kit.indexing.embed_all()
    assert len(kit.embedder.texts) == before + 1
    assert "twelve" in kit.embedder.texts[-1]
    assert await kit.find("twelve euros") == ["docs/guide/harbour.md:1-5"]


async def test_how_far_embedding_is_and_how_long_it_takes_is_told_also_by_another_process(kit: SearchFixture) -> None:
    await kit.publish(**{f"berth-{number}": f"Berth number {number}." for number in range(EMBEDDED_AT_ONCE * 3)})
    total = EMBEDDED_AT_ONCE * 3
    other = DocumentIndexer(
        kit.engine.store, kit.engine.library, BudgetedEmbedder(lambda: kit.embedder), kit.engine.clock
    )
    assert await other.find_embedding_progress() == EmbeddingProgress(0, total)
    assert await kit.indexing.embed_some() == EMBEDDED_AT_ONCE
    left_s = REST_S * 2  # the only time that passes here, for two more batches
    for indexing in (kit.indexing, other):
        progress = await indexing.find_embedding_progress()
        assert progress is not None and progress.left_s == pytest.approx(left_s)
        assert (progress.done, progress.total) == (EMBEDDED_AT_ONCE, total)
    told: list[ReadingProgress] = []
    await kit.indexing.embed_all(told.append)
    assert [(each.done, each.total) for each in told] == [(EMBEDDED_AT_ONCE * 2, total), (total, total)]
    assert told[0].left_s == pytest.approx(REST_S)
    assert await other.find_embedding_progress() == EmbeddingProgress(total, total)


async def test_the_log_says_how_far_embedding_is(kit: SearchFixture, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "denizen.knowledge")
    await kit.publish(**{f"berth-{number}": f"Berth number {number}." for number in range(EMBEDDED_AT_ONCE + 1)})
    with anyio.fail_after(HANG_LIMIT_S):
        async with anyio.create_task_group() as group:
            group.start_soon(kit.indexing.keep_embedded)
            while EMBED_PAUSE_S not in kit.engine.clock.sleeps:
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    told = [line for line in caplog.messages if "passages embedded" in line]
    total = EMBEDDED_AT_ONCE + 1
    assert told == [
        f"{EMBEDDED_AT_ONCE} of {total} passages embedded, less than a minute left",
        f"{total} of {total} passages embedded",
    ]


async def test_a_passage_that_several_sources_have_is_embedded_once(kit: SearchFixture, tmp_path: Path) -> None:
    await kit.publish(harbour=GUIDE)
    await kit.indexing.embed_all()
    before = len(kit.embedder.texts)
    next_version = GUIDE.replace("free", "not free")
    await kit.engine.add(write(tmp_path / "next", {"harbour.md": next_version}), "next")
    await kit.engine.add(write(tmp_path / "last", {"harbour.md": next_version}), "last")
    await kit.publish()
    assert await kit.indexing.embed_all() == 4
    assert [text for text in kit.embedder.texts[before:] if "not free" in text] == kit.embedder.texts[before:]
    assert len(kit.embedder.texts) == before + 1
    for source in ("guide", "next", "last"):
        [found] = await kit.search("my vessel", sources=[source], limit=1)
        assert found.path == f"docs/{source}/harbour.md"


async def test_what_was_indexed_last_is_embedded_first(kit: SearchFixture) -> None:
    await kit.publish(**{f"berth-{number}": f"Berth number {number}." for number in range(EMBEDDED_AT_ONCE * 2)})
    await kit.publish(news="# News\n\nThe bridge is closed.\n")
    await kit.indexing.embed_some()
    assert any("bridge" in text for text in kit.embedder.texts)


@pytest.mark.proves("SW7")
async def test_what_is_gone_from_the_sources_is_not_found_any_more(kit: SearchFixture) -> None:
    await kit.publish(harbour=GUIDE, town="# Town\n\nA town with a berth.\n")
    await kit.indexing.embed_all()
    (kit.folder / "harbour.md").unlink()
    await kit.publish()
    assert await kit.find("berth") == ["docs/guide/town.md:1-3"]
    assert await kit.indexing.size() == IndexSize(1, 1)
    await kit.engine.catalog.remove("guide")
    await kit.indexing.catch_up()
    assert await kit.indexing.size() == IndexSize(0, 0)
    assert await kit.find("berth") == []


async def test_a_long_document_does_not_fill_the_answer(kit: SearchFixture) -> None:
    long = "".join(f"# Berth {n}\n\nberth number {n}\n\n" for n in range(9))
    await kit.publish(long=long, short="# Short\n\nAnother berth, among many other things that are said here.\n")
    for limit, of_long in ((4, PER_DOCUMENT), (9, 4)):
        found = await kit.find("berth", limit=limit)
        assert len([each for each in found if "long" in each]) == of_long
        assert "docs/guide/short.md:1-3" in found
    assert len(await kit.find("berth", limit=2)) == 2


async def test_one_source_may_be_searched_alone(kit: SearchFixture, tmp_path: Path) -> None:
    await kit.publish(harbour=GUIDE)
    await kit.engine.add(write(tmp_path / "wiki", {"a.md": "A berth in the wiki."}), "wiki")
    await kit.publish()
    await kit.indexing.embed_all()
    assert [each.path for each in await kit.search("berth", sources=["wiki"])] == ["docs/wiki/a.md"]
    with pytest.raises(NotFound, match="no source 'wki'"):
        await kit.search("berth", sources=["wki"])


async def test_the_server_indexes_what_another_process_publishes_and_gives_it_meaning(kit: SearchFixture) -> None:
    write(kit.folder, {"harbour.md": GUIDE})
    await kit.engine.add(kit.folder, "guide")
    await kit.engine.run()
    with anyio.fail_after(HANG_LIMIT_S):
        async with anyio.create_task_group() as group:
            group.start_soon(kit.indexing.keep_indexed)
            group.start_soon(kit.indexing.keep_embedded)
            while not await kit.find("my vessel"):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
