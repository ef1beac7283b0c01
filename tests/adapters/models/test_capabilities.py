"""What is known about a model from its name, and how the configuration corrects it."""

from __future__ import annotations

import re

import pytest

from denizen.adapters.models.capabilities import detect_capabilities, is_small, override_capabilities
from denizen.adapters.models.providers import PROVIDERS, ProviderKind
from denizen.domain.errors import InvalidInput
from denizen.ports.model import Capabilities

FULL = {"temperature", "top_p", "seed"}


@pytest.mark.parametrize(
    ("kind", "model", "sampling", "prefill", "context_tokens"),
    [
        ("anthropic", "claude-3-5-haiku-latest", {"temperature", "top_p"}, True, 200_000),
        ("anthropic", "claude-sonnet-4-20250514", {"temperature", "top_p"}, True, 200_000),
        ("anthropic", "claude-opus-4-1-20250805", {"temperature", "top_p"}, True, 200_000),
        ("anthropic", "claude-haiku-4-5", {"temperature", "top_p"}, True, 200_000),
        ("anthropic", "claude-opus-4-6", {"temperature", "top_p"}, False, 1_000_000),
        ("anthropic", "claude-opus-4-7", set[str](), False, 1_000_000),
        ("anthropic", "claude-sonnet-5-5", set[str](), False, 1_000_000),
        ("anthropic", "some-new-name", set[str](), False, 1_000_000),
        ("openrouter", "anthropic/claude-sonnet-4.5", {"temperature", "top_p"}, True, 200_000),
        ("openrouter", "anthropic/claude-opus-4.7", set[str](), False, 1_000_000),
        ("openai-compatible", "claude-haiku-4-5", {"temperature", "top_p"}, False, 200_000),
        ("openai", "gpt-4o-mini", FULL, False, 128_000),
        ("openai", "gpt-4.1", FULL, False, 1_000_000),
        ("openai", "gpt-5", set[str](), False, 400_000),
        ("openai", "gpt-5-mini-2025-08-07", set[str](), False, 400_000),
        ("openai", "gpt-5-chat-latest", FULL, False, 128_000),
        ("openai", "gpt-5.2", FULL, False, 400_000),
        ("openai", "gpt-5.2-pro", set[str](), False, 400_000),
        ("openai", "gpt-6-astra", set[str](), False, 1_050_000),
        ("openai", "o3", set[str](), False, 200_000),
        ("openai", "o4-mini", set[str](), False, 200_000),
        ("openai-responses", "gpt-4.1", {"temperature", "top_p"}, False, 1_000_000),
        ("openrouter", "openai/gpt-oss-120b:free", FULL, False, 131_072),
        ("google", "gemini-3-pro", FULL, False, 1_000_000),
        ("xai", "grok-4-fast", FULL, False, 2_000_000),
        ("groq", "llama-3.3-70b-versatile", FULL, False, 131_072),
        ("ollama", "llama3.1:8b", FULL, False, 131_072),
        ("ollama", "nobody-knows", FULL, False, 32_768),
        ("openai-compatible", "nobody-knows", FULL, False, 32_768),
        ("embedded", "default", FULL, False, 8192),
    ],
)
@pytest.mark.proves("CW2")
def test_models_are_told_by_their_names(
    kind: ProviderKind, model: str, sampling: set[str], *, prefill: bool, context_tokens: int
) -> None:
    found = detect_capabilities(kind, model)
    assert (found.sampling, found.prefill, found.context_tokens) == (sampling, prefill, context_tokens)


@pytest.mark.parametrize("kind", PROVIDERS)
def test_cache_marks_go_to_those_who_read_them(kind: ProviderKind) -> None:
    marks = detect_capabilities(kind, "claude-haiku-4-5").cache_marks
    assert marks is (kind in {"anthropic", "openrouter"})


def test_constrained_output_depends_on_the_server_where_it_has_a_grammar() -> None:
    assert not detect_capabilities("openai-compatible", "deepseek-chat").json_schema
    assert detect_capabilities("ollama", "deepseek-v3").json_schema
    assert not detect_capabilities("ollama", "deepseek-v3.1:671b-cloud").json_schema
    assert not detect_capabilities("anthropic", "claude-3-5-haiku-latest").json_schema


def test_the_embedded_model_plans_and_is_constrained() -> None:
    found = detect_capabilities("embedded", "qwen2.5-coder-1.5b-instruct")
    assert (found.small, found.native_tools, found.json_schema, found.images) == (True, False, True, False)


@pytest.mark.parametrize(
    "model",
    [
        "qwen2.5:1.5b",
        "qwen2.5-coder:0.5b-instruct-q4_K_M",
        "llama3.2",
        "llama3.2:3b",
        "meta-llama/llama-3.2-1b-instruct",
        "smollm2:135m",
        "gemma3:270m",
        "gemma3n:e2b",
        "phi4-mini",
        "Phi-3-mini-4k-instruct",
        "tinyllama",
        "qwen3:4b",
    ],
)
def test_models_of_four_thousand_million_parameters_are_small(model: str) -> None:
    assert is_small(model)
    assert detect_capabilities("ollama", model).small


@pytest.mark.parametrize(
    "model",
    [
        "qwen3:8b",
        "qwen3-30b-a3b",
        "mixtral-8x7b",
        "llama-3.3-70b-versatile",
        "gpt-5-mini",
        "gpt-4o-mini",
        "claude-haiku-4-5",
        "o3-mini",
        "gpt-oss-20b",
        "command-r7b",
        "deepseek-r1:671b",
        "some-model",
    ],
)
def test_other_models_are_not_small(model: str) -> None:
    assert not is_small(model)


def test_overrides_correct_what_was_detected() -> None:
    found = detect_capabilities("openai-compatible", "my-model")
    corrected = override_capabilities(
        found,
        {"context_tokens": 8192, "images": True, "sampling": ["temperature"], "max_output_tokens": None},
        "x/my-model",
    )
    assert (corrected.context_tokens, corrected.images, corrected.sampling) == (8192, True, {"temperature"})
    assert override_capabilities(found, {}, "x/my-model") == found


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"contxt_tokens": 1}, "Did you mean 'context_tokens'?"),
        ({"images": "yes"}, "true or false"),
        ({"context_tokens": 0}, "whole number above zero"),
        ({"context_tokens": True}, "whole number above zero"),
        ({"sampling": ["heat"]}, "a list out of seed, temperature, top_p"),
        ({"sampling": "temperature"}, "a list out of"),
    ],
)
def test_overrides_that_do_not_fit_are_refused_with_advice(overrides: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        override_capabilities(Capabilities(), overrides, "x/y")
    assert re.search(re.escape(said), caught.value.fix)
    assert "x/y" in caught.value.message
