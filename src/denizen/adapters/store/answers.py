"""Citations of answers, questions that the documents did not answer, and answers that people proposed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, UtcTime, escape, metadata, position_column
from denizen.adapters.store.dialect import InsertInto, SqlDialect
from denizen.adapters.store.transaction import Transaction
from denizen.adapters.store.turns import turns
from denizen.domain.citation import Citation, CitationFault, DocumentRef
from denizen.domain.conversation import Place
from denizen.domain.gap import GapKind, KnowledgeGap
from denizen.domain.ids import TurnId
from denizen.domain.proposal import Proposal, ProposalDecision, ProposalStatus, ProposedAnswer

citations = sa.Table(
    "citations",
    metadata,
    sa.Column("turn_id", sa.Text(), sa.ForeignKey(turns.c.id, ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer(), primary_key=True),
    sa.Column("path", EscapedText(), nullable=False),
    sa.Column("first_line", sa.Integer(), nullable=False),
    sa.Column("last_line", sa.Integer(), nullable=False),
    sa.Column("source_id", sa.Text(), nullable=False),
    sa.Column("revision", EscapedText(), nullable=False),
    sa.Column("link", EscapedText(), nullable=False),
    sa.Column("doubt", sa.Text(), nullable=False),
)

gaps = sa.Table(
    "gaps",
    metadata,
    position_column(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("question", EscapedText(), nullable=False),
    sa.Column("asker", EscapedText(), nullable=False),
    sa.Column("platform", EscapedText(), nullable=False),
    sa.Column("channel", EscapedText(), nullable=False),
    sa.Column("thread", EscapedText(), nullable=False),
    sa.Column("is_private", sa.Boolean(), nullable=False),
    sa.Column("kind", sa.Text(), nullable=False),
    sa.Column("turn_id", sa.Text(), nullable=False),
    sa.Column("is_closed", sa.Boolean(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Index("ix_gaps_asker", "asker"),
    sa.Index("ix_gaps_created_at", "created_at"),
)

proposals = sa.Table(
    "proposals",
    metadata,
    position_column(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("platform", EscapedText(), nullable=False),
    sa.Column("channel", EscapedText(), nullable=False),
    sa.Column("thread", EscapedText(), nullable=False),
    sa.Column("post", EscapedText(), nullable=False),
    sa.Column("answer", EscapedText(), nullable=False),
    sa.Column("author", EscapedText(), nullable=False),
    sa.Column("author_name", EscapedText(), nullable=False),
    sa.Column("proposer", EscapedText(), nullable=False),
    sa.Column("link", EscapedText(), nullable=False),
    sa.Column("question", EscapedText(), nullable=False),
    sa.Column("asker", EscapedText(), nullable=False),
    sa.Column("gap_id", sa.Text(), nullable=False),
    sa.Column("status", sa.Text(), nullable=False),
    sa.Column("decided_by", EscapedText(), nullable=False),
    sa.Column("decided_at", UtcTime()),
    sa.Column("reason", EscapedText(), nullable=False),
    sa.Column("text", EscapedText(), nullable=False),
    sa.Column("file", EscapedText(), nullable=False),
    sa.Column("is_filed", sa.Boolean(), nullable=False),
    sa.Column("said_at", UtcTime(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Index("ix_proposals_author", "author"),
    sa.Index("ix_proposals_platform_post", "platform", "post"),
    sa.Index("ix_proposals_status_created_at", "status", "created_at"),
)


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
def _close_gaps(dialect: SqlDialect) -> sa.Update:
    return sa.update(gaps).where(dialect.among(gaps.c.id, "chosen"), ~gaps.c.is_closed).values(is_closed=True)


class SqlCitations:
    """`denizen.ports.answers.CitationRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def add(self, turn_id: TurnId, citations: Sequence[Citation]) -> None:
        if citations:
            cite = _cite(self._transaction.dialect.insert)
            rows = [_citation_row(turn_id, number, each) for number, each in enumerate(citations)]
            await self._transaction.write(lambda connection: connection.execute(cite, rows))

    async def list_for(self, turn_id: TurnId) -> Sequence[Citation]:
        bounds = {"which": turn_id}
        return await self._transaction.read(
            lambda connection: [_citation(row) for row in connection.execute(_CITATIONS, bounds)]
        )


class SqlGaps:
    """`denizen.ports.answers.GapRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def add(self, gap: KnowledgeGap) -> bool:
        add, row = _add_gap(self._transaction.dialect.insert), _gap_row(gap)
        return await self._transaction.write(lambda connection: connection.execute(add, row).scalar() is not None)

    async def list_gaps(
        self, *, since: datetime | None = None, closed: bool = False, limit: int = 1000
    ) -> Sequence[KnowledgeGap]:
        bounds = {"since": since or EVER, "closed": closed, "most": max(limit, 0)}
        return await self._transaction.read(
            lambda connection: [_gap(row) for row in connection.execute(_NEWEST_GAPS, bounds)]
        )

    async def close(self, gap_ids: Collection[str]) -> int:
        dialect = self._transaction.dialect
        bounds = {"chosen": dialect.bind_list(sorted(gap_ids))}
        return await self._transaction.write(
            lambda connection: connection.execute(_close_gaps(dialect), bounds).rowcount
        )

    async def forget_asker(self, asker: str) -> int:
        return await self._transaction.write(
            lambda connection: connection.execute(_FORGET_GAPS, {"whose": asker}).rowcount
        )


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
    doubt = CitationFault(row.doubt) if row.doubt else None
    return Citation(DocumentRef(row.path, row.first_line, row.last_line), row.source_id, row.revision, row.link, doubt)


