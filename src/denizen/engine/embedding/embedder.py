"""Embeddings of questions and texts by the configured embedder, paid from the budget of the whole server.

They are nobody's in particular: documents and posts are embedded for all, and the few words of a question cost next to
nothing. Without money left there are no vectors, and search by words has to do.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import Enum, auto

import anyio

from denizen.domain.budget import SERVER, BudgetPolicy, renews_at
from denizen.domain.clock import Clock
from denizen.domain.errors import (
    DenizenError,
    InvalidInput,
    LimitExceeded,
    NeedsAttention,
    NotFound,
    Unavailable,
    list_fields,
)
from denizen.domain.ids import fresh
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.prompt import estimate_tokens
from denizen.domain.record import record
from denizen.domain.statistics import SideRequest
from denizen.domain.usage import Usage
from denizen.domain.vector import pack_vector
from denizen.engine.budget.budgets import describe_scope, reserve
from denizen.ports.embed import Embedder, EmbeddingResult, EmbedKind
from denizen.ports.store import Store
from denizen.ports.usage import Reservation

SOURCE = "embeddings"
"""Where statistics say that it came from."""
PAYER = Principal(PrincipalKind.SCHEDULE, SOURCE, SOURCE)
"""Whose it is in statistics; no agent's."""

RESERVED_FOR = timedelta(minutes=5)
"""Longer than a request may take; what a killed process has reserved is free again after it."""

_log = logging.getLogger("denizen.embedding")


@dataclass(slots=True)
class EmbeddingBill:
    """The bill of one request, as soon as its cost is known."""

    usage: Usage | None = None


