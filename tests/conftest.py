"""What every test shares: asyncio as the anyio backend."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
