"""Schedules that people have an agent make: each person's own, in the place where they asked for them.

They are written to the configuration like all others, with their owner, so that the operator sees and changes them
there. A run in a place where its owner may not write any more fails (`runner`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import islice, pairwise

from denizen.domain.errors import Conflict, InvalidInput, LimitExceeded, NotAllowed, NotFound
from denizen.domain.ids import fresh
from denizen.domain.json import Json
from denizen.domain.principal import PrincipalKind
from denizen.domain.record import record
from denizen.domain.room import RoomKind
from denizen.domain.schedule import SCHEDULE_NAME, PlannedTimes, Schedule
from denizen.engine.schedules.catalog import ScheduleCatalog, ScheduleListing
from denizen.engine.schedules.runner import ScheduleResources
from denizen.ports.schedule_configuration import ScheduleConfiguration
from denizen.ports.toolset import CallScope
from denizen.skill import OwnSchedule, ScheduleAccess

MAX_OWN = 10
"""So many schedules one person may have."""
LEAST_GAP = timedelta(minutes=15)
"""A schedule that people have made runs no more often: each run costs money, and nobody may be there to stop it."""
LOOKED_AT = 100
"""So many of the next times are looked at."""


class OwnSchedules:
    """One for a process. Without a configuration that can be written, as in a command, nothing can be changed."""

    def __init__(self, resources: ScheduleResources) -> None:
        self._resources = resources
        self._configuration: ScheduleConfiguration | None = None
        self.catalog = ScheduleCatalog(resources)

    def open_configuration(self, configuration: ScheduleConfiguration) -> None:
        """Lets agents change the schedules of this configuration from now on."""
        self._configuration = configuration

    @property
    def configuration(self) -> ScheduleConfiguration:
        """Raises NotAllowed where there is none."""
        if self._configuration is None:
            raise NotAllowed("Schedules are changed while the server runs only.", code="configuration_closed")
        return self._configuration

    def open(self, scope: CallScope) -> ScheduleAccess:
        """The schedules of the one who asks, for the call of this scope."""
        return _ScopedSchedules(self, scope)

    def list_own(self, owner: str) -> Sequence[Schedule]:
        return [each for each in self._resources.runtime.current.schedules.values() if each.owner == owner]

    async def plan_delivery(self, scope: CallScope) -> Json:
        """Returns the delivery to the place of the call. Raises NotAllowed where nobody would read it."""
        is_reached = scope.account is not None and self.configuration.delivers_to(scope.place.platform)
        if not is_reached or scope.principal.kind is not PrincipalKind.PLATFORM_USER:
            raise NotAllowed(
                "No schedule was made.",
                code="schedule_place",
                why="Its answers go to a place on Discord, and only people have schedules.",
                fix="Ask for it in a channel or a direct message on Discord.",
            )
        place = scope.place
        async with self._resources.store.work(write=False) as work:
            room = await work.archive.find_room(place.platform, place.thread or place.channel)
        is_alone = room is None or room.kind is RoomKind.DIRECT
        person = scope.principal.id.rpartition(":")[2] if is_alone else ""
        return deliver_to(place.platform, place.thread or place.channel, person)

    def check_pace(self, planned: PlannedTimes, zone: str) -> None:
        """Raises LimitExceeded for times that come too often."""
        if planned.at is not None:
            return
        now = self._resources.clock.now()
        times = islice(self._resources.times.list_after(planned.cron, zone, now), LOOKED_AT)
        if any(later - earlier < LEAST_GAP for earlier, later in pairwise(times)):
            raise LimitExceeded(
                "That is too often.",
                code="schedule_pace",
                fix=f"Let {int(LEAST_GAP.total_seconds() // 60)} minutes or more pass between two runs.",
            )


def deliver_to(platform: str, channel: str, person: str = "") -> Json:
    """Returns the delivery to a channel of a platform, or to a person there where one is named."""
    return {"to": f"{platform}-dm", "target": person} if person else {"to": platform, "target": channel}


@record
class _ScopedSchedules:
    """`denizen.skill.ScheduleAccess`."""

    schedules: OwnSchedules
    scope: CallScope

    async def add(self, name: str, when: str, prompt: str, *, zone: str = "") -> OwnSchedule:
        schedules, owner = self.schedules, self.scope.principal.key
        delivery = await schedules.plan_delivery(self.scope)
        if not SCHEDULE_NAME.fullmatch(name):
            raise InvalidInput(
                "This cannot be the name of a schedule.",
                code="schedule_invalid",
                fix="Use lower-case letters, digits, _ and -.",
            )
        own = schedules.list_own(owner)
        known = next((each for each in own if each.name == name), None)
        if known is not None:
            if (known.said, known.prompt) != (when.strip(), prompt):
                raise Conflict(f"There is a schedule '{name}' already.", code="schedule_exists", fix="Remove it first.")
            return await self._show(name)  # the call runs again after a restart
        if len(own) >= MAX_OWN:
            raise LimitExceeded(
                f"{MAX_OWN} schedules are as many as one person may have.", code="schedules_full", fix="Remove one."
            )
        agent = self.scope.account or ""
        where = schedules.catalog.find_zone(zone, agent)
        planned = schedules.catalog.plan_times(when, zone=zone, agent=agent)
        schedules.check_pace(planned, where)
        values: dict[str, Json] = {
            **planned.list_keys(where),
            "zone": zone or None,
            "prompt": prompt,
            "agent": self.scope.account,
            "delivery": delivery,
            "owner": owner,
            "life": fresh("life"),
        }
        await schedules.configuration.add(self.scope.principal, name, values)
        return await self._show(name)

    async def list(self) -> Sequence[OwnSchedule]:
        own = {each.name for each in self.schedules.list_own(self.scope.principal.key)}
        return [_show(each) for each in await self.schedules.catalog.list_schedules() if each.schedule.name in own]

    async def remove(self, name: str) -> None:
        self._check_open(name)  # made anew, it would be on again
        await self.schedules.configuration.remove(self.scope.principal, name)

    async def switch(self, name: str, *, is_on: bool) -> OwnSchedule:
        if is_on:
            self._check_open(name)
        else:
            self._check_own(name)
        await self.schedules.configuration.edit(self.scope.principal, name, {"paused": None if is_on else True})
        return await self._show(name)

    async def run(self, name: str) -> None:
        self._check_open(name)
        key = self.scope.options.idempotency_key
        await self.schedules.catalog.run(name, self.scope.principal, key=key)

    def _check_own(self, name: str) -> None:
        """Raises NotFound for a name that is nobody's, and for one that is somebody else's."""
        if name not in {each.name for each in self.schedules.list_own(self.scope.principal.key)}:
            raise NotFound(f"You have no schedule '{name[:64]}'.", code="schedule_unknown")

    def _check_open(self, name: str) -> None:
        """Raises NotAllowed for one that the operator has switched off, beside what `_check_own` raises."""
        self._check_own(name)
        if self.schedules.catalog.find(name).barred:
            raise NotAllowed(
                f"The operator has switched '{name}' off.",
                code="schedule_barred",
                why="Only who runs this server can switch it on or remove it; until then it does not run.",
                fix="Ask them.",
            )

    async def _show(self, name: str) -> OwnSchedule:
        return _show(await self.schedules.catalog.get(name))


def _show(listing: ScheduleListing) -> OwnSchedule:
    schedule = listing.schedule
    return OwnSchedule(
        name=schedule.name,
        when=schedule.when,
        zone=schedule.zone,
        prompt=schedule.prompt,
        next_at=listing.next_at,
        pause=listing.pause,
        last_outcome=listing.last.outcome if listing.last else "",
    )
