"""A home of the first schema with many posts: its upgrade by `denizen run` and `denizen upgrade undo`, each killed
again and again. After each of them the database is whole, and of the one schema or the other.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import click
import sqlalchemy as sa
from anyio import to_thread

from denizen.adapters.store import open_dialect
from denizen.adapters.store.migrator import HEAD, HISTORY, MigrationHistory, migrate
from denizen.adapters.store.posts import posts
from denizen.domain.terms import index_terms
from denizen.domain.words import split_words
from tests.e2e.home import Home
from tests.e2e.process import RunningProcess, start_soon

FIRST = "1001"
PLATFORM = "discord"
ROWS_AT_ONCE = 10_000
SAMPLE = 1000
ROOMS = 40
LIMIT_S = 3600.0
"""The longest time for one upgrade, or for undoing one."""
LOOK_EVERY_S = 0.05
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
TALK = ("The fees of members are paid in spring", "Der Mitgliedsbeitrag wird im Frühling bezahlt", "Членские взносы")
"""Words of the last two have other terms than in the first schema."""


@dataclass(slots=True)
class UpgradeReport:
    """What came of it; `wrong` is empty when all is well."""

    posts: int
    upgrade_kills: int = 0
    undo_kills: int = 0
    finished_s: dict[str, float] = field(default_factory=dict[str, float])
    """How long each took without a kill."""
    wrong: list[str] = field(default_factory=list[str])

    def describe(self) -> str:
        took = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in self.finished_s.items())
        kills = f"{self.upgrade_kills} kills of the upgrade and {self.undo_kills} of its undoing"
        faults = "".join(f" ({each})" for each in self.wrong[:5])
        return f"{self.posts} posts; {kills}; {took}; {len(self.wrong)} wrong{faults}"


class OldHome:
    """The home, and what is known about its posts."""

    def __init__(self, folder: Path, store_url: str, count: int, rng: random.Random) -> None:
        self.home = Home(folder / "home")
        self.url = store_url or self.home.store_url
        self.home.configure("http://127.0.0.1:9/v1", rest=f"store: {{url: '{self.url}'}}\n")
        self.count = count
        self._rng = rng
        self._dialect = open_dialect(self.url)

    def fill(self) -> None:
        """Makes the database as the first version left it."""
        migrate(self._dialect, MigrationHistory(HISTORY.folder, FIRST))
        for page in _list_pages(self.count):
            with self._dialect.engine.connect() as connection:
                self._dialect.begin(connection, write=True)
                connection.execute(sa.insert(posts), [_make_post(number) for number in page])
                connection.commit()

    @property
    def revision(self) -> str:
        with self._dialect.engine.connect() as connection:
            return str(self._dialect.find_revision(connection))

    def check(self) -> Iterator[str]:
        """Yields what is wrong with the posts: how many there are, and a sample of them with the terms by which they
        are found, which differ between the schemas.
        """
        with self._dialect.engine.connect() as connection:
            self._dialect.begin(connection, write=False)
            revision = self._dialect.find_revision(connection)
            disorder = self._dialect.find_disorder(connection)
            if disorder is not None:
                yield disorder
            count = connection.execute(sa.select(sa.func.count()).select_from(posts)).scalar_one()
            if count != self.count:
                yield f"{count} posts with schema {revision}"
            numbers = self._rng.sample(range(self.count), min(SAMPLE, self.count))
            wanted = {str(post["id"]): post for post in map(_make_post, numbers)}
            columns = (posts.c.id, posts.c.room, posts.c.author_id, posts.c.created_at, posts.c.text, posts.c.words)
            found = connection.execute(sa.select(*columns).where(posts.c.id.in_(list(wanted)))).all()
            if len(found) != len(wanted):
                yield f"{len(found)} of {len(wanted)} posts found by their ids"
            is_old = revision == FIRST
            for row in found:
                post = wanted[row.id]
                terms = post["words"] if is_old else " ".join(index_terms(str(post["text"])))
                expected = (post["room"], post["author_id"], post["created_at"], post["text"], terms)
                if tuple(row)[1:] != expected:
                    yield f"post {row.id} with schema {revision}: {tuple(row)[1:]} instead of {expected}"


async def kill_upgrades(count: int, kills: int, seed: int, *, on_postgres: bool) -> UpgradeReport:
    """Upgrades a home with so many posts and undoes it, once undisturbed; and then with so many kills, half of them
    while it upgrades.
    """
    rng = random.Random(seed)
    report = UpgradeReport(count)
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, _open_store(on_postgres=on_postgres) as url:
        old = OldHome(Path(folder), url, count, random.Random(seed + 1))
        await to_thread.run_sync(old.fill)
        click.echo(f"{count} posts are there", err=True)
        for what in ("upgrade", "undo"):
            report.finished_s[what] = await _go(old, what, report, None)
        for what, other, until in (("upgrade", "undo", kills // 2), ("undo", "upgrade", kills)):
            while report.upgrade_kills + report.undo_kills < until:
                if old.revision == (HEAD if what == "upgrade" else FIRST):
                    await _go(old, other, report, None)
                else:
                    await _go(old, what, report, rng.uniform(0, report.finished_s[what]))
        for what in ("undo", "upgrade", "undo") if old.revision == HEAD else ("upgrade", "undo"):
            await _go(old, what, report, None)
    return report


async def _go(old: OldHome, what: str, report: UpgradeReport, kill_after_s: float | None) -> float:
    """Runs it until it is done, or is killed; and looks whether the database is as it has to be. Returns how long."""
    began_s = anyio.current_time()
    args = ["run", "--port", "0"] if what == "upgrade" else ["upgrade", "undo", "--yes"]
    with start_soon(["--home", str(old.home.folder), *args], old.home.environment, limit_s=LIMIT_S) as running:
        with anyio.move_on_after(kill_after_s):
            while not _is_done(running):  # noqa: ASYNC110 - the end of a process sets no event
                await anyio.sleep(LOOK_EVERY_S)
        is_done = _is_done(running)
        took_s = anyio.current_time() - began_s
        running.kill()
    if not is_done:
        report.upgrade_kills += what == "upgrade"
        report.undo_kills += what == "undo"
    revision = old.revision
    wanted = {HEAD if what == "upgrade" else FIRST} if is_done else {FIRST, HEAD}
    faults = [
        *([] if revision in wanted else [f"schema {revision} after {what}: {running.err.text[-500:]}"]),
        *await to_thread.run_sync(lambda: list(old.check())),
    ]
    report.wrong.extend(faults)
    verdict = "; ".join(faults[:3]) or "whole"
    end = "done" if is_done else "killed"
    click.echo(f"{what} {end} after {took_s:.1f} s: schema {revision}, {verdict}", err=True)
    return took_s


def _is_done(running: RunningProcess) -> bool:
    return running.poll() is not None or "Denizen is ready" in running.err.text


@contextmanager
def _open_store(*, on_postgres: bool) -> Generator[str]:
    if not on_postgres:
        yield ""
        return
    from tests.postgres import new_database, open_postgres_server

    with open_postgres_server() as server, new_database(server) as url:
        yield url


def _list_pages(count: int) -> Iterator[range]:
    for start in range(0, count, ROWS_AT_ONCE):
        yield range(start, min(count, start + ROWS_AT_ONCE))


def _make_post(number: int) -> dict[str, object]:
    text = f"{TALK[number % len(TALK)]}, number {number}: {number * 7919 % 5000} {number * 104729 % 7000}"
    return {
        "platform": PLATFORM,
        "id": str(10**17 + number),
        "room": str(number % ROOMS),
        "guild": "1",
        "parent": "",
        "reply_to": "",
        "author_id": str(number % 300),
        "author_name": f"user {number % 300}",
        "author_is_bot": False,
        "created_at": BEGAN + timedelta(seconds=number),
        "attachments": [],
        "text": text,
        "words": " ".join(split_words(text)),
    }
