"""What no document answers, and answers that people proposed, as clients see them.

Plain dataclasses, as in `records`; may be imported from `wire`. Times are ISO 8601 in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GapInfo:
    """A question that was asked `times` times by `askers` people and stands in no document. `questions` are its
    wordings, the newest first; `kind` is `unknown` when the agent said so, `not found` when it searched in vain.
    """

    id: str
    question: str
    questions: tuple[str, ...]
    times: int
    askers: int
    agent: str
    kind: str
    last_at: str


@dataclass(frozen=True, slots=True)
class GapList:
    """What was asked most comes first. `hidden` of the `total` were asked in private and are not among `gaps`; with
    `truncated` there are older ones, which were not looked at.
    """

    days: int
    total: int
    hidden: int
    gaps: tuple[GapInfo, ...]
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class ClosedGaps:
    """`closed` is how many were open: all that ask the same."""

    closed: int


@dataclass(frozen=True, slots=True)
class ProposalInfo:
    """An answer of a member that somebody proposed for the documents. Accepting it writes `content` into `file`, which
    `diff` shows as a change. `gap` is the id of the question that it closes, empty when there is none.
    """

    id: str
    question: str
    answer: str
    author: str
    author_id: str
    proposed_by: str
    link: str
    said_at: str
    created_at: str
    gap: str
    file: str
    content: str
    diff: str


@dataclass(frozen=True, slots=True)
class DecidedProposal:
    """`status` is accepted or rejected; `sync` is the id of the sync that reads the accepted file."""

    status: str
    sync: str = ""
