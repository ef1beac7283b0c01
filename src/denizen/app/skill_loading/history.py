"""The history of the owner's skills, below `skill-history/` in the home folder: who wrote, enabled or refused what and
when, and the last contents that were enabled or refused, so that a change can be compared and taken back.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from denizen.app.home.files import SECRET_MODE, write_whole
from denizen.app.skill_loading.folder import SkillFolder
from denizen.domain.clock import SystemClock
from denizen.ports.skill_configuration import SkillEvent, SkillEventKind

HISTORY_FOLDER = "skill-history"
KEPT_CONTENTS = 10
KEPT_EVENTS = 100
_EVENTS = "events.jsonl"


class SkillHistory:
    """The history of all skills of a home folder. Its methods block."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def note(self, folder: SkillFolder, kind: SkillEventKind, by: str) -> None:
        """Adds an event, and keeps the content except where it was only written."""
        event = {"at": SystemClock().now().isoformat(), "kind": kind, "sha256": folder.sha256, "by": by}
        file = self._place(folder.name) / _EVENTS
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        kept = [*lines, json.dumps(event)][-KEPT_EVENTS:]
        write_whole(file, "".join(f"{line}\n" for line in kept), mode=SECRET_MODE)
        if kind is not SkillEventKind.WRITTEN:
            self.keep(folder)

    def keep(self, folder: SkillFolder) -> None:
        """Keeps the content, unless it is kept already."""
        file = self._place(folder.name) / f"{folder.sha256}.json"
        if file.exists():
            return
        files = {name: base64.b64encode(data).decode() for name, data in folder.files.items()}
        write_whole(file, json.dumps(files), mode=SECRET_MODE)
        kept = sorted(file.parent.glob("*.json"), key=lambda each: each.stat().st_mtime_ns)
        for old in kept[:-KEPT_CONTENTS]:
            old.unlink(missing_ok=True)

    def find(self, name: str, sha256: str) -> Mapping[str, bytes] | None:
        """Returns a content by its files; None where it is not kept."""
        file = self._place(name) / f"{sha256}.json"
        if not sha256 or not file.exists():
            return None
        found = cast("Mapping[str, str]", json.loads(file.read_text(encoding="utf-8")))
        return {path: base64.b64decode(data) for path, data in found.items()}

    def list_events(self, name: str) -> list[SkillEvent]:
        """Returns the newest first."""
        file = self._place(name) / _EVENTS
        rows = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [_read_event(json.loads(row)) for row in reversed(rows)]

    def _place(self, name: str) -> Path:
        return self._home / HISTORY_FOLDER / name


def _read_event(row: Mapping[str, Any]) -> SkillEvent:
    return SkillEvent(
        datetime.fromisoformat(row["at"]), SkillEventKind(row["kind"]), str(row["sha256"]), str(row["by"])
    )
