"""Rooms and posts of GitHub by their ids."""

from datetime import timedelta

import pytest

from denizen.adapters.github.threads import (
    GitHubThread,
    PostId,
    PostKind,
    ThreadKind,
    opening_id,
    parse_post_id,
    parse_thread,
)
from denizen.domain.errors import NotFound
from denizen.domain.room import RoomKind, is_newer
from tests.clock import NOON


@pytest.mark.proves("S33-context")
@pytest.mark.parametrize(
    ("thread", "room"),
    [
        (GitHubThread("harbour/boats", 12), "harbour/boats#12"),
        (GitHubThread("harbour/boats", 12, ThreadKind.REVIEW, 345), "harbour/boats#12/review/345"),
        (GitHubThread("harbour/boats", 12, ThreadKind.DISCUSSION), "harbour/boats#12/discussion"),
        (GitHubThread("harbour/boats", 12, ThreadKind.DISCUSSION, 345), "harbour/boats#12/discussion/345"),
    ],
)
def test_a_room_is_known_by_owner_repository_and_number(thread: GitHubThread, room: str) -> None:
    assert thread.room_id == room
    assert parse_thread(room) == thread


def test_a_review_is_a_thread_of_its_pull_request_and_the_repository_is_the_community() -> None:
    room = GitHubThread("harbour/boats", 12, ThreadKind.REVIEW, 345).room("Paint")
    assert (room.kind, room.parent, room.guild) == (RoomKind.THREAD, "harbour/boats#12", "harbour/boats")
    assert GitHubThread("harbour/boats", 12).room("Paint").place.channel == "harbour/boats#12"


@pytest.mark.parametrize("text", ["", "boats#1", "harbour/boats", "harbour/boats#x", "a/b#1/review/", "a/b#1/other/2"])
def test_what_is_no_room_is_not_found(text: str) -> None:
    with pytest.raises(NotFound):
        parse_thread(text)


def test_of_two_posts_the_later_is_the_newer_whatever_their_numbers_are() -> None:
    first = PostId(NOON, PostKind.DISCUSSION_COMMENT, 9_999_999)
    second = PostId(NOON + timedelta(seconds=1), PostKind.COMMENT, 3)
    assert is_newer(str(second), str(first))
    assert parse_post_id(str(first)) == first


def test_an_answer_in_the_same_second_is_newer_than_a_review_and_an_opening() -> None:
    answer = str(PostId(NOON, PostKind.COMMENT, 1))
    assert is_newer(answer, str(PostId(NOON, PostKind.REVIEW, 77)))
    assert is_newer(answer, opening_id("harbour/boats", 12, NOON))


def test_an_opening_is_the_same_whoever_tells_of_it() -> None:
    assert opening_id("Harbour/Boats", 12, NOON) == opening_id("harbour/boats", 12, NOON)
    assert opening_id("harbour/boats", 13, NOON) != opening_id("harbour/boats", 12, NOON)


def test_what_is_no_post_is_not_found() -> None:
    with pytest.raises(NotFound):
        parse_post_id("17")
