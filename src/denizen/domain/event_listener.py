"""Listeners: which events they wait for, and what they do then. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from denizen.domain.cloud_event import CloudEvent, find_field, matches_type
from denizen.domain.comparison import contains, exists, fits, is_within
from denizen.domain.ids import AgentName, TurnId, derive
from denizen.domain.json import JsonScalar
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.record import record
from denizen.domain.workflow import Workflow

EVENT_TYPE, EVENT_ID = EVENT_VARIABLES = ("event_type", "event_id")
"""The names of what hooks of turns that an event has triggered may tell."""
HOURLY_ACTIONS = 60
"""So often an hour a listener acts, unless it says otherwise: whoever causes events must not cause any costs."""
RETRY_AFTER = (timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=30))
"""How long a delivery waits after each failure that may pass. After the last it has failed."""
EVENT_KINDS = frozenset({PrincipalKind.LISTENER, PrincipalKind.WEBHOOK, PrincipalKind.TASK_WATCHER})
"""The principals whose turns text of others has caused: events, and tasks that changed."""


CONDITIONS = ("one_of", "not_any", "contains", "at_least", "at_most", "exists")


@record(kw_only=True)
class FieldCondition:
    """A condition on one field of an event. All that are given hold; one that says nothing never does. `one_of` are
    values, or texts with `*`; `not_any` the values that it must not have; `contains` a part of a text or an entry of a
    list; numbers lie from `at_least` to `at_most`; `exists` tells whether it has to be there. A field that is missing
    meets `exists: false` alone.
    """

    path: str
    one_of: tuple[JsonScalar, ...] = ()
    not_any: tuple[JsonScalar, ...] = ()
    contains: str = ""
    at_least: float | None = None
    at_most: float | None = None
    exists: bool | None = None

    def holds(self, event: CloudEvent) -> bool:
        value = find_field(event, self.path)
        has_bound = self.at_least is not None or self.at_most is not None
        if self.exists is not None and self.exists != exists(value):
            return False
        if not (self.one_of or self.not_any or self.contains or has_bound):
            return self.exists is not None
        return (
            value is not None
            and (not self.one_of or any(fits(value, each) for each in self.one_of))
            and not any(fits(value, each) for each in self.not_any)
            and (not self.contains or contains(value, self.contains))
            and (not has_bound or is_within(value, at_least=self.at_least, at_most=self.at_most))
        )


class ActionKind(StrEnum):
    """The kind of an action: an agent answers, a text is posted, a tool is called, a workflow runs, or the event is
    only kept in the log.
    """

    AGENT = "agent"
    POST = "post"
    TOOL = "tool"
    LOG = "log"
    WORKFLOW = "workflow"


@record
class QuietHours:
    """The hours of each day in which a listener does nothing, in a time zone. They may go over midnight. What comes in
    then is done when they end, or left out with `skips`.
    """

    begins: time
    ends: time
    zone: str = "UTC"
    skips: bool = False

    def find_end(self, now: datetime) -> datetime | None:
        """Returns when the hours that now is in will end; None outside of them. Where clocks leave out the minutes
        between two nights, both are one.
        """
        here = now.astimezone(ZoneInfo(self.zone))
        clock = here.time().replace(tzinfo=None)
        if self.begins < self.ends:
            is_quiet, is_tomorrow = self.begins <= clock < self.ends, False
        else:
            is_quiet, is_tomorrow = clock >= self.begins or clock < self.ends, clock >= self.begins
        if not is_quiet:
            return None
        end = here.replace(hour=self.ends.hour, minute=self.ends.minute, second=0, microsecond=0)
        end = (end + timedelta(days=is_tomorrow)).astimezone(UTC)
        return self.find_end(end) or end


@record(kw_only=True)
class EventAction:
    """The action of a listener. `agent` answers, or its account posts. `message` is the template of what the agent is
    told, or of the post; empty: the event itself. `channel` is where the post or the answer goes, by the id of
    `platform`; without one, an answer stays in the session. `session` is its name, which begins anew where
    `new_session` says so. A run of `workflow` begins at its node `trigger`. The call of a tool is a workflow,
    whose `definition` stands in no file.
    """

    kind: ActionKind
    agent: AgentName
    message: str = ""
    platform: str = ""
    channel: str = ""
    session: str = ""
    new_session: bool = False
    workflow: str = ""
    trigger: str = ""
    definition: Workflow | None = None


@record(kw_only=True)
class EventListener:
    """One listener of the configuration. `name` is that of the section, or of the route of a webhook. `cool_down` is
    how long it waits before it acts again, for each value of `cool_down_key`, which is a template. `per_hour` is how
    often it acts at most. With `digest` it collects events for so long, and acts once for all of them.
    """

    name: str
    on: tuple[str, ...]
    action: EventAction
    source: str = ""
    conditions: tuple[FieldCondition, ...] = ()
    cool_down: timedelta = timedelta()
    cool_down_key: str = ""
    per_hour: int = HOURLY_ACTIONS
    quiet: QuietHours | None = None
    digest: timedelta = timedelta()
    kind: PrincipalKind = PrincipalKind.LISTENER

    @property
    def key(self) -> str:
        """Names it among listeners and routes."""
        return f"{self.kind}:{self.name}"

    @property
    def session_name(self) -> str:
        return self.action.session or self.key

    @property
    def principal(self) -> Principal:
        """The one on whose behalf its turns run. It has no role: what needs one, an event may not do."""
        return Principal(self.kind, self.name, self.name)

    def matches(self, event: CloudEvent) -> bool:
        return (
            (not self.source or self.source == event.source)
            and any(matches_type(pattern, event.type) for pattern in self.on)
            and all(condition.holds(event) for condition in self.conditions)
        )


class EventDeliveryStatus(StrEnum):
    """How far a delivery is. WAITING: it is tried when its time comes; STARTED: its turn runs; SKIPPED: the listener
    was cooling down, had acted too often, or had its quiet hours; FAILED: people may replay it.
    """

    WAITING = "waiting"
    STARTED = "started"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


@record(kw_only=True)
class EventDelivery:
    """An event on its way to one listener. `attempts` counts those that have failed, and `note` tells people why the
    last one did, or why there was none. `turn_id` is the turn of the attempt.
    """

    id: str
    event: str
    listener: str
    status: EventDeliveryStatus
    due_at: datetime
    created_at: datetime
    attempts: int = 0
    note: str = ""
    turn_id: TurnId | None = None

    @property
    def attempt_id(self) -> str:
        """Names the attempt under way: what it causes derives from it, so that an interrupted one causes it once."""
        return derive("attempt", self.id, str(self.attempts))


def delivery_key(event: CloudEvent, listener: EventListener) -> str:
    return derive("evd", event.key, listener.key)


def find_listeners(event: CloudEvent, listeners: Mapping[str, EventListener]) -> Sequence[EventListener]:
    """Returns the listeners that wait for such an event, in the order of the configuration."""
    return [each for each in listeners.values() if each.matches(event)]


def plan_retry(attempts: int) -> timedelta | None:
    """Returns how long to wait after so many failures; None where there were enough of them."""
    return RETRY_AFTER[attempts - 1] if attempts <= len(RETRY_AFTER) else None
