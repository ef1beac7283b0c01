"""Runs schedules: finds the times that have come, writes each down as a run, and opens a turn for it.

A run is written down in the same moment in which its time is dealt with, and its turn's id derives from the run's. So
of several processes one runs it, and a crash neither loses nor repeats it: what waits is begun by the next process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

import anyio
from anyio import to_thread

from denizen.domain.attention import AllowedPeople, AuthorFacts, may_talk
from denizen.domain.budget import BudgetPeriod, BudgetScope, BudgetScopeKind, renews_at
from denizen.domain.clock import Clock
from denizen.domain.conversation import Place, own_place
from denizen.domain.errors import Conflict, DenizenError, NotAllowed, NotFound, Unavailable
from denizen.domain.ids import AgentName, MessageId, derive
from denizen.domain.json import JsonObject
from denizen.domain.message import Author, Message, Role, TextPart
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.schedule import (
    DeliveryRoute,
    RunStatus,
    Schedule,
    ScheduleRun,
    ScheduleState,
    fill_prompt,
    plan_run,
    schedule_variables,
)
from denizen.domain.turn import RequestOptions, Sender, SessionChoice, TurnRequest
from denizen.domain.workflow_run import WorkflowStart
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.configuration.generation import Runtime
from denizen.engine.events.signal import Signal
from denizen.engine.outbox.answer_target import AnswerTarget, AnswerTargets
from denizen.engine.schedules.delivery import RunDeliveries
from denizen.engine.schedules.times import find_due, find_next
from denizen.engine.turn import TurnRunner
from denizen.engine.workflows.catalog import RunOrder, find_trigger, plan_scope, submit_run
from denizen.ports.inbox import AllowedKind
from denizen.ports.schedules import CronTimes
from denizen.ports.store import Store, UnitOfWork

LOOK_EVERY_S = 20.0
"""How often one looks for what nobody announced: a command may have asked for a run."""
CONNECT_PATIENCE = timedelta(minutes=10)
"""How long a run waits for the account that is to deliver it."""
STALE_AFTER = timedelta(hours=1)
"""A run that could not begin for so long, since nothing ran, is missed."""
PLATFORM = "schedule"
"""The platform of sessions that no person has."""


@record(kw_only=True)
class ScheduleResources:
    """The resources that all who work on schedules share. `changed` is sent when there may be something to do."""

    runtime: Runtime
    store: Store
    clock: Clock
    times: CronTimes
    changed: Signal

    def find_next(self, schedule: Schedule, after: datetime) -> datetime | None:
        """Returns the first time of the schedule after that one; None where it is over."""
        return find_next(self.times, schedule, after)


ReadNextTask = Callable[[AgentName], str]
"""Reads the agent's `next_task.md`; empty where there is none. Blocks."""

_log = logging.getLogger("denizen.schedules")


@dataclass(slots=True)
class _WatchedSchedule:
    """A schedule with what is known of it, and when it is due next; None where it is over."""

    schedule: Schedule
    state: ScheduleState
    next_at: datetime | None

    def is_due(self, now: datetime) -> bool:
        """Also where the clock was put back: its times count anew."""
        has_come = self.next_at is not None and self.next_at <= now
        return self.schedule.enabled and (has_come or self.state.looked_until > now)


