from hypothesis import given
from hypothesis import strategies as st

from denizen.adapters.models.embedded.child_process import RestartPolicy

_POLICY = RestartPolicy(limit=5, window_s=100, first_pause_s=1, longest_pause_s=3)


def test_the_first_restart_is_at_once() -> None:
    assert _POLICY.plan_pause_s([], now=0) == 0
    assert _POLICY.plan_pause_s([10], now=10) == 0


def test_later_restarts_wait_longer_up_to_the_longest_pause() -> None:
    assert _POLICY.plan_pause_s([10, 10], now=10) == 1
    assert _POLICY.plan_pause_s([10, 10, 10], now=10) == 2
    assert _POLICY.plan_pause_s([10, 10, 10, 10], now=10) == 3


def test_time_that_has_passed_since_the_last_crash_counts_as_waiting() -> None:
    assert _POLICY.plan_pause_s([10, 10, 10], now=11.5) == 0.5
    assert _POLICY.plan_pause_s([10, 10, 10], now=20) == 0


def test_too_many_crashes_within_the_window_end_restarts_until_they_are_old() -> None:
    deaths = [10.0, 11, 12, 13, 14]

    assert _POLICY.plan_pause_s(deaths, now=20) is None
    assert _POLICY.plan_pause_s(deaths, now=110) == 0


@given(st.lists(st.floats(0, 1000), max_size=10).map(sorted), st.floats(0, 1000))
def test_a_pause_is_never_negative_nor_longer_than_the_longest(deaths: list[float], passed_s: float) -> None:
    now = max(deaths, default=0) + passed_s
    pause_s = _POLICY.plan_pause_s(deaths, now)

    assert pause_s is None or 0 <= pause_s <= _POLICY.longest_pause_s
