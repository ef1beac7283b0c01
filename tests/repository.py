"""Real git repositories on this machine. The configuration of whoever runs the tests is not read."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "Ana",
    "GIT_AUTHOR_EMAIL": "ana@example.org",
    "GIT_COMMITTER_NAME": "Ana",
    "GIT_COMMITTER_EMAIL": "ana@example.org",
}


@dataclass(frozen=True, slots=True)
class Repository:
    """One with a working tree, on the branch `main`."""

    folder: Path

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.folder), *args], env=ENVIRONMENT, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def write(self, path: str, text: str | bytes) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    def commit(self) -> str:
        """Everything as it is now; the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "A change.")
        return self.git("rev-parse", "HEAD")


def create_repository(folder: Path, files: dict[str, str]) -> Repository:
    folder.mkdir(parents=True)
    repository = Repository(folder)
    repository.git("init", "--quiet", "--initial-branch", "main")
    for path, text in files.items():
        repository.write(path, text)
    repository.commit()
    return repository
