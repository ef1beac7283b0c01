"""The prices of models, by the list in genai-prices. Reading it takes a moment, so that happens at first use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from denizen.adapters.models.providers import ProviderSpec
from denizen.domain.usage import TokenPrice, Usage


def load_prices() -> None:
    """Reads the list beforehand. Blocks."""
    from genai_prices.data_snapshot import get_snapshot

    get_snapshot()


def estimate_price(spec: ProviderSpec, model: str, input_tokens: int, output_tokens: int) -> Decimal | None:
    """Returns what tokens cost when nothing is cached; None when neither the configuration nor the list has the model.
    Blocks at first.
    """
    usage, own = Usage(input_tokens=input_tokens, output_tokens=output_tokens), spec.prices.get(model)
    return price_usage(spec, (model,), usage) if own is None else own.price(usage)


def find_listed_price(spec: ProviderSpec, model: str) -> TokenPrice | None:
    """Returns the price that the list has, for prompts of a usual length; None when it does not have the model. Blocks
    at first.
    """
    tokens = 1000
    read = price_usage(spec, (model,), Usage(input_tokens=tokens))
    written = price_usage(spec, (model,), Usage(output_tokens=tokens))
    cached = price_usage(spec, (model,), Usage(input_tokens=tokens, cache_read_tokens=tokens))
    if read is None or written is None:
        return None
    return TokenPrice(
        input_usd=read * 1000, output_usd=written * 1000, cached_input_usd=None if cached is None else cached * 1000
    )


def price_usage(spec: ProviderSpec, names: Sequence[str], usage: Usage) -> Decimal | None:
    """Returns what tokens cost by the first of the model's names that the list has; None when it has none of them, and
    for no tokens.
    """
    if spec.facts.is_local:
        return Decimal(0)
    if not (usage.input_tokens or usage.output_tokens):
        return None
    from genai_prices import Usage as ListedUsage
    from genai_prices.data_snapshot import get_snapshot

    used = ListedUsage(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cache_read_tokens=usage.cache_read_tokens
    )
    for model in dict.fromkeys(names):
        for name, address in _price_lookups(spec):
            try:
                return get_snapshot().calc(used, model, name, address, None).total_price
            except (LookupError, ValueError):
                continue
    return None


def _price_lookups(spec: ProviderSpec) -> Iterator[tuple[str | None, str | None]]:
    """Yields (name, address) pairs to look for in the list. The address comes first: a proxy has prices of its own. One
    without TLS is nobody's who has a price list, and comparing it with all in the list takes 15 ms.
    """
    if spec.address and spec.address.startswith("https:"):
        yield None, spec.address
    yield spec.facts.price_list or spec.name, None
