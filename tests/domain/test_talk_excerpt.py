"""Excerpts of talk: which posts that were found lie together, and in which order they come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.message import Author
from denizen.domain.room import Post
from denizen.domain.talk_excerpt import SAME_TALK, PostSurroundings, is_same_talk, merge_excerpts

START = datetime(2026, 11, 1, tzinfo=UTC)


def post(number: int, *, room: str = "1", after: timedelta = timedelta()) -> Post:
    return Post(
        "discord", str(number), room, Author("1", "Ana"), str(number), START + timedelta(minutes=number) + after
    )


def hit(number: int, *around: int) -> PostSurroundings:
    return PostSurroundings(post(number), tuple(map(post, around)))


def merged(*hits: PostSurroundings) -> list[tuple[list[int], set[int]]]:
    return [([int(p.id) for p in each.posts], set(map(int, each.found))) for each in merge_excerpts(hits)]


def test_hits_in_the_same_stretch_of_talk_are_one_excerpt_in_the_order_of_writing() -> None:
    assert merged(hit(5, 4, 6), hit(7, 6, 8)) == [([4, 5, 6, 7, 8], {5, 7})]
    assert merged(hit(5, 4, 6), hit(6, 5, 7)) == [([4, 5, 6, 7], {5, 6})]
    assert merged(hit(9, 8, 10), hit(5, 4, 6)) == [([8, 9, 10], {9}), ([4, 5, 6], {5})]


def test_what_a_later_hit_joins_stands_where_its_best_hit_stood() -> None:
    assert merged(hit(1, 2), hit(50), hit(5, 4), hit(3, 2, 4)) == [([1, 2, 3, 4, 5], {1, 3, 5}), ([50], {50})]


def test_an_answer_is_one_excerpt_with_what_it_replies_to_however_long_ago() -> None:
    assert merged(hit(100, 99, 101, 3), hit(3, 2, 4)) == [([2, 3, 4, 99, 100, 101], {3, 100})]


def test_posts_far_apart_or_of_two_rooms_are_no_talk() -> None:
    assert is_same_talk(post(1), post(1, after=SAME_TALK))
    assert not is_same_talk(post(1), post(1, after=SAME_TALK + timedelta(seconds=1)))
    assert not is_same_talk(post(1), post(2, room="2"))


@given(st.lists(st.tuples(st.integers(1, 30), st.lists(st.integers(1, 30), max_size=3)), max_size=12))
def test_no_post_is_lost_or_shown_twice(drawn: Sequence[tuple[int, Sequence[int]]]) -> None:
    hits = [hit(number, *around) for number, around in drawn]
    excerpts = merged(*hits)
    shown = [number for posts, _ in excerpts for number in posts]
    assert sorted(shown) == sorted({number for found, around in drawn for number in (found, *around)})
    assert set().union(*(found for _, found in excerpts)) == {number for number, _ in drawn}
    assert all(posts == sorted(posts) for posts, _ in excerpts)
