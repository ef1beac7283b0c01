"""Writes the files of the home folder: whole or not at all, and one editor at a time.

What cannot be written, such as a file that is mounted read-only, is an error that says so and how to mend it.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from denizen.domain.errors import NeedsAttention

SECRET_MODE = 0o600
PUBLIC_MODE = 0o644


@contextmanager
def edit_lock(home: Path) -> Generator[None]:
    """Holds the home folder for one editor, among threads and processes. Creates the folder. Raises NeedsAttention when
    it cannot.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _not_writable(home, error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_whole(file: Path, content: str | bytes, *, mode: int | None = None) -> None:
    """Replaces a file in one step, so that a reader sees the old content or the new one. `mode` None keeps the mode of
    the file, or takes 0644 for a new one. A link is followed, and stays a link. Creates the folder. Raises
    NeedsAttention when it cannot; nothing has changed then.
    """
    target = file.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if mode is None:
            mode = target.stat().st_mode & 0o777 if target.exists() else PUBLIC_MODE
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        new = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content.encode() if isinstance(content, str) else content)
                stream.flush()
                os.fsync(stream.fileno())
            new.chmod(mode)
            new.replace(target)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _not_writable(file, error) from error


@contextmanager
def restore_on_failure(*files: Path) -> Generator[None]:
    """Puts the files back as they were when the block fails: for changes of several that belong together."""
    old = [(each, each.read_text(encoding="utf-8"), each.stat().st_mode & 0o777) for each in files if each.exists()]
    new = [each for each in files if not each.exists()]
    try:
        yield
    except BaseException:
        for file in new:
            file.unlink(missing_ok=True)
        for file, text, mode in old:
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                write_whole(file, text, mode=mode)
        raise


@contextmanager
def explain_unwritable(path: Path) -> Generator[None]:
    """Raises NeedsAttention when the block cannot write there."""
    try:
        yield
    except OSError as error:
        raise _not_writable(path, error) from error


def _not_writable(path: Path, error: OSError) -> NeedsAttention:
    return NeedsAttention(
        f"{path} cannot be written.",
        code="config_not_writable",
        why=error.strerror or type(error).__name__,
        fix="Let the user who runs Denizen write this file and its folder, and make room on a full disk. Where it is "
        "mounted read-only, such as from a ConfigMap, change it at its source.",
    )
