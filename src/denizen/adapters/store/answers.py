"""What answers cite, and questions that documents did not answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, UtcTime
from denizen.adapters.store.dialect import Dialect, InsertInto
from denizen.adapters.store.tables.answers import citations, gaps
from denizen.adapters.store.unit import Unit
from denizen.domain.citation import Citation, Doubt, Ref
from denizen.domain.conversation import Place
from denizen.domain.gap import Gap, GapKind
from denizen.domain.ids import TurnId

EVER = datetime(1, 1, 2, tzinfo=UTC)

_CITATIONS = sa.select(citations).where(citations.c.turn_id == sa.bindparam("which")).order_by(citations.c.number)
_NEWEST_GAPS = (
    sa.select(gaps)
    .where(gaps.c.is_closed == sa.bindparam("closed"), gaps.c.created_at >= sa.bindparam("since", type_=UtcTime()))
    .order_by(gaps.c.created_at.desc(), gaps.c.position.desc())
    .limit(sa.bindparam("most"))
)
_FORGET_GAPS = sa.delete(gaps).where(gaps.c.asker == sa.bindparam("whose", type_=EscapedText()))


@cache
def _cite(insert: InsertInto) -> sa.Executable:
    return insert(citations).on_conflict_do_nothing().inline()


@cache
def _add_gap(insert: InsertInto) -> sa.Executable:
    given: dict[str, Any] = {c.name: sa.bindparam(c.name) for c in gaps.c if c.name != "position"}
    return insert(gaps).values(given).on_conflict_do_nothing().returning(gaps.c.position)


@cache
def _close_gaps(dialect: Dialect) -> sa.Update:
    return sa.update(gaps).where(dialect.among(gaps.c.id, "chosen"), ~gaps.c.is_closed).values(is_closed=True)


class SqlCitations:
    """`denizen.ports.answers.Citations`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add(self, turn_id: TurnId, citations: Sequence[Citation]) -> None:
        if citations:
            cite = _cite(self._unit.dialect.insert)
            rows = [_citation_row(turn_id, number, each) for number, each in enumerate(citations)]
            await self._unit.write(lambda connection: connection.execute(cite, rows))

    async def list_of(self, turn_id: TurnId) -> Sequence[Citation]:
        bounds = {"which": turn_id}
        return await self._unit.read(
            lambda connection: [_citation(row) for row in connection.execute(_CITATIONS, bounds)]
        )


class SqlGaps:
    """`denizen.ports.answers.Gaps`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add(self, gap: Gap) -> bool:
        add, row = _add_gap(self._unit.dialect.insert), _gap_row(gap)
        return await self._unit.write(lambda connection: connection.execute(add, row).scalar() is not None)

    async def list_gaps(
        self, *, since: datetime | None = None, closed: bool = False, limit: int = 1000
    ) -> Sequence[Gap]:
        bounds = {"since": since or EVER, "closed": closed, "most": max(limit, 0)}
        return await self._unit.read(lambda connection: [_gap(row) for row in connection.execute(_NEWEST_GAPS, bounds)])

    async def close(self, gap_ids: Collection[str]) -> int:
        dialect = self._unit.dialect
        bounds = {"chosen": dialect.list_of(sorted(gap_ids))}
        return await self._unit.write(lambda connection: connection.execute(_close_gaps(dialect), bounds).rowcount)

    async def forget_asker(self, asker: str) -> int:
        return await self._unit.write(lambda connection: connection.execute(_FORGET_GAPS, {"whose": asker}).rowcount)


def _citation_row(turn_id: TurnId, number: int, citation: Citation) -> dict[str, Any]:
    return {
        "turn_id": turn_id,
        "number": number,
        "path": citation.ref.path,
        "first_line": citation.ref.first_line,
        "last_line": citation.ref.last_line,
        "source_id": citation.source_id,
        "revision": citation.revision,
        "link": citation.link,
        "doubt": "" if citation.doubt is None else citation.doubt.value,
    }


def _citation(row: sa.Row[Any]) -> Citation:
    doubt = Doubt(row.doubt) if row.doubt else None
    return Citation(Ref(row.path, row.first_line, row.last_line), row.source_id, row.revision, row.link, doubt)


def _gap_row(gap: Gap) -> dict[str, Any]:
    place = gap.place
    named = {name: getattr(gap, name) for name in Gap.__slots__ if name != "place"}
    return named | {
        "platform": place.platform,
        "channel": place.channel,
        "thread": place.thread,
        "kind": gap.kind.value,
    }


def _gap(row: sa.Row[Any]) -> Gap:
    return Gap(
        id=row.id,
        agent=row.agent,
        question=row.question,
        asker=row.asker,
        place=Place(row.platform, row.channel, row.thread),
        is_private=row.is_private,
        kind=GapKind(row.kind),
        turn_id=row.turn_id,
        created_at=row.created_at,
        is_closed=row.is_closed,
    )
