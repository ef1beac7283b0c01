"""Changes of the configuration while Denizen runs: a whole validated generation, or the old one stays (T2 to T4).

Called by the watcher, and by whoever changed the file and wants to know what became of it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import anyio

from denizen.app.build import Denizen
from denizen.app.environment import read_environment
from denizen.app.generation import build_generation
from denizen.app.settings import Settings, load_settings
from denizen.builtin_skills import BUILTIN
from denizen.domain.errors import DenizenError

_AT_START = (
    "store",
    "server",
    "channels.terminal",
    "channels.web",
    "channels.api",
    "channels.mcp",
    "logging",
    "sandbox",
)
"""Sections that hold from the next start only."""

_log = logging.getLogger("denizen.app")


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What a reload did. `needs_restart` names sections that changed and hold from the next start only."""

    generation: int
    changed: bool
    needs_restart: tuple[str, ...] = ()


class Reloader:
    """One reload at a time. `followers` is called after each one that changed something."""

    def __init__(self, denizen: Denizen, followers: Callable[[], Awaitable[None]] | None = None) -> None:
        self._denizen = denizen
        self._followers = followers
        self._lock = anyio.Lock()
        self._is_half_done = False
        """Whether the last one failed after it had looked at the owner's skills."""

    async def reload(self) -> Reloaded:
        """Reads, builds and swaps. Raises what is wrong with the configuration; the old generation goes on then."""
        async with self._lock:
            denizen = self._denizen
            settings = load_settings(denizen.home, read_environment(), known_tools=BUILTIN)
            settings = replace(settings, simulation=denizen.simulation)
            current = denizen.runtime.current.number
            is_shelf_same = not await denizen.foundations.shelf.has_changed(settings.skills)
            if is_shelf_same and not self._is_half_done and _is_same(settings, denizen.settings):
                return Reloaded(current, changed=False)
            self._is_half_done = True
            generation = await build_generation(settings, current + 1, denizen.foundations)
            async with denizen.services.store.work() as work:
                now = denizen.services.clock.now()
                await work.generations.add(digest=settings.digest, source="reload", now=now)
            restart = tuple(name for name in _AT_START if _section(settings, name) != _section(denizen.settings, name))
            denizen.settings = settings
            await denizen.runtime.swap(generation)
            self._is_half_done = False
            if self._followers is not None:
                await self._followers()
            return Reloaded(generation.number, changed=True, needs_restart=restart)

    async def reload_and_tell(self) -> None:
        """For the watcher: the outcome goes to the log, and nothing is raised."""
        try:
            done = await self.reload()
        except DenizenError as error:
            refused = error.fields | {"why": error.explain()}
            _log.error("configuration refused, the old one stays", extra=refused)
            return
        except Exception:  # noqa: BLE001 - the boundary of a job: a fault here must not end the server
            _log.exception("configuration could not be loaded, the old one stays")
            return
        if done.changed:
            _log.info("configuration reloaded", extra={"generation": done.generation})
        if done.needs_restart:
            _log.warning("changed settings hold after a restart", extra={"sections": ", ".join(done.needs_restart)})


def _section(settings: Settings, name: str) -> object:
    found: object = settings.config
    for key in name.split("."):
        found = getattr(found, key)
    return found


def _is_same(new: Settings, old: Settings) -> bool:
    """The same text with the same secrets means the same; a rotated key counts as a change."""
    return new.digest == old.digest and new.secrets == old.secrets
