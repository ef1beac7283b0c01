"""Texts to vectors on this machine, with the real weights from the packages that carry them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from denizen.adapters.embed import MINILM, EmbeddingPlaces, LocalEmbedder, has_embedding_weights, load_embedding_weights
from denizen.adapters.embed.local import register_model
from denizen.domain.errors import NeedsAttention
from denizen.domain.vector import find_nearest, pack_vector
from denizen.ports.embed import EmbedKind

pytest.importorskip("fastembed")

TEXTS = {
    "pet": "The user has a dog named Bella.",
    "drink": "She prefers tea to coffee.",
    "work": "He repairs bicycles for a living.",
}


@pytest.mark.anyio
@pytest.mark.proves("V27")
async def test_texts_of_a_like_meaning_are_near_each_other(tmp_path: Path) -> None:
    embedder = LocalEmbedder(MINILM, EmbeddingPlaces(tmp_path))
    vectors = (await embedder.embed([*TEXTS.values()], EmbedKind.DOCUMENT)).vectors
    assert {len(vector) for vector in vectors} == {MINILM.dimensions}
    rows = [(key, pack_vector(vector)) for key, vector in zip(TEXTS, vectors, strict=True)]
    questions = {"Which animals does she keep?": "pet", "What is his job?": "work", "a hot beverage": "drink"}
    for question, expected in questions.items():
        (vector,) = (await embedder.embed([question], EmbedKind.QUERY)).vectors
        assert find_nearest(pack_vector(vector), rows, limit=1)[0].key == expected
    assert embedder.name == "local/all-minilm-l6-v2"
    assert {file.name for file in (tmp_path / "models" / MINILM.name).iterdir()} == {
        *(file.name for file in MINILM.files),
        MINILM.graph.name,
        *MINILM.settings,
    }
    await embedder.aclose()


@pytest.mark.anyio
async def test_a_question_waits_for_one_passage_and_not_for_all_that_are_under_way(tmp_path: Path) -> None:
    embedder = LocalEmbedder(MINILM, EmbeddingPlaces(tmp_path))
    await embedder.embed(["warm"], EmbedKind.DOCUMENT)
    ended: list[str] = []

    async def embed(name: str, *texts: str) -> None:
        await embedder.embed(texts, EmbedKind.DOCUMENT)
        ended.append(name)

    async with anyio.create_task_group() as group:
        group.start_soon(embed, "passages", *(f"Berth number {number}. " * 20 for number in range(20)))
        group.start_soon(embed, "question", "How much is a berth?")
    assert ended == ["question", "passages"]


@pytest.mark.anyio
async def test_texts_keep_their_order_and_their_vectors_whatever_is_embedded_with_them(tmp_path: Path) -> None:
    embedder = LocalEmbedder(MINILM, EmbeddingPlaces(tmp_path))
    texts = ["short", "long " * 300, "short", ""]
    together = (await embedder.embed(texts, EmbedKind.DOCUMENT)).vectors
    alone = [(await embedder.embed([text], EmbedKind.DOCUMENT)).vectors[0] for text in texts]
    assert together == alone
    assert together[0] == together[2] != together[1]


def test_the_graph_is_made_of_the_weights_once_and_again_when_it_is_damaged(tmp_path: Path) -> None:
    folder = load_embedding_weights(MINILM, EmbeddingPlaces(tmp_path))
    graph = folder / MINILM.graph.name
    made = graph.stat().st_mtime_ns
    load_embedding_weights(MINILM, EmbeddingPlaces(tmp_path))
    assert graph.stat().st_mtime_ns == made
    graph.write_bytes(b"damaged")
    load_embedding_weights(MINILM, EmbeddingPlaces(tmp_path))
    assert hashlib.sha256(graph.read_bytes()).hexdigest() == MINILM.graph.sha256
    assert not list(folder.glob(".*"))


def test_vectors_in_int8_are_those_of_the_published_model_but_for_rounding(tmp_path: Path) -> None:
    from fastembed import TextEmbedding

    folder, texts = load_embedding_weights(MINILM, EmbeddingPlaces(tmp_path)), [*TEXTS.values(), "word " * 200]
    published = replace(MINILM, name="published", graph=replace(MINILM.graph, name=MINILM.graph.source))
    options: dict[str, Any] = {"specific_model_path": str(folder), "threads": 1}
    exact, rounded = (
        [vector for text in texts for vector in TextEmbedding(register_model(entry), **options).embed([text])]
        for entry in (published, MINILM)
    )
    for one, other in zip(exact, rounded, strict=True):
        assert float(one @ other) > 0.95


EMBED = """
import asyncio, sys
from pathlib import Path
from denizen.adapters.embed import MINILM, EmbeddingPlaces, LocalEmbedder
from denizen.ports.embed import EmbedKind

asyncio.run(LocalEmbedder(MINILM, EmbeddingPlaces(Path(sys.argv[1]))).embed(["hello"], EmbedKind.DOCUMENT))
"""


def test_the_runtime_of_the_model_reports_nothing_to_its_vendor(tmp_path: Path) -> None:
    """It would keep an id of the machine in the user's cache, and send what it loads."""
    user = tmp_path / "user"
    user.mkdir()
    environment = {"HOME": str(user), "PATH": os.environ["PATH"]}  # and none of the variables of a CI
    subprocess.run([sys.executable, "-c", EMBED, str(tmp_path)], env=environment, check=True)
    assert not list(user.rglob("*"))


def test_weights_come_from_installed_packages_and_stay_in_the_home_folder(tmp_path: Path) -> None:
    nowhere = EmbeddingPlaces(tmp_path, installed=False)
    assert not has_embedding_weights(MINILM, nowhere)
    assert has_embedding_weights(MINILM, EmbeddingPlaces(tmp_path))
    folder = load_embedding_weights(MINILM, EmbeddingPlaces(tmp_path))
    assert folder == tmp_path / "models" / MINILM.name
    assert has_embedding_weights(MINILM, nowhere)
    assert load_embedding_weights(MINILM, nowhere) == folder


def test_weights_that_are_nowhere_say_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(NeedsAttention) as caught:
        load_embedding_weights(MINILM, EmbeddingPlaces(tmp_path, installed=False))
    assert caught.value.code == "weights_missing"
    assert "denizen models pull all-minilm-l6-v2" in caught.value.fix


@pytest.mark.anyio
async def test_whatever_the_way_the_sha256_decides(tmp_path: Path) -> None:
    folder = tmp_path / "models" / MINILM.name
    folder.mkdir(parents=True)
    wrong = bytes(MINILM.files[1].size_bytes)
    (folder / MINILM.files[1].name).write_bytes(wrong)
    with pytest.raises(NeedsAttention) as caught:
        await LocalEmbedder(MINILM, EmbeddingPlaces(tmp_path)).embed(["x"], EmbedKind.QUERY)
    assert caught.value.code == "weights_refused"
    assert hashlib.sha256(wrong).hexdigest() in caught.value.why
    assert not (folder / MINILM.files[1].name).exists()


def test_a_package_of_another_version_is_not_taken(tmp_path: Path) -> None:
    other = replace(MINILM, files=[replace(file, version="0.0.1") for file in MINILM.files])
    assert not has_embedding_weights(other, EmbeddingPlaces(tmp_path))
