"""The folder of learned answers in the home folder: files for its owner only. No link is followed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from anyio import to_thread

from denizen.domain.errors import InvalidInput, NeedsAttention
from denizen.domain.proposal import id_in

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class LearnedFolder:
    """`denizen.ports.learned.LearnedFiles`. The folder is made with its first file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def location(self) -> str:
        return str(self._folder)

    async def list_files(self) -> Mapping[str, str]:
        return await _in_thread(self._list)

    async def read(self, name: str) -> str:
        return await _in_thread(_read_text, self._place(name))

    async def write(self, name: str, text: str) -> None:
        await _in_thread(self._write, self._place(name), text.encode())

    async def remove(self, name: str) -> None:
        await _in_thread(self._place(name).unlink, True)  # noqa: FBT003 - `missing_ok`

    def _place(self, name: str) -> Path:
        if Path(name).name != name or not name.endswith(".md") or name.startswith("."):
            raise InvalidInput(f"'{name}' is no name of a learned file.", code="file_invalid")
        return self._folder / name

    def _list(self) -> dict[str, str]:
        if not self._folder.is_dir():
            return {}
        found = (each for each in sorted(self._folder.iterdir()) if each.is_file() and not each.is_symlink())
        return {each.name: id_in(_read_text(each)) for each in found if not each.name.startswith(".")}

    def _write(self, place: Path, data: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
        try:
            with os.fdopen(os.open(beside, _WRITE, 0o600), "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)


def _read_text(place: Path) -> str:
    try:
        with os.fdopen(os.open(place, _READ), encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""


async def _in_thread(job: Callable[[*Ts], T], *args: *Ts) -> T:
    try:
        return await to_thread.run_sync(job, *args)
    except OSError as error:
        raise NeedsAttention(
            "The folder of learned answers cannot be used.",
            code="learned_unusable",
            why=f"{error.strerror or type(error).__name__}: {error.filename or 'no file in particular'}",
            fix="Look at the space and the permissions of learned in the home folder.",
        ) from error
