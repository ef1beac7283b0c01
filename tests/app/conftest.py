"""A home folder for each test."""

from pathlib import Path

import pytest

from tests.app.home_folder import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)
