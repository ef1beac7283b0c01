"""Questions to the owner."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EnumValue, EscapedText, UtcTime, id_columns, metadata, texts, times
from denizen.adapters.store.repository import SqlRepository, read_record, write_record
from denizen.domain.errors import NotFound
from denizen.domain.ids import AgentName
from denizen.domain.question import OwnerQuestion, QuestionStatus

questions = sa.Table(
    "questions",
    metadata,
    *id_columns(),
    sa.Column("turn_id", sa.Text(), nullable=False),
    *texts("agent", "asker", "asker_name", "platform", "channel", "thread", "text"),
    *times("created_at"),
    sa.Column("status", EnumValue(QuestionStatus), nullable=False),
    sa.Column("is_told", sa.Boolean(), nullable=False),
    *texts("answer", "answered_by", "answerer"),
    sa.Column("answered_at", UtcTime()),
    sa.Index("ix_questions_turn_id", "turn_id"),
    sa.Index("ix_questions_status", "status"),
)

_CHANGING = ("status", "is_told", "answer", "answered_by", "answerer", "answered_at")

_BY_ID = sa.select(questions).where(questions.c.id == sa.bindparam("which"))
_TAKE = (
    sa.update(questions)
    .where(questions.c.id == sa.bindparam("which"))
    .values(status=questions.c.status)
    .returning(*questions.c)
)
"""A write that changes nothing: it locks the row, so others who take the question wait for this unit of work."""
_UPDATE = (
    sa.update(questions)
    .where(questions.c.id == sa.bindparam("which"))
    .values({name: sa.bindparam(f"new_{name}", type_=questions.c[name].type) for name in _CHANGING})
)
_UNTOLD = (
    sa.select(questions)
    .where(questions.c.status == QuestionStatus.OPEN, questions.c.is_told.is_(False))
    .order_by(questions.c.position)
    .limit(sa.bindparam("most"))
)
_COUNT_OPEN = sa.select(sa.func.count()).where(
    questions.c.status == QuestionStatus.OPEN, questions.c.agent == sa.bindparam("of_agent", type_=EscapedText())
)
_COUNT_OPEN_OF_ASKER = _COUNT_OPEN.where(questions.c.asker == sa.bindparam("asker", type_=EscapedText()))
_FORGET = sa.delete(questions).where(questions.c.asker == sa.bindparam("whose", type_=EscapedText()))

_read_question = partial(read_record, OwnerQuestion)


@cache
def _select(status: QuestionStatus | None) -> sa.Select[Any]:
    statement = sa.select(questions).order_by(questions.c.position.desc()).limit(sa.bindparam("most"))
    return statement if status is None else statement.where(questions.c.status == status)


class SqlQuestions(SqlRepository):
    """Implements `denizen.ports.questions.QuestionRepository`."""

    async def add(self, question: OwnerQuestion) -> bool:
        return await self._add(questions, write_record(question))

    async def find(self, question_id: str) -> OwnerQuestion | None:
        return await self._find(_read_question, _BY_ID, {"which": question_id})

    async def take(self, question_id: str) -> OwnerQuestion:
        found = await self._transaction.write(
            lambda connection: connection.execute(_TAKE, {"which": question_id}).first()
        )
        if found is None:
            raise _missing(question_id)
        return _read_question(found)

    async def update(self, question: OwnerQuestion) -> None:
        row = write_record(question)
        values = {f"new_{name}": row[name] for name in _CHANGING} | {"which": question.id}
        if not await self._change(_UPDATE, values):
            raise _missing(question.id)

    async def list_questions(
        self, *, status: QuestionStatus | None = None, limit: int = 100
    ) -> Sequence[OwnerQuestion]:
        return await self._list(_read_question, _select(status), {"most": max(limit, 0)})

    async def list_untold(self, *, limit: int = 100) -> Sequence[OwnerQuestion]:
        return await self._list(_read_question, _UNTOLD, {"most": max(limit, 0)})

    async def count_open(self, agent: AgentName, *, asker: str = "") -> int:
        count, bounds = _COUNT_OPEN, {"of_agent": agent}
        if asker:
            count, bounds = _COUNT_OPEN_OF_ASKER, {**bounds, "asker": asker}
        return await self._transaction.read(lambda connection: connection.execute(count, bounds).scalar_one())

    async def forget_asker(self, asker: str) -> int:
        return await self._change(_FORGET, {"whose": asker})


def _missing(question_id: str) -> NotFound:
    return NotFound(
        f"There is no question '{question_id[:60]}'.",
        code="question_not_found",
        fix="`denizen questions list` and the page Questions show them.",
    )
