"""Turns, from the trigger to the final state. What happens within one is in `steps`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.prompts import add_prompt, list_prompts
from denizen.adapters.store.steps import add_call, add_step, list_calls, list_calls_in, list_of_rooms, list_steps
from denizen.adapters.store.tables.turns import turns
from denizen.adapters.store.unit import Unit
from denizen.adapters.store.usage import usage_of, usage_values
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.ids import AgentName, ConversationId, TurnId
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.routing import route_from_json, route_to_json
from denizen.domain.trace import PromptUse
from denizen.domain.turn import CallRecord, Step, Turn, TurnStatus

_TURN_BY_ID = sa.select(turns).where(turns.c.id == sa.bindparam("id"))
_FINAL = [
    *(
        "status",
        "closed_at",
        "model",
        "reply",
        "failure",
        "failure_code",
        "failure_family",
        "failure_fix",
        "options",
        "route",
    ),
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd", "requests"),
]
_CLOSE = (
    sa.update(turns)
    .where(turns.c.id == sa.bindparam("which"), turns.c.status == TurnStatus.OPEN.value)
    .values({name: sa.bindparam(name) for name in _FINAL})
)


@cache
def _add_turn(insert: InsertInto) -> sa.Executable:
    return insert(turns).on_conflict_do_nothing(index_elements=[turns.c.id]).returning(turns.c.position)


@cache
def _list_turns(status: TurnStatus | None, *, of_conversation: bool) -> sa.Select[Any]:
    statement = sa.select(turns).limit(sa.bindparam("limit"))
    if status is not None:
        statement = statement.where(turns.c.status == status.value)
    if of_conversation:
        statement = statement.where(turns.c.conversation_id == sa.bindparam("conversation"))
    if status is TurnStatus.OPEN:
        return statement.order_by(turns.c.opened_at, turns.c.position)
    return statement.order_by(turns.c.opened_at.desc(), turns.c.position.desc())


class SqlTurns:
    """`denizen.ports.store.Turns`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def open(self, turn: Turn) -> tuple[Turn, bool]:
        add, row = _add_turn(self._unit.dialect.insert), _turn_row(turn)

        def job(connection: sa.Connection) -> tuple[Turn, bool]:
            is_new = connection.execute(add, row).scalar() is not None
            return (turn, True) if is_new else (_get_turn(connection, turn.id), False)

        return await self._unit.write(job)

    async def close(self, turn: Turn) -> None:
        if not turn.status.is_final:
            raise InvalidInput("A turn is closed with a final status.", code="turn_not_final", turn=turn.id)
        values = _final_values(turn) | {"which": turn.id}

        def job(connection: sa.Connection) -> None:
            if connection.execute(_CLOSE, values).rowcount == 0:
                _get_turn(connection, turn.id)  # which has a final state, or is not there

        await self._unit.write(job)

    async def get(self, turn_id: TurnId) -> Turn:
        return await self._unit.read(lambda connection: _get_turn(connection, turn_id))

    async def find(self, turn_id: TurnId) -> Turn | None:
        return await self._unit.read(lambda connection: _find_turn(connection, turn_id))

    async def list_turns(
        self, *, status: TurnStatus | None = None, conversation_id: ConversationId | None = None, limit: int = 100
    ) -> Sequence[Turn]:
        statement = _list_turns(status, of_conversation=conversation_id is not None)
        bounds: dict[str, Any] = {"limit": max(limit, 0)}
        if conversation_id is not None:
            bounds["conversation"] = conversation_id

        return await self._unit.read(lambda connection: [_turn(row) for row in connection.execute(statement, bounds)])

    async def add_step(self, step: Step) -> bool:
        insert = self._unit.dialect.insert
        return await self._unit.write(lambda connection: add_step(connection, insert, step))

    async def list_steps(self, turn_id: TurnId) -> Sequence[Step]:
        return await self._unit.read(lambda connection: list_steps(connection, turn_id))

    async def add_call(self, record: CallRecord) -> bool:
        insert = self._unit.dialect.insert
        return await self._unit.write(lambda connection: add_call(connection, insert, record))

    async def list_calls(self, turn_id: TurnId) -> Sequence[CallRecord]:
        return await self._unit.read(lambda connection: list_calls(connection, turn_id))

    async def list_calls_in(
        self, agent: AgentName, platform: str, rooms: Collection[str], *, asker: Principal | None = None, limit: int
    ) -> Sequence[CallRecord]:
        dialect = self._unit.dialect
        bounds = {"whose": agent, "where": platform, "rooms": list_of_rooms(dialect, rooms), "most": max(limit, 0)}
        bounds |= {"asker_kind": asker.kind.value if asker else "", "asker_id": asker.id if asker else ""}
        return await self._unit.read(lambda connection: list_calls_in(connection, dialect, bounds))

    async def add_prompt(self, prompt: PromptUse) -> None:
        insert = self._unit.dialect.insert
        await self._unit.write(lambda connection: add_prompt(connection, insert, prompt))

    async def list_prompts(self, turn_id: TurnId) -> Sequence[PromptUse]:
        return await self._unit.read(lambda connection: list_prompts(connection, turn_id))


def _find_turn(connection: sa.Connection, turn_id: TurnId) -> Turn | None:
    row = connection.execute(_TURN_BY_ID, {"id": turn_id}).first()
    return None if row is None else _turn(row)


def _get_turn(connection: sa.Connection, turn_id: TurnId) -> Turn:
    found = _find_turn(connection, turn_id)
    if found is None:
        raise NotFound(f"There is no turn {turn_id}.", code="turn_not_found")
    return found


def _turn_row(turn: Turn) -> dict[str, Any]:
    return _final_values(turn) | {
        "id": turn.id,
        "conversation_id": turn.conversation_id,
        "session_id": turn.session_id,
        "agent": turn.agent,
        "principal_kind": turn.principal.kind.value,
        "principal_id": turn.principal.id,
        "principal_name": turn.principal.name,
        "principal_roles": sorted(turn.principal.roles),
        "trigger_id": turn.trigger_id,
        "opened_at": turn.opened_at,
    }


def _final_values(turn: Turn) -> dict[str, Any]:
    return {
        "status": turn.status.value,
        "closed_at": turn.closed_at,
        "model": turn.model,
        "reply": turn.reply,
        "failure": turn.failure,
        "failure_code": turn.failure_code,
        "failure_family": turn.failure_family,
        "failure_fix": turn.failure_fix,
        "options": dict(turn.options),
        "route": None if turn.route is None else route_to_json(turn.route),
        **usage_values(turn.usage),
    }


def _turn(row: sa.Row[Any]) -> Turn:
    return Turn(
        id=row.id,
        conversation_id=row.conversation_id,
        session_id=row.session_id,
        agent=row.agent,
        principal=Principal(
            PrincipalKind(row.principal_kind), row.principal_id, row.principal_name, frozenset(row.principal_roles)
        ),
        trigger_id=row.trigger_id,
        status=TurnStatus(row.status),
        opened_at=row.opened_at,
        closed_at=row.closed_at,
        model=row.model,
        reply=row.reply,
        failure=row.failure,
        failure_code=row.failure_code,
        failure_family=row.failure_family,
        failure_fix=row.failure_fix,
        usage=usage_of(row),
        options=row.options,
        route=None if row.route is None else route_from_json(row.route),
    )
