"""The bus: keeps events, and delivers each to the listeners that wait for it.

An event is kept in the same moment as its deliveries, and what a delivery causes derives from it: a turn by its id, a
post by those of its pieces. So the same event twice is one, and a crash neither loses nor repeats what it causes.
Failures that may pass are tried again; others wait in a list until people replay them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import anyio

from denizen.domain.cloud_event import MAX_DEPTH, CloudEvent, fill_template, list_places, show_field
from denizen.domain.conversation import Place, own_place
from denizen.domain.errors import Conflict, DenizenError, LimitExceeded, NotFound, Unavailable
from denizen.domain.event_listener import (
    EVENT_ID,
    EVENT_TYPE,
    ActionKind,
    EventDelivery,
    EventDeliveryStatus,
    EventListener,
    delivery_key,
    find_listeners,
    plan_retry,
)
from denizen.domain.ids import TurnId, fresh, turn_id
from denizen.domain.message import Author, TextPart
from denizen.domain.rate_limit import HOUR_S, RateLimit
from denizen.domain.turn import RequestOptions, Sender, SessionChoice, Turn, TurnRequest, TurnStatus
from denizen.domain.workflow import get_workflow
from denizen.domain.workflow_run import WorkflowStart, event_scope
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.configuration.generation import Runtime
from denizen.engine.event_bus.message import list_mentioned, write_digest_post, write_digest_prompt
from denizen.engine.events.signal import Signal
from denizen.engine.intake.rate_limiter import take_rate
from denizen.engine.loop.services import EngineServices
from denizen.engine.outbox.answer_target import AnswerTarget, AnswerTargets
from denizen.engine.outbox.plan import Announcement, plan_announcement
from denizen.engine.turn import TurnRunner
from denizen.engine.workflows.catalog import RunOrder, submit_run
from denizen.ports.store import UnitOfWork

LOOK_EVERY_S = 20.0
"""How often one looks for what nobody announced: another process may have kept an event, and turns end."""
LOOK_AT = 100
"""How many deliveries are looked at in one go."""
MAX_DIGEST_EVENTS = 200
"""So many events of a digest are read and told; the others are counted."""

_RETRIED = (Unavailable, LimitExceeded)
_log = logging.getLogger("denizen.events")


class EventBus:
    """One for a process. `publish` keeps events, `run` delivers them. Listeners are those in force at the moment."""

    def __init__(
        self, runtime: Runtime, services: EngineServices, turns: TurnRunner, channels: ConnectedAccounts
    ) -> None:
        self._runtime = runtime
        self._store = services.store
        self._clock = services.clock
        self._turns = turns
        self._targets = AnswerTargets(runtime, services.store, channels)
        self._outbox = services.outbox
        self._changed = Signal(channels.added, runtime.swapped)

    @property
    def changed(self) -> Signal:
        """Sent when there may be something to do."""
        return self._changed

    def awaits(self, kind: str, source: str) -> bool:
        """As `EventSettings.awaits`. Producers ask before they gather anything."""
        return self._runtime.current.events.awaits(kind, source)

    # --- keeping -----------------------------------------------------------------------------------------------------

    async def publish(self, event: CloudEvent) -> bool:
        """Keeps the event, with what is to be done about it. False when it is there already."""
        async with self._store.work() as work:
            is_new = await self.keep(work, event)
        if is_new:
            self.wake()
        return is_new

    async def keep(self, work: UnitOfWork, event: CloudEvent) -> bool:
        """As `publish`, within a unit of work of the caller, who calls `wake` behind it."""
        listeners: Sequence[EventListener] = find_listeners(event, self._runtime.current.events.listeners)
        if event.depth > MAX_DEPTH and listeners:
            about = {"event": event.key, "type": event.type, "cause": event.cause}
            _log.warning("an event has no effect: more than %d follow from each other", MAX_DEPTH, extra=about)
            listeners = ()
        now = self._clock.now()
        is_new = await work.events.append(event)
        planned = [await self._plan(work, event, each, now) for each in listeners] if is_new else []
        await work.events.add_deliveries(planned)
        return is_new

    def wake(self) -> None:
        """Has what is due looked at now."""
        self._changed.send()

    async def forget(self, keys: Sequence[str]) -> None:
        """Removes these events from the log, and what is still to be done about them."""
        async with self._store.work() as work:
            await work.workflows.forget_events(keys)
            await work.events.forget(keys)

    async def _plan(self, work: UnitOfWork, event: CloudEvent, listener: EventListener, now: datetime) -> EventDelivery:
        status, note = EventDeliveryStatus.WAITING, ""
        if listener.action.kind is ActionKind.LOG:
            status = EventDeliveryStatus.DONE
        elif note := _find_silence(listener, now) or await self._find_excess(work, event, listener, now):
            status = EventDeliveryStatus.SKIPPED
        due = now
        if listener.digest and status is EventDeliveryStatus.WAITING:
            due = await work.events.find_digest(listener.key, after=now) or now + listener.digest
        if status is EventDeliveryStatus.WAITING:
            due = _end_quiet(listener, due)
        return EventDelivery(
            id=delivery_key(event, listener),
            event=event.key,
            listener=listener.key,
            status=status,
            due_at=due,
            created_at=now,
            note=note,
        )

    async def _find_excess(self, work: UnitOfWork, event: CloudEvent, listener: EventListener, now: datetime) -> str:
        """Counts the delivery; where it comes too soon, returns why it is left out."""
        if listener.cool_down:
            template = listener.cool_down_key
            value = fill_template(template, {path: show_field(event, path) for path in list_places(template)})
            once = RateLimit(1, listener.cool_down.total_seconds())
            if excess := await take_rate(work, f"cool-down\x00{listener.key}\x00{value}", (once,), now=now):
                return f"It is cooling down for {excess.wait_s:.0f} s more."
        hourly = RateLimit(listener.per_hour, HOUR_S)
        if await take_rate(work, f"listener\x00{listener.key}", (hourly,), now=now):
            _log.warning("a listener acts too often", extra={"listener": listener.key, "event": event.key})
            return f"It has acted {listener.per_hour} times within an hour, which is its limit."
        return ""

    # --- delivering --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Delivers what is due, until it is cancelled. Without listeners it waits for a change of the configuration."""
        while True:
            changed = self._changed.next
            wait_s = await self.look()
            with anyio.move_on_after(wait_s):
                await changed.wait()

    async def look(self) -> float | None:
        """Delivers what is due now. Returns how many seconds to wait for the next, at most `LOOK_EVERY_S`; None without
        listeners.
        """
        if not self._runtime.current.events.listeners:
            return None
        await self._settle_started()
        while True:
            now = self._clock.now()
            async with self._store.work(write=False) as work:
                due = await work.events.list_due(now=now, limit=LOOK_AT)
            done = set[str]()
            for delivery in due:
                if delivery.id not in done:
                    done.update(await self._deliver(delivery))
            if len(due) < LOOK_AT:
                break
        async with self._store.work(write=False) as work:
            upcoming = await work.events.find_upcoming(after=now)
        return LOOK_EVERY_S if upcoming is None else min((upcoming - now).total_seconds(), LOOK_EVERY_S)

    async def _deliver(self, delivery: EventDelivery) -> Sequence[str]:
        """Delivers it, with those that its listener has collected with it. Returns the ids of all of them."""
        group: Sequence[EventDelivery] = [delivery]
        about = {"event": delivery.event, "listener": delivery.listener}
        try:
            listener = self._runtime.current.events.listeners.get(delivery.listener)
            if listener is None:
                raise NotFound(f"There is no listener '{delivery.listener}' any more.", code="listener_unknown")
            async with self._store.work(write=False) as work:
                group = (await work.events.list_digest(delivery) if listener.digest else ()) or group
                found = [await work.events.find(each.event) for each in group[:MAX_DIGEST_EVENTS]]
            if end := _find_late(listener, delivery, self._clock.now()):
                await self._postpone(group, end)
                return [each.id for each in group]
            events = [each for each in found if each is not None]
            if len(events) < len(found):
                raise NotFound("The event is not kept any more.", code="event_unknown")
            match listener.action.kind:
                case ActionKind.AGENT:
                    opened = await self._find_opened(delivery, listener)
                    await (self._note_started(group, opened) if opened else self._open_turn(group, events, listener))
                case ActionKind.POST:
                    await self._post(group, events, listener)
                case ActionKind.WORKFLOW:
                    await self._start_workflow(delivery, events[0], listener)
                case ActionKind.LOG:
                    await self._update(delivery, EventDeliveryStatus.DONE)
        except DenizenError as error:
            await self._fail(group, error.explain(), may_pass=isinstance(error, _RETRIED))
            _log.warning("an event was not delivered: %s", error.message, extra=about | error.fields)
        except Exception:  # noqa: BLE001 - the boundary of a job
            reference = fresh("err")
            _log.exception("event fault", extra=about | {"reference": reference})
            await self._fail(group, f"Something went wrong inside. Reference: {reference}.", may_pass=False)
        else:
            _log.info("an event was delivered", extra=about)
        return [each.id for each in group]

    async def _update(
        self, delivery: EventDelivery, status: EventDeliveryStatus, *, turn: TurnId | None = None
    ) -> None:
        async with self._store.work() as work:
            await work.events.update(
                replace(delivery, status=status, turn_id=turn, note=""), attempts=delivery.attempts
            )

    async def _postpone(self, group: Sequence[EventDelivery], until: datetime) -> None:
        async with self._store.work() as work:
            for each in group:
                await work.events.update(replace(each, due_at=until), attempts=each.attempts)

    async def _fail(self, group: Sequence[EventDelivery], note: str, *, may_pass: bool) -> None:
        now, listener = self._clock.now(), self._runtime.current.events.listeners.get(group[0].listener)
        async with self._store.work() as work:
            for delivery in group:
                attempts = delivery.attempts + 1
                wait = plan_retry(attempts) if may_pass else None
                failed = replace(
                    delivery,
                    status=EventDeliveryStatus.FAILED if wait is None else EventDeliveryStatus.WAITING,
                    due_at=_end_quiet(listener, now + wait) if wait else now,
                    attempts=attempts,
                    note=note,
                )
                await work.events.update(failed, attempts=delivery.attempts)

    # --- the actions -------------------------------------------------------------------------------------------------

    async def _open_turn(
        self, group: Sequence[EventDelivery], events: Sequence[CloudEvent], listener: EventListener
    ) -> None:
        """Opens one turn for all of them. It derives from the first, so that an interrupted one is opened once."""
        event, delivery = events[0], group[0]
        action, principal, target = listener.action, listener.principal, await self._find_target(listener)
        home = session_place(listener)
        turn = await self._turns.submit(
            TurnRequest(
                agent=action.agent,
                place=target.place,
                sender=Sender(Author(principal.key, listener.name), principal, target.reach),
                parts=(TextPart(write_digest_prompt(events, action.message, more=len(group) - len(events))),),
                platform_id=delivery.attempt_id,
                owed=target.owed,
                session=SessionChoice(home if home != target.place else None, is_new=action.new_session),
                options=RequestOptions(variables={EVENT_TYPE: event.type, EVENT_ID: event.key}),
            )
        )
        await self._note_started(group, turn.id)

    async def _start_workflow(self, delivery: EventDelivery, event: CloudEvent, listener: EventListener) -> None:
        """The turn of a run is one of an event: what may not be done for an event, it may not do."""
        workflow = get_workflow(self._runtime.current.workflows, listener.action.workflow)
        start = WorkflowStart(
            name=workflow.name,
            digest=workflow.digest,
            trigger=listener.action.trigger,
            scope={"event": event_scope(event)},
        )
        order = RunOrder(key=delivery.attempt_id, by=listener.principal, name=listener.name)
        workflow = replace(workflow, agent=listener.action.agent)
        turn = await submit_run(self._store, self._turns.submit, workflow, start, order, now=self._clock.now())
        await self._update(delivery, EventDeliveryStatus.STARTED, turn=turn.id)

    async def _find_opened(self, delivery: EventDelivery, listener: EventListener) -> TurnId | None:
        """Returns the turn of this attempt, where a process has opened it and died before it could note that. It is
        looked for first: what else may fail now, such as an account that is away, would make another attempt of it.
        """
        action = listener.action
        platform = action.platform if action.channel else session_place(listener).platform
        key = turn_id(action.agent, platform, delivery.attempt_id)
        async with self._store.work(write=False) as work:
            return key if await work.turns.find(key) else None

    async def _note_started(self, group: Sequence[EventDelivery], turn: TurnId) -> None:
        async with self._store.work() as work:
            for each in group:
                started = replace(each, status=EventDeliveryStatus.STARTED, turn_id=turn, note="")
                await work.events.update(started, attempts=each.attempts)

    async def _post(
        self, group: Sequence[EventDelivery], events: Sequence[CloudEvent], listener: EventListener
    ) -> None:
        """Owes one post to the outbox in the same moment in which the deliveries are done."""
        action, target = listener.action, await self._find_target(listener)
        channel = target.channel
        assert channel is not None  # a post has a channel, as the settings check
        now, text = self._clock.now(), write_digest_post(events, action.message, more=len(group) - len(events))
        policy = self._runtime.current.account_policy_for(action.platform, action.agent)
        said = Announcement(target.place, "", text, key=group[0].attempt_id)
        welcome = {who: form for each in events for who, form in list_mentioned(each, action.message).items()}
        pieces = [
            replace(
                piece,
                content=replace(
                    piece.content,
                    ping_users=frozenset(user for user, form in welcome.items() if form in piece.content.text),
                ),
            )
            for piece in plan_announcement(said, channel, policy, now=now)
        ]
        async with self._store.work() as work:
            done = [replace(each, status=EventDeliveryStatus.DONE, note="") for each in group]
            if all([await work.events.update(each, attempts=each.attempts) for each in done]):
                await work.outbox.add(pieces)
        self._outbox.wake(action.platform, action.agent)

    async def _find_target(self, listener: EventListener) -> AnswerTarget:
        action = listener.action
        if not action.channel:
            return AnswerTarget(session_place(listener))
        return await self._targets.find_room(action.agent, action.platform, action.channel)

    # --- how turns ended ---------------------------------------------------------------------------------------------

    async def _settle_started(self) -> None:
        """Notes how the turns of events have ended. One that failed before it did anything is tried again."""
        async with self._store.work(write=False) as work:
            started = await work.events.list_started(limit=LOOK_AT)
            found = await work.turns.find_many([each.turn_id for each in started if each.turn_id])
        turns, groups = {turn.id: turn for turn in found}, dict[TurnId | None, list[EventDelivery]]()
        for delivery in started:
            groups.setdefault(delivery.turn_id, []).append(delivery)
        for key, group in groups.items():
            turn = turns.get(key) if key else None
            if turn is None:
                await self._fail(group, "Its turn is not kept any more.", may_pass=False)
            elif turn.status in (TurnStatus.DONE, TurnStatus.SKIPPED):
                for delivery in group:
                    await self._update(delivery, EventDeliveryStatus.DONE, turn=turn.id)
            elif turn.status.is_final:
                await self._fail(group, _explain(turn), may_pass=await self._may_repeat(turn))

    async def _may_repeat(self, turn: Turn) -> bool:
        if turn.result.failure is None or turn.result.failure.family != Unavailable.__name__:
            return False
        async with self._store.work(write=False) as work:
            return not await work.turns.list_calls(turn.id)

    # --- what people do ----------------------------------------------------------------------------------------------

    async def replay(self, delivery_id: str) -> EventDelivery:
        """Has a delivery that failed or was skipped tried once more, now. Raises NotFound, and Conflict for another."""
        async with self._store.work() as work:
            delivery = await work.events.find_delivery(delivery_id)
            if delivery is None:
                raise NotFound(
                    f"There is no delivery '{delivery_id[:60]}'.",
                    code="delivery_unknown",
                    fix="`denizen events failed` lists those that failed, `denizen events list` all.",
                )
            if delivery.status not in (EventDeliveryStatus.FAILED, EventDeliveryStatus.SKIPPED):
                raise Conflict(
                    "Only a delivery that has failed or was skipped can be replayed.",
                    code="delivery_not_failed",
                    why=f"this one is {delivery.status}",
                )
            waiting = replace(
                delivery,
                status=EventDeliveryStatus.WAITING,
                due_at=self._clock.now(),
                attempts=delivery.attempts + 1,
                turn_id=None,
            )
            await work.events.update(waiting, attempts=delivery.attempts)
        self._changed.send()
        return waiting


def session_place(listener: EventListener) -> Place:
    """The place of the session, which no person's request can name."""
    return own_place(listener.kind.value, "events", listener.session_name)


def _find_silence(listener: EventListener, now: datetime) -> str:
    """Returns why an event is left out at that time."""
    end = listener.quiet.find_end(now) if listener.quiet and listener.quiet.skips else None
    return f"It has its quiet hours until {end:%Y-%m-%d %H:%M} UTC." if end else ""


def _end_quiet(listener: EventListener | None, due: datetime) -> datetime:
    """Returns when a listener acts that would do so at that time."""
    return (listener.quiet.find_end(due) if listener and listener.quiet else None) or due


def _find_late(listener: EventListener, delivery: EventDelivery, now: datetime) -> datetime | None:
    """Returns the end of the quiet hours that have begun since the delivery was due, such as while no server ran. What
    is due within them was replayed by people, who want it now.
    """
    quiet = listener.quiet
    return quiet.find_end(now) if quiet and not quiet.find_end(delivery.due_at) else None


def _explain(turn: Turn) -> str:
    failure = turn.result.failure
    said = failure.message if failure else f"Its turn was {turn.status}."
    return f"{said} (turn {turn.id})"
