"""Vectors compared by the database where it can, and by the store otherwise."""

from __future__ import annotations

import random
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from denizen.adapters.store import open_store, postgres_vectors
from denizen.adapters.store.dialect import VectorQuery
from denizen.adapters.store.postgres import PostgresDialect
from denizen.adapters.store.postgres_vectors import PgvectorIndex
from denizen.domain.clock import SystemClock
from denizen.domain.vector import find_nearest, pack_vector, sign_bits, unpack_vector
from denizen.ports.memory import StoredVector
from denizen.ports.store import Store
from tests.timing import HANG_LIMIT_S

pytest_plugins = ["tests.postgres"]

NAMESPACES = ["s0", "s1"]


def row(key: str, *values: float, namespace: str = "s0") -> StoredVector:
    return StoredVector("docs", namespace, key, "m", pack_vector(values))


async def keys(store: Store, *values: float, namespaces: list[str] | None = None) -> list[str]:
    async with store.work(write=False) as work:
        near = await work.vectors.find_nearest("docs", namespaces or NAMESPACES, "m", pack_vector(values), limit=3)
    return [each.key for each in near]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(f"sqlite:///{tmp_path}/store.db", clock=SystemClock())
    yield store
    await store.aclose()


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=70))
def test_signs_are_one_bit_for_each_dimension(values: list[float]) -> None:
    data = pack_vector(values)
    wanted = "".join("1" if value > 0 else "0" for value in unpack_vector(data))
    assert int.from_bytes(sign_bits(data)) == int(wanted, 2)


@pytest.mark.anyio
async def test_a_search_finds_vectors_that_another_process_wrote(store: Store, tmp_path: Path) -> None:
    other = await open_store(f"sqlite:///{tmp_path}/store.db", clock=SystemClock())
    async with store.work() as work:
        await work.vectors.put([row("a", 1, 0), row("b", 0, 1)])
    assert await keys(other, 1, 0) == ["a", "b"]
    async with store.work() as work:
        await work.vectors.put([row("c", 1, 0.1), row("a", 1, 0, namespace="private")])
        await work.vectors.put([row("b", 0, 1, namespace="s1")])
    assert await keys(other, 1, 0) == ["c", "b"]
    assert await keys(other, 1, 0, namespaces=["s0"]) == ["c"]
    await other.aclose()


@pytest.mark.anyio
async def test_a_vector_that_was_rolled_back_is_not_found(store: Store) -> None:
    async with store.work() as work:
        await work.vectors.put([row("a", 1, 0)])
    with suppress(RuntimeError):
        async with store.work() as work:
            await work.vectors.put([row("b", 1, 0)])
            assert len(await work.vectors.find_nearest("docs", NAMESPACES, "m", pack_vector([1, 0]), limit=3)) == 2
            raise RuntimeError
    assert await keys(store, 1, 0) == ["a"]
    async with store.work() as work:
        await work.vectors.put([row("c", 1, 0.2)])
    assert await keys(store, 1, 0) == ["a", "c"]


@pytest.mark.anyio
async def test_the_signs_of_removed_vectors_are_dropped_in_time(store: Store) -> None:
    async with store.work() as work:
        await work.vectors.put([row(str(n), 1, n) for n in range(50)])
    assert len(await keys(store, 1, 0)) == 3
    async with store.work() as work:
        await work.vectors.put([row("kept", 1, 0, namespace="s1")])
        await work.vectors.remove_other_models("docs", "other")
        await work.vectors.put([row("new", 1, 0)])
    assert await keys(store, 1, 0) == ["new"]
    assert await keys(store, 1, 0) == ["new"]


@pytest.mark.proves("V5-search")
@pytest.mark.xdist_group("postgres")
@pytest.mark.anyio
async def test_pgvector_compares_vectors_when_the_server_has_it(postgres_url: str) -> None:
    store = await open_store(postgres_url, clock=SystemClock())
    async with store.work() as work:
        await work.vectors.put([row("a", 1, 0), row("b", 1, 1)])
    with psycopg.connect(postgres_url) as connection:
        given = connection.execute("SELECT key, embedding::text FROM vectors ORDER BY key").fetchall()
        indexes = connection.execute("SELECT indexname FROM pg_indexes WHERE indexname LIKE '%near%'").fetchall()
    assert given == [("a", "[127,0]"), ("b", "[90,90]")]
    assert indexes == [("ix_vectors_near_2",)]
    assert await keys(store, 1, 0) == ["a", "b"]
    await store.aclose()


@pytest.mark.proves("V5-search")
@pytest.mark.xdist_group("postgres")
@pytest.mark.anyio
@pytest.mark.parametrize("few", [1000, 10], ids=["compared", "indexed"])
async def test_pgvector_finds_the_nearest_of_a_few_namespaces(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """The index alone finds about half of the nearest where it has to pass over most of what is near."""
    monkeypatch.setattr(postgres_vectors, "FEW", few)
    store = await open_store(postgres_url, clock=SystemClock())
    chance = random.Random(7)
    made = {str(n): [chance.gauss(0, 1) for _ in range(64)] for n in range(900)}
    async with store.work() as work:
        await work.vectors.put([row(key, *each, namespace=f"s{int(key) % 10}") for key, each in made.items()])
    right = asked = 0
    for _ in range(10):
        query = pack_vector([chance.gauss(0, 1) for _ in range(64)])
        rows = [(key, pack_vector(each)) for key, each in made.items() if int(key) % 10 == 0]
        wanted = {each.key for each in find_nearest(query, rows, limit=10)}
        async with store.work(write=False) as work:
            found = await work.vectors.find_nearest("docs", ["s0"], "m", query, limit=10)
        right, asked = right + len(wanted & {each.key for each in found}), asked + len(wanted)
        assert {int(each.key) % 10 for each in found} == {0}
    assert right == asked if few == 1000 else right > asked / 4
    await store.aclose()


@pytest.mark.xdist_group("postgres")
@pytest.mark.anyio
async def test_a_server_that_gets_pgvector_later_uses_it_from_the_next_start(postgres_url: str) -> None:
    store = await open_store(postgres_url, clock=SystemClock())
    await store.aclose()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE vectors DROP COLUMN embedding CASCADE")
    store = await open_store(postgres_url, clock=SystemClock())
    async with store.work() as work:
        await work.vectors.put([row("a", 1, 0)])
    assert await keys(store, 1, 0) == ["a"]
    await store.aclose()


@pytest.mark.xdist_group("postgres")
def test_processes_that_start_together_prepare_pgvector_once(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE vectors (collection text, key text, model text)")
    engines = [PostgresDialect(sa.make_url(postgres_url)).engine for _ in range(6)]
    together = threading.Barrier(len(engines))

    def start(engine: sa.Engine) -> bool:
        index = PgvectorIndex()
        engine.connect().close()  # connecting takes longer than what follows
        together.wait(HANG_LIMIT_S)
        index.prepare(engine)
        engine.dispose()
        return index.is_there

    with ThreadPoolExecutor(len(engines)) as threads:
        assert all(threads.map(start, engines))
    assert "pgvector cannot be used" not in caplog.text


@pytest.mark.xdist_group("postgres")
def test_without_pgvector_vectors_are_compared_one_by_one(postgres_url: str) -> None:
    index, engine = PgvectorIndex(), PostgresDialect(sa.make_url(postgres_url)).engine
    wanted = VectorQuery(
        collection="docs", model="m", namespaces=frozenset(NAMESPACES), query=pack_vector([1, 0]), limit=3, bounds={}
    )
    with engine.connect() as connection:
        index.learn(connection, [{"data": b"12"}])
        assert index.find(connection, wanted) is None
