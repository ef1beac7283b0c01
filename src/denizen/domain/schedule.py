"""Schedules: prompts that an agent gets at set times, without anybody asking. Pure.

Times are those of a cron expression in the schedule's own zone (`ports/schedules`), or there is a single one. A time at
which nothing ran is a run, too, with the reason, so that nobody has to guess.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from zoneinfo import ZoneInfo

from denizen.domain.budget import BudgetLimits
from denizen.domain.hook import NO_HOOKS, Hooks, fill_args
from denizen.domain.ids import AgentName, TurnId, derive
from denizen.domain.json import Json
from denizen.domain.principal import Principal, PrincipalKind, name_schedule
from denizen.domain.record import record
from denizen.domain.workflow import Workflow

LATE_AFTER = timedelta(minutes=2)
"""A time that is seen so much later was missed: the server was not there."""
LAST_RUN, LAST_RUN_EPOCH = "last_run", "last_run_epoch"
LAST_RESPONSE, NEXT_TASK = "last_response", "next_task"
SCHEDULE_VARIABLES = (LAST_RUN, LAST_RUN_EPOCH, LAST_RESPONSE, NEXT_TASK)
"""The names of what the hooks of a run may tell."""
FIRST_LAST_RUN = timedelta(hours=1)
"""A schedule that never ran is told that it ran so long ago."""
SCHEDULE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class DeliveryRoute(StrEnum):
    """The way of an answer: into the log alone, to a channel of a platform, to a person there, to a webhook, or by
    mail.
    """

    LOG = "log"
    CHANNEL = "channel"
    DIRECT = "direct"
    WEBHOOK = "webhook"
    MAIL = "mail"

    @property
    def is_sent_after(self) -> bool:
        """Whether the answer is sent when its turn has ended, and not posted by the account of its agent."""
        return self in (DeliveryRoute.WEBHOOK, DeliveryRoute.MAIL)


class CatchUp(StrEnum):
    """The fate of times that were missed: nothing, or one run for all of them."""

    SKIP = "skip"
    ONCE = "once"


@record
class ScheduleDelivery:
    """`target` is the id of a channel, or of a person; without a person it is an owner of the account. For webhooks it
    is an address, whose bodies `secret` signs, and which may be on one of the `private_hosts`; for mail the recipients.
    """

    to: DeliveryRoute = DeliveryRoute.LOG
    platform: str = ""
    target: str = ""
    subject: str = ""
    secret: str = field(default="", repr=False)
    private_hosts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the way in the configuration, such as `log`, `discord` or `discord-dm`."""
        match self.to:
            case DeliveryRoute.LOG | DeliveryRoute.WEBHOOK | DeliveryRoute.MAIL:
                return self.to.value
            case DeliveryRoute.CHANNEL:
                return self.platform
            case DeliveryRoute.DIRECT:
                return f"{self.platform}-dm"


@record(kw_only=True)
class ScheduleConduct:
    """How runs go. With `wake_agent` off, the prompt is only left in the session. `session` is the name of the session,
    which begins anew with each run where `new_session` says so. `model` is empty for the agent's own.
    """

    session: str = ""
    new_session: bool = False
    model: str = ""
    wake_agent: bool = True
    delivery: ScheduleDelivery = ScheduleDelivery()
    hooks: Hooks = NO_HOOKS


@record
class PlannedTimes:
    """The meaning of somebody's words: the times of an expression, or one moment. An expression that they wrote has no
    `words`.
    """

    cron: str = ""
    at: datetime | None = None
    words: str = ""

    def list_keys(self, zone: str) -> dict[str, str | None]:
        """Returns the keys of the configuration that say these times; None for those that say nothing."""
        at = self.at.astimezone(ZoneInfo(zone)).isoformat(timespec="seconds") if self.at else None
        words = self.words or None
        return {
            "when": None if at else words,
            "cron": None if words else self.cron or None,
            "at": at,
            "said": words if at else None,
        }


@record
class ScheduleBudget:
    """The most that a schedule may cost; None is no limit of its own. `limits` are those of a day and of a month."""

    per_run_usd: Decimal | None = None
    limits: BudgetLimits = BudgetLimits()


