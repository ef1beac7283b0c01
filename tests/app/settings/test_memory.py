"""What `memory` and `embeddings` mean, the memory files, and which embedder is taken."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from denizen.adapters.embed import LocalEmbedder, ServedEmbedder
from denizen.app.embeddings import EmbedderPool, build_recall, describe_embeddings
from denizen.app.user_memory_files import MAX_CHARS, UserMemoryFiles
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import AgentName
from denizen.domain.memory import RecallPolicy
from tests.app.home_folder import Home

ADA = AgentName("ada")
SERVED = """\
models:
  providers:
    acme: {kind: openai-compatible, base_url: "http://127.0.0.1:1/v1", api_key: "${KEY}", headers: {x-a: b}}
    claude: {kind: anthropic, api_key: "${KEY}"}
  aliases: {balanced: acme/large}
embeddings: {provider: PROVIDER, model: small}
"""


def test_the_limits_of_recalled_memories_are_settings(home: Home) -> None:
    written = "memory: {max_items: 3, max_tokens: 100}\nembeddings: {similarity: 0.5}\n"
    assert build_recall(home.load(written)) == RecallPolicy(3, 100, 0.5)
    assert build_recall(home.load("")) == RecallPolicy()


@pytest.mark.anyio
async def test_a_provider_of_the_configuration_gives_the_vectors(home: Home) -> None:
    settings = home.load(SERVED.replace("PROVIDER", "acme"), KEY="sk-1")
    pool = EmbedderPool(home.path)
    embedder = pool.get(settings)
    assert isinstance(embedder, ServedEmbedder)
    assert embedder.name == "acme/small"
    assert pool.get(home.load(KEY="sk-2")) is embedder
    assert pool._find_api_key("acme") == "sk-2"
    assert "by embeddings (acme/small)" in describe_embeddings(settings, embedder)
    await pool.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize(("kind", "usd"), [("openai", "0.02"), ("ollama", "0"), ("openai-compatible", None)])
async def test_vectors_have_the_price_of_the_list(home: Home, kind: str, usd: str | None) -> None:
    text = SERVED.replace("openai-compatible", kind).replace(
        "PROVIDER, model: small", "acme, model: text-embedding-3-small"
    )
    pool = EmbedderPool(home.path)
    embedder = pool.get(home.load(text, KEY="sk-1"))
    assert embedder is not None
    assert await embedder.estimate_cost_usd(1_000_000) == (None if usd is None else Decimal(usd))
    await pool.aclose()


@pytest.mark.parametrize("name", ["claude", "builtin"])
def test_a_provider_without_embeddings_is_refused_with_those_that_have_them(home: Home, name: str) -> None:
    settings = home.load(SERVED.replace("PROVIDER", name), KEY="sk-1")
    with pytest.raises(InvalidInput) as caught:
        EmbedderPool(home.path).get(settings)
    assert f"'{name}' has no embeddings" in caught.value.message
    assert "openai-compatible" in caught.value.fix


def test_an_unknown_provider_is_refused_with_the_nearest(home: Home) -> None:
    error = home.refuse(SERVED.replace("PROVIDER", "acmee"), KEY="sk-1")
    assert "'acmee/small' names a provider that is not configured" in error.message
    assert "Did you mean 'acme'?" in error.fix


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("{provider: local, model: small}", "only an embeddings provider of models.providers has a choice of models"),
        ("{provider: acme}", "a provider of embeddings needs the name of a model"),
        ("{similarity: 2}", "similarity"),
    ],
)
def test_what_does_not_fit_together_is_refused(home: Home, section: str, said: str) -> None:
    text = SERVED.replace("{provider: PROVIDER, model: small}", section)
    assert said in home.refuse(text, KEY="sk-1").explain()


def test_unset_means_local_where_everything_is_here_and_words_only_elsewhere(home: Home) -> None:
    pytest.importorskip("fastembed")
    settings, pool = home.load(""), EmbedderPool(home.path)
    assert pool.is_local_ready()
    assert isinstance(pool.get(settings), LocalEmbedder)
    none = home.load("embeddings: {provider: none}\n")
    assert pool.get(none) is None
    assert "embeddings.provider is none" in describe_embeddings(none, None)
    assert "denizen models pull all-minilm-l6-v2" in describe_embeddings(settings, None)
    assert not (home.path / "models").exists()


@pytest.mark.proves("V7")
def test_core_memory_belongs_to_the_agent_and_counts_as_a_change(home: Home) -> None:
    text = "agents: {ada: {}, ben: {}}\ndefault_agent: ada\n"
    before = home.load(text)
    home.add_file("agents/ada/CORE_MEMORY.md", "The fair is in May.\n")
    after = home.load(text)
    assert after.agents[ADA].instructions.core_memory == "The fair is in May."
    assert after.agents[AgentName("ben")].instructions.core_memory == ""
    assert after.agents[ADA].instructions.persona == before.agents[ADA].instructions.persona
    assert after.digest != before.digest


@pytest.mark.anyio
async def test_the_get_file_a_user_is_read_anew_each_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = UserMemoryFiles(tmp_path)
    key = "platform_user:discord:1"
    assert await files.load(ADA, key) == ""
    file = tmp_path / "agents/ada/users/platform_user:discord:1/MEMORY.md"
    file.parent.mkdir(parents=True)
    file.write_text("\nLikes tea.\n", encoding="utf-8")
    assert await files.load(ADA, key) == "Likes tea."
    assert await files.load(AgentName("ben"), key) == ""
    file.write_text("x" * (MAX_CHARS + 1), encoding="utf-8")
    assert await files.load(ADA, key) == "x" * MAX_CHARS + "…"
    await files.load(ADA, key)
    file.write_bytes(b"\xff\xfe\xfa")
    assert await files.load(ADA, key) == ""
    assert len(caplog.records) == 1


def test_every_user_has_a_get_file_their_own_below_the_agent(tmp_path: Path) -> None:
    files = UserMemoryFiles(tmp_path)
    keys = ["api_key:../../x", "api_key:..%2F..%2Fx", "web_user:a b", "web_user:a/b", "local:operator"]
    found = [files.get_file(ADA, key) for key in keys]
    assert len(set(found)) == len(keys)
    assert all(file.parent.parent == tmp_path / "agents/ada/users" for file in found)
