"""Who may hear of a memory again, and which of them fit a question."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.ids import AgentName
from denizen.domain.memory import (
    CORE,
    Audience,
    Memory,
    MemoryOrigin,
    may_come_up,
    needs_rooms,
    plan_recall,
    rank_memories,
)
from denizen.domain.prompt import estimate_tokens
from denizen.domain.ranking import rank_by_words
from denizen.domain.vector import find_nearest, pack_vector
from tests.clock import NOON

IN_GENERAL, IN_STAFF = MemoryOrigin("discord", "general"), MemoryOrigin("discord", "staff")
IN_PRIVATE, BY_OPERATOR = MemoryOrigin("discord", "dm", private=True), MemoryOrigin()


def memory(told_at: MemoryOrigin, *, owner: str = "ana", text: str = "likes tea") -> Memory:
    return Memory("m", AgentName("ada"), owner, text, told_at, owner, NOON)


def make_audience(room: str, *rooms: str, private: bool = False, platform: str = "discord") -> Audience:
    return Audience(platform, room, private, frozenset(rooms))


@pytest.mark.parametrize(
    ("told_at", "where", "expected"),
    [
        (IN_GENERAL, make_audience("general"), True),
        (IN_GENERAL, make_audience("staff"), False),
        (IN_GENERAL, make_audience("staff", "general"), True),
        (IN_STAFF, make_audience("general", "general", "random"), False),
        (IN_STAFF, make_audience("dm", "staff", private=True), True),
        (IN_STAFF, make_audience("staff", platform="web"), False),
        (IN_STAFF, make_audience("other", "staff", platform="web"), False),
        (IN_PRIVATE, make_audience("general", "general", "dm"), False),
        (IN_PRIVATE, make_audience("dm", private=True), True),
        (IN_PRIVATE, make_audience("another dm", private=True), True),
        (BY_OPERATOR, make_audience("general"), True),
    ],
)
def test_a_memory_comes_up_where_all_readers_could_have_read_it(
    told_at: MemoryOrigin, where: Audience, expected: bool
) -> None:
    assert may_come_up(memory(told_at), where) is expected


def test_a_core_memory_is_never_taken_from_one_private_talk_to_another() -> None:
    assert not may_come_up(memory(IN_PRIVATE, owner=CORE), make_audience("another dm", private=True))


def test_the_rooms_of_the_readers_are_asked_for_only_where_they_decide() -> None:
    here = make_audience("general")
    assert needs_rooms([memory(IN_GENERAL), memory(IN_STAFF)], here)
    assert not needs_rooms([memory(IN_GENERAL), memory(IN_PRIVATE), memory(BY_OPERATOR)], here)
    assert not needs_rooms([memory(MemoryOrigin("web", "x"))], here)


def test_texts_are_ranked_by_the_rare_words_that_they_share_with_the_question() -> None:
    texts = {
        "tea": "Drinks green tea in the morning",
        "dog": "Has a dog named Bella",
        "work": "Works on the deployment of the bakery in the morning",
    }
    assert rank_by_words("How was the deploy this morning?", texts) == ["work", "tea"]
    assert rank_by_words("What is the name of my dog?", texts) == ["dog"]
    assert rank_by_words("What do you know about me?", texts) == []
    assert rank_by_words("", texts) == rank_by_words("tea", {}) == []


@given(st.lists(st.integers(1, 400), max_size=12), st.integers(0, 8), st.integers(0, 300))
def test_what_is_told_stays_within_both_bounds_in_the_given_order(
    sizes: list[int], max_items: int, max_tokens: int
) -> None:
    memories = [replace(memory(IN_GENERAL, text="x" * size), id=str(place)) for place, size in enumerate(sizes)]
    told = plan_recall(memories, max_items=max_items, max_tokens=max_tokens)
    assert len(told) <= max_items
    assert sum(estimate_tokens(each.text) for each in told) <= max_tokens
    assert [int(each.id) for each in told] == sorted(int(each.id) for each in told)


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=16))
def test_a_vector_is_nearest_to_itself(values: list[float]) -> None:
    packed = pack_vector(values)
    found = find_nearest(packed, [("self", packed), ("shorter", packed[1:])], limit=5)
    if any(packed):
        assert [each.key for each in found] == ["self"]
        assert found[0].similarity == pytest.approx(1.0)
    else:
        assert found == []


def rank(question: str, texts: list[str], similar: dict[str, float] | None = None) -> list[str]:
    """The texts that fit, given oldest first; each is its own id."""
    memories = [replace(memory(IN_GENERAL, text=text), id=text) for text in texts]
    return [each.text for each in rank_memories(question, memories, similar or {})]


ABOUT_ANA = [f"Ana owns {number} stamps" for number in range(10)]


def test_a_name_that_is_in_all_memories_decides_nothing() -> None:
    texts = [*ABOUT_ANA, "Ana plays the cello"]
    assert rank("Which instrument does Ana play?", texts, {"Ana plays the cello": 0.5}) == ["Ana plays the cello"]
    near = {"Ana owns 3 stamps": 0.6, "Ana plays the cello": 0.5}
    assert rank("What does Ana collect?", texts, near) == list(near)


def test_a_rare_word_finds_what_is_not_near_in_meaning_and_words_and_meaning_add_up() -> None:
    texts = [*ABOUT_ANA, "Ana met Xerxes", "Ana met somebody"]
    assert rank("Who is Xerxes to Ana?", texts, {"Ana met somebody": 0.1})[0] == "Ana met Xerxes"
    both = {"Ana met Xerxes": 0.5, "Ana met somebody": 0.6}
    assert rank("When did Ana meet Xerxes?", texts, both) == ["Ana met Xerxes", "Ana met somebody"]


def test_without_meaning_all_that_share_a_word_fit_the_rarest_first_and_forms_of_a_word_are_one() -> None:
    texts = ["Ana lives in Oslo", "Ana is moving", "Ana drinks tea", "Bob drinks tea"]
    assert rank("where did Ana live?", texts) == ["Ana lives in Oslo", "Ana is moving", "Ana drinks tea"]
    assert rank("who moved?", texts) == ["Ana is moving"]
    assert rank("anything else?", texts) == []
