"""Reminders: set and cancelled for the one who asks, and said through the outbox when they are due, once each.

A reminder that is due is taken out of the store in the same moment in which its message is owed to the outbox, so that
of several processes one says it, and a crash neither loses nor repeats it. It waits until its account is connected in
this process, and then tells how late it is. Outside of platforms nobody could be called, so nothing is promised there.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import anyio

from denizen.domain.clock import Clock
from denizen.domain.delivery import Delivery, DeliveryKind, DeliveryTarget, MessageContent, delivery_id
from denizen.domain.errors import InvalidInput, LimitExceeded, NotAllowed, NotFound, Unavailable
from denizen.domain.ids import AgentName, fresh, turn_id
from denizen.domain.moment import parse_moment
from denizen.domain.pings import link_pings
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.prompt_messages import agent_timezone
from denizen.domain.record import record
from denizen.domain.reminder import MAX_AHEAD, MAX_PENDING, MAX_TEXT_CHARS, Reminder, reminder_id, reminder_text
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.configuration.generation import Runtime
from denizen.engine.events.signal import Signal
from denizen.engine.outbox.outbox import DeliveryOutbox
from denizen.ports.channel import Channel
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope
from denizen.skill import PlannedReminder, ReminderAccess

IDLE_S = 30.0
"""How often one looks for what nobody announced: another process may have set it."""

_log = logging.getLogger("denizen.reminders")


class ReminderService:
    """One for a process. `run` says what is due, as long as it runs."""

    def __init__(
        self, runtime: Runtime, store: Store, clock: Clock, channels: ConnectedAccounts, outbox: DeliveryOutbox
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._clock = clock
        self._channels = channels
        self._outbox = outbox
        self._changed = Signal(channels.added)

    @property
    def changed(self) -> Signal:
        """Sent when there may be something to do."""
        return self._changed

    # --- asking ------------------------------------------------------------------------------------------------------

    def open(self, scope: CallScope) -> ReminderAccess:
        """The reminders of the one who asks, for the call of this scope."""
        return _ScopedReminders(self, scope)

    async def add(self, scope: CallScope, when: str, text: str, zone: str) -> Reminder:
        """As `ReminderAccess.add`."""
        account = require_platform(scope)
        now, words = self._clock.now(), text.strip()
        if not words or len(words) > MAX_TEXT_CHARS:
            raise InvalidInput(
                "There is nothing to be reminded of." if not words else "The text of this reminder is too long.",
                code="reminder_text",
                fix=f"Write 1 to {MAX_TEXT_CHARS} characters.",
            )
        due_at = parse_moment(when, now=now, zone=self.find_zone(scope.agent, zone))
        if due_at - now > MAX_AHEAD:
            raise InvalidInput("That is too far ahead.", code="reminder_far", fix="Reminders reach a year ahead.")
        key = reminder_id(scope.options.idempotency_key or fresh("rem"))
        reminder = Reminder(
            id=key,
            account=account,
            asker=scope.principal.key,
            place=scope.place,
            text=words,
            due_at=due_at,
            created_at=now,
        )
        async with self._store.work() as work:
            pending = await work.reminders.list_for(reminder.asker, limit=MAX_PENDING)
            if known := next((each for each in pending if each.id == key), None):
                return known
            if len(pending) >= MAX_PENDING:
                raise LimitExceeded(
                    f"{MAX_PENDING} reminders are pending, which is as many as one person may have.",
                    code="reminders_full",
                    fix="Cancel some: list_reminders shows those of this place, and /reminders list all of them.",
                )
            await work.reminders.add(reminder)
        self._changed.send()
        return reminder

    async def list_for(self, scope: CallScope) -> Sequence[Reminder]:
        """The next one first."""
        async with self._store.work(write=False) as work:
            return await work.reminders.list_for(scope.principal.key, limit=MAX_PENDING)

    async def cancel(self, scope: CallScope, key: str) -> None:
        """Raises NotFound."""
        async with self._store.work() as work:
            if not await work.reminders.remove(key, asker=scope.principal.key):
                raise not_pending(key)

    def find_zone(self, agent: AgentName, name: str) -> ZoneInfo:
        """That of the name; the agent's own for an empty one."""
        return ZoneInfo(name or agent_timezone(self._runtime.current.agent(agent)))

    # --- saying ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Says what is due, until it is cancelled."""
        while True:
            changed = self._changed.next
            wait_s = await self.say_due()
            with anyio.move_on_after(wait_s):
                await changed.wait()

    async def say_due(self) -> float:
        """Owes what is due to the outbox; how many seconds to wait for the next, at most `IDLE_S`."""
        now = self._clock.now()
        for channel in self._channels.list_all():
            while due := await self._list_due(channel, now):
                settled = [await self._settle(channel, reminder, now) for reminder in due]
                if not all(settled):
                    break
        async with self._store.work(write=False) as work:
            upcoming = await work.reminders.find_next_due(after=now)
        return IDLE_S if upcoming is None else min((upcoming - now).total_seconds(), IDLE_S)

    async def _list_due(self, channel: Channel, now: datetime) -> Sequence[Reminder]:
        async with self._store.work(write=False) as work:
            return await work.reminders.list_due(channel.agent, channel.platform, now=now)

    async def _settle(self, channel: Channel, reminder: Reminder, now: datetime) -> bool:
        """Says it, or drops it: what somebody may not write there any more, the account does not write for them.

        False when the platform cannot tell at the moment: it is said when it answers again.
        """
        asker = Principal(PrincipalKind.PLATFORM_USER, reminder.asker.partition(":")[2], "")
        try:
            welcome = await channel.may_write(reminder.place, asker)
        except Unavailable as error:
            _log.warning("a reminder waits", extra={"agent": channel.agent, **error.fields})
            return False
        if welcome:
            await self._owe(channel, reminder, now)
            return True
        async with self._store.work() as work:
            await work.reminders.remove(reminder.id)
        _log.info("a reminder was dropped", extra={"agent": channel.agent, "reminder": reminder.id})
        return True

    async def _owe(self, channel: Channel, reminder: Reminder, now: datetime) -> None:
        limit = self._runtime.current.account_policy_for(channel.platform, channel.agent).style.message_limit
        async with self._store.work() as work:
            if not await work.reminders.remove(reminder.id):  # another process was faster, or it was cancelled
                return
            await work.outbox.add([plan_reminder(reminder, limit=limit, now=now)])
        _log.info("reminding", extra={"agent": channel.agent, "reminder": reminder.id})
        self._outbox.wake(channel.platform, channel.agent)


