"""`denizen archive` on a home folder in which something is mirrored."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from denizen.adapters.store import open_store
from denizen.domain.clock import SystemClock
from denizen.domain.message import Author
from denizen.domain.room import Post, Room
from denizen.domain.transcript import post_line
from denizen.engine.prompt.room_transcript import close_block
from denizen.ports.archive import Backfill
from tests.e2e.home import Home
from tests.e2e.process import ProcessResult
from tests.embedding_server import serve_embeddings
from tests.timing import wait_until

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

CONFIG = """\
models:
  providers: {{lab: {{kind: openai-compatible, base_url: "{url}"}}}}
  aliases: {{balanced: lab/scripted}}
agents: {{denizen: {{}}}}
embeddings: {{provider: lab, model: small}}
archive: {{embeddings: {embeddings}}}
"""
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def _lines(finished: ProcessResult) -> str:
    assert finished.code == 0, finished.err
    return finished.out


async def test_the_archive_is_shown_and_things_are_taken_out_of_it(home: Home) -> None:
    home.configure("http://127.0.0.1:9/v1")
    store = await open_store(home.store_url, clock=SystemClock())
    async with store.work() as work:
        await work.archive.put_room(Room("discord", "10", "general"))
        await work.archive.put(
            [Post("discord", str(n), "10", Author(str(n % 2 + 1), "Ana"), f"post {n}", NOON) for n in range(100, 104)]
        )
        await work.archive.put_backfill(Backfill("discord", "10", oldest="100", fetched=4, is_complete=True))
    await store.aclose()
    shown = _lines(home.do("archive", "status"))
    assert "4 posts in 1 rooms" in shown and "0 posts are found by meaning too" in shown
    assert "2 posts" in _lines(home.do("archive", "forget", "1", "--yes"))
    assert "2 posts" in _lines(home.do("archive", "opt-out", "user", "2", "--yes"))
    assert "1 users" in _lines(home.do("archive", "status"))
    _lines(home.do("archive", "opt-in", "user", "2"))
    _lines(home.do("archive", "rebuild"))
    shown = _lines(home.do("archive", "status"))
    assert "0 posts" in shown and "not complete" in shown and "0 users" in shown
    refused = home.do("archive", "forget", "bob", "--yes")
    assert refused.code == 2 and "no Discord id" in refused.err


@pytest.mark.proves("C-inspect-commands")
async def test_closed_blocks_of_a_transcript_are_reset_and_no_post_is_lost(home: Home) -> None:
    home.configure("http://127.0.0.1:9/v1")
    room = Room("discord", "10", "general")
    posts = [Post("discord", str(n), "10", Author("1", "Ana"), f"post {n}", NOON) for n in range(100, 104)]
    store = await open_store(home.store_url, clock=SystemClock())
    async with store.work() as work:
        await work.archive.put_room(room)
        await work.archive.put(posts)
        closed = await close_block(work, room.place, 1, "10", [post_line(post) for post in posts])
        await work.transcripts.add_blocks(room.place, [closed.block])
    assert "Forgotten: 1 blocks of #general." in _lines(home.do("archive", "reset-blocks", "10"))
    assert "4 posts" in _lines(home.do("archive", "status"))
    async with store.work(write=False) as work:
        assert await work.transcripts.list_blocks(room.place) == []
    await store.aclose()
    missing = home.do("archive", "reset-blocks", "11")
    assert "There is no channel 11 in the archive." in missing.err


async def test_posts_get_their_meaning_while_denizen_runs_and_lose_it_with_the_switch(home: Home) -> None:
    texts = ("We open at nine.", "ok", "A berth is ten euros.")
    home.configure("http://127.0.0.1:9/v1")
    store = await open_store(home.store_url, clock=SystemClock())
    async with store.work() as work:
        await work.archive.put_room(Room("discord", "10", "general"))
        await work.archive.put(
            [Post("discord", str(n), "10", Author("1", "Ana"), text, NOON) for n, text in enumerate(texts, start=100)]
        )
    await store.aclose()

    def tells(words: str) -> bool:
        return words in _lines(home.do("archive", "status"))

    with serve_embeddings() as server:
        home.write(CONFIG.format(url=server.url, embeddings="true"))
        with home.serve():
            wait_until(lambda: tells("2 posts are found by meaning too"))
            assert [body["input"] for _, _, body in server.asked] == [[texts[0], texts[2]]]
            home.write(CONFIG.format(url=server.url, embeddings="false"))
            wait_until(lambda: _count_vectors(home) == 0)
        assert tells("0 posts are found by meaning too")
    assert "embeddings: 1 requests, 9 tokens in" in _lines(home.do("usage", "--by", "source"))


def _count_vectors(home: Home) -> int:
    with closing(sqlite3.connect(home.folder / "denizen.db")) as connection:
        return connection.execute("SELECT count(*) FROM vectors").fetchone()[0]
