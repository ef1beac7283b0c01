"""The history that fits: whole groups, no orphans, the question always, and the same cut at every later turn."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.agent import SummaryPolicy
from denizen.domain.ids import CallId
from denizen.domain.message import Part, Role, TextPart, ToolCallPart, ToolResultPart
from denizen.domain.prompt import PromptMessage
from denizen.domain.prompt_messages import count_tokens
from denizen.engine.prompt.session_history import (
    KEPT_SHARE,
    QUESTION,
    HistoryEntry,
    plan_range,
    plan_window,
    window_start,
)


def user(text: str) -> PromptMessage:
    return PromptMessage(Role.USER, (TextPart(text),))


def assistant(text: str) -> PromptMessage:
    return PromptMessage(Role.ASSISTANT, (TextPart(text),))


def calls(*ids: str) -> PromptMessage:
    return PromptMessage(Role.ASSISTANT, tuple(ToolCallPart(CallId(i), "look", {"q": i}) for i in ids))


def results(*ids: str, length: int = 0) -> PromptMessage:
    texts = {i: f"result of {i}" + "x" * length for i in ids}
    return PromptMessage(Role.TOOL, tuple(ToolResultPart(CallId(i), "look", texts[i]) for i in ids))


def entries(*messages: PromptMessage, used: int = 0) -> list[HistoryEntry]:
    """In a session from sequence 1; `used` is the input of the requests that gave the assistant's messages."""
    return [
        HistoryEntry(message, number, used if message.role is Role.ASSISTANT else 0)
        for number, message in enumerate(messages, 1)
    ]


def window(*messages: PromptMessage, budget: int = 1000, used: int = 0) -> list[PromptMessage]:
    return plan_window(entries(*messages, used=used), budget_tokens=budget).messages


def test_everything_is_kept_within_the_budget() -> None:
    history = [user("a"), calls("1"), results("1"), assistant("b"), user("c")]
    assert window(*history) == history


@pytest.mark.proves("T10")
def test_the_oldest_go_first_and_the_window_begins_with_a_user_message() -> None:
    history = [user("x" * 400), assistant("y" * 40), user("z" * 40), assistant("v"), user("w")]
    assert window(*history, budget=60) == history[2:]


@pytest.mark.proves("T10")
def test_four_characters_count_as_a_token() -> None:
    bare = count_tokens(user(""))
    assert [count_tokens(user("x" * length)) - bare for length in (1, 4, 5, 400)] == [1, 1, 2, 100]


@pytest.mark.proves("TW12", "T10")
def test_the_last_message_is_kept_even_without_any_budget() -> None:
    assert window(user("a"), user("the question"), budget=0) == [user("the question")]


def test_a_call_that_never_got_its_result_is_closed_by_a_result_that_says_so() -> None:
    closing = window(user("a"), calls("1", "2"), results("1"), user("b"))[3].parts[0]
    assert isinstance(closing, ToolResultPart)
    assert closing.call_id == "2" and closing.is_error


@pytest.mark.proves("E8")
def test_a_result_without_its_call_is_left_out() -> None:
    assert window(results("9"), user("b")) == [user("b")]


def test_results_of_the_askers_tools_are_kept_with_all_that_led_to_them_back_to_the_question() -> None:
    chain = [calls("1"), results("1", length=400), calls("2"), replace(results("2"), kind=QUESTION)]
    history = [user("before"), assistant("yes"), user("the question"), *chain]
    assert window(*history, budget=50) == history[2:]
    assert window(*chain, budget=0) == chain[2:], "where there is no question"


def test_an_exchange_that_fits_is_kept_even_when_it_is_more_than_the_usual_rest() -> None:
    history = [user("a" * 200), assistant("b" * 200), user("c" * 100), assistant("d" * 200), user("e")]
    assert window(*history, budget=100) == history[2:]


