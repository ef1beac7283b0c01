"""The task watcher: a turn of the configured agent about each task that changed, one after another.

A change is noted with the change itself (`board`). When it is due it is marked as started, its turn is opened with an
id that derives from the change, and it is removed when that turn has ended. Killed at any point, it goes on there: what
is started is opened again, which gives the same turn, and what is noted waits. Only one change is started at a time,
in whatever process. Whoever was looked after the longest ago is next, and beyond `per_hour` changes wait: so nobody who
changes tasks causes costs without bound, or keeps the agent from what others changed.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import anyio

from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, LimitExceeded, Unavailable
from denizen.domain.events import TurnFinished
from denizen.domain.message import Author, TextPart
from denizen.domain.project import OWNERS, WATCHER, Project, Task, TaskChange, TaskComment, TaskWatcherPolicy
from denizen.domain.rate_limit import HOUR_S, RateLimit
from denizen.domain.record import record
from denizen.domain.schedule import DeliveryRoute
from denizen.domain.turn import RequestOptions, Sender, SessionChoice, TurnRequest
from denizen.engine.events.signal import Signal
from denizen.engine.intake.rate_limiter import RateLimiter, take_rate
from denizen.engine.outbox.answer_target import AnswerTarget, AnswerTargets
from denizen.engine.projects.board import ProjectBoards
from denizen.engine.projects.reader import TASKS
from denizen.skill import quote_untrusted

IDLE_S = 5.0
"""How often one looks for what another process noted, such as the command line."""
RETRY_S = 30.0
"""The pause before a turn that cannot be opened now is tried again."""
CONNECT_PATIENCE = timedelta(minutes=10)
"""How long a change waits for the account that is to deliver the answer."""
SHOWN_COMMENTS = 10
_RATE_KEY = "task_watcher"
_EARLIEST = datetime.min.replace(tzinfo=UTC)

AskTurn = Callable[[TurnRequest], Awaitable[TurnFinished]]
"""Opens a turn and waits for its end (`TurnRunner.ask`)."""

_log = logging.getLogger("denizen.tasks")


@record
class _WatchedTask:
    task: Task
    project: Project
    comments: tuple[TaskComment, ...]

    @property
    def place(self) -> Place:
        """The place of the sessions about it."""
        return Place(TASKS, self.project.id, self.task.id)


class TaskWatcher:
    """One for a process. `run` sees changes through, as long as it runs."""

    def __init__(self, boards: ProjectBoards, targets: AnswerTargets, ask: AskTurn) -> None:
        self._runtime, self._store, self._clock = boards.runtime, boards.store, boards.clock
        self._readers = boards.readers
        self._changed = Signal(boards.changed, boards.runtime.swapped)
        self._targets = targets
        self._ask = ask
        self._rates = RateLimiter(boards.store, boards.clock)
        self._looked_at: dict[str, datetime] = {}
        self._held_back: set[str] = set()

    async def run(self) -> None:
        """Looks at changes until it is cancelled."""
        while True:
            changed = self._changed.next
            wait_s = await self.look()
            with anyio.move_on_after(wait_s):
                await changed.wait()

    async def look(self) -> float | None:
        """Sees through what is due. Returns how many seconds to wait for the next, at most `RETRY_S`; None without a
        task watcher, which the configuration may bring.
        """
        while (policy := self._runtime.current.task_watcher) is not None:
            async with self._store.work(write=False) as work:
                change = await work.task_changes.find_next()
            if change is None:
                self._held_back.clear()
                break
            if not change.is_started:
                now = self._clock.now()
                if change.due_at > now:
                    self._held_back.clear()
                    return min((change.due_at - now).total_seconds(), IDLE_S)
                change = await self._start(policy, now)
                if change is None:
                    break
            if not await self._see_through(change, policy):
                return RETRY_S
        return IDLE_S if self._runtime.current.task_watcher else None

    async def _start(self, policy: TaskWatcherPolicy, now: datetime) -> TaskChange | None:
        """Starts the due change whose maker was looked after the longest ago. None where all have to wait."""
        everybody, one_person = RateLimit(policy.per_hour, HOUR_S), RateLimit(policy.per_maker, HOUR_S)
        left = await self._rates.find_allowance(_RATE_KEY, (everybody,))
        async with self._store.work(write=False) as work:
            due = await work.task_changes.list_due(now=now)
        if left is not None and left.remaining == 0:
            self._tell_waiting("", "all changed tasks wait", everybody)
            return None
        for change in sorted(due, key=lambda each: self._looked_at.get(each.made_by, _EARLIEST)):
            async with self._store.work() as work:
                if await take_rate(work, f"{_RATE_KEY}\x00{change.made_by}", (one_person,), now=now):
                    self._tell_waiting(change.made_by, "the tasks that one person changed wait", one_person)
                    continue
                await take_rate(work, _RATE_KEY, (everybody,), now=now)
                if not await work.task_changes.start(change.id, now=now):
                    return None
            self._looked_at[change.made_by] = now
            return change
        return None

    def _tell_waiting(self, maker: str, what: str, limit: RateLimit) -> None:
        """Logs it once, until nothing waits any more."""
        if maker not in self._held_back:
            self._held_back.add(maker)
            _log.warning("%s: they were looked at %d times within an hour", what, limit.calls)

    async def _see_through(self, change: TaskChange, policy: TaskWatcherPolicy) -> bool:
        """Has the agent look at the change. False when that cannot be done now."""
        about = {"task": change.task_id, "change": change.id}
        watched = await self._load(change)
        if watched is not None:
            try:
                target = await self._find_target(change, watched, policy)
                ended = await self._ask(plan_request(change, watched, policy, target))
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

    async def _find_target(self, change: TaskChange, watched: _WatchedTask, policy: TaskWatcherPolicy) -> AnswerTarget:
        """Returns where the agent answers. That is the log alone where others than those who may read the project would
        read it, and where the account has been away for long. Raises Unavailable while it is away, and what keeps it
        from ever writing there.
        """
        own, about = AnswerTarget(watched.place), {"task": change.task_id, "change": change.id}
        if policy.delivery.to is DeliveryRoute.LOG:
            return own
        try:
            target = await self._targets.find(policy.delivery, policy.agent)
        except Unavailable:
            if self._clock.now() - change.due_at < CONNECT_PATIENCE:
                raise
            _log.warning("the account is away: what is said of a task stays in the log", extra=about)
            return own
        audience = watched.project.audience
        is_theirs = audience == OWNERS and self._targets.is_to_owner(policy.delivery, policy.agent)
        if is_theirs or await self._readers.may_hear(audience, target.place, policy.agent):
            return target
        _log.warning("not everybody there may read the project: what is said of a task stays in the log", extra=about)
        return own

    async def _load(self, change: TaskChange) -> _WatchedTask | None:
        """None when the task is gone."""
        async with self._store.work(write=False) as work:
            task = await work.projects.find_task(change.task_id)
            project = await work.projects.find(task.project_id) if task is not None else None
            if task is None or project is None:
                return None
            return _WatchedTask(task, project, tuple(await work.projects.list_comments(task.id)))


def plan_request(
    change: TaskChange, watched: _WatchedTask, policy: TaskWatcherPolicy, target: AnswerTarget
) -> TurnRequest:
    """Returns what the agent is asked: in a session that is the task's own and begins anew. What people wrote is
    quoted, so that it counts as foreign text.
    """
    home = watched.place
    return TurnRequest(
        agent=policy.agent,
        place=target.place,
        sender=Sender(Author(WATCHER.key, WATCHER.name), WATCHER, target.reach),
        parts=(TextPart(f"{policy.prompt}\n\n{describe_change(change, watched)}"),),
        platform_id=change.id,
        owed=target.owed,
        session=SessionChoice(home if home != target.place else None, is_new=True),
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