@record(kw_only=True)
class Schedule:
    """One schedule of the configuration. `at` is its only time, and `cron` is empty then; `words` are those in which
    somebody said when, empty for an expression. `owner` is the key of the person who had an agent make it, empty for
    those of the operator; `life` then tells it from others that have had its name. `barred`: the operator has switched
    it off, which binds its owner. `templates` has the texts that name variables, as the configuration has them, by
    field. With `jitter`, each time comes later by up to so much. One that belongs to a `workflow` runs
    that, from its node `trigger`; one without such a node begins as by hand and is given `args`. A `tool_call` is the
    workflow of one that calls a tool.
    """

    name: str
    cron: str
    zone: str
    prompt: str
    agent: AgentName
    at: datetime | None = None
    words: str = ""
    enabled: bool = True
    barred: bool = False
    catch_up: CatchUp = CatchUp.SKIP
    owner: str = ""
    life: str = ""
    conduct: ScheduleConduct = ScheduleConduct()
    budget: ScheduleBudget = ScheduleBudget()
    jitter: timedelta = timedelta()
    workflow: str = ""
    trigger: str = ""
    args: Mapping[str, Json] = field(default_factory=dict[str, Json])
    tool_call: Workflow | None = None
    templates: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def written(self) -> Schedule:
        """The schedule as people are shown it, with `${NAME}` where a variable stands: its value may be a secret."""
        conduct, texts = self.conduct, self.templates
        target = texts.get("target", conduct.delivery.target)
        return replace(
            self,
            cron=texts.get("cron", self.cron),
            words=texts.get("words", self.words),
            zone=texts.get("zone", self.zone),
            prompt=texts.get("prompt", self.prompt),
            conduct=replace(
                conduct,
                session=texts.get("session", conduct.session),
                model=texts.get("model", conduct.model),
                delivery=replace(conduct.delivery, target=target),
            ),
        )

    @property
    def id(self) -> str:
        """The key of its state, its runs and its turns: who takes the name of another one has no part in these."""
        return name_schedule(self.name, self.owner, self.life)

    @property
    def session_name(self) -> str:
        own = f"{self.name}#{self.life}" if self.owner else self.name
        return self.conduct.session or f"cron:{own}"

    @property
    def said(self) -> str:
        """Its times as they stand in the configuration: words, an expression, or a moment."""
        written = self.written
        return written.words or written.cron or (self.at.astimezone(ZoneInfo(self.zone)).isoformat() if self.at else "")

    @property
    def when(self) -> str:
        """Its times for people: as they were said, beside what that means."""
        written = self.written
        meaning = f"{self.at.astimezone(ZoneInfo(self.zone)):%a %d %b %Y %H:%M}" if self.at else written.cron
        return f"{written.words} ({meaning})" if written.words not in ("", meaning) else meaning

    def delay(self, time: datetime) -> timedelta:
        """Returns by how much that time comes later: another one for each time, and the same in every process."""
        whole_s = int(self.jitter.total_seconds())
        if not whole_s:
            return timedelta()
        digest = hashlib.sha256(f"{self.id} {time.astimezone(UTC).isoformat()}".encode()).digest()
        return timedelta(seconds=int.from_bytes(digest[:8], "big") % (whole_s + 1))

    @property
    def principal(self) -> Principal:
        """The one on whose behalf its turns run. It has no role: what needs one, a schedule may not do."""
        return Principal(PrincipalKind.SCHEDULE, self.id, self.name)

    @property
    def definition(self) -> str:
        """A digest of when it runs. With another one, times begin to count anew."""
        state = "on" if self.enabled else "off"
        if self.at is not None:
            return derive("at", self.at.astimezone(UTC).isoformat(), state)
        jitter = [f"{self.jitter}"] if self.jitter else []
        return derive("when", self.cron, self.zone, state, *jitter)


@record
class DueTimes:
    """The latest time that has come, and how many before it nobody saw."""

    at: datetime
    earlier: int = 0