def test_what_only_this_question_needs_takes_room_from_the_history_for_once() -> None:
    history = entries(user("a" * 100), assistant("b" * 100), user("c"))
    assert len(plan_window(history, budget_tokens=100).messages) == 3
    assert plan_window(history, budget_tokens=100, besides_tokens=90).messages == [user("c")]


def make_tool_conversation(*, asked: int = 4, length: int = 60_000) -> list[PromptMessage]:
    """Questions, of which the first has a long result."""
    talk = [user("q1"), calls("1"), results("1", length=length), assistant("a1")]
    for number in range(2, asked + 1):
        talk += [user(f"q{number}"), assistant(f"a{number}")]
    return talk[:-1]


@pytest.mark.proves("S11")
def test_after_a_very_large_request_old_calls_and_results_go_where_that_saves_much() -> None:
    talk = make_tool_conversation(length=80_000)
    kept = window(*talk, budget=100_000, used=40_001)
    assert kept == [talk[0], *talk[3:]]
    assert window(*talk, budget=100_000, used=40_000) == talk
    assert window(*make_tool_conversation(length=79_000), budget=100_000, used=50_000) == make_tool_conversation(
        length=79_000
    )


@pytest.mark.proves("S11")
def test_calls_since_the_third_last_question_stay() -> None:
    talk = make_tool_conversation(asked=3, length=90_000)
    assert window(*talk, budget=100_000, used=50_000) == talk


@pytest.mark.proves("S11")
def test_what_was_left_out_once_stays_out_when_requests_are_small_again() -> None:
    talk = [*make_tool_conversation(length=90_000), assistant("a4"), user("q5")]
    rows = [replace(entry, used_tokens=50_000 if entry.sequence == 8 else 0) for entry in entries(*talk)]
    assert rows[7].message.role is Role.ASSISTANT
    for more in range(4):
        later = [user("q"), assistant("a")] * more
        now = [*rows, *(HistoryEntry(message, 20 + at) for at, message in enumerate(later))]
        kept = plan_window([*now, HistoryEntry(user("now"), 90)], budget_tokens=100_000).messages
        assert kept[:3] == [talk[0], talk[3], talk[4]]


def test_words_beside_a_call_that_goes_stay() -> None:
    talking = PromptMessage(Role.ASSISTANT, (TextPart("Let me look."), *calls("1").parts))
    talk = [user("q1"), talking, results("1", length=90_000), user("q2"), assistant("a"), user("q3"), user("q4")]
    assert window(*talk, budget=100_000, used=50_000)[1] == assistant("Let me look.")


