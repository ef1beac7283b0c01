"""Work that would hold up everybody, in a thread.

The threads are anyio's: the event loop's own ones also record durable steps, which slow tools must not hold up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from anyio import to_thread

R = TypeVar("R")


async def run_in_thread(function: Callable[[], R]) -> R:
    """The function's result. When the caller's time is over, the thread is left alone and its result dropped."""
    return await to_thread.run_sync(function, abandon_on_cancel=True)
