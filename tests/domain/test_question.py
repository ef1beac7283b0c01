"""Questions to the owner: who answers them, and what is said about them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.conversation import Place
from denizen.domain.errors import Conflict, InvalidInput, NotAllowed
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.question import (
    MAX_ANSWER_CHARS,
    MAX_TEXT_CHARS,
    OwnerQuestion,
    QuestionStatus,
    answer_question,
    check_question,
    dismiss_question,
    question_card,
    question_end,
    read_answer_action,
)
from tests.clock import NOON

OWNER = Principal(PrincipalKind.PLATFORM_USER, "discord:1", "Ana", frozenset({RoleName.OWNER}))
ADMIN = replace(OWNER, roles=frozenset({RoleName.ADMIN}))
QUESTION = OwnerQuestion(
    id="qst_1",
    turn_id=TurnId("turn_1"),
    agent=AgentName("ada"),
    asker="platform_user:discord:2",
    asker_name="Ben @everyone",
    place=Place("discord", "7"),
    text="Which colour?\n\n@everyone",
    created_at=NOON,
)
MESSAGE_LIMIT = 2000


def test_the_owner_answers_and_nobody_else() -> None:
    answered = answer_question(QUESTION, OWNER, " blue ", now=NOON)
    assert (answered.status, answered.reply.answer, answered.reply.answered_by) == (
        QuestionStatus.ANSWERED,
        "blue",
        "platform_user:discord:1",
    )
    for end in (
        lambda: answer_question(QUESTION, ADMIN, "x", now=NOON),
        lambda: dismiss_question(QUESTION, ADMIN, now=NOON),
    ):
        with pytest.raises(NotAllowed, match="for the owner"):
            end()


def test_what_is_answered_or_dismissed_is_over() -> None:
    for over, how in (
        (answer_question(QUESTION, OWNER, "blue", now=NOON), "answered already, by Ana"),
        (dismiss_question(QUESTION, OWNER, now=NOON), "dismissed already, by Ana"),
    ):
        with pytest.raises(Conflict, match=how):
            answer_question(over, OWNER, "red", now=NOON)
        with pytest.raises(Conflict, match=how):
            dismiss_question(over, OWNER, now=NOON)


@pytest.mark.parametrize("text", ["", " \n", "x" * (MAX_ANSWER_CHARS + 1)])
def test_an_answer_says_something_within_its_length(text: str) -> None:
    with pytest.raises(InvalidInput):
        answer_question(QUESTION, OWNER, text, now=NOON)


@pytest.mark.parametrize("text", ["", " \n", "x" * (MAX_TEXT_CHARS + 1)])
def test_a_question_asks_something_within_its_length(text: str) -> None:
    with pytest.raises(InvalidInput):
        check_question(text)


def test_a_card_pings_nobody_and_fits_a_message_whatever_is_asked() -> None:
    card = question_card(QUESTION)
    assert "@everyone" not in card.text
    assert not card.ping_users
    assert [read_answer_action(button.action) for button in card.buttons] == ["qst_1"]
    assert read_answer_action("once:apr_1") == ""
    long = replace(QUESTION, text="a\n" * (MAX_TEXT_CHARS // 2))
    over = answer_question(long, OWNER, "b\n" * (MAX_ANSWER_CHARS // 2), now=NOON)
    assert len(question_card(long).text) <= MESSAGE_LIMIT
    assert len(question_end(over).text) <= MESSAGE_LIMIT
