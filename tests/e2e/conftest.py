"""A fresh home and a provider for every test."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.e2e.home import Home
from tests.e2e.provider import Provider, open_provider


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def provider() -> Generator[Provider]:
    with open_provider() as opened:
        yield opened
