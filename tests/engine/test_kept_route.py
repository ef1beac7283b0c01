"""What stays of a route for later questions of its session."""

from __future__ import annotations

from datetime import datetime, timedelta

from denizen.domain.ids import MessageId
from denizen.domain.message import Author, Message, Role, TextPart
from denizen.domain.routing import Complexity, Earlier, Route
from denizen.engine.kept_route import ROUTE, find_earlier, kept_with, turns_on
from denizen.engine.prompt.rhythm import LONG_S, SHORT_S, pauses_between, plan_keep_s
from tests.contracts.store.records import at
from tests.engine.house import PLACE

HARD, EASY = Route.of(Complexity.COMPLEX, "a bug"), Route.of(Complexity.SIMPLE, "one fact")


def said(role: Role, when: datetime, route: Route | None = None) -> Message:
    meta = {} if route is None else {ROUTE: kept_with(route, 300.0)}
    key = MessageId(f"{role}-{when}")
    return Message(key, PLACE.conversation_id, role, Author("", ""), (TextPart(key),), when, meta=meta)


def turn(minutes: float, route: Route | None) -> list[Message]:
    """A question, two answers with a call between them, half a minute later."""
    asked = at(minutes / 60)
    later = [asked + timedelta(seconds=seconds) for seconds in (10, 20, 30)]
    return [
        said(Role.USER, asked), said(Role.ASSISTANT, later[0], route), said(Role.TOOL, later[1]),
        said(Role.ASSISTANT, later[2], route),
    ]  # fmt: skip


def test_an_answer_tells_what_its_turn_was_routed_to() -> None:
    answer = turn(0, HARD)[-1]
    assert find_earlier(answer) == Earlier(HARD, answer.created_at, 300.0)
    assert find_earlier(turn(0, None)[-1]) is None


def test_a_model_s_cache_is_kept_by_the_rhythm_of_its_own_turns() -> None:
    routes = [HARD, EASY, EASY, EASY, HARD, EASY, EASY, EASY]
    talk = [message for place, route in enumerate(routes) for message in turn(2 * place, route)]
    talk.append(said(Role.USER, at(16 / 60)))
    assert pauses_between(turns_on(talk, HARD)) == [450.0, 450.0]
    assert plan_keep_s(pauses_between(turns_on(talk, HARD))) == LONG_S
    assert plan_keep_s(pauses_between(turns_on(talk, EASY))) == SHORT_S
    assert plan_keep_s(pauses_between(turns_on(talk, None))) == SHORT_S
    assert len(turns_on(talk, None)) == 9
