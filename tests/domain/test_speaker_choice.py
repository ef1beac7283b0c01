"""Who of several agents speaks, and what counts as silence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.attention import Trigger
from denizen.domain.ids import AgentName
from denizen.domain.message import Author
from denizen.domain.room import Post
from denizen.domain.speaker_choice import (
    SILENCE,
    SpeakerCandidate,
    decide_speakers,
    find_last_answer,
    find_name,
    is_silence,
)

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
ADDRESSED = [Trigger.MENTION, Trigger.REPLY, Trigger.ROLE_MENTION, Trigger.DIRECT]

candidates = st.lists(
    st.builds(
        SpeakerCandidate,
        st.sampled_from(["ada", "bea", "cid", "dot", "eve"]).map(AgentName),
        st.sampled_from(list(Trigger)),
        st.none() | st.integers(0, 5),
        st.none() | st.integers(0, 50),
        st.none() | st.integers(0, 9).map(lambda hours: NOON - timedelta(hours=hours)),
        st.integers(0, 100),
    ),
    unique_by=lambda each: each.agent,
)

unaddressed = (
    st.lists(
        st.tuples(
            st.sampled_from(["ada", "bea", "cid", "dot", "eve"]),
            st.none() | st.integers(0, 50),
            st.none() | st.integers(0, 9).map(lambda hours: NOON - timedelta(hours=hours)),
            st.integers(0, 100),
        ),
        unique_by=lambda each: each[0],
        min_size=2,
    )
).map(
    lambda rows: [
        make_unasked_candidate(name, named=named, spoke_at=at, eagerness=eager) for name, named, at, eager in rows
    ]
)


def make_unasked_candidate(name: str, **more: object) -> SpeakerCandidate:
    return SpeakerCandidate(AgentName(name), Trigger.ALWAYS, **more)  # pyright: ignore[reportArgumentType]


@given(candidates, st.randoms())
def test_all_accounts_come_to_the_same_whatever_the_order(known: list[SpeakerCandidate], random: object) -> None:
    shuffled = list(known)
    random.shuffle(shuffled)  # pyright: ignore[reportAttributeAccessIssue]
    assert decide_speakers(shuffled) == decide_speakers(known)


@given(candidates)
def test_all_who_are_addressed_speak_once_and_nobody_else_beside_them(known: list[SpeakerCandidate]) -> None:
    speakers = decide_speakers(known)
    addressed = {each.agent for each in known if each.is_addressed}
    assert len(set(speakers)) == len(speakers)
    if addressed:
        assert set(speakers) == addressed
    else:
        assert len(speakers) <= 1
        assert set(speakers) <= {each.agent for each in known}


@given(candidates)
def test_mentions_come_first_and_in_the_order_of_the_text(known: list[SpeakerCandidate]) -> None:
    by_name = {each.agent: each for each in known}
    places = [by_name[name].place for name in decide_speakers(known) if by_name[name].is_addressed]
    told = [place for place in places if place is not None]
    assert told == sorted(told)
    assert places == [*told, *[None] * (len(places) - len(told))]


@given(unaddressed)
def test_of_those_who_may_join_in_each_rule_goes_before_the_next(known: list[SpeakerCandidate]) -> None:
    speakers = decide_speakers(known)
    named = [each for each in known if each.named is not None]
    spoke = [each for each in known if each.spoke_at is not None]
    chosen = next((each for each in known if speakers == (each.agent,)), None)
    if named:
        assert chosen is not None and chosen.named == min(each.named for each in named if each.named is not None)
    elif spoke:
        assert chosen is not None and chosen.spoke_at == max(each.spoke_at for each in spoke if each.spoke_at)
    elif any(each.eagerness for each in known):
        assert chosen is not None and chosen.eagerness == max(each.eagerness for each in known)
    else:
        assert speakers == ()


def test_a_single_candidate_answers_however_eager_it_is() -> None:
    assert decide_speakers([make_unasked_candidate("ada", eagerness=0)]) == ("ada",)
    assert decide_speakers([]) == ()


def test_who_is_unasked_stays_silent_where_somebody_was_addressed() -> None:
    asked = SpeakerCandidate(AgentName("bea"), Trigger.REPLY)
    assert decide_speakers([make_unasked_candidate("ada", named=0, eagerness=100), asked]) == ("bea",)


@pytest.mark.parametrize(
    ("text", "place"), [("Ada, hello", 0), ("ask ADA!", 4), ("adamant", None), ("canada", None), ("@ada", 1)]
)
def test_a_name_is_a_word_of_its_own(text: str, place: int | None) -> None:
    assert find_name(text, "ada") == place


def test_the_last_answer_to_a_person_is_a_reply_to_one_of_their_posts() -> None:
    def post(key: str, author: str, minute: int, reply_to: str = "") -> Post:
        at = NOON + timedelta(minutes=minute)
        return Post("discord", key, "r", Author(author, author), "x", at, reply_to=reply_to)

    posts = [post("1", "ana", 1), post("2", "bot", 2, "1"), post("3", "bob", 3), post("4", "bot", 4, "3")]
    assert find_last_answer(posts, "ana", "bot") == NOON + timedelta(minutes=2)
    assert find_last_answer(posts, "eve", "bot") is None


@pytest.mark.proves("X-no-action")
@pytest.mark.parametrize(
    ("text", "silent"),
    [
        (SILENCE, True),
        (f"  {SILENCE}\n", True),
        (f"I would say {SILENCE}", False),
        (f"{SILENCE}.", False),
        (f"{SILENCE} {SILENCE}", False),
        ("silence", False),
        ("", False),
    ],
)
def test_silence_is_the_whole_answer_or_none(text: str, *, silent: bool) -> None:
    assert is_silence(text) is silent
