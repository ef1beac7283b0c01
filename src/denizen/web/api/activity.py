"""`/api/activity` and `/api/context-files`: what happened lately, and the files that lead an agent's prompt.

Everybody sees their own turns and acts. Admins see also those of others that were not in private, owners see all. The
texts of files are for owners.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.agent import Agent
from denizen.domain.audit import AuditEvent
from denizen.domain.errors import NotFound
from denizen.domain.ids import TurnId
from denizen.domain.principal import Principal, RoleName
from denizen.domain.prompt import estimate_tokens
from denizen.domain.turn import Turn
from denizen.engine.inspection.queries import Queries
from denizen.ports.store import AuditSearch, TurnSearch
from denizen.web.http.auth import get_principal, may_see_all
from denizen.web.http.openapi import ApiRoute, Operation
from denizen.web.http.request import QueryParameter
from denizen.web.http.routing import Access
from denizen_sdk.inspection import ActivityInfo, ContextFileInfo

LOOKED_AT = 500
"""So many of the newest turns, and of the newest entries of the audit log, are looked at for those of a caller."""

_AGENT = QueryParameter(name="agent", description="Name of an agent; empty for the default one.")
_LIMIT = QueryParameter(name="limit", default="50", low=1, high=200)


class ActivityRoutes:
    """The routes of activity and context files."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "GET",
                "/api/activity",
                self.list_activity,
                Access.MEMBER,
                Operation(
                    "The newest turns and entries of the audit log that the caller may see, newest first",
                    answer=list[ActivityInfo],
                    query=(_LIMIT,),
                ),
            ),
            ApiRoute(
                "GET",
                "/api/context-files",
                self.list_context_files,
                Access.MEMBER,
                Operation(
                    "The files of an agent's prompt, with their texts for owners",
                    answer=list[ContextFileInfo],
                    query=(_AGENT,),
                ),
            ),
        ]

    async def list_activity(self, request: Request) -> Response:
        reader, limit = get_principal(request), _LIMIT.read_number(request)
        turns = await self._list_turns(reader, limit)
        acts = await self._list_acts(reader, limit)
        rows = [*map(_turn_to_wire, turns), *map(_act_to_wire, acts)]
        rows.sort(key=lambda row: row.at, reverse=True)
        return JSONResponse([asdict(row) for row in rows[:limit]])

    async def _list_turns(self, reader: Principal, limit: int) -> list[Turn]:
        found: list[Turn] = []
        for listing in await self._queries.search_turns(TurnSearch(limit=LOOKED_AT)):
            if len(found) < limit and await self._queries.may_read(listing.turn, reader):
                found.append(listing.turn)
        return found

    async def _list_acts(self, reader: Principal, limit: int) -> list[AuditEvent]:
        words = "" if may_see_all(reader) else reader.key
        entries = await self._queries.search_audit_log(AuditSearch(words=words, limit=LOOKED_AT))
        found: list[AuditEvent] = []
        for entry in entries:
            if len(found) < limit and await self._may_see(entry.event, reader):
                found.append(entry.event)
        return found

    async def _may_see(self, event: AuditEvent, reader: Principal) -> bool:
        """Tells whether somebody may see an entry: what belongs to a turn is seen by those who may see the turn."""
        if event.actor == reader.key or RoleName.OWNER in reader.roles:
            return True
        if not may_see_all(reader):
            return False
        turn_id = event.details.get("turn")
        if not turn_id:
            return True
        try:
            trace = await self._queries.get_turn(TurnId(str(turn_id)))
        except NotFound:  # a single call of a tool, or a command: nobody but its caller knows where it was made
            return False
        return await self._queries.may_read(trace.turn, reader)

    async def list_context_files(self, request: Request) -> Response:
        agent = self._queries.get_agent(_AGENT.read_text(request))
        in_full = RoleName.OWNER in get_principal(request).roles
        return JSONResponse([asdict(file) for file in _list_files(agent, in_full=in_full)])


def _list_files(agent: Agent, *, in_full: bool) -> Iterator[ContextFileInfo]:
    instructions = agent.instructions
    for kind, files in (("persona", instructions.persona), ("context", instructions.context_files)):
        for name, text in files:
            yield ContextFileInfo(name, kind, len(text), estimate_tokens(text), text if in_full else None)


def _turn_to_wire(turn: Turn) -> ActivityInfo:
    return ActivityInfo(
        kind="turn",
        at=turn.opened_at.isoformat(),
        actor=turn.principal.key,
        subject=turn.agent,
        turn_id=turn.id,
        status=turn.status,
    )


def _act_to_wire(event: AuditEvent) -> ActivityInfo:
    turn_id = event.details.get("turn")
    return ActivityInfo(
        kind=event.kind,
        at=event.at.isoformat(),
        actor=event.actor,
        subject=event.subject,
        turn_id=str(turn_id) if turn_id else "",
    )
