"""How the long-running process holds its memory. Called by `denizen run` before it starts any thread."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8
"""glibc's name for the option, from malloc.h."""


def share_heap() -> None:
    """One heap for all threads, where the C library lets one choose (glibc).

    It gives each thread a heap of its own, against contention. Python's lock leaves little of that, and its fifteen
    threads (database lanes, durable log, imports) would keep 3 MB more.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
