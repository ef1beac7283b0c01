"""The folders of context and knowledge: where they are, and what the prompt of an agent gets of them.

Nothing outside of a folder is read, not through links either. Called by `load`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from denizen.app.settings.document import Document
from denizen.app.settings.problem import KeyPath, Problem
from denizen.app.settings.schema_folders import CONTEXT_FOLDER, KNOWLEDGE_FOLDER, FoldersSection

LIBRARY_FOLDER = "knowledge-snapshots"
"""In the home folder: what was read of the sources of knowledge."""
LEARNED_FOLDER = "learned"
"""In the home folder: answers of people that were accepted."""
MAX_CONTEXT_BYTES = 128 * 1024
"""Of all files of one agent together, the shared ones included. They are sent with every request."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where they are, whether they exist or not."""

    home: Path
    section: FoldersSection

    @property
    def context(self) -> Path:
        return self.home / self.section.context

    @property
    def knowledge(self) -> Path:
        return self.home / self.section.knowledge

    @property
    def current_snapshot(self) -> Path:
        """Names the snapshot that agents read, once there is one."""
        return self.home / LIBRARY_FOLDER / "current.json"

    def own_context(self, agent: str) -> Path:
        return self.home / "agents" / agent / CONTEXT_FOLDER

    def own_knowledge(self, agent: str) -> Path:
        return self.home / "agents" / agent / KNOWLEDGE_FOLDER

    def has_knowledge(self, agents: Sequence[str]) -> bool:
        """Whether there is anything to look into."""
        folders = (self.knowledge, *map(self.own_knowledge, agents))
        return self.current_snapshot.is_file() or any(folder.is_dir() for folder in folders)


@dataclass(slots=True)
class ContextFiles:
    """Reads the context of agents. What cannot be read becomes a problem, with the place that is to blame."""

    folders: Folders
    document: Document
    problems: list[Problem] = field(default_factory=list[Problem])
    _read_before: dict[Path, tuple[tuple[str, str], ...]] = field(
        default_factory=dict[Path, tuple[tuple[str, str], ...]]
    )

    def read(self, agent: str, *, skip_global: bool) -> tuple[tuple[str, str], ...]:
        """(heading, text) pairs: of the shared folder by name, then of the agent's own."""
        shared = () if skip_global else self._folder(self.folders.context, ("folders", "context"))
        own = self._folder(self.folders.own_context(agent), ("agents", agent))
        size = sum(len(text.encode()) for _, text in (*shared, *own))
        if size > MAX_CONTEXT_BYTES:
            message = (
                f"the context files of '{agent}' have {-(-size // 1024)} KiB together, and at most "
                f"{MAX_CONTEXT_BYTES // 1024} KiB go into a prompt."
            )
            fix = "Shorten them, or move what is only looked up now and then into the knowledge folder."
            self._refuse(("agents", agent), message, fix)
        return (*shared, *own)

    def check(self) -> None:
        """A folder that holds the home folder would open up everything in it, secrets too."""
        home = self.folders.home.resolve()
        for name, folder in (("context", self.folders.context), ("knowledge", self.folders.knowledge)):
            if home.is_relative_to(folder.resolve()):
                fix = f"Name a folder within it, such as {name}, or one beside it."
                self._refuse(("folders", name), "this folder holds Denizen's home folder.", fix)
            elif folder.exists() and not folder.is_dir():
                self._refuse(("folders", name), f"{folder} is no folder.", "Name a folder, or move the file away.")

    def _folder(self, folder: Path, path: KeyPath) -> tuple[tuple[str, str], ...]:
        if folder not in self._read_before:
            files = sorted(folder.glob("*.md")) if folder.is_dir() else []
            pairs = ((file.stem, self._text(folder, file, path)) for file in files)
            self._read_before[folder] = tuple(pair for pair in pairs if pair[1])
        return self._read_before[folder]

    def _text(self, folder: Path, file: Path, path: KeyPath) -> str:
        if not file.resolve().is_relative_to(folder.resolve()):
            self._refuse(path, f"'{file.name}' leads out of {folder}.", "Put the file itself there instead of a link.")
            return ""
        try:
            if file.stat().st_size <= MAX_CONTEXT_BYTES:
                return file.read_text(encoding="utf-8-sig").strip()
            fix = "Shorten it, or move it into the knowledge folder."
            self._refuse(path, f"'{file.name}' in {folder} is larger than {MAX_CONTEXT_BYTES // 1024} KiB.", fix)
        except (OSError, UnicodeDecodeError):
            fix = "Make it a UTF-8 text file that Denizen's user may read, or take it away."
            self._refuse(path, f"'{file.name}' in {folder} cannot be read.", fix)
        return ""

    def _refuse(self, path: KeyPath, message: str, fix: str) -> None:
        self.problems.append(self.document.problem(path, message, fix))
