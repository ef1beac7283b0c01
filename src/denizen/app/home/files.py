"""Writes the files of the home folder: whole or not at all, and one editor at a time."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

SECRET_MODE = 0o600
PUBLIC_MODE = 0o644


@contextmanager
def edit_lock(home: Path) -> Generator[None]:
    """Holds the home folder for one editor, among threads and processes. Creates the folder."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_whole(file: Path, text: str, *, mode: int | None = None) -> None:
    """Replaces a file in one step, so that a reader sees the old text or the new one. `mode` None keeps the mode of
    the file, or takes 0644 for a new one. A link is followed, and stays a link. Creates the folder.
    """
    target = file.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    if mode is None:
        mode = target.stat().st_mode & 0o777 if target.exists() else PUBLIC_MODE
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    new = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        new.chmod(mode)
        new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
