"""Turns with their steps and calls, and what they used, in the memory store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from denizen.domain.errors import InvalidInput
from denizen.domain.ids import AgentName, ConversationId, TurnId
from denizen.domain.principal import Principal
from denizen.domain.trace import PromptUse
from denizen.domain.turn import CallRecord, Step, Turn, TurnStatus
from denizen.domain.usage import Usage
from denizen.ports.store import UsageRow
from denizen.testing.memory_statistics import reopen_day, user_of_step
from denizen.testing.memory_unit import Unit, get_row, in_utc, newest_first, refer, through_json


class MemoryTurns:
    """`denizen.ports.store.Turns`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def open(self, turn: Turn) -> tuple[Turn, bool]:
        self._unit.check_writes()
        tables = self._unit.tables
        if turn.id in tables.turns:
            return tables.turns[turn.id], False
        refer(tables.conversations, turn.conversation_id)
        refer(tables.sessions, turn.session_id)
        stored = replace(turn, options=through_json(dict(turn.options)), opened_at=in_utc(turn.opened_at))
        self._unit.put(tables.turns, turn.id, stored)
        return stored, True

    async def close(self, turn: Turn) -> None:
        self._unit.check_writes()
        if not turn.status.is_final:
            raise InvalidInput("A turn is closed with a final status.", code="turn_not_final", turn=turn.id)
        stored = await self.get(turn.id)
        if stored.status.is_final:
            return
        closed = replace(
            stored,
            status=turn.status,
            closed_at=None if turn.closed_at is None else in_utc(turn.closed_at),
            model=turn.model,
            reply=turn.reply,
            failure=turn.failure,
            failure_code=turn.failure_code,
            failure_family=turn.failure_family,
            failure_fix=turn.failure_fix,
            usage=turn.usage,
            route=turn.route,
            options=through_json(dict(turn.options)),
        )
        self._unit.put(self._unit.tables.turns, turn.id, closed)

    async def get(self, turn_id: TurnId) -> Turn:
        return get_row(self._unit.tables.turns, turn_id, "turn")

    async def find(self, turn_id: TurnId) -> Turn | None:
        return self._unit.tables.turns.get(turn_id)

    async def list_turns(
        self, *, status: TurnStatus | None = None, conversation_id: ConversationId | None = None, limit: int = 100
    ) -> Sequence[Turn]:
        rows = [
            turn
            for turn in self._unit.tables.turns.values()
            if status in {None, turn.status} and conversation_id in {None, turn.conversation_id}
        ]
        if status is TurnStatus.OPEN:
            return sorted(rows, key=lambda turn: turn.opened_at)[: max(limit, 0)]
        return newest_first(rows, lambda turn: turn.opened_at, limit)

    async def add_step(self, step: Step) -> bool:
        self._unit.check_writes()
        refer(self._unit.tables.turns, step.turn_id)
        table, key = self._unit.tables.steps, (step.turn_id, step.number)
        if key in table:
            return False
        self._unit.put(table, key, replace(step, created_at=in_utc(step.created_at)))
        reopen_day(self._unit, step.created_at)
        return True

    async def list_steps(self, turn_id: TurnId) -> Sequence[Step]:
        rows = [step for step in self._unit.tables.steps.values() if step.turn_id == turn_id]
        return sorted(rows, key=lambda step: step.number)

    async def add_call(self, record: CallRecord) -> bool:
        self._unit.check_writes()
        refer(self._unit.tables.turns, record.turn_id)
        key = (record.turn_id, record.step, record.position)
        if key in self._unit.tables.calls:
            return False
        stored = replace(record, args=through_json(dict(record.args)), created_at=in_utc(record.created_at))
        self._unit.put(self._unit.tables.calls, key, stored)
        return True

    async def list_calls(self, turn_id: TurnId) -> Sequence[CallRecord]:
        rows = [record for record in self._unit.tables.calls.values() if record.turn_id == turn_id]
        return sorted(rows, key=lambda record: (record.step, record.position))

    async def list_calls_in(
        self, agent: AgentName, platform: str, rooms: Collection[str], *, asker: Principal | None = None, limit: int
    ) -> Sequence[CallRecord]:
        tables = self._unit.tables
        turns = {
            turn.id
            for turn in tables.turns.values()
            if turn.agent == agent
            and (place := tables.conversations[turn.conversation_id].place).platform == platform
            and ((place.thread or place.channel) in rooms or (asker and turn.principal.key == asker.key))
        }
        those = [record for record in tables.calls.values() if record.turn_id in turns]
        return newest_first(those, lambda record: record.created_at, limit)

    async def add_prompt(self, prompt: PromptUse) -> None:
        self._unit.check_writes()
        tables = self._unit.tables
        refer(tables.turns, prompt.turn_id)
        for segment in prompt.segments:
            if segment.text is not None and segment.sha256 not in tables.prompt_texts:
                self._unit.put(tables.prompt_texts, segment.sha256, segment.text)
        key = (prompt.turn_id, prompt.step)
        if key not in tables.prompts:
            bare = tuple(replace(segment, text=None) for segment in prompt.segments)
            self._unit.put(tables.prompts, key, replace(prompt, segments=bare))

    async def list_prompts(self, turn_id: TurnId) -> Sequence[PromptUse]:
        tables = self._unit.tables
        rows = sorted((row for row in tables.prompts.values() if row.turn_id == turn_id), key=lambda row: row.step)
        return [
            replace(row, segments=tuple(replace(s, text=tables.prompt_texts.get(s.sha256)) for s in row.segments))
            for row in rows
        ]


class MemoryLedger:
    """`denizen.ports.store.Ledger`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def list_usage(self, *, since: datetime, agent: str = "", principal: str = "") -> Sequence[UsageRow]:
        tables = self._unit.tables
        sums: dict[tuple[str, str, str], Usage] = {}
        for step in tables.steps.values():
            turn = tables.turns[step.turn_id]
            user = user_of_step(self._unit, step)
            if step.created_at >= since and agent in {"", turn.agent} and principal in {"", user}:
                key = (step.created_at.date().isoformat(), turn.agent, step.model)
                sums[key] = sums.get(key, Usage()) + step.usage
        for request in tables.side_requests:
            if request.asked_at >= since and agent in {"", request.agent} and principal in {"", request.user}:
                key = (request.asked_at.date().isoformat(), request.agent, request.model)
                sums[key] = sums.get(key, Usage()) + request.usage
        rows = [UsageRow(*key, usage) for key, usage in sorted(sums.items(), key=lambda item: item[0][1:])]
        return sorted(rows, key=lambda row: row.day, reverse=True)
