"""`/api/events`, `/api/listeners` and `/api/event-sources`: the log of events, what is done about them, and where they
come from. For owners: events tell of everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.cloud_event import CloudEvent
from denizen.domain.event_listener import EventDelivery, EventListener
from denizen.domain.event_source import SourceReport
from denizen.engine.event_bus.log import Emission, EventLog
from denizen.ports.events import EventSearch
from denizen.web.http.auth import get_principal
from denizen.web.http.openapi import ANY_OBJECT, TEXT, ApiRoute, Operation, object_schema
from denizen.web.http.request import QueryParameter, check_field_names, field_error, read_object, read_text
from denizen.web.http.routing import Access
from denizen_sdk.events import EventDeliveryInfo, EventInfo, EventSourceInfo, ListenerInfo

TYPE = QueryParameter(name="type", description="A type of events; `*` stands for anything.", max_chars=200)
SOURCE = QueryParameter(name="source", description="The source of the events, in full.", max_chars=200)
WORDS = QueryParameter(name="words", description="A part of source, subject, actor or data.", max_chars=200)
BEFORE = QueryParameter(
    name="before", description="Only events before this position; 0: the newest.", default="0", high=999_999_999
)
_LIMIT = QueryParameter(name="limit", default="50", low=1, high=200)


class EventRoutes:
    """The routes of events and listeners."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "GET",
                "/api/events",
                self.search,
                Access.OWNER,
                Operation(
                    "Events, the newest first, with what listeners did about them",
                    answer=list[EventInfo],
                    query=(TYPE, SOURCE, WORDS, BEFORE, _LIMIT),
                ),
            ),
            ApiRoute(
                "POST",
                "/api/events",
                self.emit,
                Access.OWNER,
                Operation(
                    "Emit an event of the type `denizen.emitted.NAME`",
                    object_schema("name", name=TEXT, subject=TEXT, data=ANY_OBJECT, key=TEXT),
                    EventInfo,
                    status=201,
                ),
            ),
            ApiRoute(
                "GET",
                "/api/events/failed",
                self.list_failed,
                Access.OWNER,
                Operation("Deliveries that have failed, the newest first", answer=list[EventDeliveryInfo]),
            ),
            ApiRoute(
                "POST",
                "/api/events/deliveries/{delivery}/replay",
                self.replay,
                Access.OWNER,
                Operation("Try a delivery that failed or was skipped once more", answer=EventDeliveryInfo),
            ),
            ApiRoute(
                "GET",
                "/api/events/{key}",
                self.get,
                Access.OWNER,
                Operation("An event with its deliveries", answer=EventInfo),
            ),
            ApiRoute(
                "GET",
                "/api/listeners",
                self.list_listeners,
                Access.OWNER,
                Operation("The listeners in force, and the routes of webhooks", answer=list[ListenerInfo]),
            ),
            ApiRoute(
                "GET",
                "/api/event-sources",
                self.list_sources,
                Access.OWNER,
                Operation("The WebSockets and polls in force, and how they are", answer=list[EventSourceInfo]),
            ),
        ]

    async def search(self, request: Request) -> Response:
        found = await self._log.search(read_search(request, limit=_LIMIT.read_number(request)))
        rows = [event_to_wire(each.event, each.deliveries, position=each.position) for each in found]
        return JSONResponse([asdict(row) for row in rows])

    async def get(self, request: Request) -> Response:
        return JSONResponse(asdict(event_to_wire(*await self._log.get(request.path_params["key"]))))

    async def emit(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, ("name", "subject", "data", "key"))
        data: Any = body.get("data")
        if data is not None and not isinstance(data, dict):
            raise field_error("data", "an object")
        emission = Emission(
            name=read_text(body, "name"),
            subject=read_text(body, "subject")[:200],
            data=cast("dict[str, Any]", data or {}),
            key=read_text(body, "key")[:200],
        )
        event = await self._log.emit(get_principal(request), emission)
        return JSONResponse(asdict(event_to_wire(*await self._log.get(event.key))), 201)

    async def list_failed(self, request: Request) -> Response:
        del request
        return JSONResponse([asdict(delivery_to_wire(each)) for each in await self._log.list_failed()])

    async def replay(self, request: Request) -> Response:
        return JSONResponse(asdict(delivery_to_wire(await self._log.replay(request.path_params["delivery"]))))

    async def list_listeners(self, request: Request) -> Response:
        del request
        return JSONResponse([asdict(listener_to_wire(each)) for each in self._log.list_listeners()])

    async def list_sources(self, request: Request) -> Response:
        del request
        return JSONResponse([asdict(source_to_wire(each)) for each in await self._log.list_sources()])


def source_to_wire(report: SourceReport) -> EventSourceInfo:
    state = report.state
    return EventSourceInfo(
        key=report.source.key,
        type=report.source.type,
        address=report.address,
        status=report.status.value,
        looked_at=state.looked_at.isoformat() if state else "",
        failures=state.failures if state else 0,
        failure=state.failure if state else "",
    )


def read_search(request: Request, *, limit: int) -> EventSearch:
    """Returns the search in the query of a request. Raises InvalidInput."""
    return EventSearch(
        type=TYPE.read_text(request).strip(),
        source=SOURCE.read_text(request).strip(),
        words=WORDS.read_text(request).strip(),
        before=BEFORE.read_number(request) or None,
        limit=limit,
    )


def event_to_wire(event: CloudEvent, deliveries: Sequence[EventDelivery] = (), *, position: int = 0) -> EventInfo:
    return EventInfo(
        key=event.key,
        id=event.id,
        source=event.source,
        type=event.type,
        time=event.time.isoformat(),
        subject=event.subject,
        actor=event.actor,
        data=event.data,
        cause=event.cause,
        depth=event.depth,
        deliveries=tuple(map(delivery_to_wire, deliveries)),
        position=position,
    )


def delivery_to_wire(delivery: EventDelivery) -> EventDeliveryInfo:
    return EventDeliveryInfo(
        id=delivery.id,
        event=delivery.event,
        listener=delivery.listener,
        status=delivery.status.value,
        attempts=delivery.attempts,
        due_at=delivery.due_at.isoformat(),
        note=delivery.note,
        turn_id=delivery.turn_id or "",
    )


def listener_to_wire(listener: EventListener) -> ListenerInfo:
    return ListenerInfo(
        key=listener.key,
        on=listener.on,
        source=listener.source,
        action=listener.action.kind.value,
        agent=listener.action.agent,
        channel=listener.action.channel,
        cool_down_s=listener.cool_down.total_seconds(),
        per_hour=listener.per_hour,
    )
