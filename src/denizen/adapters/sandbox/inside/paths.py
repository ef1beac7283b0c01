"""Which paths may be named: those at or below the top folder, and /dev/null (inventory S19).

The system underneath shows nothing else anyway; where it can only forbid to read (Landlock without namespaces), a path
that leads outside could still tell whether something exists there.
"""

from __future__ import annotations

from denizen.adapters.sandbox.inside.refusal import CommandRefusedError


def check_path(path: str, depth: int) -> None:
    """`depth` is how far the current folder lies below the top; so many `..` may stand at the beginning. Raises
    Refused.
    """
    if path == "/dev/null":
        return
    if path.startswith("/"):
        raise CommandRefusedError(
            f"`{_cut(path)}` is an absolute path",
            "Write paths relative to the top folder, such as docs/guide.md or `.`.",
        )
    parts = [part for part in path.split("/") if part not in {"", "."}]
    ups = 0
    while ups < len(parts) and parts[ups] == "..":
        ups += 1
    if ups > depth or ".." in parts[ups:]:
        raise CommandRefusedError(
            f"`{_cut(path)}` leads out of the top folder", "Write paths without `..`, relative to the top folder."
        )


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