class EmbeddingBudget:
    """One for a process. `policy` gives the budgets as they are configured now."""

    def __init__(self, store: Store, clock: Clock, policy: Callable[[], BudgetPolicy]) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy
        self._unpriced: set[str] = set()

    @asynccontextmanager
    async def paying(self, embedder: Embedder, texts: Sequence[str]) -> AsyncGenerator[EmbeddingBill]:
        """Around a request. Raises LimitExceeded (`budget_exhausted`) when the server's budget does not let it through,
        and then nothing was sent. A request that was broken off counts as estimated.
        """
        tokens = sum(map(estimate_tokens, texts))
        wanted = await embedder.estimate_cost_usd(tokens)
        if wanted == 0:
            yield EmbeddingBill()
            return
        reservation = fresh("embed")
        await self._reserve(reservation, embedder.name, wanted)
        bill = EmbeddingBill(Usage(tokens, cost_usd=wanted, requests=1))
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
            raise LimitExceeded(
                f"{describe_scope(SERVER)} is used up, "
                f"so there are no vectors until {renewed.day} {renewed:%B}, 00:00 UTC.",
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
                    request = SideRequest(
                        agent="", user=PAYER.key, source=SOURCE, model=model, usage=usage, asked_at=now
                    )
                    await work.statistics.add_side_request(request)
        except DenizenError as error:
            _log.warning(
                "the cost of vectors was not counted: %s", error.message, extra={"model": model, **error.fields}
            )


QUESTION_PATIENCE_S = 5.0
"""How long a turn waits for the embedding of its question."""
TEXTS_PATIENCE_S = 5.0
"""For texts, and a second more for each."""

PLAIN = "Good morning."
"""A text that nobody refuses."""


def no_embedder() -> None:
    """Words only."""


def default_similarity() -> float:
    """A cosine below which texts have nothing to do with each other, as the small model has it."""
    return 0.3


@record
class EmbeddedQuestion:
    """`vector` is packed; it may be compared with those of the same model."""

    model: str
    vector: bytes


@record
class EmbeddedTexts:
    """Texts as packed vectors, in their order."""

    model: str
    vectors: list[bytes]


class _No(Enum):
    """Why there are no vectors: because of these texts, perhaps, or of nothing that has to do with them."""

    REFUSED = auto()
    NOT_NOW = auto()


class _TextsRefusedError(NeedsAttention):
    """By the embedder itself, not by what pays for it."""


class BudgetedEmbedder:
    """`embedder` gives the one that is configured now, `budget` pays for what it asks of a provider."""

    def __init__(
        self, embedder: Callable[[], Embedder | None] = no_embedder, budget: EmbeddingBudget | None = None
    ) -> None:
        self._embedder = embedder
        self._budget = budget

    @property
    def model(self) -> str:
        """Under which vectors are kept; empty without an embedder."""
        embedder = self._embedder()
        return embedder.name if embedder else ""

    async def embed_question(self, text: str) -> EmbeddedQuestion | None:
        found = await self._embed([text], EmbedKind.QUERY, QUESTION_PATIENCE_S)
        return EmbeddedQuestion(found.model, found.vectors[0]) if isinstance(found, EmbeddedTexts) else None

    async def embed_texts(self, texts: Sequence[str]) -> EmbeddedTexts | None:
        found = await self._embed_texts(texts)
        return found if isinstance(found, EmbeddedTexts) else None

    async def embed_any_texts(self, texts: Sequence[str]) -> EmbeddedTexts | None:
        """A text that the embedder refuses, while it answers to others, means nothing: it must not hold up the rest.
        None as long as any other is without an answer.
        """
        found = await self._embed_texts(texts)
        if found is not _No.REFUSED:
            return found if isinstance(found, EmbeddedTexts) else None
        plain = await self._embed_texts([PLAIN])
        if not isinstance(plain, EmbeddedTexts):
            return None
        vectors: list[bytes] = []
        for text in texts:
            each = await self._embed_texts([text])
            if each is _No.NOT_NOW or (isinstance(each, EmbeddedTexts) and each.model != plain.model):
                return None
            vectors.append(each.vectors[0] if isinstance(each, EmbeddedTexts) else bytes(len(plain.vectors[0])))
        return EmbeddedTexts(plain.model, vectors)

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> EmbeddingResult:
        """Embeds texts for somebody who has to know when that fails. Raises NotFound without an embedder, what the
        embedder raises, and LimitExceeded when the server's budget is used up.
        """
        embedder = self._embedder()
        if embedder is None:
            raise NotFound(
                "There are no embeddings here.",
                code="model_not_found",
                why="no embedder is configured",
                fix="Set `embeddings.provider` in the configuration.",
            )
        try:
            return await self._request(embedder, texts, kind, TEXTS_PATIENCE_S + len(texts))
        except _TextsRefusedError as error:
            raise (error.__cause__ or error) from None  # what the embedder said itself
        except TimeoutError as error:
            raise Unavailable(
                "The embedder took too long.", code="embedder_timeout", fix="Send fewer texts."
            ) from error

    async def _request(
        self, embedder: Embedder, texts: Sequence[str], kind: EmbedKind, patience_s: float
    ) -> EmbeddingResult:
        paying = nullcontext(EmbeddingBill()) if self._budget is None else self._budget.paying(embedder, texts)
        with anyio.fail_after(patience_s):
            async with paying as bill:
                try:
                    embedded = await embedder.embed(texts, kind)
                except (NeedsAttention, InvalidInput) as error:
                    raise _TextsRefusedError(
                        error.message, code=error.code, why=error.why, fix=error.fix, **error.context
                    ) from error
                bill.usage = embedded.usage
        return embedded

    async def _embed_texts(self, texts: Sequence[str]) -> EmbeddedTexts | _No:
        return await self._embed(texts, EmbedKind.DOCUMENT, TEXTS_PATIENCE_S + len(texts))

    async def _embed(self, texts: Sequence[str], kind: EmbedKind, patience_s: float) -> EmbeddedTexts | _No:
        embedder = self._embedder()
        if embedder is None:
            return _No.NOT_NOW
        if not texts:
            return EmbeddedTexts(embedder.name, [])
        try:
            embedded = await self._request(embedder, texts, kind, patience_s)
        except (DenizenError, TimeoutError) as error:
            why = error.explain() if isinstance(error, DenizenError) else "it took too long"
            _log.warning(
                "texts are found by words only: there are no vectors now", extra=list_fields(error) | {"why": why}
            )
            return _No.REFUSED if isinstance(error, _TextsRefusedError) else _No.NOT_NOW
        return EmbeddedTexts(embedder.name, [pack_vector(vector) for vector in embedded.vectors])
