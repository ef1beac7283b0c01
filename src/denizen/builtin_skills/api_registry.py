"""The registered APIs, the operations of those that were imported, and the times of the last calls.

They are files, which all processes of a home share.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from denizen.skill import ApiDocument, ApiKeyPlace, ApiOperation, ApiParameter, NotFound, ToolError

CALLS_PER_MINUTE = 10
MINUTE_S = 60.0
MAX_APIS = 50

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RegisteredApi:
    name: str
    base_url: str
    key: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class ApiRegistry:
    """The APIs of a home, in `folder`. All methods read or write files."""

    folder: Path

    def load(self) -> dict[str, RegisteredApi]:
        return {row["name"]: RegisteredApi(**row) for row in _read(self.folder / "apis.json", [])}

    def get(self, name: str) -> RegisteredApi:
        """Raises NotFound."""
        apis = self.load()
        if name not in apis:
            known = ", ".join(sorted(apis)) or "none"
            raise NotFound(f"There is no API '{name[:40]}'.", code="api_unknown", fix=f"Registered are: {known}.")
        return apis[name]

    def get_document(self, name: str) -> ApiDocument:
        """Raises NotFound, also for an API that was not imported."""
        self.get(name)
        found: Any = _read(self._document_path(name), None)
        if found is None:
            raise NotFound(
                f"{name} has no operations.", code="api_operations", fix="Call it by path, or import its document."
            )
        operations = [
            ApiOperation(**row | {"parameters": [ApiParameter(**each) for each in row["parameters"]]})
            for row in found["operations"]
        ]
        places = [ApiKeyPlace(**each) for each in found["key_places"]]
        return ApiDocument(**found | {"operations": operations, "key_places": places})

    def add(self, api: RegisteredApi, document: ApiDocument | None = None) -> None:
        """Raises ToolError when there are too many, or when another API has the name."""
        with self._locked():
            apis = self.load()
            if api.name not in apis and len(apis) >= MAX_APIS:
                raise ToolError(f"{MAX_APIS} APIs are registered, as many as there may be. Delete one.", is_own=True)
            if api.name in apis and apis[api.name] != api:
                raise ToolError(f"The name {api.name} is taken. Delete that API first, or choose another.", is_own=True)
            if document is not None:
                _write(self._document_path(api.name), asdict(document))
            self._save(apis | {api.name: api})

    def delete(self, name: str) -> None:
        """Raises NotFound."""
        with self._locked():
            gone = self.get(name)
            self._save({each: api for each, api in self.load().items() if each != gone.name})
            self._document_path(gone.name).unlink(missing_ok=True)

    def count_call(self, name: str, now_s: float) -> None:
        """Notes a call. Raises ToolError when there were too many within a minute, of whatever process."""
        with self._locked():
            calls: dict[str, list[float]] = _read(self.folder / "calls.json", {})
            recent = [at for at in calls.get(name, []) if 0 <= now_s - at < MINUTE_S]
            if len(recent) >= CALLS_PER_MINUTE:
                wait_s = MINUTE_S - (now_s - min(recent))
                raise ToolError(
                    f"{name} was called {CALLS_PER_MINUTE} times within a minute. Wait {wait_s:.0f} s.", is_own=True
                )
            _write(self.folder / "calls.json", calls | {name: [*recent, now_s]})

    def _save(self, apis: dict[str, RegisteredApi]) -> None:
        _write(self.folder / "apis.json", [asdict(api) for api in apis.values()])

    def _document_path(self, name: str) -> Path:
        return self.folder / f"{name}.openapi.json"

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Keeps other processes from changing the files during the block."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _read(path: Path, default: T) -> T:
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    return found


def _write(path: Path, value: object) -> None:
    following = path.with_suffix(".next")
    with following.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    following.replace(path)
