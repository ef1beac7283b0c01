"""A home folder for each test, and the log as it was before."""

import logging
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.app.home_folder import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture(autouse=True)
def _restored_logging() -> Generator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in set(root.handlers) - set(handlers):
        handler.close()
    root.handlers, root.level = handlers, level
