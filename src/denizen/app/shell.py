"""The read-only shell as agents see it: over their own knowledge folder and the shared one, for each conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from denizen.adapters.sandbox.pool import SandboxPool
from denizen.adapters.sandbox.process import SandboxLimits
from denizen.app.settings.folders import Folders
from denizen.app.settings.schema_sandbox import SandboxSection
from denizen.domain.clock import Clock
from denizen.domain.ids import AgentName
from denizen.ports.sandbox import Sandbox, ShellResult, ShellView
from denizen.ports.toolset import CallScope
from denizen.skills.shelf import Shelf as DocumentShelf

OWN, SHARED = "own", "shared"
"""How the folders are called in the shell, as the skill `knowledge` calls them."""


def build_sandbox(section: SandboxSection, clock: Clock) -> SandboxPool:
    """For the life of the process; nothing is started yet."""
    limits = SandboxLimits(
        workers=section.workers, timeout_s=section.timeout_s, batch_timeout_s=section.batch_timeout_s,
        memory_mb=section.memory_mb,
    )  # fmt: skip
    return SandboxPool(clock, limits)


def view_of(folders: Folders, agent: AgentName, snapshot: Path | None) -> ShellView | None:
    """What this agent may look into now: its own folder, the shared one, and those of the snapshot of the sources,
    which keep their names. None when there is nothing.
    """
    named = [(OWN, folders.own_knowledge(agent)), (SHARED, folders.knowledge)]
    if snapshot is not None:
        named += [(folder.name, folder) for folder in sorted(snapshot.iterdir()) if folder.name not in {OWN, SHARED}]
    found = tuple((name, folder) for name, folder in named if folder.is_dir() and not name.startswith("."))
    return ShellView(found) if found else None


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """Knowledge that comes from no source, by the names that tools give it."""

    folders: Folders

    def read(self, agent: AgentName, path: str) -> str | None:
        """None for what is none of these, or not there. Blocks."""
        top, _, name = path.partition("/")
        folder = {OWN: self.folders.own_knowledge(agent), SHARED: self.folders.knowledge}.get(top)
        return DocumentShelf(folder).find_text(name) if folder is not None and name else None


@dataclass(frozen=True, slots=True)
class KnowledgeShells:
    """`open` is given to skills."""

    sandbox: Sandbox
    folders: Folders
    snapshot: Callable[[], Path | None]

    def open(self, scope: CallScope) -> KnowledgeShell | None:
        view = view_of(self.folders, scope.agent, self.snapshot())
        return KnowledgeShell(self.sandbox, view, scope) if view else None


@dataclass(frozen=True, slots=True)
class KnowledgeShell:
    """Of one agent in one conversation, whose session it keeps (inventory S21, SW10). Everybody who calls a tool over
    HTTP has a conversation of their own for that.
    """

    sandbox: Sandbox
    view: ShellView
    scope: CallScope

    async def __call__(self, commands: Sequence[str]) -> tuple[ShellResult, ...]:
        """Raises Unavailable where the system offers no isolation."""
        owner = f"{self.scope.agent}/{self.scope.conversation_id}"
        reply = await self.sandbox.run(commands, self.view, owner=owner, session_id=self.scope.shell_session)
        self.scope.trail.shell = reply
        return reply.results
