"""How far embedding is, in words, and the pace that the rest is estimated by."""

from __future__ import annotations

from datetime import timedelta

import pytest

from denizen.domain.embedding_progress import BELIEVED, EmbeddingPace, EmbeddingProgress, estimate_progress
from tests.clock import NOON

PACE = EmbeddingPace("m", 0.045, NOON)


@pytest.mark.parametrize(
    ("progress", "told"),
    [
        (EmbeddingProgress(1200, 20_000, 846.0), "1,200 of 20,000 passages embedded, about 14 minutes left"),
        (EmbeddingProgress(1200, 20_000), "1,200 of 20,000 passages embedded"),
        (EmbeddingProgress(1, 9, 61.0), "1 of 9 passages embedded, about 1 minute left"),
        (EmbeddingProgress(1, 9, 12.0), "1 of 9 passages embedded, less than a minute left"),
        (EmbeddingProgress(1, 9, 5 * 3600), "1 of 9 passages embedded, about 5 hours left"),
        (EmbeddingProgress(9, 9), "9 of 9 passages embedded"),
    ],
)
def test_it_is_told_in_round_figures(progress: EmbeddingProgress, told: str) -> None:
    assert progress.describe() == told


def test_the_rest_is_estimated_by_a_pace_that_is_measured_now() -> None:
    assert estimate_progress(18_800, 20_000, PACE, NOON) == EmbeddingProgress(1200, 20_000, 846.0)
    assert estimate_progress(0, 20_000, PACE, NOON) == EmbeddingProgress(20_000, 20_000)
    assert estimate_progress(18_800, 20_000, None, NOON) == EmbeddingProgress(1200, 20_000)
    later = NOON + BELIEVED + timedelta(seconds=1)
    assert estimate_progress(18_800, 20_000, PACE, later) == EmbeddingProgress(1200, 20_000)


def test_a_pace_follows_slowly_but_begins_anew_with_another_model_or_after_a_pause() -> None:
    slow = EmbeddingPace("m", 1.045, NOON + timedelta(seconds=30))
    assert slow.follow(PACE).seconds == pytest.approx(0.145)
    assert slow.follow(None) == slow
    assert EmbeddingPace("other", 1.0, slow.measured_at).follow(PACE).seconds == 1.0
    assert EmbeddingPace("m", 1.0, NOON + timedelta(hours=1)).follow(PACE).seconds == 1.0
