"""Vectors that cost something are paid from the budget of the whole server."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal

import anyio
import pytest

from denizen.domain.budget import SERVER, BudgetLimits, BudgetPolicy, BudgetScopeKind, BudgetStatus
from denizen.domain.errors import NeedsAttention, Unavailable
from denizen.engine.embedding.embedder import BudgetedEmbedder, EmbeddingBudget
from denizen.ports.embed import EmbeddingResult, EmbedKind
from denizen.testing.temporary_store import TemporaryStore
from tests.clock import ManualClock
from tests.engine.memory_fixture import WordEmbedder

pytestmark = pytest.mark.anyio

CENT = Decimal("0.01")
TEXT = "one two three four"
"""Four words: four cents, as the embedder counts. The estimate, of five tokens, is five."""


@dataclass
class BudgetFixture:
    embedder: WordEmbedder = field(default_factory=lambda: WordEmbedder(usd_per_token=CENT))
    store: TemporaryStore = field(default_factory=TemporaryStore)
    clock: ManualClock = field(default_factory=ManualClock)
    policy: BudgetPolicy = field(default_factory=BudgetPolicy)

    def __post_init__(self) -> None:
        budget = EmbeddingBudget(self.store, self.clock, lambda: self.policy)
        self.budgeted = BudgetedEmbedder(lambda: self.embedder, budget)

    def limit(self, usd: str) -> None:
        self.policy = BudgetPolicy({BudgetScopeKind.SERVER: BudgetLimits(per_day_usd=Decimal(usd))})

    async def load_status(self) -> BudgetStatus:
        async with self.store.work(write=False) as work:
            return (await work.spending.read([SERVER], now=self.clock.now()))[SERVER]


@pytest.fixture
def fixture() -> BudgetFixture:
    return BudgetFixture()


@pytest.mark.proves("P5")
async def test_what_the_provider_took_counts_in_the_budget_and_in_the_statistics(fixture: BudgetFixture) -> None:
    fixture.limit("1")
    assert await fixture.budgeted.embed_texts([TEXT, TEXT])
    at = await fixture.load_status()
    assert (at.day_usd, at.day_requests, at.reserved_usd) == (8 * CENT, 1, 0)
    async with fixture.store.work(write=False) as work:
        (row,) = await work.ledger.list_usage(since=fixture.clock.now() - timedelta(days=1))
    assert (row.agent, row.model, row.usage.input_tokens) == ("", "words/1", 8)


@pytest.mark.proves("P5")
async def test_without_money_left_nothing_is_sent_and_words_have_to_do(
    fixture: BudgetFixture, caplog: pytest.LogCaptureFixture
) -> None:
    fixture.limit("0.08")
    assert await fixture.budgeted.embed_texts([TEXT])
    assert await fixture.budgeted.embed_question(TEXT) is None
    assert len(fixture.embedder.asked) == 1
    (logged,) = caplog.records
    assert "My budget is used up" in vars(logged)["why"]
    fixture.clock.advance(days=1)
    assert await fixture.budgeted.embed_question(TEXT)


async def test_what_is_reserved_by_one_is_not_there_for_another(fixture: BudgetFixture) -> None:
    fixture.limit("0.08")
    found: list[bool] = []

    async def ask() -> None:
        found.append(await fixture.budgeted.embed_texts([TEXT]) is not None)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        tasks.start_soon(ask)
    assert sorted(found) == [False, True]


@pytest.mark.parametrize(
    "error", [Unavailable("Away.", code="embed_unavailable"), NeedsAttention("No.", code="embed_refused")]
)
async def test_a_request_that_fails_costs_nothing(fixture: BudgetFixture, error: Unavailable | NeedsAttention) -> None:
    fixture.limit("1")
    fixture.embedder.error = error
    assert await fixture.budgeted.embed_texts([TEXT]) is None
    assert await fixture.load_status() == BudgetStatus()


async def test_a_request_that_is_broken_off_counts_as_estimated(fixture: BudgetFixture) -> None:
    class SilentEmbedder(WordEmbedder):
        async def embed(self, texts: object, kind: EmbedKind) -> EmbeddingResult:
            await anyio.sleep_forever()
            return EmbeddingResult(())

    fixture.limit("1")
    fixture.embedder = SilentEmbedder(usd_per_token=CENT)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fixture.budgeted.embed_texts, [TEXT])
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
    at = await fixture.load_status()
    assert (at.day_usd, at.reserved_usd) == (5 * CENT, 0)


async def test_an_unknown_price_is_told_once_and_counts_tokens(
    fixture: BudgetFixture, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    fixture.limit("0")
    fixture.embedder.usd_per_token = None
    assert await fixture.budgeted.embed_texts([TEXT])
    assert await fixture.budgeted.embed_texts([TEXT])
    assert caplog.text.count("no price is known") == 1
    assert (await fixture.load_status()).day_requests == 2


async def test_what_runs_here_is_free_and_writes_nothing(fixture: BudgetFixture) -> None:
    fixture.limit("0")
    fixture.embedder.usd_per_token = Decimal(0)
    assert await fixture.budgeted.embed_texts([TEXT])
    assert await fixture.load_status() == BudgetStatus()


async def test_a_store_that_is_away_does_not_cost_the_vectors(
    fixture: BudgetFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(**_: object) -> Callable[[], None]:
        raise Unavailable("The database is locked.", code="store_busy")

    monkeypatch.setattr(fixture.store, "work", away)
    assert await fixture.budgeted.embed_texts([TEXT])
