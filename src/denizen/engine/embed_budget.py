"""Money for vectors: what a provider takes for them counts in the budget of the whole server and in the statistics.

They are nobody's in particular: documents and posts are embedded for all, and the few words of a question cost next to
nothing. Around each request of `meaning`; without money left there are no vectors, and words have to do.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

import anyio

from denizen.domain.budget import SERVER, BudgetPolicy, renews_at
from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, Exhausted
from denizen.domain.ids import fresh
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.prompt import estimate_tokens
from denizen.domain.statistics import SideRequest
from denizen.domain.usage import Usage
from denizen.engine.reserving import reserve, whose
from denizen.ports.embed import Embedder
from denizen.ports.store import Store
from denizen.ports.usage import Reservation

SOURCE = "embeddings"
"""Where statistics say that it came from."""
PAYER = Principal(PrincipalKind.SCHEDULE, SOURCE, SOURCE)
"""Whose it is in statistics; no agent's."""

RESERVED_FOR = timedelta(minutes=5)
"""Longer than a request may take; what a killed process has reserved is free again after it."""

_log = logging.getLogger("denizen.budget")


@dataclass(slots=True)
class Bill:
    """What one request took, as soon as that is known."""

    usage: Usage | None = None


class EmbedBudget:
    """One for a process. `policy` gives the budgets as they are configured now."""

    def __init__(self, store: Store, clock: Clock, policy: Callable[[], BudgetPolicy]) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy
        self._unpriced: set[str] = set()

    @asynccontextmanager
    async def paying(self, embedder: Embedder, texts: Sequence[str]) -> AsyncGenerator[Bill]:
        """Around a request. Raises Exhausted (`budget_exhausted`) when the server's budget does not let it through,
        and then nothing was sent. A request that was broken off counts as estimated.
        """
        tokens = sum(map(estimate_tokens, texts))
        wanted = await embedder.estimate_cost_usd(tokens)
        if wanted == 0:
            yield Bill()
            return
        reservation = fresh("embed")
        await self._reserve(reservation, embedder.name, wanted)
        bill = Bill(Usage(tokens, cost_usd=wanted, requests=1))
        try:
            yield bill
        except DenizenError:
            bill.usage = None  # the provider said no, and charges nothing
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await self._settle(reservation, embedder.name, bill.usage)

    async def _reserve(self, reservation: str, model: str, wanted: Decimal | None) -> None:
        if wanted is None:
            if model not in self._unpriced:
                self._unpriced.add(model)
                _log.warning("no price is known, so its cost counts as 0", extra={"model": model})
            return
        now, policy = self._clock.now(), self._policy()
        if not policy.plan_limits((SERVER,)):
            return
        wish = Reservation(reservation, wanted, (SERVER,), now + RESERVED_FOR)
        refusal = (await reserve(self._store, policy, wish, now=now)).refusal
        if refusal is not None:
            renewed = renews_at(refusal.limit.period, now)
            raise Exhausted(
                f"{whose(SERVER)} is used up, so there are no vectors until {renewed.day} {renewed:%B}, 00:00 UTC.",
                code="budget_exhausted",
                fix="Raise budgets.server, or set embeddings.provider: local.",
            )

    async def _settle(self, reservation: str, model: str, usage: Usage | None) -> None:
        """A store that is away must not cost the vectors; what was reserved then stays so until it expires."""
        now = self._clock.now()
        try:
            async with self._store.work() as work:
                await work.spending.release(reservation)
                if usage is not None:
                    await work.spending.add((SERVER,), usage, at=now)
                    await work.statistics.add_side_request(SideRequest("", PAYER.key, SOURCE, model, usage, now))
        except DenizenError as error:
            _log.warning("the cost of vectors was not counted: %s", error.message, extra={"model": model})