@given(st.integers(1, 5000), st.integers(1, 200))
def test_the_count_of_messages_is_bounded_and_moves_in_steps(newest: int, limit: int) -> None:
    begin = window_start(newest, limit)
    assert newest - begin + 1 <= limit
    assert begin == 1 or newest - begin + 1 > limit // 2 - 1
    assert window_start(newest + 1, limit) in {begin, begin + max(limit // 2, 1), 1 + max(limit // 2, 1) - 1}


ids = st.integers(0, 30).map(str)
parts: st.SearchStrategy[PromptMessage] = st.one_of(
    st.text(min_size=1, max_size=200).map(user),
    st.text(min_size=1, max_size=200).map(assistant),
    st.lists(ids, min_size=1, max_size=3, unique=True).map(lambda names: calls(*names)),
    st.lists(ids, min_size=1, max_size=3, unique=True).map(lambda names: results(*names)),
)


@pytest.mark.proves("T10", "TW12", "E8")
@given(st.lists(parts, max_size=30), st.text(min_size=1, max_size=50), st.integers(0, 600), st.integers(0, 200))
def test_no_window_splits_a_group_or_passes_its_budget_but_for_the_last_group(
    earlier: list[PromptMessage], question: str, budget: int, besides: int
) -> None:
    kept = plan_window(entries(*earlier, user(question)), budget_tokens=budget, besides_tokens=besides).messages
    assert kept[-1] == user(question)
    asked: set[str] = set()
    answered: set[str] = set()
    for message in kept:
        for part in message.parts:
            _follow(part, asked, answered)
    assert asked == answered
    spent = sum(count_tokens(message) for message in kept)
    assert spent + besides <= budget or kept == [user(question)]


@st.composite
def draw_sessions(draw: st.DrawFn) -> list[list[HistoryEntry]]:
    """A session as it is at each of its questions: what came of the one before stands in it by then."""
    grown: list[HistoryEntry] = []
    snapshots: list[list[HistoryEntry]] = []
    for number in range(draw(st.integers(1, 12))):
        grown = [*grown, HistoryEntry(user("q" * draw(st.integers(1, 300))), len(grown) + 1)]
        snapshots.append(grown)
        used = draw(st.sampled_from([0, 50_000]))
        for call in range(draw(st.integers(0, 2))):
            key = f"{number}.{call}"
            length = draw(st.sampled_from([10, 400, 90_000]))
            grown = [*grown, HistoryEntry(calls(key), len(grown) + 1, used)]
            grown = [*grown, HistoryEntry(results(key, length=length), len(grown) + 1)]
        grown = [*grown, HistoryEntry(assistant("a" * draw(st.integers(1, 300))), len(grown) + 1, used)]
    return snapshots


@pytest.mark.proves("T10", "S11")
@given(draw_sessions(), st.sampled_from([100, 300, 30_000, 200_000]))
def test_while_the_cut_does_not_move_every_prompt_begins_with_the_one_before(
    snapshots: list[list[HistoryEntry]], budget: int
) -> None:
    before: list[PromptMessage] = []
    for entries_now in snapshots:
        now = plan_window(entries_now, budget_tokens=budget)
        assert now == plan_window(entries_now, budget_tokens=budget)
        if not now.has_moved:
            assert now.messages[: len(before)] == before
        before = now.messages


@pytest.mark.proves("T10")
@given(st.integers(2, 60), st.integers(60, 2000))
def test_the_cut_moves_in_whole_steps(turns: int, budget: int) -> None:
    """In even talk, at most as often as half the budget is filled anew."""
    each = [user("q" * 40), assistant("a" * 40)]
    cost = sum(map(count_tokens, each))
    talk = entries(*each * turns)
    moved = [plan_window(talk[: 2 * at + 1], budget_tokens=budget).has_moved for at in range(turns)]
    steps = max(int(budget * (1 - KEPT_SHARE)) // cost - 1, 1)
    assert sum(moved) <= turns // steps


RULE = SummaryPolicy(start_at=0.7, keep=0.35)


@given(draw_sessions(), st.integers(50, 3000))
def test_what_is_summed_up_are_whole_turns_before_the_question(
    snapshots: list[list[HistoryEntry]], budget: int
) -> None:
    for talk in snapshots:
        due = plan_range(talk, RULE, budget_tokens=budget, max_messages=1000)
        size = sum(count_tokens(entry.message) for entry in talk)
        assert (due is None) == (size <= budget * RULE.start_at or len(talk) == 1)
        if due:
            first, last = due
            assert first == 1 <= last < talk[-1].sequence
            assert talk[last].message.role is Role.USER


def test_many_short_messages_are_summed_up_before_their_number_is_too_large() -> None:
    talk = entries(*[user("q"), assistant("a")] * 40, user("q"))
    assert plan_range(talk[:71], RULE, budget_tokens=100_000, max_messages=100) == (1, 36)
    assert plan_range(talk[:69], RULE, budget_tokens=100_000, max_messages=100) is None


def _follow(part: Part, asked: set[str], answered: set[str]) -> None:
    if isinstance(part, ToolCallPart):
        asked.add(part.id)
        answered.discard(part.id)
    if isinstance(part, ToolResultPart):
        assert part.call_id in asked
        answered.add(part.call_id)
