"""Tuning of the C allocator for the long-running process. `denizen run` calls it before it starts any thread."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8
"""glibc's name for the option, from malloc.h."""


def share_heap() -> None:
    """Makes all threads share one heap, where the C library lets a program choose (glibc).

    By default each thread gets a heap of its own, against contention. Python's lock leaves little contention, and the
    fifteen threads (database connections, durable log, imports) would keep 3 MB more.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
