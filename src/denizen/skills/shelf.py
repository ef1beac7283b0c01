"""Folders of text files that can be listed and read by name, and by nothing but a name.

Every folder and file on the way is opened relative to the one above it, without following links, so that no name and
no link leads out. Called by the `knowledge` skill, in a thread.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from denizen.skill import ToolError

SUFFIXES = frozenset({".md", ".mdx", ".markdown", ".txt", ".rst", ".csv", ".json", ".yaml", ".yml"})
MAX_FILES = 2000
"""Of one folder, in the order of their names, unless another number is given. What is beyond is not listed and not
searched.
"""
MAX_DEPTH = 8
MAX_READ_BYTES = 1024 * 1024

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not hold the thread for ever


@dataclass(frozen=True, slots=True)
class TextFile:
    """`name` is the path below the shelf's folder, with slashes."""

    name: str
    size_bytes: int


class TextFolder:
    """One folder, which need not exist. Names that begin with a dot are no part of it."""

    def __init__(self, folder: Path, *, max_files: int = MAX_FILES) -> None:
        self._folder = folder
        self._max_files = max_files

    def list_sheets(self) -> list[TextFile]:
        """By name, at most `max_files`."""
        sheets: list[TextFile] = []
        for sheet in _walk(self._folder, "", MAX_DEPTH):
            sheets.append(sheet)
            if len(sheets) == self._max_files:
                break
        return sheets

    def find_text(self, name: str) -> str | None:
        """The first MAX_READ_BYTES of a file; None when there is none of that name."""
        steps = PurePosixPath(name).parts
        is_plain = bool(steps) and "\0" not in name and not any(step.startswith(".") or step == "/" for step in steps)
        if not is_plain or not _is_text(name) or not self._folder.is_dir():
            return None
        with ExitStack() as stack:
            # The folder itself may be a link: its owner put it there.
            place = os.open(self._folder, _FOLDER & ~os.O_NOFOLLOW)
            stack.callback(os.close, place)
            try:
                for step in steps[:-1]:
                    place = os.open(step, _FOLDER, dir_fd=place)
                    stack.callback(os.close, place)
                handle = os.open(steps[-1], _FILE, dir_fd=place)
            except OSError:  # not there, a link, or not readable
                return None
            stack.callback(os.close, handle)
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            with os.fdopen(handle, "rb", closefd=False) as stream:
                return stream.read(MAX_READ_BYTES).decode("utf-8-sig", errors="replace")


def _walk(folder: Path, above: str, depth: int) -> Iterator[TextFile]:
    if not folder.is_dir():
        return
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except PermissionError as error:
        raise ToolError(f"The folder `{above or folder.name}` may not be read.") from error
    for entry in entries:
        name = f"{above}{entry.name}"
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False) and depth:
            yield from _walk(Path(entry.path), f"{name}/", depth - 1)
        elif entry.is_file(follow_symlinks=False) and _is_text(name):
            yield TextFile(name, entry.stat(follow_symlinks=False).st_size)


def _is_text(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in SUFFIXES
