"""Proposed answers: what a member said in reply to a question, on its way into the documents of all. Pure.

Somebody who is trusted puts a reaction on the message; an owner or admin reviews it, and only then it becomes a file.
What people wrote stays a quotation in it: no heading, front matter or fence of theirs has an effect on the rest.
"""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from denizen.domain.conversation import Place
from denizen.domain.gap import KnowledgeGap, asks_alike
from denizen.domain.ids import derive
from denizen.domain.record import record

PROPOSED = "✅"
"""The reaction that the agent puts on a message that was proposed."""
REFUSED = "❌"
"""With it on their own message authors take it back, whatever became of it."""
NEAR = timedelta(hours=24)
"""A gap is about a message that comes so long after it."""
EARLY = timedelta(minutes=10)
"""Likewise so long before: people may be faster than the agent, whose gap is kept when its turn has ended."""
MAX_ANSWER_CHARS = 10_000
MAX_QUESTION_CHARS = 500

_SLUG_CHARS = 50
_NAME_CHARS = 100
_NO_SLUG = re.compile(r"[^a-z0-9]+")
_UNSEEN = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Controls, and what takes no room: a reviewer would accept words that only a model reads."""
_SIGN = r"[^\x00-\x7f\w\s\u200d\ufe0f]"
_LONE_STYLE = re.compile(rf"(?<!{_SIGN})\ufe0f")
_LONE_JOINER = re.compile(rf"(?<!{_SIGN})(?<!\ufe0f)\u200d|\u200d(?!{_SIGN})")
"""Only emoji are drawn and joined with them."""
_BREAK = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_OWN_EMOJI = re.compile(r"<a?:\w+:(\d+)>")
_ID_LINE = re.compile(r"^id: (prop_\w+)$")
_HEAD_LINES = 10


class ProposalStatus(StrEnum):
    """How far a proposal has come: reviewers still have to decide, they decided, or its author took it back."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    """Its author does not want it; nothing of what they wrote is kept."""


@record
class LearningPolicy:
    """`emoji` is the reaction that proposes; owners and admins may put it, and whoever has one of `roles`, which are
    ids of the platform.
    """

    enabled: bool = False
    emoji: str = "📚"
    roles: frozenset[str] = field(default_factory=frozenset[str])


@record(kw_only=True)
class ProposedAnswer:
    """The message that may become a document. `author` is the key of a principal; `said_at` is when it was written."""

    place: Place
    post: str
    text: str
    author: str
    author_name: str
    link: str
    said_at: datetime


@record(kw_only=True)
class ProposalDecision:
    """The decision of a reviewer, and the file that came of it. `text` is what they made of the answer, empty when it
    was taken as it is. `file` is the name of the accepted file, `is_filed` whether it was written.
    """

    by: str = ""
    at: datetime | None = None
    reason: str = ""
    text: str = ""
    file: str = ""
    is_filed: bool = False


@record(kw_only=True)
class Proposal:
    """`asker` and `proposer` are keys of principals. Without `question` nobody knows what was asked, and `asker` is
    empty.
    """

    id: str
    answer: ProposedAnswer
    proposer: str
    created_at: datetime
    question: str = ""
    asker: str = ""
    gap_id: str = ""
    status: ProposalStatus = ProposalStatus.OPEN
    decision: ProposalDecision = field(default_factory=ProposalDecision)

    def withdrawn(self) -> Proposal:
        """As its author leaves it: that they said no is all that is known."""
        return replace(
            self,
            status=ProposalStatus.WITHDRAWN,
            answer=replace(self.answer, text="", link="", author_name=""),
            question="",
            asker="",
            gap_id="",
            decision=ProposalDecision(by=self.decision.by, at=self.decision.at),
        )


def add_proposal_id(proposal: Proposal) -> Proposal:
    """Its id tells what exactly was proposed: with another text it is another proposal, and nobody accepts what they
    have not seen.
    """
    told = (proposal.question, proposal.answer.text, proposal.answer.author, proposal.answer.author_name)
    return replace(proposal, id=derive("prop", proposal.answer.place.platform, proposal.answer.post, *told))


def is_same_emoji(one: str, other: str) -> bool:
    """Compares two emoji: a server's own by id, others without the variation selector."""
    return _bare(one) == _bare(other)


