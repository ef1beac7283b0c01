"""The store's promises about sources of knowledge: what they are, how far they were read, and the syncs there were."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.source import Source, SourceKind, SourceState, SyncRun, SyncStatus, Taken
from denizen.ports.store import Store
from denizen.testing.store_records import at

DOCS = Source(
    id="docs", kind=SourceKind.GIT, location="https://git.example/docs.git", label="The docs \ufdd0", branch="main",
    content_path="docs/en", output_path="manual", readme_only=True, sync_every_minutes=30, created_at=at(0),
    updated_at=at(0),
)  # fmt: skip
NOTES = Source(id="a-notes", kind=SourceKind.FOLDER, location="/srv/notes", created_at=at(1), updated_at=at(1))
TALKS = Source(
    id="talks", kind=SourceKind.YOUTUBE, location="https://www.youtube.com/@talks", max_videos=7, created_at=at(0),
    updated_at=at(0),
)  # fmt: skip
TAKEN = Taken(manifest="ab" * 32, files=3, documents=2, size_bytes=4096, skipped=1, left_out=("a.md (no text)",))
READ_STATE = SourceState(
    source_id="docs", revision="c0ffee", fingerprint="read_1", taken=TAKEN, synced_at=at(2), tried_at=at(2)
)


@pytest.mark.anyio
class SourceContract:
    @pytest.mark.proves("S-data-sources")
    async def test_sources_are_kept_changed_and_listed_by_id(self, store: Store) -> None:
        async with store.work() as work:
            await work.sources.put(DOCS)
            await work.sources.put(NOTES)
            await work.sources.put(TALKS)
        changed = replace(DOCS, branch="v2", readme_only=False, created_at=at(9), updated_at=at(9))
        async with store.work() as work:
            assert await work.sources.find("docs") == DOCS
            await work.sources.put(changed)
        async with store.work(write=False) as work:
            assert await work.sources.list_sources() == [NOTES, replace(changed, created_at=at(0)), TALKS]
            assert await work.sources.find("other") is None

    async def test_a_state_is_replaced_and_goes_with_its_source(self, store: Store) -> None:
        failed = replace(READ_STATE, tried_at=at(3), error_code="unavailable", error="No answer.")
        never = SourceState(source_id="a-notes", tried_at=at(3), error_code="not_found", error="It is gone.")
        async with store.work() as work:
            await work.sources.put(DOCS)
            await work.sources.put(NOTES)
            await work.sources.put_state(READ_STATE)
            assert await work.sources.list_states() == [READ_STATE]
            await work.sources.put_state(failed)
            await work.sources.put_state(never)
        async with store.work() as work:
            assert await work.sources.list_states() == [never, failed]
            assert await work.sources.remove("docs")
            assert not await work.sources.remove("docs")
            await work.sources.put_state(READ_STATE)
            assert await work.sources.list_states() == [never]

    @pytest.mark.proves("S-kv-last-sync")
    async def test_syncs_are_kept_with_their_end_newest_first(self, store: Store) -> None:
        first = SyncRun(id="sync_1", sources=("docs", "a-notes"), started_at=at(1))
        ended = replace(
            first, ended_at=at(2), status=SyncStatus.PARTIAL, snapshot="snap_1", changed=("docs",),
            failed={"a-notes": "Gone."}, skipped={"talks": "No key."},
        )  # fmt: skip
        second = SyncRun(id="sync_2", sources=("docs",), started_at=at(3))
        async with store.work() as work:
            await work.sources.put_sync(first)
            await work.sources.put_sync(second)
            assert await work.sources.list_syncs() == [second, first]
            await work.sources.put_sync(replace(ended, started_at=at(8)))
        async with store.work(write=False) as work:
            assert await work.sources.list_syncs() == [second, ended]
            assert await work.sources.list_syncs(limit=1) == [second]
            assert [await work.sources.find_sync(each) for each in ("sync_1", "sync_2")] == [ended, second]
            assert await work.sources.find_sync("sync_3") is None
