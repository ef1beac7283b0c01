"""Searching an archive of 100 000 posts, by words alone and by meaning too, and keeping the meanings.

python -m benchmarks archive                      SQLite in a temporary folder
python -m benchmarks archive postgresql://...     an empty database

Vectors have 384 dimensions, as the small local model has them, and are made up: what an embedder takes is not in these
figures.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from denizen.adapters.store import open_store
from denizen.domain.archiving import ArchivePolicy
from denizen.domain.clock import SystemClock
from denizen.domain.message import Author
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import Post, Room
from denizen.engine.archive.lookup import ArchiveQuery, ArchiveSearch
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.archive.post_embedding import SOON_S, PostEmbedder
from denizen.engine.archive.view import ArchiveView
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.ports.embed import EmbeddingResult, EmbedKind
from denizen.ports.store import Store
from tests.contracts.store.records import PLATFORM, at

POSTS = 100_000
READER = Principal(PrincipalKind.PLATFORM_USER, "reader", "Reader")
ROOMS = 40
PAGE = 500
SEARCHES = 60
DIMENSIONS = 384
WORDS = [f"word{number}" for number in range(5000)]


@dataclass
class RandomEmbedder:
    """Each text means something by itself, the same each time."""

    name: str = "made-up"
    directions: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        random_source = random.Random(7)
        self.directions = [[random_source.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(2000)]

    async def estimate_cost_usd(self, tokens: int) -> Decimal | None:
        return tokens * Decimal(0)

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> EmbeddingResult:
        return EmbeddingResult([self._mix(text) for text in texts])

    async def aclose(self) -> None:
        """Nothing is open."""

    def _mix(self, text: str) -> list[float]:
        random_source = random.Random(text)
        one, two = random_source.choice(self.directions), random_source.choice(self.directions)
        return [a + b / 2 for a, b in zip(one, two, strict=True)]


def made_up_posts(numbers: range = range(POSTS)) -> Iterator[list[Post]]:
    random_source = random.Random(numbers.start + 3)
    for start in range(numbers.start, numbers.stop, PAGE):
        yield [
            Post(
                PLATFORM,
                str(10**17 + number),
                str(number % ROOMS),
                Author(str(number % 300), f"user {number % 300}"),
                " ".join(random_source.choices(WORDS, k=12)),
                at(number / 3600),
            )
            for number in range(start, min(start + PAGE, numbers.stop))
        ]


async def measure(name: str, ask: Callable[[int], Awaitable[object]], rounds: int = SEARCHES) -> None:
    times: list[float] = []
    for number in range(rounds):
        began = time.perf_counter()
        await ask(number)
        times.append(time.perf_counter() - began)
    rest = statistics.median(times[1:])
    print(
        f"{name:48} first {times[0] * 1e3:8.1f} ms   median {rest * 1e3:7.1f} ms   worst {max(times[1:]) * 1e3:7.1f} ms"
    )


async def measure_all(url: str) -> None:
    clock, embedder = SystemClock(), RandomEmbedder()
    store, policy = await open_store(url, clock=clock), ArchivePolicy()
    mirror, budgeted = ArchiveMirror(store, lambda: policy, clock), BudgetedEmbedder(lambda: embedder)
    began = time.perf_counter()
    for page in made_up_posts():
        async with store.work() as work:
            await work.archive.put(page)
    print(f"{POSTS} posts mirrored in {time.perf_counter() - began:.0f} s")
    began, cpu = time.perf_counter(), time.process_time()
    keeper = PostEmbedder(store, budgeted, lambda: policy, clock)
    while await keeper.do_some() < SOON_S:
        pass
    cpu = time.process_time() - cpu
    print(f"their meanings kept in {time.perf_counter() - began:.0f} s, {cpu / POSTS * 1e3:.2f} ms cpu each (made up)")
    rooms = {str(number): Room(PLATFORM, str(number), f"room {number}") for number in range(ROOMS)}
    for share, seen in (("all rooms", rooms), ("a tenth of the rooms", dict(list(rooms.items())[: ROOMS // 10]))):
        view = ArchiveView(
            platform=PLATFORM,
            viewer=READER,
            rooms=seen,
            own=None,
            channel=None,
            hidden=frozenset(),
            policy=policy,
            resets={},
        )
        await measure_searches(store, mirror, budgeted, view, share)
    await measure("looking for posts without a meaning", lambda _: keeper.do_some())
    await store.aclose()


async def measure_searches(
    store: Store, mirror: ArchiveMirror, budgeted: BudgetedEmbedder, view: ArchiveView, share: str
) -> None:
    ways = {
        "words": ArchiveSearch(store, mirror, BudgetedEmbedder()),
        "words and meaning": ArchiveSearch(store, mirror, budgeted),
    }
    for way, search in ways.items():

        async def ask(number: int, author: str = "", search: ArchiveSearch = search) -> None:
            await search(
                view,
                ArchiveQuery(
                    words=f"{WORDS[number]} {WORDS[number * 7 % 5000]}",
                    room="",
                    author=author,
                    since=None,
                    until=None,
                    limit=20,
                ),
            )

        await measure(f"{way}, {share}", ask)
        if share == "all rooms":
            await measure(f"{way}, one author", lambda number, ask=ask: ask(number, str(number)))


def main(url: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure_all(url or f"sqlite:///{folder}/store.db"))
