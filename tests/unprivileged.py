"""Runs a coroutine without root's right to read every file, so that tests of permissions hold for root, too."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import anyio

_VERSION = 0x20080522
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2


def run_unprivileged(main: Callable[[], Awaitable[None]]) -> None:
    """Runs it in an event loop of its own. Capabilities are a thread's, and those that it starts inherit them."""
    with ThreadPoolExecutor(1, initializer=_drop) as thread:
        thread.submit(anyio.run, main).result()


def _drop() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(_VERSION, 0), (ctypes.c_uint32 * 6)()
    # The sets are effective, permitted and inheritable, and then the same of the upper 32 capabilities.
    if libc.capget(header, sets):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    sets[0] &= ~(1 << _DAC_OVERRIDE | 1 << _DAC_READ_SEARCH)
    if libc.capset(header, sets):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
