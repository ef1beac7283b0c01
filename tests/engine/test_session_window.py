"""The history that fits: whole groups, no orphans, the last message always."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.ids import CallId
from denizen.domain.message import Part, Role, TextPart, ToolCallPart, ToolResultPart
from denizen.domain.prompt import PromptMessage
from denizen.engine.prompt.session import count_tokens, plan_window


def user(text: str) -> PromptMessage:
    return PromptMessage(Role.USER, (TextPart(text),))


def assistant(text: str) -> PromptMessage:
    return PromptMessage(Role.ASSISTANT, (TextPart(text),))


def calls(*ids: str) -> PromptMessage:
    return PromptMessage(Role.ASSISTANT, tuple(ToolCallPart(CallId(i), "look", {"q": i}) for i in ids))


def results(*ids: str) -> PromptMessage:
    return PromptMessage(Role.TOOL, tuple(ToolResultPart(CallId(i), "look", f"result of {i}") for i in ids))


def test_everything_is_kept_within_the_budget() -> None:
    history = [user("a"), calls("1"), results("1"), assistant("b"), user("c")]
    assert plan_window(history, budget_tokens=1000) == history


def test_the_oldest_go_first_and_the_window_begins_with_a_user_message() -> None:
    history = [user("x" * 400), assistant("y" * 40), user("z" * 40), assistant("v"), user("w")]
    assert plan_window(history, budget_tokens=60) == history[2:]


@pytest.mark.proves("TW12", "T10")
def test_the_last_message_is_kept_even_without_any_budget() -> None:
    assert plan_window([user("a"), user("the question")], budget_tokens=0) == [user("the question")]


def test_a_call_that_never_got_its_result_is_closed_by_a_result_that_says_so() -> None:
    window = plan_window([user("a"), calls("1", "2"), results("1"), user("b")], budget_tokens=1000)
    closing = window[3].parts[0]
    assert isinstance(closing, ToolResultPart)
    assert closing.call_id == "2" and closing.is_error


def test_a_result_without_its_call_is_left_out() -> None:
    assert plan_window([results("9"), user("b")], budget_tokens=1000) == [user("b")]


ids = st.integers(0, 30).map(str)
parts: st.SearchStrategy[PromptMessage] = st.one_of(
    st.text(min_size=1, max_size=200).map(user),
    st.text(min_size=1, max_size=200).map(assistant),
    st.lists(ids, min_size=1, max_size=3, unique=True).map(lambda names: calls(*names)),
    st.lists(ids, min_size=1, max_size=3, unique=True).map(lambda names: results(*names)),
)


@pytest.mark.proves("T10")
@given(st.lists(parts, max_size=30), st.text(min_size=1, max_size=50), st.integers(0, 600))
def test_no_window_splits_a_group_or_passes_its_budget_but_for_the_last_group(
    earlier: list[PromptMessage], question: str, budget: int
) -> None:
    window = plan_window([*earlier, user(question)], budget_tokens=budget)
    assert window[-1] == user(question)
    asked: set[str] = set()
    answered: set[str] = set()
    for message in window:
        for part in message.parts:
            _follow(part, asked, answered)
    assert asked == answered
    spent = sum(count_tokens(message) for message in window)
    assert spent <= budget or window == [user(question)]


def _follow(part: Part, asked: set[str], answered: set[str]) -> None:
    if isinstance(part, ToolCallPart):
        asked.add(part.id)
        answered.discard(part.id)
    if isinstance(part, ToolResultPart):
        assert part.call_id in asked
        answered.add(part.call_id)
