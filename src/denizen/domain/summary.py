"""A summary that stands in the prompt for a range of a session's messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from denizen.domain.ids import SessionId
from denizen.domain.record import record


@record
class Summary:
    """The summary of a session's messages from sequence `first` to `last`, both included. The messages stay where they
    are.

    `text` is empty where there was nothing to tell: what was said there has been forgotten.
    """

    session_id: SessionId
    first: int
    last: int
    text: str
    created_at: datetime

    @property
    def reference(self) -> str:
        """By which the messages can be read word for word."""
        return f"{self.first}-{self.last}"


def covered_until(summaries: Sequence[Summary]) -> int:
    """The last sequence that is summed up; 0 where nothing is."""
    return summaries[-1].last if summaries else 0


def find_gap(summaries: Iterable[Summary]) -> tuple[int, int] | None:
    """The first stretch before a summary that no other covers: the one that did was taken out with somebody's words."""
    expected = 1
    for summary in summaries:
        if summary.first > expected:
            return expected, summary.first - 1
        expected = summary.last + 1
    return None
