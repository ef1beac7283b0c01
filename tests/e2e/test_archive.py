"""`denizen archive` on a home folder in which something is mirrored."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from denizen.adapters.store import open_store
from denizen.domain.clock import SystemClock
from denizen.domain.message import Author
from denizen.domain.room import Post, Room
from denizen.ports.archive import Backfill
from tests.e2e.home import Home
from tests.e2e.process import Finished

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def _lines(finished: Finished) -> str:
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
