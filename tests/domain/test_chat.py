"""Titles of chats, and where their sessions fork."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.chat import FALLBACK_TITLE, MAX_TITLE_CHARS, clean_title, find_fork_point, first_words, list_forks
from denizen.domain.conversation import Session
from denizen.domain.ids import AgentName, ConversationId, SessionId
from tests.clock import NOON

PUNCTUATION = "\"'.,;:!?…*_#`"


@given(st.text())
def test_a_title_is_short_on_one_line_and_without_punctuation_around_it(text: str) -> None:
    for title in (clean_title(text), first_words(text)):
        assert len(title) <= MAX_TITLE_CHARS and len(title.splitlines()) <= 1
        assert title.strip(PUNCTUATION + " ") == title


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("How tall is the tower, and who built it?", "How tall is the tower, and who"),
        ("Antidisestablishmentarianismically", "Antidisestablishmentarianismic"),
        ("\n\n  Hello!  \nmore", "Hello"),
        ("...", FALLBACK_TITLE),
        ("", FALLBACK_TITLE),
    ],
)
def test_the_first_words_of_a_message_make_a_title(message: str, title: str) -> None:
    assert first_words(message) == title


def session(name: str, parent: str = "", at: int = 0) -> Session:
    """Sessions are made in the order of their names."""
    made = NOON + timedelta(minutes=ord(name))
    parent_id = SessionId(parent) if parent else None
    return Session(SessionId(name), ConversationId("conv"), AgentName("denizen"), made, None, parent_id, at)


TREE = [session("a"), session("b", "a", 3), session("c", "a", 3), session("d", "a", 5), session("e", "c", 5)]
"""`b` and `c` are other third messages than that of `a`, `d` is another fifth one, and `e` another fifth one of `c`."""


def forks(shown: str) -> list[tuple[int, str, int]]:
    found = list_forks(TREE, SessionId(shown))
    return [(fork.sequence, "".join(fork.sessions), fork.current) for fork in found]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("a", [(3, "abc", 0), (5, "ad", 0)]),
        ("b", [(3, "abc", 1)]),
        ("c", [(3, "abc", 2), (5, "ce", 0)]),
        ("d", [(3, "abc", 0), (5, "ad", 1)]),
        ("e", [(3, "abc", 2), (5, "ce", 1)]),
    ],
)
def test_a_session_shows_the_forks_on_its_way(shown: str, expected: list[tuple[int, str, int]]) -> None:
    assert forks(shown) == expected


@pytest.mark.parametrize(
    ("shown", "sequence", "parent"),
    [("a", 3, "a"), ("b", 4, "b"), ("b", 3, "a"), ("b", 1, "a"), ("e", 6, "e"), ("e", 5, "c"), ("e", 3, "a")],
)
def test_a_fork_belongs_to_the_session_that_the_message_before_it_is_from(
    shown: str, sequence: int, parent: str
) -> None:
    assert find_fork_point(TREE, SessionId(shown), sequence) == parent
