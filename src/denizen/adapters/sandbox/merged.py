"""Several folders side by side in one, where the system offers no mounts: a copy, without links and devices.

Files that lie on the same disk are linked, so that a copy costs little. Called by `pool.py`, in a thread.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from denizen.domain.errors import Exhausted
from denizen.ports.sandbox import ShellView

MAX_COPIED_BYTES = 2_000_000_000


def copy_view(view: ShellView) -> Path:
    """A fresh folder with one below it for each of the view; `remove_copy` removes it. It lies in one that only this
    user may enter: others on the machine may not read the documents either. Raises Exhausted.
    """
    top = Path(tempfile.mkdtemp(prefix="denizen-sandbox-")) / "view"
    left = MAX_COPIED_BYTES
    try:
        top.mkdir(mode=0o755)
        for name, folder in view.folders:
            left = _copy(folder, top / name, left)
    except BaseException:
        remove_copy(top)
        raise
    return top


def remove_copy(top: Path) -> None:
    shutil.rmtree(top.parent, ignore_errors=True)


def _copy(source: Path, target: Path, left: int) -> int:
    target.mkdir()
    target.chmod(0o755)
    with os.scandir(source) as found:
        for entry in sorted(found, key=lambda each: each.name):
            if entry.is_dir(follow_symlinks=False):
                left = _copy(Path(entry.path), target / entry.name, left)
            elif entry.is_file(follow_symlinks=False):
                left -= _copy_file(Path(entry.path), target / entry.name)
            if left < 0:
                raise Exhausted(
                    f"The folders are larger than {MAX_COPIED_BYTES // 1_000_000} MB together.",
                    code="folders_too_large",
                    fix="Take out what nobody reads, or let the system offer user namespaces: nothing is copied then.",
                )
    return left


def _copy_file(source: Path, target: Path) -> int:
    """The bytes that it cost."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copyfile(source, target, follow_symlinks=False)
        target.chmod(0o644)
        return target.stat().st_size
    return 0
