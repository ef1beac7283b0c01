"""What stays of a route for later questions of its session."""

from __future__ import annotations

from datetime import datetime, timedelta

from denizen.domain.ids import MessageId
from denizen.domain.message import Author, Message, Role, TextPart
from denizen.domain.routing import (
    ROUTE,
    Complexity,
    PreviousRoute,
    Route,
    find_previous_route,
    list_turn_times,
    route_meta,
)
from denizen.engine.prompt.caching import LONG_S, SHORT_S, pauses_between, plan_keep_s
from tests.contracts.store.records import at
from tests.engine.engine_fixture import PLACE

HARD, EASY = Route.of(Complexity.COMPLEX, "a bug"), Route.of(Complexity.SIMPLE, "one fact")


def make_message(role: Role, when: datetime, route: Route | None = None) -> Message:
    meta = {} if route is None else {ROUTE: route_meta(route, 300.0)}
    key = MessageId(f"{role}-{when}")
    return Message(
        id=key,
        conversation_id=PLACE.conversation_id,
        role=role,
        author=Author("", ""),
        parts=(TextPart(key),),
        created_at=when,
        meta=meta,
    )


def make_turn(minutes: float, route: Route | None) -> list[Message]:
    """A question, two answers with a call between them, half a minute later."""
    asked = at(minutes / 60)
    later = [asked + timedelta(seconds=seconds) for seconds in (10, 20, 30)]
    return [
        make_message(Role.USER, asked),
        make_message(Role.ASSISTANT, later[0], route),
        make_message(Role.TOOL, later[1]),
        make_message(Role.ASSISTANT, later[2], route),
    ]


def test_an_answer_tells_what_its_turn_was_routed_to() -> None:
    answer = make_turn(0, HARD)[-1]
    assert find_previous_route(answer) == PreviousRoute(HARD, answer.created_at, 300.0)
    assert find_previous_route(make_turn(0, None)[-1]) is None


def test_a_model_s_cache_is_kept_by_the_rhythm_of_its_own_turns() -> None:
    routes = [HARD, EASY, EASY, EASY, HARD, EASY, EASY, EASY]
    talk = [message for place, route in enumerate(routes) for message in make_turn(2 * place, route)]
    talk.append(make_message(Role.USER, at(16 / 60)))
    assert pauses_between(list_turn_times(talk, HARD)) == [450.0, 450.0]
    assert plan_keep_s(pauses_between(list_turn_times(talk, HARD))) == LONG_S
    assert plan_keep_s(pauses_between(list_turn_times(talk, EASY))) == SHORT_S
    assert plan_keep_s(pauses_between(list_turn_times(talk, None))) == SHORT_S
    assert len(list_turn_times(talk, None)) == 9
