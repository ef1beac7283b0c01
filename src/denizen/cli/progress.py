"""How long work on weights shows itself in a terminal: one line on standard error, rewritten in place."""

from __future__ import annotations

import sys

from denizen.adapters.models.embedded.progress import LoadProgress


def show_progress(progress: LoadProgress) -> None:
    """On a terminal the line is rewritten; elsewhere each new activity is one line."""
    if progress.total_bytes:
        share = 100 * progress.done_bytes // progress.total_bytes
        size = progress.total_bytes / 1_000_000
        if sys.stderr.isatty():
            ending = "\n" if progress.done_bytes >= progress.total_bytes else ""
            sys.stderr.write(f"\r[{progress.doing}: {share} % of {size:.0f} MB]{ending}")
            sys.stderr.flush()
        elif progress.done_bytes in (0, progress.total_bytes):
            sys.stderr.write(f"[{progress.doing}: {share} % of {size:.0f} MB]\n")
    else:
        sys.stderr.write(f"[{progress.doing}]\n")
