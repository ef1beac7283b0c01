"""Checks that paths stay below the top folder.

The system underneath shows nothing outside of it anyway; but where it can only forbid reading (Landlock without
namespaces), a path that leads outside could still tell whether something exists there.
"""

from __future__ import annotations

import os

from denizen.adapters.sandbox.inside.words import CommandRefusedError


def check_path(path: str, depth: int) -> None:
    """Raises CommandRefusedError for a path outside of the top folder, other than /dev/null.

    `depth` is how far the current folder lies below the top: that many `..` may stand at the beginning.
    """
    if path == "/dev/null":
        return
    if path.startswith("/"):
        raise CommandRefusedError(
            f"`{cut_text(path)}` is an absolute path",
            "Write paths relative to the top folder, such as docs/guide.md or `.`.",
        )
    parts = [part for part in path.split("/") if part not in {"", "."}]
    ups = 0
    while ups < len(parts) and parts[ups] == "..":
        ups += 1
    if ups > depth or ".." in parts[ups:]:
        raise CommandRefusedError(
            f"`{cut_text(path)}` leads out of the top folder", "Write paths without `..`, relative to the top folder."
        )


def resolve_path(path: str, depth: int) -> str:
    """Returns where the path leads, relative to the top folder (`.` for itself). Raises CommandRefusedError for one
    that leads out of it, also through a link.
    """
    check_path(path, depth)
    here = os.path.realpath(".")
    top = os.path.normpath(f"{here}/{'../' * depth}")
    reached = os.path.realpath(path)
    if reached != top and not reached.startswith(f"{top.rstrip('/')}/"):
        raise CommandRefusedError(f"`{cut_text(path)}` leads out of the top folder", "Name something below it.")
    return os.path.relpath(reached, top)


def cut_text(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
