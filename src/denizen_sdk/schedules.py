"""Schedules: prompts that agents get at set times, with their runs. Times are ISO 8601 in UTC."""

from __future__ import annotations

from typing import Any

from denizen_sdk.calls import ClientCalls, idempotency_headers, quote_segment
from denizen_sdk.records import from_json, record


@record
class ScheduleDeliveryInfo:
    """Where answers go: `to` is log, discord, discord-dm, webhook or mail; `target` the id of the channel or the
    person, an address, or recipients.
    """

    to: str
    target: str = ""


@record(kw_only=True)
class ScheduleRunInfo:
    """One time of a schedule. `outcome` is waiting, running, done, silent (the agent had nothing to say), delivering,
    undelivered, noted, skipped, missed, failed, cancelled or refused, and `reason` says why. `asked_by` is empty for
    runs by the clock; `cost_usd` is None while it is unknown.
    """

    id: str
    schedule: str
    planned_at: str
    outcome: str
    reason: str = ""
    turn_id: str = ""
    asked_by: str = ""
    ended_at: str | None = None
    cost_usd: str | None = None


@record
class ScheduleTimes:
    """The times of a schedule. `when` says them for people: as somebody said them, beside what that means. `cron` is
    empty for a schedule that runs once, at `at`. `next_at` is None while `pause` is off or over.
    """

    cron: str
    zone: str
    catch_up: str
    next_at: str | None = None
    when: str = ""
    at: str | None = None
    pause: str = ""


@record(kw_only=True)
class ScheduleConductInfo:
    """How the runs of a schedule go."""

    session: str
    new_session: bool
    model: str
    wake_agent: bool
    delivery: ScheduleDeliveryInfo


@record(kw_only=True)
class ScheduleInfo:
    """A schedule, with its newest run in `last`. `owner` is who had an agent make it."""

    name: str
    prompt: str
    agent: str
    enabled: bool
    times: ScheduleTimes
    conduct: ScheduleConductInfo
    owner: str = ""
    last: ScheduleRunInfo | None = None


@record
class StartedRun:
    """The answer to a request for a run."""

    run: str


class ScheduleCalls(ClientCalls):
    """The calls of `/api/schedules`. All raise NetworkError, and ApiError (403 for everybody but owners and admins, 404
    for an unknown schedule).
    """

    async def list_schedules(self) -> list[ScheduleInfo]:
        """Returns the schedules in the order of the configuration."""
        return await self._list(ScheduleInfo, "/api/schedules")

    async def get_schedule(self, schedule: str) -> ScheduleInfo:
        return await self._get(ScheduleInfo, f"/api/schedules/{quote_segment(schedule)}")

    async def list_schedule_runs(self, schedule: str, *, limit: int = 20) -> list[ScheduleRunInfo]:
        """Returns the runs of a schedule, the newest first; also of one that is gone."""
        return await self._list(ScheduleRunInfo, f"/api/schedules/{quote_segment(schedule)}/runs", limit=limit)

    async def run_schedule(self, schedule: str, *, idempotency_key: str = "") -> str:
        """Asks for a run now, also of a schedule that is off. Returns the id of the run. Raises ApiError (409) while a
        run has not ended.
        """
        path = f"/api/schedules/{quote_segment(schedule)}/run"
        row = await self._connection.request("POST", path, headers=idempotency_headers(idempotency_key))
        return from_json(StartedRun, row).run

    async def add_schedule(self, name: str, *, when: str, prompt: str = "", **keys: Any) -> ScheduleInfo:  # noqa: ANN401 - JSON
        """Adds a schedule to the configuration. `when` is words, such as `every Monday at 9` or `in 3 hours`, or a cron
        expression; `keys` are others of a section of `schedules`, such as `zone`, `delivery` or `tool`. For owners.
        """
        body = {"name": name, "when": when, **({"prompt": prompt} if prompt else {}), **keys}
        return from_json(ScheduleInfo, await self._connection.request("POST", "/api/schedules", body=body))

    async def change_schedule(self, schedule: str, **keys: Any) -> ScheduleInfo:  # noqa: ANN401 - JSON
        """Changes these keys of a schedule in the configuration; None takes one out. For owners."""
        path = f"/api/schedules/{quote_segment(schedule)}"
        return from_json(ScheduleInfo, await self._connection.request("PUT", path, body=keys))

    async def remove_schedule(self, schedule: str) -> None:
        """Takes a schedule out of the configuration. The history of its runs stays. For owners."""
        await self._connection.request("DELETE", f"/api/schedules/{quote_segment(schedule)}")

    async def switch_schedule(self, schedule: str, *, enabled: bool) -> ScheduleInfo:
        """Switches a schedule on or off, in the configuration. For owners."""
        path = f"/api/schedules/{quote_segment(schedule)}"
        return from_json(ScheduleInfo, await self._connection.request("PUT", path, body={"enabled": enabled}))
