"""How far the embedding of passages has come, and how long the rest takes at the measured pace. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from denizen.domain.record import record

NEW_SHARE = 0.1
"""The weight of the latest batch in the pace: it follows a busy machine within a minute, and no single batch."""
BELIEVED = timedelta(minutes=5)
"""A pace that is older says nothing: nobody embeds now."""


@record
class EmbeddingPace:
    """The seconds that one passage took with `model`, in the last batches up to `measured_at`."""

    model: str
    seconds: float
    measured_at: datetime

    def follow(self, before: EmbeddingPace | None) -> EmbeddingPace:
        """Returns the pace of this batch and those before it."""
        if before is None or before.model != self.model or self.measured_at - before.measured_at > BELIEVED:
            return self
        return EmbeddingPace(self.model, before.seconds + NEW_SHARE * (self.seconds - before.seconds), self.measured_at)


@record
class EmbeddingProgress:
    """`done` of `total` different passages have an embedding. `left_s` is None where nobody embeds now."""

    done: int
    total: int
    left_s: float | None = None

    @property
    def is_complete(self) -> bool:
        return self.done >= self.total

    def describe(self) -> str:
        told = f"{self.done:,} of {self.total:,} passages embedded"
        return told if self.is_complete or self.left_s is None else f"{told}, {describe_left(self.left_s)}"


def estimate_progress(missing: int, total: int, pace: EmbeddingPace | None, now: datetime) -> EmbeddingProgress:
    """`pace` is the latest that was measured with the model whose embeddings are missing."""
    is_current = pace is not None and now - pace.measured_at <= BELIEVED
    left_s = missing * pace.seconds if pace is not None and is_current and missing else None
    return EmbeddingProgress(total - missing, total, left_s)


def describe_left(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute left"
    if minutes < 90:
        return f"about {minutes} minute{'' if minutes == 1 else 's'} left"
    return f"about {round(seconds / 3600)} hours left"
