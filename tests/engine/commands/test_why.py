"""/why: how a reply came about, told in the room where it was given."""

from dataclasses import replace
from decimal import Decimal

import pytest

from denizen.domain.delivery import Delivery, DeliveryKind, DeliveryState, DeliveryTarget, MessageContent, delivery_id
from denizen.domain.ids import CallId
from denizen.domain.prompt import Segment
from denizen.domain.routing import Complexity, Route
from denizen.domain.tool import Tier, ToolCall, ToolResult
from denizen.domain.trace import MessageUse, PromptUse, SegmentUse
from denizen.domain.turn import CallRecord, Step, Turn, TurnFailure, TurnResult, TurnStatus
from denizen.domain.usage import Usage
from denizen.domain.verdict import CallOutcome, Decision, Verdict
from denizen.ports.inbox import MessageClaim
from tests.engine.commands.command_fixture import (
    ADA,
    ANA,
    BEN,
    NOW,
    OTHER_ROOM,
    ROOM,
    ZOE,
    CommandFixture,
    open_commands,
)

pytestmark = pytest.mark.anyio

USAGE = Usage(1000, 80, cache_read_tokens=600, cost_usd=Decimal("0.0123"), requests=2)


async def record_reply(engine: CommandFixture, name: str = "q1", message: str = "501") -> Turn:
    """A turn of Ana's with two steps and two calls, whose reply is on the platform."""
    turn = await engine.put_turn(name, ANA, result=TurnResult(model="acme/large", usage=USAGE))
    looked = CallRecord(
        turn_id=turn.id,
        step=1,
        position=0,
        tool_call=ToolCall(CallId("c1"), "look", {"q": "salary of Ben"}),
        outcome=CallOutcome(
            Verdict(Decision.APPROVE, Tier.HARMLESS, "harmless", "tier-0"), ToolResult("found"), duration_ms=20
        ),
        cached=False,
        created_at=NOW,
    )
    denied = replace(
        looked,
        position=1,
        tool_call=ToolCall(CallId("c1"), "rm", {}),
        outcome=CallOutcome(
            Verdict(Decision.DENY, Tier.DANGEROUS, "a rule of this server forbids this call", "rule"),
            ToolResult("found", is_error=True),
            duration_ms=20,
        ),
        cached=True,
    )
    async with engine.store.work() as work:
        for number, purpose in enumerate(("act", "answer"), 1):
            await work.turns.add_step(
                Step(
                    turn_id=turn.id,
                    number=number,
                    model="acme/large",
                    purpose=purpose,
                    finish_reason="stop",
                    usage=USAGE,
                    duration_ms=900,
                    created_at=NOW,
                )
            )
        await work.turns.add_call(looked)
        await work.turns.add_call(denied)
        delivery = Delivery(
            id=delivery_id(turn.id, DeliveryKind.ANSWER, 0),
            turn_id=turn.id,
            position=0,
            kind=DeliveryKind.ANSWER,
            agent=ADA,
            target=DeliveryTarget(ROOM.place),
            content=MessageContent("the answer"),
            created_at=NOW,
            state=DeliveryState.PENDING,
        )
        await work.outbox.add([delivery])
        await work.outbox.update(replace(delivery, state=DeliveryState.SENT, platform_id=message))
    return turn


async def test_a_reply_is_explained_to_its_asker_with_what_tools_were_called_with() -> None:
    async with open_commands() as engine:
        turn = await record_reply(engine)
        reply = await engine.give("/why 501")
        assert reply.private
        for words in (
            "Ana asked ada; done in 2.0 s. Model: acme/large.",
            "2 steps (act, answer). Tokens: 1,000 in (60 % cached), 80 out; $0.0123.",
            '- `look` `{"q": "salary of Ben"}` approved, tier 0: harmless; done, 20 ms',
            "denied, tier 3: a rule of this server forbids this call; failed, from the cache",
            turn.id,
        ):
            assert words in reply.text


async def test_what_was_looked_up_before_the_model_was_asked_is_told_as_that() -> None:
    async with open_commands() as engine:
        turn = await record_reply(engine)
        async with engine.store.work() as work:
            [look, _] = await work.turns.list_calls(turn.id)
            await work.turns.add_call(replace(look, step=0, tool_call=ToolCall(CallId("c0"), "search_docs", {})))
        told = (await engine.give("/why 501")).text
        assert "- before the model was asked: `search_docs` `{}` approved" in told
        assert "- `look` " in told


