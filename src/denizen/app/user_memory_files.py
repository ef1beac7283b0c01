"""The memory files about users that the owner writes: `agents/<agent>/users/<key>/MEMORY.md` in the home folder.

Denizen only reads them, anew for each turn of that user. The text is used wherever the user talks with the agent, also
in public channels, so nothing private belongs there. `<key>` is the user's key, as `denizen memory list` and
`denizen usage` show it, such as `platform_user:discord:1234`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import anyio

from denizen.app.settings.persona import AGENTS_FOLDER
from denizen.domain.ids import AgentName

USERS_FOLDER = "users"
MEMORY_FILE = "MEMORY.md"
MAX_CHARS = 4000
"""The limit of a file. It is sent with every step of the user's turns."""

_log = logging.getLogger("denizen.memory")


@dataclass(slots=True)
class UserMemoryFiles:
    """The files of one home folder."""

    home: Path
    _warned: set[Path] = field(default_factory=set[Path])

    def get_file(self, agent: AgentName, principal: str) -> Path:
        """Returns the file of a user. No two keys share one, and none is outside of the agent's folder."""
        name = quote(principal, safe=":@+ ")
        return self.home / AGENTS_FOLDER / agent / USERS_FOLDER / name / MEMORY_FILE

    async def load(self, agent: AgentName, principal: str) -> str:
        """Returns the text; empty when there is none. A file that is too long is cut, and one that cannot be read is
        left out; the log says so once.
        """
        return await anyio.to_thread.run_sync(self._read, self.get_file(agent, principal))

    def _read(self, file: Path) -> str:
        try:
            text = file.read_text(encoding="utf-8-sig").strip()
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except (OSError, UnicodeDecodeError) as error:
            self._warn(file, f"it cannot be read ({type(error).__name__})")
            return ""
        if len(text) <= MAX_CHARS:
            return text
        self._warn(file, f"only its first {MAX_CHARS} characters are used")
        return f"{text[:MAX_CHARS]}…"

    def _warn(self, file: Path, why: str) -> None:
        if file not in self._warned:
            self._warned.add(file)
            _log.warning("a user's memory file: %s", why, extra={"file": str(file)})