def _gap_row(gap: KnowledgeGap) -> dict[str, Any]:
    place = gap.place
    named = {name: getattr(gap, name) for name in KnowledgeGap.__slots__ if name != "place"}
    return named | {
        "platform": place.platform,
        "channel": place.channel,
        "thread": place.thread,
        "kind": gap.kind.value,
    }


def _gap(row: sa.Row[Any]) -> KnowledgeGap:
    return KnowledgeGap(
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


_FIND = sa.select(proposals).where(proposals.c.id == sa.bindparam("which"))
_NEWEST_PROPOSALS = (
    sa.select(proposals)
    .where(proposals.c.status == sa.bindparam("wanted"))
    .order_by(proposals.c.created_at.desc(), proposals.c.position.desc())
    .limit(sa.bindparam("most"))
)
_ONE = proposals.c.id == sa.bindparam("which")
_WHOSE = sa.bindparam("whose", type_=EscapedText())
_WITHDRAWN = ProposalStatus.WITHDRAWN.value
_TEXTS = ("answer", "author_name", "link", "question", "asker", "gap_id", "reason", "text", "file")
"""The columns that a withdrawn proposal loses."""
_PLAIN = ("id", "proposer", "created_at", "question", "asker", "gap_id")
_ANSWER = ("post", "author", "author_name", "link", "said_at")
_DECISION = ("reason", "text", "file", "is_filed")
"""The columns that have the names of fields: of a proposal, of its answer, and of the decision about it."""
_REVIEWED = ("question", "answer", "author", "author_name", "asker")
"""The columns that the decider has seen."""

_DECIDE = (
    sa.update(proposals)
    .where(_ONE, proposals.c.status == ProposalStatus.OPEN.value)
    .where(*(proposals.c[name] == sa.bindparam(f"known_{name}", type_=EscapedText()) for name in _REVIEWED))
    .values(
        status=sa.bindparam("to"),
        decided_by=sa.bindparam("by", type_=EscapedText()),
        decided_at=sa.bindparam("at", type_=UtcTime()),
        reason=sa.bindparam("why", type_=EscapedText()),
        text=sa.bindparam("edited", type_=EscapedText()),
        file=sa.bindparam("name", type_=EscapedText()),
        is_filed=False,
    )
)
_WITHDRAW = (
    sa.update(proposals)
    .where(_ONE, proposals.c.status != _WITHDRAWN)
    .values({**dict.fromkeys(_TEXTS, ""), "status": _WITHDRAWN, "is_filed": False})
)
_FILE = (
    sa.update(proposals)
    .where(_ONE, proposals.c.status == ProposalStatus.ACCEPTED.value)
    .values(file=sa.bindparam("name", type_=EscapedText()), is_filed=sa.bindparam("filed", type_=sa.Boolean()))
)
_FORGET_AUTHOR = sa.delete(proposals).where(proposals.c.author == _WHOSE)
_FORGET_ASKER = (
    sa.update(proposals)
    .where(proposals.c.asker == _WHOSE, proposals.c.asker != sa.literal_column("''"))
    .values(question="", asker="", gap_id="", file="", is_filed=False)
)
_ROOM = sa.bindparam("room", type_=EscapedText())
_FORGET_ROOM = sa.delete(proposals).where(
    proposals.c.platform == sa.bindparam("of_platform", type_=EscapedText()),
    sa.or_(proposals.c.channel == _ROOM, proposals.c.thread == _ROOM),
    sa.literal_column("''") != _ROOM,
)


@cache
def _add_proposal(insert: InsertInto) -> sa.Executable:
    given: dict[str, Any] = {c.name: sa.bindparam(c.name) for c in proposals.c if c.name != "position"}
    return insert(proposals).values(given).on_conflict_do_nothing().returning(proposals.c.position)


@cache
def _remove_proposals(dialect: SqlDialect) -> sa.Delete:
    return sa.delete(proposals).where(dialect.among(proposals.c.id, "chosen"))


@cache
def _for_posts(dialect: SqlDialect) -> sa.Select[Any]:
    on_platform = proposals.c.platform == sa.bindparam("of_platform", type_=EscapedText())
    wanted = sa.select(proposals).where(on_platform, dialect.among(proposals.c.post, "chosen"))
    return wanted.order_by(proposals.c.position)


class SqlProposals:
    """`denizen.ports.answers.ProposalRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def add(self, proposal: Proposal) -> bool:
        add, row = _add_proposal(self._transaction.dialect.insert), _proposal_row(proposal)
        return await self._transaction.write(lambda connection: connection.execute(add, row).scalar() is not None)

    async def find(self, proposal_id: str) -> Proposal | None:
        def job(connection: sa.Connection) -> Proposal | None:
            row = connection.execute(_FIND, {"which": proposal_id}).first()
            return None if row is None else _proposal(row)

        return await self._transaction.read(job)

    async def find_for_posts(self, platform: str, post_ids: Collection[str]) -> Sequence[Proposal]:
        statement, chosen = _for_posts(self._transaction.dialect), [escape(key) for key in sorted(post_ids)]
        bounds = {"of_platform": platform, "chosen": self._transaction.dialect.bind_list(chosen)}
        return await self._transaction.read(
            lambda connection: [_proposal(row) for row in connection.execute(statement, bounds)]
        )

    async def list_proposals(self, status: ProposalStatus, *, limit: int = 1000) -> Sequence[Proposal]:
        bounds = {"wanted": status.value, "most": max(limit, 0)}
        return await self._transaction.read(
            lambda connection: [_proposal(row) for row in connection.execute(_NEWEST_PROPOSALS, bounds)]
        )

    async def decide(self, proposal: Proposal) -> bool:
        known = _proposal_row(proposal)
        values = {
            "which": proposal.id,
            "to": proposal.status.value,
            "by": proposal.decision.by,
            "at": proposal.decision.at,
            "why": proposal.decision.reason,
            "edited": proposal.decision.text,
            "name": proposal.decision.file,
            **{f"known_{name}": known[name] for name in _REVIEWED},
        }
        return await self._change(_DECIDE, values) > 0

    async def withdraw(self, proposal_id: str) -> bool:
        return await self._change(_WITHDRAW, {"which": proposal_id}) > 0

    async def set_file(self, proposal_id: str, file: str, *, is_filed: bool) -> None:
        await self._change(_FILE, {"which": proposal_id, "name": file, "filed": is_filed})

    async def remove(self, proposal_ids: Collection[str]) -> int:
        dialect = self._transaction.dialect
        return await self._change(_remove_proposals(dialect), {"chosen": dialect.bind_list(sorted(proposal_ids))})

    async def forget_author(self, author: str) -> int:
        return await self._change(_FORGET_AUTHOR, {"whose": author})

    async def forget_asker(self, asker: str) -> int:
        return await self._change(_FORGET_ASKER, {"whose": asker})

    async def forget_room(self, platform: str, room: str) -> int:
        return await self._change(_FORGET_ROOM, {"of_platform": platform, "room": room})

    async def _change(self, statement: sa.Update | sa.Delete, values: dict[str, Any]) -> int:
        return await self._transaction.write(lambda connection: connection.execute(statement, values).rowcount)


def _proposal_row(proposal: Proposal) -> dict[str, Any]:
    answer, decision, place = proposal.answer, proposal.decision, proposal.answer.place
    return {
        **{name: getattr(proposal, name) for name in _PLAIN},
        **{name: getattr(answer, name) for name in _ANSWER},
        **{name: getattr(decision, name) for name in _DECISION},
        "platform": place.platform,
        "channel": place.channel,
        "thread": place.thread,
        "answer": answer.text,
        "status": proposal.status.value,
        "decided_by": decision.by,
        "decided_at": decision.at,
    }


def _proposal(row: sa.Row[Any]) -> Proposal:
    place = Place(row.platform, row.channel, row.thread)
    answer = {name: getattr(row, name) for name in _ANSWER}
    decision = {name: getattr(row, name) for name in _DECISION}
    return Proposal(
        **{name: getattr(row, name) for name in _PLAIN},
        answer=ProposedAnswer(place=place, text=row.answer, **answer),
        status=ProposalStatus(row.status),
        decision=ProposalDecision(by=row.decided_by, at=row.decided_at, **decision),
    )
