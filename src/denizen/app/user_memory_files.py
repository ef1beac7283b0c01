"""What people have written about a user: `agents/<agent>/users/<key>/MEMORY.md` in the home folder.

The owner writes it, Denizen only reads it, anew for each turn of that user. It is told wherever the user talks with the
agent, so what others must not hear does not belong there. `<key>` is the user's key, as `denizen memory list` and
`denizen usage` show it, such as `platform_user:discord:1234`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import anyio

from denizen.app.settings.agents import AGENTS_FOLDER
from denizen.domain.ids import AgentName

USERS_FOLDER = "users"
MEMORY_FILE = "MEMORY.md"
MAX_CHARS = 4000
"""It is sent with every step of the user's turns."""

_log = logging.getLogger("denizen.memory")


@dataclass(slots=True)
class UserMemoryFiles:
    """Of one home folder."""

    home: Path
    _told: set[Path] = field(default_factory=set[Path])

    def file_of(self, agent: AgentName, principal: str) -> Path:
        """Whatever the key is made of, no two have the same file, and none is outside of the agent's folder."""
        name = quote(principal, safe=":@+ ")
        return self.home / AGENTS_FOLDER / agent / USERS_FOLDER / name / MEMORY_FILE

    async def load(self, agent: AgentName, principal: str) -> str:
        """Empty when there is none. One that is too long is cut, and one that cannot be read left out; the log says
        so once.
        """
        return await anyio.to_thread.run_sync(self._read, self.file_of(agent, principal))

    def _read(self, file: Path) -> str:
        try:
            text = file.read_text(encoding="utf-8-sig").strip()
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except (OSError, UnicodeDecodeError) as error:
            self._tell(file, f"it cannot be read ({type(error).__name__})")
            return ""
        if len(text) <= MAX_CHARS:
            return text
        self._tell(file, f"only its first {MAX_CHARS} characters are told")
        return f"{text[:MAX_CHARS]}…"

    def _tell(self, file: Path, why: str) -> None:
        if file not in self._told:
            self._told.add(file)
            _log.warning("a user's memory file: %s", why, extra={"file": str(file)})
