"""The set-up of every test: asyncio as the anyio backend, the record of what a test proves, calm property tests."""

from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.promises.pytest_plugin"]
pytest.register_assert_rewrite("denizen.testing", "tests.contracts", "tests.github_simulator")

from denizen.testing.temporary_store import close_temporary_stores  # noqa: E402 - after it is known what is rewritten

settings.register_profile("shared-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared-machine")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_store_left_open() -> Generator[None]:
    yield
    close_temporary_stores()
