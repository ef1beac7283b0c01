"""Whether a text is about a question, by the words that they share."""

from __future__ import annotations

import pytest

from denizen.domain.ranking import covers_question

LOANS = "# Membership\nA year's membership costs 24 euros.\nA lost card is replaced for 3 euros."


@pytest.mark.parametrize(
    "question",
    ["How much does a new card cost when I lost mine?", "What do you charge for lost cards?", "membership costs"],
)
def test_a_text_with_half_of_the_telling_words_in_any_number_is_about_the_question(question: str) -> None:
    assert covers_question(LOANS, question)


@pytest.mark.parametrize(
    "question", ["What is the password of the guest wifi?", "How much does it cost to rent a bicycle?", "What is it?"]
)
def test_a_text_with_less_of_them_is_not_and_words_of_every_question_count_for_nothing(question: str) -> None:
    assert not covers_question(LOANS, question)
