"""The set-up of every test: asyncio as the anyio backend, the record of what a test proves, calm property tests."""

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.proofs"]
pytest.register_assert_rewrite("denizen.testing")

settings.register_profile("shared-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared-machine")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
