"""Channels of YouTube as sources: where their documents are, and what holds up nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.domain.source import SourceKind, SyncStatus
from denizen.domain.video import VideoAccess
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, write
from tests.repository import create_repository
from tests.youtube import KEY, open_youtube

pytestmark = pytest.mark.anyio


@pytest.mark.proves("S28", "S27")
async def test_documents_lie_below_docs_and_transcripts_below_youtube(engine: KnowledgeFixture, tmp_path: Path) -> None:
    repository = create_repository(tmp_path / "site", {"guide/a.md": "A"})
    await engine.add(repository.folder, "site", kind=SourceKind.GIT, output_path="handbook")
    await engine.add("@harbour", max_videos=1)
    await engine.add("@harbour", "all", output_path="harbour-talks")
    with open_youtube() as youtube:
        engine.videos = VideoAccess(KEY, youtube.api_url, youtube.url)
        youtube.add("a", "One", "Words.")
        youtube.add("b", "Two", "Words.")
        run = await engine.run()
        assert (run.status, run.failed) == (SyncStatus.DONE, {})
        assert sorted(engine.files()) == [
            "docs/handbook/guide/a.md",
            "youtube/harbour-talks/a__________-one.md",
            "youtube/harbour-talks/b__________-two.md",
            "youtube/harbour-talks/index.md",
            "youtube/harbour/b__________-two.md",
            "youtube/harbour/index.md",
        ]
        assert (await engine.run()).changed == ()
        youtube.add("c", "Three", "Words.")
        assert (await engine.run("harbour")).changed == ("harbour",)
        assert "youtube/harbour/c__________-three.md" in engine.files()


@pytest.mark.proves("S25-limits")
async def test_without_a_key_a_channel_is_skipped_and_the_others_are_read(
    engine: KnowledgeFixture, tmp_path: Path
) -> None:
    await engine.add("@harbour")
    await engine.add(write(tmp_path / "notes", {"a.md": "A"}))
    run = await engine.run()
    assert (run.status, run.changed, run.failed) == (SyncStatus.DONE, ("notes",), {})
    assert "without an API key" in run.skipped["harbour"] and "knowledge.youtube.api_key" in run.skipped["harbour"]
    assert list(engine.files()) == ["docs/notes/a.md"]
    assert not (await engine.snapshots.status()).needs_sync
    assert (await engine.sync.list_runs())[0] == run
    known = await engine.catalog.get("harbour")
    assert known.state is not None and known.state.is_skipped


async def test_what_was_read_of_a_channel_stays_when_its_key_is_taken_away(engine: KnowledgeFixture) -> None:
    await engine.add("@harbour")
    with open_youtube() as youtube:
        engine.videos = VideoAccess(KEY, youtube.api_url, youtube.url)
        youtube.add("a", "One", "Words.")
        await engine.run()
        engine.videos = None
        run = await engine.run()
    assert list(run.skipped) == ["harbour"]
    assert sorted(engine.files()) == ["youtube/harbour/a__________-one.md", "youtube/harbour/index.md"]
