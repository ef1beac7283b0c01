"""Embedding of passages: processor time and memory of one way beside another, and whether cheaper ways find as much.

python -m benchmarks embedding                      three minutes

Every way runs in a process of its own: some passages as they come from manuals, then only full ones. Memory is that of
the process at its highest, above what it has before it loads the model. "published" is the model as its file has it,
which computes in float; "int8" is the same with its products in int8, as Denizen uses it, one text at a time. Below
stands how often dense search finds the passage that a question was made of.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.corpus import load_documents, make_questions
from denizen.adapters.embed import MINILM, EmbeddingPlaces, load_embedding_weights
from denizen.adapters.embed.local import register_model
from denizen.domain.vector import find_nearest, pack_vector
from denizen.engine.knowledge.index import EMBEDDED_CHARS

if TYPE_CHECKING:
    from fastembed import TextEmbedding

PASSAGES, TIMED, QUESTIONS, FOUND = 1000, 64, 150, 10
FULL_CHARS = 1150
TRAINED_TOKENS = 128
"""The length of the texts that the model was trained with; it takes 256."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way of embedding texts."""

    name: str
    at_once: int = 1
    is_published: bool = True
    threads: int = 1
    is_sorted: bool = False
    keeps_memory: bool = True
    tokens: int = 256


INT8 = Way("int8, one by one (Denizen)", is_published=False)
BEFORE = Way("published, 8 at once (before)", 8)
ALONE = Way("published, one by one")
SHORT = Way("int8, 128 tokens", is_published=False, tokens=TRAINED_TOKENS)
WAYS = (
    BEFORE,
    Way("published, 16 at once", 16),
    Way("published, 64 at once", 64),
    Way("published, 8 at once, 2 threads", 8, threads=2),
    Way("published, 8 at once, sorted by length", 8, is_sorted=True),
    Way("published, 8 at once, no arena", 8, keeps_memory=False),
    ALONE,
    Way("int8, 8 at once", 8, is_published=False),
    Way("int8, one by one, no arena", is_published=False, keeps_memory=False),
    SHORT,
    INT8,
)


def open_model(way: Way, folder: Path) -> TextEmbedding:
    from fastembed import TextEmbedding

    (folder / "tokenizer_config.json").write_text(
        json.dumps({"model_max_length": way.tokens, "pad_token": "[PAD]", "do_lower_case": True}), encoding="utf-8"
    )
    name = MINILM.files[0].name if way.is_published else MINILM.graph.name
    shutil.copyfile(folder / name, folder / "chosen.onnx")
    entry = replace(MINILM, name="chosen", graph=replace(MINILM.graph, name="chosen.onnx"))
    return TextEmbedding(
        register_model(entry),
        specific_model_path=str(folder),
        threads=way.threads,
        enable_cpu_mem_arena=way.keeps_memory,
    )


def time_texts(model: TextEmbedding, texts: Sequence[str], way: Way) -> float:
    """Processor time of one text, ms."""
    given = sorted(texts, key=len) if way.is_sorted else list(texts)
    begun_s = time.process_time()
    for _ in model.embed(given, batch_size=way.at_once):
        pass
    return (time.process_time() - begun_s) * 1000 / len(given)


def measure(folder: Path, way: Way) -> None:
    """Prints the figures of one way as JSON. Runs in a process of its own."""
    texts: list[str] = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    idle_mb = _most_mb()
    model = open_model(way, folder)
    mixed = time_texts(model, texts[:TIMED], way)
    full = time_texts(model, [text for text in texts if len(text) >= FULL_CHARS][:TIMED], way)
    print(json.dumps([mixed, full, _most_mb() - idle_mb]))


def _most_mb() -> float:
    """`getrusage` would tell the most of whoever started the process, too."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024


def run_apart(folder: Path, way: Way) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.embedding", str(folder), json.dumps(asdict(way))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def show_quality(folder: Path, texts: Sequence[str], keys: Sequence[str], questions: Sequence[tuple[str, str]]) -> None:
    print(f"dense search, {len(questions)} questions, {len(texts)} passages")
    for way in (ALONE, INT8, SHORT):
        model = open_model(way, folder)
        vectors = model.embed(list(texts), batch_size=1)
        rows = [(key, pack_vector(vector.tolist())) for key, vector in zip(keys, vectors, strict=True)]
        asked = model.embed([question for question, _ in questions], batch_size=1)
        ranks = [[match.key for match in find_nearest(pack_vector(each.tolist()), rows, limit=FOUND)] for each in asked]
        first = sum(row[0] == key for row, (_, key) in zip(ranks, questions, strict=True))
        found = sum(key in row for row, (_, key) in zip(ranks, questions, strict=True))
        print(
            f"  {way.name:38} hit@1 {first / len(questions):.3f}  hit@{FOUND} {found / len(questions):.3f}", flush=True
        )


def main(url: str = "") -> None:
    del url
    documents = load_documents(PASSAGES)
    texts = [each.described[:EMBEDDED_CHARS] for document in documents for each in document.passages]
    keys = [key for document in documents for key in document.keys]
    asked = make_questions(documents, QUESTIONS, of_titles=False) + make_questions(documents, QUESTIONS, of_titles=True)
    with tempfile.TemporaryDirectory() as home:
        folder = load_embedding_weights(MINILM, EmbeddingPlaces(Path(home)))
        (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
        print(f"{'':40} {'mixed':>14} {'full':>14} {'memory':>10}")
        for way in WAYS:
            mixed_ms, full_ms, most_mb = run_apart(folder, way)
            print(f"{way.name:40} {mixed_ms:8.1f} ms CPU {full_ms:8.1f} ms CPU {most_mb:+7.0f} MB", flush=True)
        show_quality(folder, texts, keys, [(each.question, each.key) for each in asked])


if __name__ == "__main__":
    measure(Path(sys.argv[1]), Way(**json.loads(sys.argv[2])))
