"""Pushing the current snapshot to the remote of the configuration, where one is set. Called by `sync`."""

from __future__ import annotations

import logging
from collections.abc import Callable

from denizen.domain.errors import DenizenError, Unavailable
from denizen.domain.snapshot import Remote
from denizen.engine.knowledge.reading import RETRIES, WAIT_S, Sleep
from denizen.ports.source import Library, SnapshotUploader

_log = logging.getLogger("denizen.knowledge")


class Pushing:
    """`remote` is asked each time."""

    def __init__(
        self, library: Library, repository: SnapshotUploader, remote: Callable[[], Remote], *, sleep: Sleep
    ) -> None:
        self._library = library
        self._repository = repository
        self._remote = remote
        self._sleep = sleep

    async def push(self) -> str:
        """What went wrong, in a sentence; empty when nothing did, or there is nothing to do."""
        remote = self._remote()
        if not remote.location:
            return ""
        try:
            await self._insist(remote)
        except DenizenError as error:
            _log.warning("the snapshot was not pushed", extra=error.fields)
            return f"{error.message} {error.why} {error.fix}".strip()
        return ""

    async def _insist(self, remote: Remote) -> None:
        attempt = 0
        while True:
            try:
                async with self._library.hold() as folder:
                    snapshot = await self._library.current()
                    if folder is not None and snapshot is not None:
                        await self._repository.push(remote, snapshot, folder)
            except Unavailable:
                attempt += 1
                if attempt > RETRIES:
                    raise
                await self._sleep(attempt * WAIT_S)
            else:
                return
