"""Names, aliases, and what building the models costs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from denizen.adapters.models.catalog import ModelCatalog, ModelsSpec, build_models
from denizen.adapters.models.providers import AliasSpec, ModelSpec, ProviderSpec
from denizen.domain.errors import InvalidInput, NeedsAttention, NotFound, Unavailable
from denizen.domain.installation import build_install_command
from denizen.ports.model import Models
from denizen.testing.model_server import HangingAnswer, ModelAnswer, ModelServer
from tests.adapters.models.wire_fixture import ANTHROPIC, OPENAI, BuildCatalog, make_request, read_stream
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

SPEC = ModelsSpec(
    providers=[
        ProviderSpec(name="claude", kind="anthropic", api_key=lambda: "k"),
        ProviderSpec(name="local", kind="ollama"),
        ProviderSpec(name="router", kind="openrouter", api_key=lambda: "k"),
    ],
    models=[
        ModelSpec("claude/claude-opus-4-5"),
        ModelSpec("local/qwen3:8b", {"context_tokens": 4096}),
        ModelSpec("local/shared"),
        ModelSpec("router/shared"),
    ],
    aliases=[
        AliasSpec("balanced", "claude/claude-opus-4-5", ("quick", "local/qwen3:8b")),
        AliasSpec("quick", "qwen3:8b"),
    ],
    default="balanced",
)


ALONE: dict[str, Any] = {"aliases": [], "default": ""}


def built(**changes: Any) -> ModelCatalog:
    return build_models(replace(SPEC, **changes))


def test_models_go_by_alias_full_name_and_unique_short_name() -> None:
    models: Models = built()
    assert models.get("balanced").name == "claude/claude-opus-4-5"
    assert models.get("quick").name == models.get("qwen3:8b").name == "local/qwen3:8b"
    assert models.get("router/meta/llama-4").name == "router/meta/llama-4"
    assert models.get("quick").capabilities.context_tokens == 4096


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("balancd", "Did you mean 'balanced'?"),
        ("claude/", "Did you mean 'claude-opus-4-5'?"),
        ("qwen3", "Did you mean 'qwen3:8b'?"),
        ("shared", "Name it with its provider."),
        ("zzzz", "Known: balanced,"),
        ("", "Known: balanced,"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, advice: str) -> None:
    with pytest.raises(NotFound) as caught:
        built().get(name)
    assert advice in caught.value.fix


def test_the_list_tells_providers_aliases_and_fallbacks() -> None:
    rows = {row.name: row for row in built().list_models()}
    assert list(rows) == ["claude/claude-opus-4-5", "local/qwen3:8b", "local/shared", "router/shared"]
    assert rows["claude/claude-opus-4-5"].aliases == ("balanced",)
    assert rows["claude/claude-opus-4-5"].fallbacks == ("local/qwen3:8b",)
    assert rows["local/qwen3:8b"].aliases == ("quick",)
    assert rows["local/qwen3:8b"].provider == "local"
    assert rows["local/qwen3:8b"].capabilities.context_tokens == 4096


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"aliases": [AliasSpec("a", "b"), AliasSpec("b", "a")]}, "model_alias_circular"),
        ({"aliases": [AliasSpec("a", "nowhere")]}, "model_name_unknown"),
        ({"aliases": [AliasSpec("a", "local/x"), AliasSpec("a", "local/y")]}, "model_name_twice"),
        ({"models": [ModelSpec("nowhere/x")]}, "model_name_unknown"),
        ({**ALONE, "models": [ModelSpec("local/x", {"imagse": True})]}, "model_setting_unknown"),
        ({"default": "nowhere"}, "model_name_unknown"),
        ({"providers": [*SPEC.providers, SPEC.providers[0]]}, "provider_name_twice"),
        ({"providers": [ProviderSpec(name="a/b", kind="ollama")]}, "provider_name_invalid"),
        ({"providers": [ProviderSpec(name="a", kind="openai-compatible")]}, "provider_address_missing"),
        ({"providers": [ProviderSpec(name="a", kind="ollama", base_url="localhost:1")]}, "provider_address_invalid"),
        ({"providers": [ProviderSpec(name="a", kind="embedded")]}, "provider_source_mismatch"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused_when_it_is_built(changes: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        built(**changes)
    assert caught.value.code == code


async def test_a_provider_without_its_key_says_which_one_to_set() -> None:
    provider = ProviderSpec(name="claude", kind="anthropic", key_name="ANTHROPIC_API_KEY")
    models = build_models(ModelsSpec(providers=[provider]))
    with pytest.raises(NeedsAttention) as caught:
        await read_stream(models.get("claude/claude-opus-4-5"), make_request("hi"))
    assert "ANTHROPIC_API_KEY" in caught.value.fix


async def test_a_vendor_that_is_not_installed_is_told_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pydantic_ai.models.google", raising=False)
    monkeypatch.setitem(sys.modules, "google.genai", None)
    provider = ProviderSpec(name="google", kind="google", api_key=lambda: "k")
    models = build_models(ModelsSpec(providers=[provider], default="google/gemini-3-pro"))
    for ask_for in (models.warm(), read_stream(models.get("google/gemini-3-pro"), make_request("hi"))):
        with pytest.raises(NeedsAttention) as caught:
            await ask_for
        assert caught.value.fix == f"Run: {build_install_command('google')}"


async def test_the_default_model_can_be_warmed_up(server: ModelServer, build: BuildCatalog) -> None:
    await built().warm()
    await built(default="").warm()


async def test_models_that_were_closed_say_so(server: ModelServer, build: BuildCatalog) -> None:
    models = build(OPENAI, ANTHROPIC)
    server.script(ModelAnswer(text="ok"))
    await read_stream(models.get(OPENAI.name), make_request("hi"))
    await models.aclose()
    for wire in (OPENAI, ANTHROPIC):
        with pytest.raises(Unavailable) as caught:
            await read_stream(models.get(wire.name), make_request("hi"))
        assert caught.value.code == "models_closed"


async def test_a_request_that_is_under_way_when_the_models_close_ends(server: ModelServer, build: BuildCatalog) -> None:
    models = build(OPENAI)
    server.script(HangingAnswer(ModelAnswer(text="one two three four five"), after_frames=3))
    stream = models.get(OPENAI.name).stream(make_request("hi"))
    await anext(aiter(stream))
    await models.aclose()
    with pytest.raises(Unavailable) as caught:
        async for _ in stream:
            pass
    assert caught.value.code == "models_closed"


def test_building_models_loads_no_vendor() -> None:
    program = """
import sys
from denizen.adapters.models.catalog import ModelsSpec, build_models
from denizen.adapters.models.providers import PROVIDERS, ProviderSpec

kinds = [kind for kind in PROVIDERS if kind != "embedded"]
providers = [ProviderSpec(name=kind, kind=kind, base_url="http://127.0.0.1:1/v1") for kind in kinds]
models = build_models(ModelsSpec(providers=providers, default="openai/gpt-5"))
for kind in kinds:
    models.get(f"{kind}/some-model").capabilities
models.list_models()
heavy = {"openai", "anthropic", "pydantic_ai", "pydantic", "httpx2", "genai_prices"}
print(sorted(heavy & set(sys.modules)))
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=HANG_LIMIT_S
    )
    assert result.stdout.strip() == "[]"
