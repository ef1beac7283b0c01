"""What is told of a post, in whatever order, ends in the same post."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.message import Author
from denizen.domain.mirror import plan_renewal, renew_room
from denizen.domain.room import Post, PostChanges, Room
from tests.clock import NOON

FIRST = Post("discord", "1", "10", Author("1", "Ana"), "text 0", NOON)
LATER = [
    replace(FIRST, text=f"text {hour}", changes=PostChanges(edited_at=NOON + timedelta(hours=hour)))
    for hour in (1, 2, 3)
]
DELETED = replace(FIRST, changes=PostChanges(deleted_at=NOON + timedelta(hours=2.5)))


@given(st.permutations([FIRST, *LATER, DELETED, LATER[1]]))
def test_whatever_the_order_the_latest_edit_stays_and_so_does_the_deletion(told: list[Post]) -> None:
    known = told[0]
    for post in told[1:]:
        known = plan_renewal(known, post) or known
    assert known == replace(LATER[-1], changes=replace(DELETED.changes, edited_at=LATER[-1].changes.edited_at))


@given(st.sampled_from([FIRST, *LATER, DELETED]))
def test_the_same_post_again_changes_nothing(post: Post) -> None:
    assert plan_renewal(post, post) is None


def test_a_later_deletion_does_not_move_the_first() -> None:
    assert plan_renewal(DELETED, replace(DELETED, changes=PostChanges(deleted_at=NOON + timedelta(hours=9)))) is None


@pytest.mark.parametrize(
    ("known", "given_", "newest"), [("99", "100", "100"), ("100", "99", "100"), ("", "5", "5"), ("5", "", "5")]
)
def test_a_room_has_the_newest_post_that_was_told_of_and_everything_else_as_told_last(
    known: str, given_: str, newest: str
) -> None:
    renewed = renew_room(Room("discord", "10", "old", latest_post=known), Room("discord", "10", "", latest_post=given_))
    assert renewed == Room("discord", "10", "", latest_post=newest)
