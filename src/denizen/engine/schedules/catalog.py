"""Shows schedules to people: when each runs next, how its runs went and what they cost; and runs by hand."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from denizen.domain.errors import Conflict, InvalidInput, NotFound
from denizen.domain.ids import AgentName, fresh
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal
from denizen.domain.prompt_messages import agent_timezone
from denizen.domain.record import record
from denizen.domain.schedule import WITH_TURN, PlannedTimes, RunStatus, Schedule, ScheduleRun, asked_run_id
from denizen.domain.speaker_choice import is_silence
from denizen.domain.turn import Turn, TurnStatus
from denizen.engine.schedules.runner import ScheduleResources, has_open_run
from denizen.engine.tools.arguments import ArgumentsError, check_arguments
from denizen.engine.tools.toolbox import list_all
from denizen.engine.workflows.catalog import find_trigger, plan_scope
from denizen.ports.store import UnitOfWork

SHOWN_ROOMS = 5


@record
class RunListing:
    """A run with its turn, as far as one was opened."""

    run: ScheduleRun
    turn: Turn | None = None

    @property
    def outcome(self) -> str:
        """How it went, in one word: that of the run, or where its turn began, `running` or how that ended: `silent`
        where the agent had nothing to say, `delivering` and `undelivered` where its answer is sent or could not be.
        """
        if self.run.status not in WITH_TURN or self.turn is None:
            return self.run.status.value
        if self.turn.status is not TurnStatus.DONE:
            return "running" if self.turn.status is TurnStatus.OPEN else self.turn.status.value
        if is_silence(self.turn.result.reply):
            return "silent"
        words = {RunStatus.OWED: "delivering", RunStatus.UNDELIVERED: "undelivered"}
        return words.get(self.run.status, self.turn.status.value)

    @property
    def reason(self) -> str:
        """Why it went so; empty where there is nothing to tell."""
        failure = self.turn.result.failure if self.turn else None
        why = failure.message if failure else ""
        if self.turn and self.turn.status is TurnStatus.SKIPPED:
            why = "A hook found that there was nothing to do."
        return " ".join(part for part in (self.run.note, why) if part)

    @property
    def cost_usd(self) -> Decimal | None:
        """The cost of its turn; None while that is not known."""
        return self.turn.result.usage.cost_usd if self.turn and self.turn.status is not TurnStatus.OPEN else None


@record
class ScheduleListing:
    """A schedule in force, when it runs next (None while it is off, and when it is over), and its newest run."""

    schedule: Schedule
    next_at: datetime | None
    last: RunListing | None = None

    @property
    def pause(self) -> str:
        """Why it does not run by itself, in one word; empty where it does."""
        if not self.schedule.enabled:
            return "off"
        return "over" if self.next_at is None else ""


class ScheduleCatalog:
    """The schedules of the configuration in force."""

    def __init__(self, resources: ScheduleResources) -> None:
        self._resources = resources
        self._runtime, self._store, self._clock = resources.runtime, resources.store, resources.clock

    async def list_schedules(self) -> Sequence[ScheduleListing]:
        """Returns the schedules in the order of the configuration."""
        found = self._runtime.current.schedules.values()
        if not found:
            return []
        async with self._store.work(write=False) as work:
            runs = await _with_turns(work, await work.schedules.list_newest())
        newest = {each.run.schedule: each for each in runs}
        return [self._show(each, newest.get(each.id)) for each in found]

    async def get(self, name: str) -> ScheduleListing:
        """Raises NotFound."""
        schedule = self.find(name)
        runs = await self.list_runs(name, limit=1)
        return self._show(schedule, runs[0] if runs else None)

    def plan_times(self, text: str, *, zone: str = "", agent: str = "") -> PlannedTimes:
        """Returns what these words mean from now on, in that zone, or else in that of the agent. Raises as
        `CronTimes.read`.
        """
        return self._resources.times.read(text, self.find_zone(zone, agent), self._clock.now())

    def find_zone(self, zone: str, agent: str) -> str:
        """Returns the zone itself, or else that of the agent, or of the default agent."""
        current = self._runtime.current
        known = current.agents.get(AgentName(agent)) or current.agents[current.default_agent]
        return zone or agent_timezone(known)

    def has(self, name: str) -> bool:
        return name in self._runtime.current.schedules

    def find(self, name: str) -> Schedule:
        """Raises NotFound."""
        return find_schedule(self._runtime.current.schedules, name)

    async def list_runs(self, name: str = "", *, limit: int = 20) -> Sequence[RunListing]:
        """Returns the runs of a schedule, or of all, the newest first; also of one that is gone, by its id."""
        known = self._runtime.current.schedules.get(name)
        async with self._store.work(write=False) as work:
            return await _with_turns(work, await work.schedules.list_runs(known.id if known else name, limit=limit))

    async def run(self, name: str, by: Principal, *, key: str = "") -> ScheduleRun:
        """Asks for a run now, also of a schedule that is off; the server begins it. The same `key` again asks for one
        run. Raises NotFound, and Conflict while a run has not ended.
        """
        now, schedule = self._clock.now(), self.find(name)
        run = ScheduleRun(
            id=asked_run_id(schedule.id, key or fresh("ask")),
            schedule=schedule.id,
            planned_at=now,
            seen_at=now,
            status=RunStatus.WAITING,
            asked_by=by.key,
        )
        async with self._store.work() as work:
            is_open = await has_open_run(work, schedule.id)
            if is_open and run.id not in [each.id for each in await work.schedules.list_begun(schedule.id, limit=1)]:
                raise Conflict(
                    f"'{name}' runs at the moment.",
                    code="schedule_runs",
                    why="a schedule never runs beside itself",
                    fix="Wait until it has ended.",
                )
            await work.schedules.add_run(run)
        self._resources.changed.send()
        return run

    async def check_call(self, tool: str, args: JsonObject) -> None:
        """Raises InvalidInput for arguments that do not fit the tool. One that is not there has none to compare."""
        found = (await list_all(self._runtime.current.toolsets)).get(tool)
        try:
            if found is not None:
                check_arguments(found.spec, args)
        except ArgumentsError as error:
            raise InvalidInput(str(error), code="schedule_args", fix="Correct the arguments.") from error

    def check_workflow(self, name: str, args: JsonObject) -> None:
        """Raises NotFound, and InvalidInput for inputs that the workflow does not have."""
        plan_scope(find_trigger(self._runtime.current.get_workflow(name), ""), args)

    async def check_channel(self, platform: str, channel: str) -> None:
        """Raises NotFound for a channel that no account sees. Before an account was ever connected there is nothing to
        compare it with, and any is taken.
        """
        async with self._store.work(write=False) as work:
            if await work.archive.find_room(platform, channel) is not None:
                return
            rooms = [each for each in await work.archive.list_rooms(platform) if each.guild and not each.is_thread]
        if rooms:
            near = ", ".join(f"{each.id} (#{each.name})" for each in rooms[:SHOWN_ROOMS])
            raise NotFound(
                f"There is no channel '{channel[:60]}' that an account sees.",
                code="channel_unknown",
                fix=f"Write the id of a channel that it may read and write in, such as {near}.",
            )

    def _show(self, schedule: Schedule, last: RunListing | None) -> ScheduleListing:
        next_at = self._resources.find_next(schedule, self._clock.now()) if schedule.enabled else None
        return ScheduleListing(schedule, next_at, last)


def find_schedule(schedules: Mapping[str, Schedule], name: str) -> Schedule:
    """Returns the schedule of that name. Raises NotFound, naming the nearest."""
    if name not in schedules:
        near = difflib.get_close_matches(name, schedules, n=1)
        known = f"Known schedules: {', '.join(sorted(schedules))}." if schedules else "There are none yet."
        raise NotFound(
            f"There is no schedule '{name[:64]}'.",
            code="schedule_unknown",
            fix=f"Did you mean '{near[0]}'?" if near else known,
        )
    return schedules[name]


def describe_listing(listing: ScheduleListing) -> str:
    """Returns a line about a schedule: its times, the next one and how its last run went."""
    schedule, zone = listing.schedule.written, ZoneInfo(listing.schedule.zone)

    def describe(at: datetime) -> str:
        return f"{at.astimezone(zone):%a %Y-%m-%d %H:%M} {schedule.zone}"

    last, upcoming = listing.last, f"next {describe(listing.next_at)}" if listing.next_at else listing.pause
    went = f"; last {describe(last.run.planned_at)}: {last.outcome}" if last else ""
    return f"{schedule.name}  {schedule.when}  {upcoming}{went}"


def describe_run(listing: RunListing) -> str:
    """Returns a line about a run: when, how it went, what it cost, who asked for it, and why it went so."""
    run = listing.run
    cost = "" if listing.cost_usd is None else f"  ${listing.cost_usd:f}"
    by = f"  asked for by {run.asked_by}" if run.asked_by else ""
    why = f"  {listing.reason}" if listing.reason else ""
    turn = f"  {run.turn_id}" if run.turn_id else ""
    at = f"{run.planned_at.astimezone(UTC):%a %Y-%m-%d %H:%M} UTC"
    return f"{at}  {run.schedule_name}  {listing.outcome}{cost}{turn}{by}{why}"


async def _with_turns(work: UnitOfWork, runs: Sequence[ScheduleRun]) -> Sequence[RunListing]:
    turns = {turn.id: turn for turn in await work.turns.find_many({run.turn_id for run in runs if run.turn_id})}
    return [RunListing(run, turns.get(run.turn_id) if run.turn_id else None) for run in runs]
