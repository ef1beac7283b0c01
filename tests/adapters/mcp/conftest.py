"""The npm servers, by the versions and digests of the lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.npm_packages import NODE, install_packages
from tests.timing import HANG_LIMIT_S


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a server may start for longer than its first caller would wait."""
    monkeypatch.setattr("denizen.adapters.mcp.toolset.PATIENCE_S", HANG_LIMIT_S)


@pytest.fixture(scope="session")
def node() -> Path:
    return NODE


@pytest.fixture(scope="session")
def npm_servers() -> Path:
    """The folder of the scope @modelcontextprotocol."""
    return install_packages(Path(__file__).parent / "npm") / "@modelcontextprotocol"
