"""Tokens and money of model requests."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from denizen.domain.json import JsonObject
from denizen.domain.record import record


@record
class Usage:
    """Tokens of one or more requests. `input_tokens` includes the cached ones. `cost_usd` is None when unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: Decimal | None = None
    requests: int = 0

    @property
    def new_tokens(self) -> int:
        """Input that was neither read from the provider's cache nor written to it."""
        return max(self.input_tokens - self.cache_read_tokens - self.cache_write_tokens, 0)

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            cost_usd=sum(costs, Decimal(0)) if costs else None,
            requests=self.requests + other.requests,
        )


_MILLION = Decimal(1_000_000)


@record(kw_only=True)
class TokenPrice:
    """The price of a model, in USD for a million tokens. Without one of their own, tokens that the provider had cached
    cost as much as others; so does writing them to the cache.
    """

    input_usd: Decimal
    output_usd: Decimal
    cached_input_usd: Decimal | None = None

    def price(self, usage: Usage) -> Decimal:
        """Returns what the tokens cost, in USD."""
        cached = self.input_usd if self.cached_input_usd is None else self.cached_input_usd
        new = usage.input_tokens - usage.cache_read_tokens
        usd = new * self.input_usd + usage.cache_read_tokens * cached + usage.output_tokens * self.output_usd
        return usd / _MILLION


def usage_to_json(usage: Usage) -> JsonObject:
    """For the durable log."""
    row: JsonObject = {name: getattr(usage, name) for name in usage.__match_args__}
    return row | {"cost_usd": None if usage.cost_usd is None else str(usage.cost_usd)}


def usage_from_json(row: Mapping[str, Any]) -> Usage:
    """The inverse; of an empty row no use."""
    counts = {name: value for name, value in row.items() if name != "cost_usd"}
    cost = row.get("cost_usd")
    return Usage(**counts, cost_usd=None if cost is None else Decimal(cost))