def nearest_gap(
    gaps: Iterable[KnowledgeGap], place: Place, at: datetime, *, asker: str = "", question: str = ""
) -> KnowledgeGap | None:
    """The gap to which a message of that place and time is an answer; with `asker` and `question` one that is theirs
    and asks the same. Never what was asked in private.
    """
    near = [
        gap
        for gap in gaps
        if gap.place == place
        and not gap.is_private
        and -EARLY <= at - gap.created_at <= NEAR
        and (not asker or gap.asker == asker)
        and (not question or asks_alike(gap.question, question))
    ]
    return min(near, key=lambda gap: abs(at - gap.created_at), default=None)


def clean_proposal_text(text: str, limit: int) -> str:
    """Without what nobody sees, and with one kind of line break."""
    seen = _UNSEEN.sub("", _BREAK.sub("\n", text))
    return _LONE_JOINER.sub("", _LONE_STYLE.sub("", seen)).strip()[:limit]


def name_file(proposal: Proposal, taken: Collection[str]) -> str:
    """`2026-11-22-how-much-is-a-berth.md`; one that is taken gets a part of the id."""
    words = proposal.question or proposal.decision.text or proposal.answer.text
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode().lower()
    slug = _NO_SLUG.sub("-", plain).strip("-")[:_SLUG_CHARS].strip("-") or "answer"
    name = f"{proposal.answer.said_at:%Y-%m-%d}-{slug}"
    return f"{name}.md" if f"{name}.md" not in taken else f"{name}-{proposal.id.removeprefix('prop_')[:6]}.md"


def credit_authors(proposal: Proposal) -> str:
    """Who said it: anybody may call themselves like somebody else, but not by their id."""
    return f"{_line(proposal.answer.author_name)[:_NAME_CHARS]} (id {proposal.answer.author.split(':', 2)[-1]})".strip()


def render_proposal(proposal: Proposal, accepted_by: str) -> str:
    """The whole file. What the reviewer made of the answer is told of as theirs."""
    who, by = credit_authors(proposal), _line(accepted_by)
    head = {
        "question": proposal.question,
        "author": who,
        "link": proposal.answer.link,
        "accepted_by": by,
        **({"edited_by": by} if proposal.decision.text else {}),
    }
    lines = [
        f"{name}: {json.dumps(clean_proposal_text(_line(text), 300), ensure_ascii=False)}"
        for name, text in head.items()
    ]
    told = proposal.decision.text or proposal.answer.text
    quoted = [f"> {line}".rstrip() for line in clean_proposal_text(told, MAX_ANSWER_CHARS).split("\n")]
    title = _line(proposal.question) or (f"After {who}" if proposal.decision.text else f"What {who} said")
    said = f"After {who}, edited by {by}," if proposal.decision.text else f"Said by {who}"
    said = f"{said} on {proposal.answer.said_at:%Y-%m-%d}"
    return "\n".join(
        [
            "---",
            f"id: {proposal.id}",
            f"date: {proposal.answer.said_at:%Y-%m-%d}",
            *lines,
            "---",
            "",
            f"# {_escaped(title)}",
            "",
            *quoted,
            "",
            f"{_escaped(said)}{f': {proposal.answer.link}' if proposal.answer.link else ''}",
            "",
        ]
    )


def find_proposal_id(text: str) -> str:
    """The id of the proposal that a file was made of; empty for a file of somebody else."""
    lines = text.split("\n", _HEAD_LINES)[:_HEAD_LINES]
    if lines[0] != "---":
        return ""
    return next((found[1] for line in lines[1:] if (found := _ID_LINE.fullmatch(line))), "")


def diff_lines(before: str, after: str, name: str) -> str:
    """Returns the change that accepting makes, as `diff -u` shows it."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(difflib.unified_diff(old, new, name if before else "/dev/null", name))


def _bare(emoji: str) -> str:
    own = _OWN_EMOJI.fullmatch(emoji)
    return own[1] if own else emoji.replace("\ufe0f", "")


def _line(text: str) -> str:
    return " ".join(clean_proposal_text(text, MAX_ANSWER_CHARS).split())


def _escaped(line: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", line)
