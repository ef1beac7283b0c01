"""Hashes and checks passwords with argon2id, in threads, a few at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio import to_thread

from denizen.domain.record import record

if TYPE_CHECKING:
    import argon2

T = TypeVar("T")

AT_ONCE = 2
"""Each takes 64 MB for a twentieth of a second, so many at once would take the memory of a small machine."""


@record
class HashCost:
    """The cost of one hash. The default is what RFC 9106 recommends where memory is scarce."""

    passes: int = 3
    memory_kib: int = 65_536


class PasswordHasher:
    """Hashes passwords. `check` takes as long for somebody who does not exist as for somebody who does."""

    def __init__(self, cost: HashCost | None = None) -> None:
        self._cost = cost or HashCost()
        self._limiter: anyio.CapacityLimiter | None = None

    async def hash(self, password: str) -> str:
        return await self._run(lambda: self._hasher.hash(password))

    async def check(self, stored: str, password: str) -> bool:
        """Tells whether that is the password. Without a stored hash it is none, after the same time."""
        return await self._run(lambda: self._matches(stored, password))

    def is_outdated(self, stored: str) -> bool:
        """Tells whether a hash was made at another cost than that of today."""
        return self._hasher.check_needs_rehash(stored)

    def _matches(self, stored: str, password: str) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        try:
            return self._hasher.verify(stored or self._nobody, password) and bool(stored)
        except (VerificationError, InvalidHashError):
            return False

    @cached_property
    def _hasher(self) -> argon2.PasswordHasher:
        # Imported with the first password: servers without accounts never pay for it.
        import argon2

        return argon2.PasswordHasher(time_cost=self._cost.passes, memory_cost=self._cost.memory_kib, parallelism=1)

    @cached_property
    def _nobody(self) -> str:
        return self._hasher.hash("nobody has this password")

    async def _run(self, job: Callable[[], T]) -> T:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(AT_ONCE)
        return await to_thread.run_sync(job, limiter=self._limiter)
