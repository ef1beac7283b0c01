"""The task watcher: a turn of the configured agent about each task that changed, one after another.

A change is noted with the change itself (`board`). When it is due it is marked as started, its turn is opened with an
id that derives from the change, and it is removed when that turn has ended. Killed at any point, it goes on there: what
is started is opened again, which gives the same turn, and what is noted waits. Only one change is started at a time,
in whatever process.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, LimitExceeded, Unavailable
from denizen.domain.events import TurnFinished
from denizen.domain.message import Author, TextPart
from denizen.domain.project import WATCHER, Project, Task, TaskChange, TaskComment, TaskWatcherPolicy
from denizen.domain.record import record
from denizen.domain.turn import RequestOptions, Sender, SessionChoice, TurnRequest
from denizen.engine.configuration.generation import Runtime
from denizen.engine.events.signal import Signal
from denizen.engine.projects.reader import TASKS
from denizen.ports.store import Store
from denizen.skill import quote_untrusted

IDLE_S = 5.0
"""How often one looks for what another process noted, such as the command line."""
RETRY_S = 30.0
"""The pause before a turn that cannot be opened now is tried again."""
SHOWN_COMMENTS = 10

AskTurn = Callable[[TurnRequest], Awaitable[TurnFinished]]
"""Opens a turn and waits for its end (`TurnRunner.ask`)."""

_log = logging.getLogger("denizen.tasks")


@record
class _WatchedTask:
    task: Task
    project: Project
    comments: tuple[TaskComment, ...]


class TaskWatcher:
    """One for a process. `run` sees changes through, as long as it runs; `changed` is sent when there may be more."""

    def __init__(self, runtime: Runtime, store: Store, clock: Clock, ask: AskTurn, changed: Signal) -> None:
        self._runtime = runtime
        self._store = store
        self._clock = clock
        self._ask = ask
        self._changed = changed

    async def run(self) -> None:
        """Looks at changes until it is cancelled."""
        while True:
            changed = self._changed.next
            wait_s = await self.look()
            with anyio.move_on_after(wait_s):
                await changed.wait()

    async def look(self) -> float:
        """Sees through what is due. Returns how many seconds to wait for the next, at most `RETRY_S`."""
        while (policy := self._runtime.current.task_watcher) is not None:
            async with self._store.work(write=False) as work:
                change = await work.task_changes.find_next()
            if change is None:
                break
            now = self._clock.now()
            if not change.is_started:
                if change.due_at > now:
                    return min((change.due_at - now).total_seconds(), IDLE_S)
                async with self._store.work() as work:
                    if not await work.task_changes.start(change.id, now=now):
                        continue
            if not await self._see_through(change, policy):
                return RETRY_S
        return IDLE_S

    async def _see_through(self, change: TaskChange, policy: TaskWatcherPolicy) -> bool:
        """Has the agent look at the change. False when that cannot be done now."""
        about = {"task": change.task_id, "change": change.id}
        watched = await self._load(change)
        if watched is not None:
            try:
                ended = await self._ask(plan_request(change, watched, policy))
            except (Unavailable, LimitExceeded) as error:
                _log.warning("a changed task waits: %s", error.message, extra=about | error.fields)
                return False
            except DenizenError as error:
                _log.error("nobody looked at a changed task: %s", error.message, extra=about | error.fields)
            else:
                _log.info("looked at a changed task", extra=about | {"turn": ended.turn_id, "reply": ended.reply})
        async with self._store.work() as work:
            await work.task_changes.finish(change.id)
        return True

    async def _load(self, change: TaskChange) -> _WatchedTask | None:
        """None when the task is gone."""
        async with self._store.work(write=False) as work:
            task = await work.projects.find_task(change.task_id)
            project = await work.projects.find(task.project_id) if task is not None else None
            if task is None or project is None:
                return None
            return _WatchedTask(task, project, tuple(await work.projects.list_comments(task.id)))


def plan_request(change: TaskChange, watched: _WatchedTask, policy: TaskWatcherPolicy) -> TurnRequest:
    """Returns what the agent is asked: in a session that is the task's own and begins anew. What people wrote is
    quoted, so that it counts as foreign text.
    """
    place = Place(TASKS, watched.project.id, watched.task.id)
    return TurnRequest(
        agent=policy.agent,
        place=place,
        sender=Sender(Author(WATCHER.key, WATCHER.name), WATCHER),
        parts=(TextPart(f"{policy.prompt}\n\n{describe_change(change, watched)}"),),
        platform_id=change.id,
        session=SessionChoice(is_new=True),
        options=RequestOptions(variables=list_variables(change, watched)),
    )


def describe_change(change: TaskChange, watched: _WatchedTask) -> str:
    """Returns the task as the agent reads it."""
    variables = list_variables(change, watched)
    lines = [f"{name.removeprefix('task_')}: {value}" for name, value in variables.items() if value]
    lines += [f"comment of {each.made_by.author_name}: {each.text}" for each in watched.comments[-SHOWN_COMMENTS:]]
    return quote_untrusted("\n".join(lines), source=f"task {watched.task.id}")


def list_variables(change: TaskChange, watched: _WatchedTask) -> dict[str, str]:
    """Returns what hooks of the turn may tell."""
    task = watched.task
    return {
        "action": change.action.value,
        "task_id": task.id,
        "task_title": task.title,
        "task_status": task.status.value,
        "task_project": watched.project.name,
        "task_author": task.made_by.author_name,
        "task_assignee": task.assignee,
        "task_tags": " ".join(task.tags),
        "task_due": task.due_on,
        "task_description": task.description,
    }