def plan_reminder(reminder: Reminder, *, limit: int, now: datetime) -> Delivery:
    """One message, which pings the asker and nobody else. Pure, and the same piece whenever it is planned."""
    turn = turn_id(reminder.account, reminder.place.platform, f"reminder:{reminder.id}")
    text = link_pings(reminder_text(reminder, now=now), {}).text[:limit]
    content = MessageContent(text, ping_users=frozenset({reminder.user_id}))
    key = delivery_id(turn, DeliveryKind.NOTICE, 0)
    return Delivery(
        id=key,
        turn_id=turn,
        position=0,
        kind=DeliveryKind.NOTICE,
        agent=reminder.account,
        target=DeliveryTarget(reminder.place),
        content=content,
        created_at=now,
    )


def require_platform(scope: CallScope) -> AgentName:
    """The account that can deliver. Raises NotAllowed where there is none."""
    if scope.account is None or scope.principal.kind is not PrincipalKind.PLATFORM_USER:
        raise NotAllowed(
            "No reminder was set.",
            code="reminder_place",
            why="Reminders are messages on a platform such as Discord. Here nobody could be called when it is due.",
            fix="Ask for it in a channel or a direct message on Discord.",
        )
    return scope.account


def not_pending(key: str) -> NotFound:
    """For an id that is nobody's, and for one that is somebody else's."""
    return NotFound(
        f"You have no pending reminder '{key[:40]}'.", code="reminder_not_found", fix="/reminders list shows yours."
    )


@record
class _ScopedReminders:
    """`denizen.skill.ReminderAccess`."""

    reminders: ReminderService
    scope: CallScope

    async def add(self, when: str, text: str, *, zone: str = "") -> PlannedReminder:
        return self._shown(await self.reminders.add(self.scope, when, text, zone), zone)

    async def list(self, *, zone: str = "") -> Sequence[PlannedReminder]:
        return [self._shown(each, zone) for each in await self.reminders.list_for(self.scope)]

    async def cancel(self, reminder_id: str) -> None:
        await self.reminders.cancel(self.scope, reminder_id)

    def _shown(self, reminder: Reminder, zone: str) -> PlannedReminder:
        due_at = reminder.due_at.astimezone(self.reminders.find_zone(self.scope.agent, zone))
        return PlannedReminder(reminder.id, reminder.text, due_at, is_here=reminder.place == self.scope.place)
