"""Changing where snapshots are pushed to while Denizen runs: checked first, then written into `denizen.yaml`.

What agents read, what is told of it, and what they had open is begun anew then (inventory S30). Called by the web.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from anyio import to_thread

from denizen.app.build import Denizen
from denizen.app.environment import read_environment
from denizen.app.settings import set_values
from denizen.app.settings.problem import KeyPath
from denizen.builtin_skills import BUILTIN
from denizen.domain.json import Json
from denizen.domain.snapshot import Remote

KEY = ("knowledge", "remote")


class RemoteSwitch:
    """`reload` puts what stands in the file into effect."""

    def __init__(self, denizen: Denizen, reload: Callable[[], Awaitable[object]]) -> None:
        self._denizen = denizen
        self._reload = reload

    async def change(self, remote: Remote) -> None:
        """An empty location means that nothing is pushed. Raises Conflict for a repository of somebody else, and what
        reading one raises; nothing is changed then.
        """
        knowledge = self._denizen.knowledge
        if remote.location:
            await knowledge.remote.claim(remote)
        wanted: dict[KeyPath, Json] = {
            (*KEY, "repository"): remote.location,
            (*KEY, "branch"): remote.branch,
            (*KEY, "allow_existing"): remote.allow_existing,
        }
        known = self._denizen.settings.config.knowledge.remote
        changed = {path: value for path, value in wanted.items() if getattr(known, str(path[-1])) != value}
        if not changed:
            return
        write = partial(set_values, self._denizen.home, read_environment(), changed, known_tools=BUILTIN)
        await to_thread.run_sync(write)
        await self._reload()
        await knowledge.snapshots.clear()
        await self._denizen.foundations.sandbox.forget()
