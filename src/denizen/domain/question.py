"""A question that an agent left for the owner, and its answer. Pure."""

from __future__ import annotations

from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum

from denizen.domain.conversation import Place
from denizen.domain.delivery import MessageButton, MessageContent
from denizen.domain.errors import Conflict, InvalidInput, NotAllowed
from denizen.domain.ids import AgentName, TurnId, derive
from denizen.domain.pings import link_pings
from denizen.domain.principal import Principal, RoleName
from denizen.domain.record import record
from denizen.domain.words import truncate

MAX_TEXT_CHARS = 1500
"""With the words around it, a question is one message of a platform."""
MAX_ANSWER_CHARS = 4000
MAX_OPEN = 20
"""So many questions of one agent may wait for an answer."""
MAX_OPEN_OF_ASKER = 5
"""So many of them may come from turns of the same person, so that a few people do not use up all."""
_ACTION = "answer:"
_QUOTED_CHARS = 1550
"""A text of many short lines grows by the marks in front of them."""


class QuestionStatus(StrEnum):
    """How far a question has come. ANSWERED: the agent has not been told yet; DELIVERED: it has; LOST: its turn, its
    agent or its place in a workflow is gone, so that nobody can be told.
    """

    OPEN = "open"
    ANSWERED = "answered"
    DELIVERED = "delivered"
    DISMISSED = "dismissed"
    LOST = "lost"


@record(kw_only=True)
class QuestionAnswer:
    """The answer of the owner. `answered_by` is the key of a principal; empty as long as there is no answer."""

    answer: str = ""
    answered_by: str = ""
    answerer: str = ""
    answered_at: datetime | None = None


@record(kw_only=True)
class OwnerQuestion:
    """Asked by `agent` in the turn `turn_id`, which somebody else had asked for (`asker`, a principal's key) at
    `place`. `is_told` once the owner's direct messages are owed.
    """

    id: str
    turn_id: TurnId
    agent: AgentName
    asker: str
    asker_name: str
    place: Place
    text: str
    created_at: datetime
    status: QuestionStatus = QuestionStatus.OPEN
    is_told: bool = False
    reply: QuestionAnswer = field(default_factory=QuestionAnswer)


def question_id(key: str) -> str:
    """The same for the same key: a call that runs again asks once."""
    return derive("qst", key)


def check_question(text: str) -> str:
    """Returns the question as it is kept. Raises InvalidInput."""
    asked = text.strip()
    if not asked or len(asked) > MAX_TEXT_CHARS:
        raise InvalidInput(
            "This question is empty." if not asked else "This question is too long.",
            code="question_text",
            fix=f"Write 1 to {MAX_TEXT_CHARS} characters.",
        )
    return asked


def answer_question(question: OwnerQuestion, by: Principal, answer: str, *, now: datetime) -> OwnerQuestion:
    """Returns the question with its answer. Raises NotAllowed, Conflict when it is answered or dismissed already, and
    InvalidInput for an answer that is empty or too long.
    """
    check_open(question, by)
    said = answer.strip()
    if not said or len(said) > MAX_ANSWER_CHARS:
        raise InvalidInput(
            "This answer is empty." if not said else "This answer is too long.",
            code="answer_text",
            fix=f"Write 1 to {MAX_ANSWER_CHARS:,} characters, or dismiss the question.",
        )
    reply = QuestionAnswer(answer=said, answered_by=by.key, answerer=by.name, answered_at=now)
    return replace(question, status=QuestionStatus.ANSWERED, reply=reply)


def dismiss_question(question: OwnerQuestion, by: Principal, *, now: datetime) -> OwnerQuestion:
    """Returns the question without an answer, of which the agent hears nothing. Raises as `answer_question` does."""
    check_open(question, by)
    reply = QuestionAnswer(answered_by=by.key, answerer=by.name, answered_at=now)
    return replace(question, status=QuestionStatus.DISMISSED, reply=reply)


def withdraw_question(question: OwnerQuestion, *, now: datetime) -> OwnerQuestion:
    """Returns an open question as it is when nobody waits for its answer any more."""
    return replace(question, status=QuestionStatus.LOST, reply=QuestionAnswer(answered_at=now))


def check_open(question: OwnerQuestion, by: Principal) -> None:
    """Raises NotAllowed for everybody but owners, and Conflict for a question that waits no more."""
    if RoleName.OWNER not in by.roles:
        raise NotAllowed("This question is for the owner.", code="question_not_yours", fix="Ask the owner to answer.")
    if question.status is QuestionStatus.LOST:
        raise Conflict("This question is no longer needed.", code="question_closed", fix="There is nothing to do.")
    if question.status is not QuestionStatus.OPEN:
        how = "dismissed" if question.status is QuestionStatus.DISMISSED else "answered"
        raise Conflict(
            f"This question was {how} already, by {question.reply.answerer or 'somebody'}.",
            code="question_over",
            fix="Tell the agent in its conversation instead.",
        )


def question_card(question: OwnerQuestion) -> MessageContent:
    """Returns the direct message to the owner. Whatever the question says, it pings nobody."""
    whom = link_pings(" ".join(question.asker_name.split()), {}).text or "somebody"
    lines = [
        f"\N{BLACK QUESTION MARK ORNAMENT} **{question.agent} asks you**, in a talk with {truncate(whom, 80)}:",
        _quoted(question.text),
        f"-# Or answer on the page Questions, or with `denizen questions answer {question.id}`.",
    ]
    return MessageContent(
        "\n".join(lines), buttons=(MessageButton("Answer", action=f"{_ACTION}{question.id}", asks_answer=True),)
    )


def question_end(question: OwnerQuestion) -> MessageContent:
    """Returns what becomes of the direct message when the question waits no more."""
    reply = question.reply
    who = link_pings(" ".join(reply.answerer.split()), {}).text or "somebody"
    head = f"\N{WHITE HEAVY CHECK MARK} **{question.agent}** asked you:"
    end = f"Answered by {who}:" if reply.answer else f"Dismissed by {who}."
    end = end if question.status is not QuestionStatus.LOST else "It is no longer needed."
    told = [_quoted(reply.answer, _QUOTED_CHARS // 3)] if reply.answer else []
    return MessageContent("\n".join([head, _quoted(question.text, _QUOTED_CHARS * 2 // 3), end, *told]))


def describe_question(question: OwnerQuestion) -> list[str]:
    """Returns the lines by which a terminal shows the question."""
    asker, reply = " ".join(question.asker_name.split()), question.reply
    where = f"{question.place.platform}, {question.created_at:%Y-%m-%d %H:%M} UTC"
    lines = [f"{question.id}  {question.agent}, in a talk with {asker} ({question.asker}) on {where}"]
    lines += [f"  | {line}" for line in question.text.splitlines()]
    if reply.answer:
        lines.append(f"  {question.status} by {reply.answerer}: {' '.join(reply.answer.split())}")
    elif question.status is QuestionStatus.LOST:
        lines.append("  no longer needed")
    elif question.status is not QuestionStatus.OPEN:
        lines.append(f"  {question.status} by {reply.answerer}")
    return lines


def read_answer_action(action: str) -> str:
    """Returns the id of the question that a button answers; empty for another button."""
    return action.removeprefix(_ACTION) if action.startswith(_ACTION) else ""


def _quoted(text: str, most_chars: int = _QUOTED_CHARS) -> str:
    safe = link_pings(text, {}).text
    return truncate("\n".join(f"> {line}" for line in safe.splitlines() if line.strip()), most_chars)
