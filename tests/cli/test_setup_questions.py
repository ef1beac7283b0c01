"""The menus of `denizen setup`: numbers, names, and words that people use for them."""

from __future__ import annotations

import pytest

from denizen.adapters.models.providers import PROVIDERS
from denizen.cli.setup_questions import find_kind, narrow_names

NAMES = ["gpt-5", "gpt-5-mini", "o4"]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("2", "openai"),
        ("anthropic", "anthropic"),
        ("Claude", "anthropic"),
        ("gpt", "openai"),
        (" grok ", "xai"),
        ("gemini", "google"),
        ("built-in", "embedded"),
        ("OpenAI-Responses", "openai-responses"),
        ("", ""),
        ("0", ""),
        ("99", ""),
        ("nonsense", ""),
    ],
)
def test_a_provider_is_found_by_number_name_or_word(said: str, kind: str) -> None:
    kinds = ["anthropic", "openai", *(each for each in PROVIDERS if each not in ("anthropic", "openai"))]
    assert find_kind(said, kinds) == kind


@pytest.mark.parametrize(
    ("said", "shown", "found"),
    [
        ("3", NAMES, ["o4"]),
        ("2", ["o4"], ["2"]),
        ("gpt-5", NAMES, ["gpt-5"]),
        ("GPT", NAMES, ["gpt-5", "gpt-5-mini"]),
        ("gpt", ["gpt-5", "gpt-5-mini"], ["gpt"]),
        ("mini", NAMES, ["gpt-5-mini"]),
        ("brand-new", NAMES, ["brand-new"]),
        ("any", [], ["any"]),
    ],
)
def test_a_model_is_found_by_number_name_or_part(said: str, shown: list[str], found: list[str]) -> None:
    assert narrow_names(said, shown, NAMES if shown else []) == found
