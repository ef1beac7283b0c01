"""The warnings that members of each guild were given: one JSON file a guild, changed under a lock and replaced whole.

Called by the `moderation` skill, in a thread. Who may warn, read and take back is decided on the platform.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from denizen.skill import ToolError

MAX_WARNINGS_PER_MEMBER = 200


@dataclass(frozen=True, slots=True)
class MemberWarning:
    """`member` and `by` are user ids; `at` is an ISO time in UTC; `key` is that of the call that gave it."""

    number: int
    member: str
    by: str
    at: str
    reason: str
    key: str = ""


class WarningLog:
    """The book of one guild in a folder, which need not exist."""

    def __init__(self, folder: Path, guild: str) -> None:
        if not guild.isdecimal():
            raise ToolError("Warnings are kept for servers only.")
        self._folder = folder
        self._file = folder / f"{guild}.json"

    def add(self, given: MemberWarning) -> MemberWarning:
        """With the next number; once for each key."""
        with self._locked():
            rows = self._load()
            known = next((row for row in rows if given.key and row.key == given.key), None)
            if known is not None:
                return known
            if sum(row.member == given.member for row in rows) >= MAX_WARNINGS_PER_MEMBER:
                raise ToolError(f"They have {MAX_WARNINGS_PER_MEMBER} warnings already. Remove some first.")
            number = max((row.number for row in rows), default=0) + 1
            added = MemberWarning(number, given.member, given.by, given.at, given.reason, given.key)
            self._save([*rows, added])
            return added

    def list_of(self, member: str = "") -> list[MemberWarning]:
        """Oldest first; of everybody for an empty text."""
        return [row for row in self._load() if member in ("", row.member)]

    def remove(self, number: int) -> bool:
        """Whether there was one of that number."""
        with self._locked():
            rows = self._load()
            left = [row for row in rows if row.number != number]
            if len(left) == len(rows):
                return False
            self._save(left)
            return True

    def _load(self) -> list[MemberWarning]:
        try:
            text = self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        try:
            return [MemberWarning(**row) for row in json.loads(text)]
        except (ValueError, TypeError):
            raise ToolError(f"The warnings in {self._file} are damaged. An owner has to repair or remove it.") from None

    def _save(self, rows: list[MemberWarning]) -> None:
        following = self._file.with_suffix(".next")
        with following.open("w", encoding="utf-8") as file:
            json.dump([asdict(row) for row in rows], file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        following.replace(self._file)

    @contextmanager
    def _locked(self) -> Generator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
