"""Mirrors the issues of repositories into the tasks of projects, and tasks into issues where the configuration says so:
which mirror is looked at when, and what project it has. `issue_mirror_run` does one look.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import anyio

from denizen.domain.errors import DenizenError, NotFound, Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.issue_mirror import IssueMirror, MirrorState
from denizen.domain.project import (
    EVERYBODY,
    OWNERS,
    AudienceFilter,
    Editor,
    Project,
    is_personal,
    make_id,
    pick_project,
)
from denizen.engine.events.signal import Signal
from denizen.engine.projects.board import LISTED, ProjectBoards
from denizen.engine.projects.issue_mirror_run import EARLIEST, FAILURE_CHARS, MIRROR, MirrorRun
from denizen.engine.projects.mirror_refusals import MirrorRefusals
from denizen.ports.issues import IssueTracker
from denizen.ports.store import UnitOfWork

LOOK_EVERY_S = 30.0
"""How often one looks for tasks that another process changed."""
SETTLE_S = 2.0
"""So long changes are gathered before they are written to the repository."""

_log = logging.getLogger("denizen.tasks")


class IssueMirrors:
    """One for a process. `run` keeps the mirrors of the configuration up to date, until it is cancelled."""

    def __init__(self, boards: ProjectBoards, find_tracker: Callable[[AgentName], IssueTracker]) -> None:
        self._boards, self._store, self._clock = boards, boards.store, boards.clock
        self._find_tracker = find_tracker
        self._told = Signal()
        self._changed = Signal(boards.changed, boards.runtime.swapped, self._told)
        self._due: dict[str, datetime] = {}
        """When each repository is read next; one that is not there is read at once."""
        self._waits: dict[str, datetime] = {}
        """Until when nothing is asked of a repository that failed."""
        self._versions: dict[str, str] = {}
        self._refusals: dict[IssueMirror, MirrorRefusals] = {}

    def tell(self, repository: str) -> None:
        """Notes that something happened at a repository, whoever says so: it is read at once."""
        for each in self._boards.runtime.current.issue_mirrors:
            if each.repository.lower() == repository.lower():
                self._due.pop(each.key, None)
                self._told.send()

    async def run(self) -> None:
        """Looks at what is due until it is cancelled. Each repository is read first."""
        self._due.clear()
        self._versions.clear()
        self._refusals.clear()
        while True:
            changed = self._changed.next
            wait_s = await self.look()
            with anyio.move_on_after(wait_s):
                await changed.wait()
                await anyio.sleep(SETTLE_S)

    async def look(self) -> float | None:
        """Does what is due. Returns for how many seconds nothing is; None without mirrors."""
        mirrors = self._boards.runtime.current.issue_mirrors
        for mirror in mirrors:
            if self._waits.get(mirror.key, EARLIEST) <= self._clock.now():
                await self._look_at(mirror)
        return LOOK_EVERY_S if mirrors else None

    async def _look_at(self, mirror: IssueMirror) -> None:
        now = self._clock.now()
        state = await self._load_state(mirror, now)
        if state is None:
            return
        is_due = self._due.get(mirror.key, EARLIEST) <= now
        try:
            refusals = self._refusals.setdefault(mirror, MirrorRefusals(self._clock, mirror.every))
            run = MirrorRun(self._boards, mirror, state, self._find_tracker(mirror.account), refusals)
            if is_due:
                self._due[mirror.key] = now + mirror.every  # before it reads: a webhook may come meanwhile
                self._versions[mirror.key] = await run.pull(self._versions.get(mirror.key, ""))
            if mirror.goes_out:
                await run.push()
        except DenizenError as error:
            after_s = error.retry_after_s if isinstance(error, Unavailable) else None
            self._waits[mirror.key] = now + (timedelta(seconds=after_s) if after_s else mirror.every)
            self._due.pop(mirror.key, None)  # what was written last may have arrived
            self._versions.pop(mirror.key, None)
            _log.warning("issues cannot be mirrored", extra={"repository": mirror.repository, **error.fields})
            await self._note_look(mirror, error.explain()[:FAILURE_CHARS])
        else:
            if is_due or run.failure not in ("", state.failure):
                await self._note_look(mirror, run.failure)

    async def _load_state(self, mirror: IssueMirror, now: datetime) -> MirrorState | None:
        """Returns how far the mirror has come. At first its project is found, or made. None where it is gone."""
        async with self._store.work(write=False) as work:
            states = {each.key: each for each in await work.issue_mirrors.list_states()}
            state = states.get(mirror.key)
            project = await work.projects.find(state.project_id) if state is not None else None
        if state is not None and project is None:
            await self._note_end(state, now)
            return None
        if state is not None:
            return state
        async with self._store.work() as work:
            try:
                project = await self._find_project(work, mirror, now)
            except DenizenError as error:
                _log.error("a mirror has no project: %s", error.message, extra=error.fields)
                self._waits[mirror.key] = now + mirror.every
                return None
            state = MirrorState(
                key=mirror.key,
                project_id=project.id,
                repository=mirror.repository,
                seen_at=EARLIEST,
                heard_at=EARLIEST,
                written_at=EARLIEST,
                looked_at=now,
            )
            await work.issue_mirrors.put_state(state)
        self._boards.tell_changed(project.audience)
        return state

    async def _note_end(self, state: MirrorState, now: datetime) -> None:
        """Tells once that the project of a mirror was deleted. It is not made anew: somebody wanted it gone."""
        error = NotFound(
            "The issues are mirrored no more: their project was deleted.",
            code="mirror_project_gone",
            fix="Take it out of 'projects' in the configuration, or begin anew with a project of another name there.",
        )
        told = error.explain()
        if state.failure != told:
            _log.error("a mirror has ended: %s", error.message, extra={"repository": state.repository, **error.fields})
            async with self._store.work() as work:
                await work.issue_mirrors.put_state(replace(state, looked_at=now, failure=told))

    async def _find_project(self, work: UnitOfWork, mirror: IssueMirror, now: datetime) -> Project:
        """Finds one by its id, or by its name among those that owners and admins made for many: nobody else gets the
        issues by taking a name.
        """
        if (known := await work.projects.find(mirror.project)) and not is_personal(known.audience):
            return known
        shared = AudienceFilter(frozenset({OWNERS, EVERYBODY}))
        try:
            return pick_project(await work.projects.list_projects(shared, limit=LISTED), mirror.project)
        except NotFound:
            project = Project(
                id=make_id("prj", "mirror", mirror.key),
                name=mirror.project,
                audience=EVERYBODY if mirror.for_everybody else OWNERS,
                made_by=Editor(MIRROR.key, MIRROR.name),
                created_at=now,
                updated_at=now,
            )
            await work.projects.add(project)
            return project

    async def _note_look(self, mirror: IssueMirror, failure: str) -> None:
        async with self._store.work() as work:
            for state in await work.issue_mirrors.list_states():
                if state.key == mirror.key:
                    await work.issue_mirrors.put_state(replace(state, looked_at=self._clock.now(), failure=failure))
