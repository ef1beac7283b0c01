"""The sandbox of this machine, for tests of what runs in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from denizen.adapters.sandbox.pool import SandboxPool
from denizen.domain.clock import SystemClock
from denizen.domain.errors import Unavailable


@asynccontextmanager
async def open_sandbox() -> AsyncGenerator[SandboxPool]:
    """Skips the test where nothing isolates programs."""
    async with SandboxPool(SystemClock()) as sandbox:
        try:
            await sandbox.check()
        except Unavailable as error:
            pytest.skip(f"no sandbox here: {error.why}")
        yield sandbox
