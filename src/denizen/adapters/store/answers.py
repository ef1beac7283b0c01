"""Citations of answers, questions that the documents did not answer, and answers that people proposed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import (
    EARLIEST,
    EnumValue,
    EscapedText,
    UtcTime,
    escape,
    id_columns,
    metadata,
    texts,
    times,
)
from denizen.adapters.store.dialect import SqlDialect
from denizen.adapters.store.repository import Row, SqlRepository, insert_rows, read_record, write_record
from denizen.adapters.store.turns import turns
from denizen.domain.citation import Citation, CitationFault
from denizen.domain.gap import GapKind, KnowledgeGap
from denizen.domain.ids import TurnId
from denizen.domain.proposal import Proposal, ProposalDecision, ProposalStatus, ProposedAnswer

citations = sa.Table(
    "citations",
    metadata,
    sa.Column("turn_id", sa.Text(), sa.ForeignKey(turns.c.id, ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer(), primary_key=True),
    *texts("path"),
    sa.Column("first_line", sa.Integer(), nullable=False),
    sa.Column("last_line", sa.Integer(), nullable=False),
    sa.Column("source_id", sa.Text(), nullable=False),
    *texts("revision", "link"),
    sa.Column("doubt", sa.Text(), nullable=False),
)

gaps = sa.Table(
    "gaps",
    metadata,
    *id_columns(),
    *texts("agent", "question", "asker", "platform", "channel", "thread"),
    sa.Column("is_private", sa.Boolean(), nullable=False),
    sa.Column("kind", EnumValue(GapKind), nullable=False),
    sa.Column("turn_id", sa.Text(), nullable=False),
    sa.Column("is_closed", sa.Boolean(), nullable=False),
    *times("created_at"),
    sa.Index("ix_gaps_asker", "asker"),
    sa.Index("ix_gaps_created_at", "created_at"),
)

proposals = sa.Table(
    "proposals",
    metadata,
    *id_columns(),
    *texts("platform", "channel", "thread", "post", "answer", "author", "author_name", "proposer", "link"),
    *texts("question", "asker"),
    sa.Column("gap_id", sa.Text(), nullable=False),
    sa.Column("status", EnumValue(ProposalStatus), nullable=False),
    *texts("decided_by"),
    sa.Column("decided_at", UtcTime()),
    *texts("reason", "text", "file"),
    sa.Column("is_filed", sa.Boolean(), nullable=False),
    *times("said_at", "created_at"),
    sa.Index("ix_proposals_author", "author"),
    sa.Index("ix_proposals_platform_post", "platform", "post"),
    sa.Index("ix_proposals_status_created_at", "status", "created_at"),
)


_CITATIONS = sa.select(citations).where(citations.c.turn_id == sa.bindparam("which")).order_by(citations.c.number)
_NEWEST_GAPS = (
    sa.select(gaps)
    .where(gaps.c.is_closed == sa.bindparam("closed"), gaps.c.created_at >= sa.bindparam("since", type_=UtcTime()))
    .order_by(gaps.c.created_at.desc(), gaps.c.position.desc())
    .limit(sa.bindparam("most"))
)
_add_citations = partial(insert_rows, table=citations)
_FORGET_GAPS = sa.delete(gaps).where(gaps.c.asker == sa.bindparam("whose", type_=EscapedText()))


@cache
def _citations_among(dialect: SqlDialect) -> sa.Select[Any]:
    return (
        sa.select(citations)
        .where(dialect.among(citations.c.turn_id, "wanted"))
        .order_by(citations.c.turn_id, citations.c.number)
    )


@cache
def _close_gaps(dialect: SqlDialect) -> sa.Update:
    return sa.update(gaps).where(dialect.among(gaps.c.id, "chosen"), ~gaps.c.is_closed).values(is_closed=True)


class SqlCitations(SqlRepository):
    """Implements `denizen.ports.answers.CitationRepository`."""

    async def add(self, turn_id: TurnId, citations: Sequence[Citation]) -> None:
        rows = [
            write_record(each, "doubt") | {"turn_id": turn_id, "number": number, "doubt": each.doubt or ""}
            for number, each in enumerate(citations)
        ]
        await self._execute(_add_citations(self._dialect.insert), rows)

    async def list_for(self, turn_id: TurnId) -> Sequence[Citation]:
        return await self._list(_read_citation, _CITATIONS, {"which": turn_id})

    async def list_for_all(self, turn_ids: Collection[TurnId]) -> Mapping[TurnId, Sequence[Citation]]:
        wanted = self._dialect.bind_list(sorted(set(turn_ids)))
        rows = await self._list(
            lambda row: (TurnId(row.turn_id), _read_citation(row)), _citations_among(self._dialect), {"wanted": wanted}
        )
        found: dict[TurnId, list[Citation]] = {}
        for turn_id, citation in rows:
            found.setdefault(turn_id, []).append(citation)
        return found


def _read_citation(row: Row) -> Citation:
    return read_record(Citation, row, doubt=CitationFault(row.doubt) if row.doubt else None)


class SqlGaps(SqlRepository):
    """Implements `denizen.ports.answers.GapRepository`."""

    async def add(self, gap: KnowledgeGap) -> bool:
        return await self._add(gaps, write_record(gap))

    async def list_gaps(
        self, *, since: datetime | None = None, closed: bool = False, limit: int = 1000
    ) -> Sequence[KnowledgeGap]:
        bounds = {"since": since or EARLIEST, "closed": closed, "most": max(limit, 0)}
        return await self._list(partial(read_record, KnowledgeGap), _NEWEST_GAPS, bounds)

    async def close(self, gap_ids: Collection[str]) -> int:
        return await self._change(_close_gaps(self._dialect), {"chosen": self._dialect.bind_list(sorted(gap_ids))})

    async def forget_asker(self, asker: str) -> int:
        return await self._change(_FORGET_GAPS, {"whose": asker})


_FIND = sa.select(proposals).where(proposals.c.id == sa.bindparam("which"))
_NEWEST_PROPOSALS = (
    sa.select(proposals)
    .where(proposals.c.status == sa.bindparam("wanted"))
    .order_by(proposals.c.created_at.desc(), proposals.c.position.desc())
    .limit(sa.bindparam("most"))
)
_ONE = proposals.c.id == sa.bindparam("which")
_WHOSE = sa.bindparam("whose", type_=EscapedText())
_WITHDRAWN = ProposalStatus.WITHDRAWN
_TEXTS = ("answer", "author_name", "link", "question", "asker", "gap_id", "reason", "text", "file")
"""The columns that a withdrawn proposal loses."""
_REVIEWED = ("question", "answer", "author", "author_name", "asker")
"""The columns that the decider has seen."""

_DECIDE = (
    sa.update(proposals)
    .where(_ONE, proposals.c.status == ProposalStatus.OPEN)
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
    .where(_ONE, proposals.c.status == ProposalStatus.ACCEPTED)
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
def _remove_proposals(dialect: SqlDialect) -> sa.Delete:
    return sa.delete(proposals).where(dialect.among(proposals.c.id, "chosen"))


@cache
def _for_posts(dialect: SqlDialect) -> sa.Select[Any]:
    on_platform = proposals.c.platform == sa.bindparam("of_platform", type_=EscapedText())
    wanted = sa.select(proposals).where(on_platform, dialect.among(proposals.c.post, "chosen"))
    return wanted.order_by(proposals.c.position)


class SqlProposals(SqlRepository):
    """Implements `denizen.ports.answers.ProposalRepository`."""

    async def add(self, proposal: Proposal) -> bool:
        return await self._add(proposals, _write_proposal(proposal))

    async def find(self, proposal_id: str) -> Proposal | None:
        return await self._find(_read_proposal, _FIND, {"which": proposal_id})

    async def find_for_posts(self, platform: str, post_ids: Collection[str]) -> Sequence[Proposal]:
        statement, chosen = _for_posts(self._dialect), [escape(key) for key in sorted(post_ids)]
        bounds = {"of_platform": platform, "chosen": self._dialect.bind_list(chosen)}
        return await self._list(_read_proposal, statement, bounds)

    async def list_proposals(self, status: ProposalStatus, *, limit: int = 1000) -> Sequence[Proposal]:
        bounds = {"wanted": status, "most": max(limit, 0)}
        return await self._list(_read_proposal, _NEWEST_PROPOSALS, bounds)

    async def decide(self, proposal: Proposal) -> bool:
        known = _write_proposal(proposal)
        values = {
            "which": proposal.id,
            "to": proposal.status,
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
        return await self._change(
            _remove_proposals(self._dialect), {"chosen": self._dialect.bind_list(sorted(proposal_ids))}
        )

    async def forget_author(self, author: str) -> int:
        return await self._change(_FORGET_AUTHOR, {"whose": author})

    async def forget_asker(self, asker: str) -> int:
        return await self._change(_FORGET_ASKER, {"whose": asker})

    async def forget_room(self, platform: str, room: str) -> int:
        return await self._change(_FORGET_ROOM, {"of_platform": platform, "room": room})


def _write_proposal(proposal: Proposal) -> dict[str, Any]:
    answer, decision = proposal.answer, proposal.decision
    return {
        **write_record(proposal, "answer", "decision"),
        **write_record(answer, "text"),
        **write_record(decision, "by", "at"),
        "answer": answer.text,
        "decided_by": decision.by,
        "decided_at": decision.at,
    }


def _read_proposal(row: Row) -> Proposal:
    answer = read_record(ProposedAnswer, row, text=row.answer)
    decision = read_record(ProposalDecision, row, by=row.decided_by, at=row.decided_at)
    return read_record(Proposal, row, answer=answer, decision=decision)
