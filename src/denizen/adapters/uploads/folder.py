"""Files of uploads below one folder, as `<owner>/<chat>/<file>`. Only the server's own user may read them."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from anyio import to_thread

from denizen.domain.chat import ChatId
from denizen.domain.errors import Unavailable
from denizen.domain.upload import UploadPath

T = TypeVar("T")


class UploadFolder:
    """Implements `denizen.ports.uploads.UploadFiles`. The folder is made with the first upload."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def write(self, path: UploadPath, data: bytes) -> None:
        await _run(lambda: self._write(path, data))

    async def read(self, path: UploadPath) -> bytes | None:
        return await _run(lambda: _read(self._find(path)))

    async def remove(self, path: UploadPath) -> bool:
        return await _run(lambda: _remove(self._find(path)))

    async def remove_chat(self, owner: str, chat: str) -> None:
        await _run(lambda: _remove_folder(self._root / owner / chat))

    async def list_paths(self, owner: str) -> Sequence[UploadPath]:
        return await _run(lambda: _list_paths(self._root / owner))

    async def remove_owner(self, owner: str) -> None:
        await _run(lambda: shutil.rmtree(self._root / owner) if (self._root / owner).is_dir() else None)

    async def total_bytes(self, owner: str) -> int:
        return await _run(lambda: _measure(self._root / owner))

    def _find(self, path: UploadPath) -> Path:
        return self._root / path.owner / path.chat / path.file

    def _write(self, path: UploadPath, data: bytes) -> None:
        place = self._find(path)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = place.with_name(f".{secrets.token_hex(8)}")
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(place)
        finally:
            draft.unlink(missing_ok=True)


def _read(place: Path) -> bytes | None:
    try:
        with os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _remove(place: Path) -> bool:
    try:
        place.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _remove_folder(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
        if not any(place.parent.iterdir()):
            place.parent.rmdir()


def _list_paths(place: Path) -> Sequence[UploadPath]:
    files = sorted(file for file in place.glob("*/*") if not file.name.startswith("."))
    return [UploadPath(place.name, ChatId(file.parent.name), file.name) for file in files]


def _measure(place: Path) -> int:
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())


async def _run(action: Callable[[], T]) -> T:
    try:
        return await to_thread.run_sync(action)
    except OSError as error:
        raise Unavailable(
            "Uploads cannot be stored or read now.", code="uploads_unavailable", why=error.strerror or str(error)
        ) from error