async def test_what_the_question_was_sorted_as_is_told_and_why_to_its_asker() -> None:
    async with open_commands() as engine:
        route = Route.of(Complexity.COMPLEX, "it asks for the salary of Ben")
        turn = await engine.put_turn("q1", ANA, result=TurnResult(model="acme/large", usage=USAGE), route=route)
        async with engine.store.work() as work:
            for number, purpose in enumerate(("route", "act")):
                await work.turns.add_step(
                    Step(
                        turn_id=turn.id,
                        number=number,
                        model="acme/small",
                        purpose=purpose,
                        finish_reason="stop",
                        usage=USAGE,
                        duration_ms=900,
                        created_at=NOW,
                    )
                )
        told = (await engine.give("/why")).text
        line = "Its route: complex, so quality with at most 25 steps, by router"
        assert f"{line}: it asks for the salary of Ben." in told
        assert "1 step (act)." in told
        others = (await engine.give("/why", BEN)).text
        assert f"{line}." in others
        assert "salary" not in others


async def test_the_last_prompt_is_told_by_its_parts_and_what_the_cache_gave_to_anybody() -> None:
    async with open_commands() as engine:
        turn = await record_reply(engine)
        usage = Usage(1000, 80, cache_read_tokens=600, cache_write_tokens=100)
        other = await engine.put_turn("q9", ANA, result=TurnResult(model="acme/large", usage=usage))
        segment = SegmentUse.of(Segment("persona", "You keep a secret."))
        shares = (MessageUse("history", 12, 1900), MessageUse("question", 1, 20))
        async with engine.store.work() as work:
            await work.turns.add_prompt(
                PromptUse(turn_id=turn.id, step=1, model="acme/large", segments=(segment,), messages=())
            )
            await work.turns.add_prompt(
                PromptUse(
                    turn_id=turn.id,
                    step=2,
                    model="acme/large",
                    segments=(segment,),
                    messages=shares,
                    tools=("look", "rm"),
                    tool_tokens=340,
                )
            )
            await work.turns.add_prompt(
                PromptUse(turn_id=other.id, step=1, model="acme/large", segments=(), messages=shares[1:])
            )
        told = (await engine.give("/why 501", BEN)).text
        assert (
            "Prompt, in estimated tokens: persona 5; 2 tools 340; messages: history 1,900 (12), question 20 (1)."
            in told
        )
        assert told.count("Prompt, in") == 1
        assert "secret" not in told
        newest = (await engine.give("/why")).text
        assert "no system prompt; messages: question 20 (1)." in newest
        assert "1,000 in (60 % cached, 10 % written to the cache)" in newest


async def test_others_see_the_tools_and_not_what_they_were_called_with() -> None:
    async with open_commands() as engine:
        await record_reply(engine)
        told = (await engine.give("/why 501", BEN)).text
        assert "`look` approved" in told
        assert "salary" not in told
        assert "the asker and admins see the arguments" in told
        assert "salary" in (await engine.give("/why 501", ZOE)).text


async def test_a_reply_is_named_by_target_id_link_its_question_or_not_at_all() -> None:
    async with open_commands() as engine:
        older = await record_reply(engine, "q1", "501")
        newer = await engine.put_turn("q2", BEN)
        async with engine.store.work() as work:
            await work.inbox.claim([MessageClaim(ADA, "chat", "400", older.id)], now=NOW)
        assert older.id in (await engine.give("/why", target="501")).text
        assert older.id in (await engine.give("/why https://chat.example/10/501/")).text
        assert older.id in (await engine.give("/why 400")).text
        assert newer.id in (await engine.give("/why")).text


async def test_what_was_said_elsewhere_is_not_told_about() -> None:
    async with open_commands() as engine:
        await record_reply(engine)
        for text in ("/why 501", "/why 999", "/why"):
            refused = await engine.give(text, ZOE, room=OTHER_ROOM)
            assert refused.is_failure
            assert "Ana" not in refused.text
            assert "id or link" in refused.text


async def test_a_turn_that_runs_is_no_reply_and_one_that_failed_says_so() -> None:
    async with open_commands() as engine:
        why = TurnFailure("The model is busy.", "model_overloaded")
        failed = await engine.put_turn("q1", status=TurnStatus.FAILED, result=TurnResult(failure=why))
        await engine.put_turn("q2", status=TurnStatus.OPEN)
        told = (await engine.give("/why")).text
        assert failed.id in told
        assert "It failed: model_overloaded." in told
        assert "Model: none was reached" in told
        assert "No tools were used." in told
        assert "cost unknown" in told