class ScheduleRunner:
    """One for a process. `run` runs what is due, until it is cancelled. Schedules are those in force at the moment."""

    def __init__(
        self,
        resources: ScheduleResources,
        turns: TurnRunner,
        channels: ConnectedAccounts,
        deliveries: RunDeliveries,
        read_next_task: ReadNextTask,
    ) -> None:
        self.resources = resources
        self._runtime, self._store = resources.runtime, resources.store
        self._clock, self._times = resources.clock, resources.times
        self._turns = turns
        self._targets = AnswerTargets(resources.runtime, resources.store, channels)
        self._deliveries = deliveries
        self._read_next_task = read_next_task
        self._watched: dict[str, _WatchedSchedule] = {}
        self._generation = 0

    async def run(self) -> None:
        """Without schedules it waits for a change of the configuration, and does nothing else."""
        while True:
            changed = self.resources.changed.next
            wait_s = await self.look()
            with anyio.move_on_after(wait_s):
                await changed.wait()

    async def look(self) -> float | None:
        """Runs what is due now. Returns how many seconds to wait for the next time, at most `LOOK_EVERY_S`; None
        without schedules.
        """
        generation = self._runtime.current
        if generation.number != self._generation:
            await self._follow(generation.schedules)
            self._generation = generation.number
        if not self._watched:
            return None
        now = self._clock.now()
        for watched in list(self._watched.values()):
            if watched.is_due(now):
                await self._deal_with(watched, now)
        await self._begin_waiting()
        await self._deliveries.submit_owed()
        active = (each for each in self._watched.values() if each.schedule.enabled)
        upcoming = min((each.next_at for each in active if each.next_at is not None), default=None)
        if upcoming is None:
            return LOOK_EVERY_S
        return min(max((upcoming - self._clock.now()).total_seconds(), 0.0), LOOK_EVERY_S)

    # --- what is due -------------------------------------------------------------------------------------------------

    async def _follow(self, schedules: Mapping[str, Schedule]) -> None:
        """Takes over a new configuration. Where the times of a schedule are others, they count from now on."""
        now = self._clock.now()
        if not schedules and not self._watched:
            return
        async with self._store.work() as work:
            known = {state.name: state for state in await work.schedules.list_states()}
            for gone in known.keys() - {each.id for each in schedules.values()}:
                await work.schedules.remove(gone)
            for schedule in schedules.values():
                state = known.get(schedule.id)
                if state is None or state.definition != schedule.definition:
                    last = state.last_run_at if state else None
                    known[schedule.id] = ScheduleState(
                        name=schedule.id, definition=schedule.definition, looked_until=now, last_run_at=last
                    )
                    await work.schedules.put(known[schedule.id])
        self._watched = {each.id: self._watch(each, known[each.id]) for each in schedules.values()}

    def _watch(self, schedule: Schedule, state: ScheduleState) -> _WatchedSchedule:
        return _WatchedSchedule(schedule, state, self.resources.find_next(schedule, state.looked_until))

    async def _deal_with(self, watched: _WatchedSchedule, now: datetime) -> None:
        """Writes down what becomes of the times that have come. Where the clock was put back, they count anew, and
        those that ran do not run again.
        """
        schedule, state = watched.schedule, watched.state
        due = None if state.looked_until > now else find_due(self._times, schedule, state.looked_until, now)
        until = due.at if due else now
        async with self._store.work() as work:
            is_first = await work.schedules.advance(schedule.id, before=state.looked_until, until=until)
            if is_first and due is not None:
                is_busy = await has_open_run(work, schedule.id)
                run = plan_run(schedule, due, is_busy=is_busy, now=now)
                if await work.schedules.add_run(run) and run.status is not RunStatus.WAITING:
                    _log.warning("a schedule did not run: %s", run.note, extra={"schedule": schedule.name})
            if not is_first:
                states = await work.schedules.list_states()
                state = next((each for each in states if each.name == schedule.id), state)
        state = replace(state, looked_until=until) if is_first else state
        self._watched[schedule.id] = self._watch(schedule, state)

    # --- beginning runs ----------------------------------------------------------------------------------------------

    async def _begin_waiting(self) -> None:
        async with self._store.work(write=False) as work:
            waiting = await work.schedules.list_waiting()
        for run in waiting:
            await self._begin(run)

    async def _begin(self, run: ScheduleRun) -> None:
        """Begins the run, or writes down why it cannot begin. One whose account is away waits for it."""
        now = self._clock.now()
        watched = self._watched.get(run.schedule)
        about = {"schedule": run.schedule, "run": run.id}
        if now - run.seen_at > STALE_AFTER:
            await self._end(run, RunStatus.MISSED, "The server was not there to begin it.")
            return
        try:
            if watched is None:
                raise NotFound(f"There is no schedule '{run.schedule_name}' any more.", code="schedule_unknown")
            schedule = watched.schedule
            if spent := await self._find_exhausted(schedule, now):
                await self._end(run, RunStatus.SKIPPED, spent)
                _log.warning("a schedule did not run: %s", spent, extra=about)
                return
            target = await self._find_target(schedule)
            if schedule.workflow or schedule.tool_call:
                await self._start_workflow(schedule, run, now)
            elif schedule.conduct.wake_agent:
                await self._open_turn(schedule, run, target, now)
            else:
                await self._leave_note(schedule, run, now)
        except Unavailable as error:  # tried again with the next look
            if now - run.seen_at > CONNECT_PATIENCE:
                await self._end(run, RunStatus.FAILED, error.explain())
                _log.error("a schedule could not run: %s", error.message, extra=about | error.fields)
        except DenizenError as error:
            await self._end(run, RunStatus.FAILED, error.explain())
            _log.error("a schedule could not run: %s", error.message, extra=about | error.fields)
        else:
            _log.info("a schedule runs", extra=about)

    async def _find_exhausted(self, schedule: Schedule, now: datetime) -> str:
        """Returns why the schedule has no money left, for people; empty where it may run."""
        scope = BudgetScope(BudgetScopeKind.JOB, schedule.id)
        limits = self._runtime.current.budgets.plan_limits([scope])
        if not limits:
            return ""
        async with self._store.work(write=False) as work:
            standing = (await work.spending.read([scope], now=now))[scope]
        for limit in limits:
            if (spent := standing.spent(limit.period)) >= limit.usd > 0:
                when = "today" if limit.period is BudgetPeriod.DAY else "this month"
                renewed = renews_at(limit.period, now)
                told = f"Its budget for {when} is used up: ${spent:.4f} of ${limit.usd:.2f}."
                return f"{told} It renews on {renewed.day} {renewed:%B} at 00:00 UTC."
        return ""

    async def _end(self, run: ScheduleRun, status: RunStatus, note: str) -> None:
        async with self._store.work() as work:
            await work.schedules.set_status(run.id, status, note=note)

    async def _open_turn(self, schedule: Schedule, run: ScheduleRun, target: AnswerTarget, now: datetime) -> None:
        conduct, principal = schedule.conduct, schedule.principal
        home = session_place(schedule)
        async with self._store.work(write=False) as work:
            states = await work.schedules.list_states()
            begun = await work.schedules.list_begun(schedule.id, limit=2)
            before = next((each.turn_id for each in begun if each.turn_id and each.id != run.id), None)
            last_turn = await work.turns.find(before) if before else None
        variables = schedule_variables(
            schedule,
            run,
            last_run_at=next((each.last_run_at for each in states if each.name == schedule.id), None),
            last_response=last_turn.result.reply if last_turn else "",
            next_task=await to_thread.run_sync(partial(self._read_next_task, schedule.agent)),
        )
        turn = await self._turns.submit(
            TurnRequest(
                agent=schedule.agent,
                place=target.place,
                sender=Sender(Author(principal.key, schedule.name), principal, target.reach),
                parts=(TextPart(fill_prompt(schedule.prompt, variables)),),
                platform_id=run.id,
                owed=target.owed,
                session=SessionChoice(home if home != target.place else None, is_new=conduct.new_session),
                options=RequestOptions(
                    model=conduct.model, variables=variables, budget_usd=schedule.budget.per_run_usd
                ),
            )
        )
        is_sent_after = conduct.delivery.to.is_sent_after
        async with self._store.work() as work:
            status = RunStatus.OWED if is_sent_after else RunStatus.STARTED
            await work.schedules.set_status(run.id, status, turn_id=turn.id)
            await work.schedules.set_last_run(schedule.id, now)

    async def _start_workflow(self, schedule: Schedule, run: ScheduleRun, now: datetime) -> None:
        workflow = schedule.tool_call or self._runtime.current.get_workflow(schedule.workflow)
        trigger, planned = schedule.trigger, {"planned_at": run.planned_at.isoformat()}
        scope: JsonObject = {"event": planned} if schedule.tool_call else {"input": planned}
        if not trigger:
            if not workflow.enabled:
                raise Conflict(f"The workflow '{workflow.name}' is off.", code="workflow_off", fix="Switch it on.")
            node = find_trigger(workflow, "")
            trigger, scope = node.id, plan_scope(node, schedule.args)
        start = WorkflowStart(name=workflow.name, digest=workflow.digest, trigger=trigger, scope=scope)
        order = RunOrder(key=run.id, by=schedule.principal, name=schedule.name, budget_usd=schedule.budget.per_run_usd)
        workflow = replace(workflow, agent=schedule.agent)
        turn = await submit_run(self._store, self._turns.submit, workflow, start, order, now=now)
        async with self._store.work() as work:
            await work.schedules.set_status(run.id, RunStatus.STARTED, turn_id=turn.id)
            await work.schedules.set_last_run(schedule.id, now)

    async def _leave_note(self, schedule: Schedule, run: ScheduleRun, now: datetime) -> None:
        """Leaves the prompt in the session, where the agent reads it in its next turn."""
        async with self._store.work() as work:
            conversation = await work.conversations.put(session_place(schedule), now=now)
            begin = work.sessions.renew if schedule.conduct.new_session else work.sessions.current
            session = await begin(conversation.id, schedule.agent, now=now)
            await work.messages.add(
                Message(
                    id=MessageId(derive("msg", run.id, Role.USER)),
                    conversation_id=conversation.id,
                    role=Role.USER,
                    author=Author(schedule.principal.key, schedule.name),
                    parts=(TextPart(schedule.prompt),),
                    created_at=now,
                    session_id=session.id,
                    platform_id=run.id,
                )
            )
            await work.schedules.set_status(run.id, RunStatus.NOTED)
            await work.schedules.set_last_run(schedule.id, now)

    # --- where it is answered ----------------------------------------------------------------------------------------

    async def _find_target(self, schedule: Schedule) -> AnswerTarget:
        """Raises as `AnswerTargets.find`, and NotAllowed where the account would not answer its owner there now."""
        conduct, owner = schedule.conduct, schedule.principal.owner
        if owner is not None:
            await self._check_owner(schedule, owner)
        to = conduct.delivery.to
        if to is DeliveryRoute.LOG or to.is_sent_after or not conduct.wake_agent:
            return AnswerTarget(session_place(schedule))
        target = await self._targets.find(conduct.delivery, schedule.agent)
        if owner is None or target.channel is None or conduct.delivery.to is DeliveryRoute.DIRECT:
            return target
        if not await target.channel.may_write(target.place, owner):
            raise NotAllowed(
                f"The owner of '{schedule.name}' may not write there any more.",
                code="schedule_place",
                fix="Remove it, or deliver it elsewhere.",
            )
        return target

    async def _check_owner(self, schedule: Schedule, owner: Principal) -> None:
        """Raises NotAllowed where the account would not answer that person: they have left, or may not talk with it any
        more; and Unavailable where that cannot be known now.
        """
        platform, _, user_id = owner.id.partition(":")
        channel, agent = self._targets.find_account(schedule.agent, platform), schedule.agent
        policy, known = (
            self._runtime.current.account_policy_for(platform, agent),
            await channel.list_memberships(user_id),
        )
        shared = [each for each in known.found if not policy.scope.guilds or each.community in policy.scope.guilds]
        async with self._store.work(write=False) as work:
            allowed = AllowedPeople(
                await work.inbox.list_allowed(agent, platform, AllowedKind.USER),
                await work.inbox.list_allowed(agent, platform, AllowedKind.ROLE),
            )
        author = AuthorFacts(id=user_id, roles=frozenset[str]().union(*(each.roles for each in shared)))
        if shared and may_talk(author, allowed, policy):
            return
        if not known.is_complete:
            raise Unavailable(
                f"It is not known now whether the owner of '{schedule.name}' may talk with {agent}.",
                code="account_away",
            )
        raise NotAllowed(
            f"The owner of '{schedule.name}' may not talk with {agent} any more.",
            code="schedule_owner",
            fix="Remove it, or add its owner with `/allow add`.",
        )


def session_place(schedule: Schedule) -> Place:
    """The place of the session, which no person's request can name. Schedules of the same owner, or of the operator,
    with the same name of it share it.
    """
    return own_place(PLATFORM, schedule.owner or "schedules", schedule.session_name)


async def has_open_run(work: UnitOfWork, schedule_id: str) -> bool:
    """Whether a run of the schedule is to begin, or its turn has not ended."""
    for run in await work.schedules.list_begun(schedule_id, limit=1):
        turn = await work.turns.find(run.turn_id) if run.turn_id else None
        return run.turn_id is None or (turn is not None and not turn.status.is_final)
    return False