class RunStatus(StrEnum):
    """How a run went. WAITING: its turn is to begin; STARTED: its turn tells the rest; NOTED: the prompt was left in
    the session; SKIPPED: the run before had not ended, or its budget is used up; MISSED: the server was not there;
    FAILED: no turn could begin. OWED: its answer is to be sent by webhook or mail when its turn has ended; DELIVERED
    and UNDELIVERED tell how that went.
    """

    WAITING = "waiting"
    STARTED = "started"
    NOTED = "noted"
    SKIPPED = "skipped"
    MISSED = "missed"
    FAILED = "failed"
    OWED = "owed"
    DELIVERED = "delivered"
    UNDELIVERED = "undelivered"


WITH_TURN = (RunStatus.STARTED, RunStatus.OWED, RunStatus.DELIVERED, RunStatus.UNDELIVERED)
"""The states of runs whose turn began."""


@record(kw_only=True)
class ScheduleRun:
    """One time of a schedule, which is given by its id. `asked_by` is the key of who ran it by hand, empty for the
    clock. `note` tells people why it did not run, or what was missed before it.
    """

    id: str
    schedule: str
    planned_at: datetime
    seen_at: datetime
    status: RunStatus
    turn_id: TurnId | None = None
    asked_by: str = ""
    note: str = ""

    @property
    def schedule_name(self) -> str:
        return self.schedule.partition("@")[0]


@record(kw_only=True)
class ScheduleState:
    """The memory of a schedule between runs. `name` is its id, `looked_until` the last time that was dealt with."""

    name: str
    definition: str
    looked_until: datetime
    last_run_at: datetime | None = None


def planned_run_id(schedule: str, planned_at: datetime) -> str:
    """Returns the id of the run at that time: it runs once, whoever sees it first."""
    return derive("run", schedule, planned_at.astimezone(UTC).isoformat())


def asked_run_id(schedule: str, key: str) -> str:
    """Returns the id of the run that somebody asked for, with a key of their own."""
    return derive("run", schedule, "asked", key)


def plan_run(schedule: Schedule, due: DueTimes, *, is_busy: bool, now: datetime) -> ScheduleRun:
    """Returns what becomes of times that have come. `is_busy`: the run before has not ended."""
    is_late = now - due.at > LATE_AFTER
    late = f"{_count_times(due.earlier + 1)} came while the server was not there" if is_late else ""
    status, note = RunStatus.WAITING, f"{late}; this run is for all of them." if late else ""
    if is_late and schedule.catch_up is CatchUp.SKIP:
        status, note = RunStatus.MISSED, f"{late}."
    elif is_busy:
        status, note = RunStatus.SKIPPED, "The run before had not ended."
    elif due.earlier and not is_late:
        note = f"Before it, {_count_times(due.earlier)} came while the server was not there."
    return ScheduleRun(
        id=planned_run_id(schedule.id, due.at),
        schedule=schedule.id,
        planned_at=due.at,
        seen_at=now,
        status=status,
        note=note,
    )


def _count_times(number: int) -> str:
    return "1 time" if number == 1 else f"{number} times"


def schedule_variables(
    schedule: Schedule, run: ScheduleRun, *, last_run_at: datetime | None, last_response: str, next_task: str
) -> Mapping[str, str]:
    """Returns what the hooks of the run may tell."""
    last = last_run_at or run.planned_at - FIRST_LAST_RUN
    return {
        LAST_RUN: last.astimezone(ZoneInfo(schedule.zone)).isoformat(timespec="seconds"),
        LAST_RUN_EPOCH: str(int(last.astimezone(UTC).timestamp())),
        LAST_RESPONSE: last_response,
        NEXT_TASK: next_task,
    }


def fill_prompt(prompt: str, variables: Mapping[str, str]) -> str:
    """Returns the prompt with the times of the last run filled in. What others may have written, such as an earlier
    answer, is not: it would be read as the owner's words.
    """
    times = {name: value for name, value in variables.items() if name in (LAST_RUN, LAST_RUN_EPOCH)}
    return str(fill_args({"prompt": prompt}, times)["prompt"])
