"""What a request would cost, by the list that replies are priced with."""

from __future__ import annotations

import logging
from dataclasses import replace
from decimal import Decimal

import pytest

from denizen.adapters.models.catalog import ModelsSpec, build_models
from denizen.adapters.models.prices import estimate_price, find_listed_price
from denizen.adapters.models.providers import AliasSpec, ProviderKind, ProviderSpec
from denizen.domain.usage import TokenPrice, Usage

pytestmark = pytest.mark.anyio

LISTED: list[tuple[ProviderKind, str]] = [
    ("anthropic", "claude-sonnet-4-5"),
    ("openai", "gpt-4.1-mini"),
    ("openai-responses", "gpt-4.1-mini"),
    ("openrouter", "openai/gpt-4.1-mini"),
    ("google", "gemini-2.5-flash"),
    ("xai", "grok-4"),
    ("groq", "llama-3.3-70b-versatile"),
]


def spec(kind: ProviderKind, **more: str) -> ProviderSpec:
    return replace(ProviderSpec(name="chosen", kind=kind, api_key=lambda: "k"), **more)


@pytest.mark.parametrize(("kind", "model"), LISTED)
def test_every_kind_of_provider_finds_its_prices(kind: ProviderKind, model: str) -> None:
    given, taken = estimate_price(spec(kind), model, 1000, 0), estimate_price(spec(kind), model, 0, 1000)
    assert given is not None
    assert taken is not None
    assert 0 < given < taken
    assert estimate_price(spec(kind), model, 2000, 1000) == 2 * given + taken


def test_an_address_of_ones_own_does_not_hide_the_price() -> None:
    near = spec("anthropic", base_url="http://127.0.0.1:9")
    assert estimate_price(near, "claude-sonnet-4-5", 1000, 1000) == Decimal("0.018")


@pytest.mark.parametrize("kind", ["embedded", "ollama"])
def test_models_on_ones_own_machine_are_free(kind: ProviderKind) -> None:
    assert estimate_price(spec(kind), "claude-sonnet-4-5", 1000, 1000) == 0


async def test_a_model_without_a_price_is_told_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    lab = spec("openai-compatible", base_url="http://127.0.0.1:9/v1")
    models = build_models(ModelsSpec(providers=[lab]))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert await models.get("chosen/tiny").estimate_cost_usd(10, 10) is None
    assert [record.__dict__["model"] for record in caplog.records] == ["chosen/tiny"]
    await models.aclose()


async def test_with_fallbacks_the_dearest_counts() -> None:
    providers = [replace(spec("anthropic"), name="claude"), replace(spec("openai"), name="gpt")]
    aliases = [AliasSpec("balanced", "gpt/gpt-4.1-mini", ("claude/claude-sonnet-4-5",))]
    models = build_models(ModelsSpec(providers=providers, aliases=aliases))
    assert await models.get("balanced").estimate_cost_usd(1000, 1000) == Decimal("0.018")
    await models.aclose()


def test_a_price_of_the_configuration_counts_in_place_of_the_list_also_for_cached_tokens() -> None:
    own = TokenPrice(input_usd=Decimal(10), output_usd=Decimal(100), cached_input_usd=Decimal(1))
    priced = replace(spec("openai"), prices={"mine": own})
    assert estimate_price(priced, "mine", 1000, 100) == Decimal("0.02")
    assert own.price(Usage(input_tokens=1000, cache_read_tokens=900)) == Decimal("0.0019")
    without = replace(own, cached_input_usd=None)
    assert without.price(Usage(input_tokens=1000, cache_read_tokens=900)) == Decimal("0.01")


def test_the_listed_price_is_told_for_a_million_tokens() -> None:
    found = find_listed_price(spec("anthropic"), "claude-sonnet-4-5")
    assert found == TokenPrice(input_usd=Decimal(3), output_usd=Decimal(15), cached_input_usd=Decimal("0.3"))
    assert find_listed_price(spec("openai"), "nobody-knows-it") is None
