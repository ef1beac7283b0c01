"""Questions about earlier talk: whom, which room and when they mean, and what is left to search for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from denizen.domain.period import Period
from denizen.domain.talk_question import TalkQuestion, asks_about_talk, names_speaker, read_talk_question

NOW = datetime(2026, 11, 24, 9, 30, tzinfo=UTC)
ROOMS = {"1": "plans", "2": "general", "3": "board-games", "4": "board", "5": "twice", "6": "twice"}
AUTHORS = {"a": "Ana", "b": "Bob Stone", "c": "Lou", "d": "Lou", "e": "Zoë", "f": "Ana Maria", "k": "Kim"}


def read(text: str) -> TalkQuestion:
    return read_talk_question(text, rooms=ROOMS, authors=AUTHORS, asker="k", now=NOW, zone=UTC)


@pytest.mark.parametrize(
    ("text", "author", "words"),
    [
        ("What did Ana say about the boiler?", "a", "What did about the boiler?"),
        ("what did ana really ever say about tea", "a", "what did about tea"),
        ("Has Zoe mentioned a date?", "e", "Has a date?"),
        ("Ana said what?", "a", "what?"),
        ("according to Bob, what is best?", "b", ", what is best?"),
        ("What did Bob Stone suggest?", "b", "What did ?"),
        ("posts by Ana Maria on tea", "f", "on tea"),
        ("messages from @Ana on tea", "a", "messages from on tea"),
        ("What's Ana's opinion on tea?", "a", "What's ' on tea?"),
        ("What did I say about rent?", "k", "What did about rent?"),
    ],
)
def test_who_spoke_is_understood_and_taken_out_of_the_words(text: str, author: str, words: str) -> None:
    asked = read(text)
    assert asked.author == author
    assert asked.author_name == AUTHORS[author]
    assert asked.words.replace("messages ", "") == words.replace("messages ", "")
    assert names_speaker(text)


@pytest.mark.parametrize(
    "text",
    [
        "Who saw Ana?",
        "Did anybody ask Ana to write docs?",
        "Did anyone tell Ana who said so?",
        "What did Lou say?",
        "Did Bob Stone and Ana agree on rent?",
        "What did Eve say?",
        "Write a poem about Ana",
        "I want to write docs",
    ],
)
def test_somebody_who_is_only_spoken_of_or_is_one_of_several_is_no_filter(text: str) -> None:
    assert read(text) == TalkQuestion(words=text)


@pytest.mark.parametrize(
    ("text", "room"),
    [
        ("who won in #board-games yesterday", "3"),
        ("who won in #board", "4"),
        ("who won in <#2>", "2"),
        ("who won in #Plans?", "1"),
        ("who won in #secret", ""),
        ("who won in <#99>", ""),
        ("who fixed #42 in #twice", ""),
        ("the plans of #planset", ""),
    ],
)
def test_a_room_counts_when_it_is_written_as_one_and_only_one_has_the_name(text: str, room: str) -> None:
    assert read(text).room == room


def test_person_room_and_time_together_leave_nothing_to_search_for() -> None:
    asked = read("what did Ana say last week in #plans")
    assert (asked.author, asked.room) == ("a", "1")
    assert asked.period == Period(datetime(2026, 11, 16, tzinfo=UTC), datetime(2026, 11, 23, tzinfo=UTC))
    assert asked.words == "what did in"
    assert asked.is_narrowed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("what was said about rent last week", "what was said about rent"),
        ("What happened last week?", "What ?"),
        ("What did I miss last week?", "What did I ?"),
        ("messages on rent last week", "on rent"),
        ("#plans last week: rent", ": rent"),
        ("and last week?", "and ?"),
    ],
)
def test_a_time_counts_where_the_question_is_about_talk(text: str, words: str) -> None:
    asked = read(text)
    assert asked.period == Period(datetime(2026, 11, 16, tzinfo=UTC), datetime(2026, 11, 23, tzinfo=UTC))
    assert asked.words == words


@pytest.mark.parametrize("text", ["Who broke the lift last week?", "When did they go camping in July?"])
def test_a_time_at_which_something_happened_is_no_filter_since_people_may_talk_of_it_later(text: str) -> None:
    assert read(text) == TalkQuestion(words=text)


@pytest.mark.parametrize(
    "text",
    [
        "Who said that?",
        "What did we decide about rent?",
        "When did we move?",
        "What has been agreed on?",
        "Did anybody mention a date?",
        "what happened in #plans",
        "is @ana well",
        "Where does Ana keep the keys?",
        "Ana's favourite colour?",
    ],
)
def test_a_question_about_what_was_said_or_about_somebody_asks_about_talk(text: str) -> None:
    assert asks_about_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "How long can I keep a board game?",
        "Tell me a joke",
        "Explain how to write a test. Then stop.",
        "How do I ask for a refund?",
        "Thanks!",
        "Said",
        "what is TCP",
        "",
    ],
)
def test_other_questions_do_not(text: str) -> None:
    assert not asks_about_talk(text)
