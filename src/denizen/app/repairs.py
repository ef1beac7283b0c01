"""Repairs that `denizen doctor --fix` makes: the modes of the files that hold secrets and what people said."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

from denizen.app.home.secrets import SECRETS_FILE
from denizen.domain.errors import NeedsAttention
from denizen.domain.record import record


@record
class ModeRepair:
    """A file or folder that others may read, and the mode that it should have."""

    path: Path
    mode: int
    wanted: int

    def __str__(self) -> str:
        return f"{self.path}: mode {self.mode:04o} -> {self.wanted:04o}"

    def apply(self) -> None:
        """Raises NeedsAttention where the file is somebody else's."""
        try:
            self.path.chmod(self.wanted)
        except OSError as error:
            raise NeedsAttention(
                f"The mode of {self.path} cannot be changed.",
                code="repair_failed",
                why=error.strerror or type(error).__name__,
                fix=f"As its owner or as root, run: chmod {self.wanted:04o} {self.path}",
            ) from error


def plan_repairs(home: Path) -> Sequence[ModeRepair]:
    """Returns what is to be mended. Databases and logs hold what people said, so nobody else reads them either."""
    private = [home, home / SECRETS_FILE, *home.glob("*.db"), *home.glob("*.db-*"), home / "logs"]
    found: list[ModeRepair] = []
    for path in private:
        if not path.exists() or path.is_symlink():
            continue
        mode = stat.S_IMODE(path.stat().st_mode)
        wanted = mode & (0o700 if path.is_dir() else 0o600)
        # Within a home folder that is closed, only the secrets are looked at: others cannot reach the rest.
        if mode != wanted and (path in (home, home / SECRETS_FILE) or stat.S_IMODE(home.stat().st_mode) & 0o077):
            found.append(ModeRepair(path, mode, wanted))
    return found
