"""What tokens cost before they are asked for, by the price list that the replies are priced with. Called by `model`."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from denizen.adapters.models.settings import Kind, ProviderSpec

_LISTED: dict[Kind, str] = {"openai-responses": "openai", "openai-compatible": "", "embedded": ""}
"""How the list calls a kind of provider where that is not the kind's own name; one of any name goes by its own."""


def price_of(spec: ProviderSpec, model: str, input_tokens: int, output_tokens: int) -> Decimal | None:
    """Without a cache. None when the list, which is read at the first call, does not have the model."""
    if spec.facts.free:
        return Decimal(0)
    from genai_prices import Usage
    from genai_prices.data_snapshot import get_snapshot

    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    for name, address in _places(spec):
        try:
            return get_snapshot().calc(usage, model, name, address, None).total_price
        except (LookupError, ValueError):
            continue
    return None


def _places(spec: ProviderSpec) -> Iterator[tuple[str | None, str | None]]:
    """Where the list is looked at, by name or by address, the surest first."""
    address = spec.base_url or spec.facts.base_url
    if address:
        yield None, address
    yield _LISTED.get(spec.kind, spec.kind) or spec.name, None
