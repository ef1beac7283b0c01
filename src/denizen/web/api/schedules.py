"""`/api/schedules`: prompts that agents get at set times; running one now, adding, changing and removing one. For
owners and admins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.ids import derive
from denizen.engine.schedules.catalog import RunListing, ScheduleListing
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import ScheduleServices
from denizen.web.http.openapi import ANY_OBJECT, FLAG, TEXT, ApiRoute, Operation, Schema, object_schema
from denizen.web.http.request import (
    IDEMPOTENCY_HEADER,
    QueryParameter,
    check_field_names,
    field_error,
    read_flag,
    read_object,
    read_text,
)
from denizen.web.http.routing import Access
from denizen_sdk.schedules import (
    ScheduleConductInfo,
    ScheduleDeliveryInfo,
    ScheduleInfo,
    ScheduleRunInfo,
    ScheduleTimes,
    StartedRun,
)

_KEYS: Mapping[str, Schema] = {
    **dict.fromkeys(("when", "zone", "prompt", "tool", "workflow", "agent", "session", "model", "catch_up"), TEXT),
    **dict.fromkeys(("enabled", "new_session", "wake_agent"), FLAG),
    **dict.fromkeys(("args", "delivery", "budget", "hooks"), ANY_OBJECT),
    "jitter": {"type": ["integer", "string"]},
}
"""The keys of a schedule that its owners write over HTTP; `when` is words or an expression."""
_LIMIT = QueryParameter(name="limit", default="20", low=1, high=500)


class ScheduleRoutes:
    """The routes of schedules."""

    def __init__(self, services: ScheduleServices) -> None:
        self._catalog = services.catalog
        self._configuration = services.configuration

    @property
    def routes(self) -> list[ApiRoute]:
        one = "/api/schedules/{schedule}"
        return [
            ApiRoute(
                "GET",
                "/api/schedules",
                self.list_schedules,
                Access.ADMIN,
                Operation("The schedules, each with its next time and its last run", answer=list[ScheduleInfo]),
            ),
            ApiRoute(
                "POST",
                "/api/schedules",
                self.add,
                Access.OWNER,
                Operation(
                    "Add a schedule to the configuration, with the keys of a section of `schedules`",
                    object_schema("name", "when", name=TEXT, **_KEYS),
                    ScheduleInfo,
                    201,
                ),
            ),
            ApiRoute(
                "DELETE",
                one,
                self.remove,
                Access.OWNER,
                Operation("Take a schedule out of the configuration", status=204),
            ),
            ApiRoute("GET", one, self.get, Access.ADMIN, Operation("A schedule", answer=ScheduleInfo)),
            ApiRoute(
                "GET",
                f"{one}/runs",
                self.list_runs,
                Access.ADMIN,
                Operation("The runs of a schedule, the newest first", answer=list[ScheduleRunInfo], query=(_LIMIT,)),
            ),
            ApiRoute(
                "POST",
                f"{one}/run",
                self.run,
                Access.ADMIN,
                Operation(
                    "Run a schedule now, also one that is off",
                    answer=StartedRun,
                    status=202,
                    headers=("Idempotency-Key",),
                ),
            ),
            ApiRoute(
                "PUT",
                one,
                self.switch,
                Access.OWNER,
                Operation(
                    "Switch a schedule on or off, or change other keys of it, in the configuration",
                    object_schema(**_KEYS),
                    ScheduleInfo,
                ),
            ),
        ]

    async def list_schedules(self, request: Request) -> Response:
        del request
        return JSONResponse([asdict(schedule_to_wire(each)) for each in await self._catalog.list_schedules()])

    async def get(self, request: Request) -> Response:
        found = await self._catalog.get(request.path_params["schedule"])
        return JSONResponse(asdict(schedule_to_wire(found)))

    async def list_runs(self, request: Request) -> Response:
        """Answers with the runs of a schedule that is gone, too."""
        found = await self._catalog.list_runs(request.path_params["schedule"], limit=_LIMIT.read_number(request))
        return JSONResponse([asdict(run_to_wire(each)) for each in found])

    async def run(self, request: Request) -> Response:
        """Answers at once; the run begins within a moment."""
        by, key = get_principal(request), request.headers.get(IDEMPOTENCY_HEADER, "")
        run = await self._catalog.run(
            request.path_params["schedule"], by, key=derive("idem", by.key, key) if key else ""
        )
        return JSONResponse(asdict(StartedRun(run.id)), status_code=202)

    async def add(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, ("name", *_KEYS))
        name = read_text(body, "name")
        if not name:
            raise field_error("name", "the name of the schedule")
        values = {key: value for key, value in body.items() if key != "name"}
        await self._configuration.add(get_principal(request), name, values)
        return JSONResponse(asdict(schedule_to_wire(await self._catalog.get(name))), status_code=201)

    async def remove(self, request: Request) -> Response:
        await self._configuration.remove(get_principal(request), request.path_params["schedule"])
        return Response(status_code=204)

    async def switch(self, request: Request) -> Response:
        body, name = await read_object(request), request.path_params["schedule"]
        check_field_names(body, _KEYS)
        if not body:
            raise field_error("enabled", "true or false")
        if "enabled" in body:
            body = {**body, "enabled": read_flag(body, "enabled")}
        await self._configuration.edit(get_principal(request), name, body)
        return JSONResponse(asdict(schedule_to_wire(await self._catalog.get(name))))


def schedule_to_wire(listing: ScheduleListing) -> ScheduleInfo:
    schedule = listing.schedule.written
    conduct = schedule.conduct
    return ScheduleInfo(
        name=schedule.name,
        prompt=schedule.prompt,
        agent=schedule.agent,
        enabled=schedule.enabled,
        times=ScheduleTimes(
            cron=schedule.cron,
            zone=schedule.zone,
            catch_up=schedule.catch_up.value,
            next_at=_format_time(listing.next_at),
            when=schedule.when,
            at=_format_time(schedule.at),
            pause=listing.pause,
        ),
        conduct=ScheduleConductInfo(
            session=schedule.session_name,
            new_session=conduct.new_session,
            model=conduct.model,
            wake_agent=conduct.wake_agent,
            delivery=ScheduleDeliveryInfo(conduct.delivery.name, conduct.delivery.target),
        ),
        owner=schedule.owner,
        last=run_to_wire(listing.last) if listing.last else None,
    )


def run_to_wire(listing: RunListing) -> ScheduleRunInfo:
    run, turn = listing.run, listing.turn
    return ScheduleRunInfo(
        id=run.id,
        schedule=run.schedule_name,
        planned_at=run.planned_at.isoformat(),
        outcome=listing.outcome,
        reason=listing.reason,
        turn_id=run.turn_id or "",
        asked_by=run.asked_by,
        ended_at=_format_time(turn.closed_at if turn else None),
        cost_usd=None if listing.cost_usd is None else str(listing.cost_usd),
    )


def _format_time(time: datetime | None) -> str | None:
    return time.isoformat() if time else None
