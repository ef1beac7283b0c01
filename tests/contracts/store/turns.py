"""The turn contract of the store: turns with their steps, calls and usage, prompts as they were sent, and the calls
that wait for approval.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta, timezone
from decimal import Decimal

import anyio
import pytest

from denizen.domain.approval import (
    Approval,
    ApprovalDecision,
    ApprovalGrant,
    ApprovalRequest,
    ApprovalRule,
    ApprovalStatus,
    Deciders,
)
from denizen.domain.conversation import Place
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.ids import AgentName, MessageId, TurnId
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.prompt import Segment, Stability
from denizen.domain.routing import Complexity, Route
from denizen.domain.tool import Tier, ToolResult
from denizen.domain.trace import MessageUse, PromptUse, SegmentUse
from denizen.domain.turn import Turn, TurnFailure, TurnResult, TurnStatus
from denizen.domain.usage import Usage
from denizen.ports.store import Store, TurnListing, TurnSearch, UsageRow
from tests.contracts.store.records import (
    AGENT,
    ANA,
    PLACE,
    PLATFORM,
    USAGE,
    at,
    make_call,
    make_step,
    make_turn,
    open_conversation,
)
from tests.contracts.store.settings import ODD

BOB = Principal(PrincipalKind.API_KEY, "1", "Bob")


@pytest.mark.anyio
class TurnContract:
    async def test_an_open_turn_remembers_that_somebody_stopped_it(self, store: Store) -> None:
        _, session = await open_conversation(store)
        turn, done = make_turn(session, "t1"), make_turn(session, "t2")
        async with store.work() as work:
            await work.turns.open(replace(turn, options={"model": "m"}))
            await work.turns.open(done)
            await work.turns.close(replace(done, status=TurnStatus.DONE, closed_at=at(1)))
            for key in (turn.id, done.id, TurnId("unknown")):
                await work.turns.ask_stop(key)
        async with store.work(write=False) as work:
            stopped = await work.turns.get(turn.id)
            assert stopped.is_stop_asked
            assert stopped.options["model"] == "m"
            assert stopped.status is TurnStatus.OPEN
            assert not (await work.turns.get(done.id)).is_stop_asked
            assert await work.turns.find(TurnId("unknown")) is None

    async def test_a_turn_comes_back_as_it_was_opened(self, store: Store) -> None:
        _, session = await open_conversation(store)
        turn = make_turn(session, "t1")
        async with store.work() as work:
            assert await work.turns.find(turn.id) is None
            assert await work.turns.open(turn) == (turn, True)
        async with store.work(write=False) as work:
            assert await work.turns.get(turn.id) == await work.turns.find(turn.id) == turn
            with pytest.raises(NotFound):
                await work.turns.get(TurnId("none"))

    async def test_a_search_finds_turns_by_agent_status_platform_and_time_newest_first(self, store: Store) -> None:
        _, session = await open_conversation(store)
        _, elsewhere = await open_conversation(store, Place("github", "a/b", "7"))
        async with store.work() as work:
            for key, hours in (("t1", 0), ("t2", 1), ("t3", 2)):
                await work.turns.open(make_turn(session, key, hours=hours))
            await work.turns.open(make_turn(elsewhere, "t4", hours=3))
            done = replace(make_turn(session, "t2", hours=1), status=TurnStatus.DONE, closed_at=at(4))
            await work.turns.close(done)
        found: list[list[str]] = []
        for wanted in (
            TurnSearch(),
            TurnSearch(limit=2, skip=1),
            TurnSearch(platform="github"),
            TurnSearch(status=TurnStatus.DONE),
            TurnSearch(agent=session.agent, since=at(1), platform=PLACE.platform),
            TurnSearch(agent="nobody"),
        ):
            async with store.work(write=False) as work:
                found.append([listing.turn.id for listing in await work.turns.search(wanted)])
        assert found == [["t4", "t3", "t2", "t1"], ["t3", "t2"], ["t4"], ["t2"], ["t3", "t2"], []]
        async with store.work(write=False) as work:
            [listing] = await work.turns.search(TurnSearch(status=TurnStatus.DONE))
        assert listing == TurnListing(done, PLACE.platform)

    async def test_a_turn_opened_again_is_the_stored_one(self, store: Store) -> None:
        _, session = await open_conversation(store)
        turn = make_turn(session, "t1")
        async with store.work() as work:
            await work.turns.open(turn)
            assert await work.turns.open(replace(turn, trigger_id=MessageId("other"))) == (turn, False)
        done = replace(turn, status=TurnStatus.DONE, closed_at=at(1), result=TurnResult(reply="Hello."))
        async with store.work() as work:
            await work.turns.close(done)
        async with store.work() as work:
            assert await work.turns.open(turn) == (done, False)

    async def test_of_many_who_open_the_same_turn_at_once_one_is_told_that_it_is_new(self, store: Store) -> None:
        _, session = await open_conversation(store)
        told: list[bool] = []

        async def ask() -> None:
            async with store.work() as work:
                told.append((await work.turns.open(make_turn(session, "t1")))[1])

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(ask)
        assert sorted(told) == [False] * 9 + [True]

    async def test_a_turn_keeps_its_first_final_state(self, store: Store) -> None:
        _, session = await open_conversation(store)
        turn = make_turn(session, "t1")
        failed = replace(
            turn,
            status=TurnStatus.FAILED,
            closed_at=at(0.5),
            options={"said": [1]},
            route=Route.of(Complexity.COMPLEX, "a long piece of work"),
            result=TurnResult(
                reply="part\x00",
                failure=TurnFailure("It broke.", "bug", "Unavailable", "Try again."),
                model="m1",
                usage=USAGE,
            ),
        )
        async with store.work() as work:
            await work.turns.open(turn)
            await work.turns.close(failed)
        async with store.work() as work:
            await work.turns.close(
                replace(failed, status=TurnStatus.DONE, result=TurnResult(reply="late"), closed_at=at(2))
            )
        async with store.work() as work:
            assert await work.turns.get(turn.id) == failed
            with pytest.raises(NotFound):
                await work.turns.close(replace(failed, id=TurnId("none")))
            with pytest.raises(InvalidInput):
                await work.turns.close(turn)

    async def test_turns_are_listed_newest_first_and_open_ones_oldest_first(self, store: Store) -> None:
        here, session = await open_conversation(store)
        there, elsewhere = await open_conversation(store, Place("web", "1"))
        order = [("t1", session, 0), ("t2", session, 2), ("t3", elsewhere, 1), ("t4", session, 2), ("t5", session, 3)]
        async with store.work() as work:
            for key, where, hours in order:
                await work.turns.open(make_turn(where, key, hours=hours))
            await work.turns.close(replace(make_turn(session, "t5"), status=TurnStatus.DONE, closed_at=at(4)))
        async with store.work(write=False) as work:
            assert [turn.id for turn in await work.turns.list_turns()] == ["t5", "t4", "t2", "t3", "t1"]
            still_open = await work.turns.list_turns(status=TurnStatus.OPEN)
            assert [turn.id for turn in still_open] == ["t1", "t3", "t2", "t4"]
            first = await work.turns.list_turns(status=TurnStatus.OPEN, conversation_id=here.id, limit=2)
            assert [turn.id for turn in first] == ["t1", "t2"]
            assert [turn.id for turn in await work.turns.list_turns(status=TurnStatus.DONE)] == ["t5"]
            assert [turn.id for turn in await work.turns.list_turns(conversation_id=there.id)] == ["t3"]
            assert [turn.id for turn in await work.turns.list_turns(limit=2)] == ["t5", "t4"]
            assert await work.turns.list_turns(limit=0) == []

    async def test_steps_and_calls_come_back_in_order_and_repeating_them_changes_nothing(self, store: Store) -> None:
        _, session = await open_conversation(store)
        turn = make_turn(session, "t1")
        steps = [make_step(turn, number, hours=-number) for number in (1, 2, 10)]
        calls = [make_call(turn, *key) for key in ((1, 0), (1, 1), (2, 0), (2, 10))]
        async with store.work() as work:
            await work.turns.open(turn)
            for step in reversed(steps):
                await work.turns.add_step(step)
            for call in reversed(calls):
                assert await work.turns.add_call(call)
        async with store.work() as work:
            await work.turns.add_step(replace(steps[0], model="other"))
            changed = replace(calls[0], outcome=replace(calls[0].outcome, result=ToolResult("other")))
            assert not await work.turns.add_call(changed)
        async with store.work(write=False) as work:
            assert await work.turns.list_steps(turn.id) == steps
            assert await work.turns.list_calls(turn.id) == calls
            assert await work.turns.list_steps(TurnId("none")) == []
            assert await work.turns.list_calls(TurnId("none")) == []

    async def test_a_turn_step_or_call_of_something_unknown_is_refused(self, store: Store) -> None:
        _, session = await open_conversation(store)
        turn = make_turn(session, "t1")
        with pytest.raises(NotFound):
            async with store.work() as work:
                await work.turns.open(make_turn(replace(session, id=type(session.id)("none")), "t2"))
        with pytest.raises(NotFound):
            async with store.work() as work:
                await work.turns.add_step(make_step(turn, 1))
        with pytest.raises(NotFound):
            async with store.work() as work:
                await work.turns.add_call(make_call(turn, 1, 0))

    async def test_times_come_back_in_utc_to_the_microsecond(self, store: Store) -> None:
        _, session = await open_conversation(store)
        odd = at(0.1).replace(microsecond=7).astimezone(timezone(timedelta(hours=5, minutes=45)))
        turn = replace(make_turn(session, "t1"), opened_at=odd)
        async with store.work() as work:
            await work.turns.open(turn)
        async with store.work(write=False) as work:
            stored = (await work.turns.get(turn.id)).opened_at
        assert stored == odd
        assert stored.utcoffset() == timedelta(0)

    async def test_usage_is_summed_by_day_agent_and_model_from_the_given_time_on(self, store: Store) -> None:
        _, session = await open_conversation(store)
        async with store.work() as work:
            other = await work.sessions.current(session.conversation_id, type(AGENT)("scribe"), now=at(0))
            turns = [make_turn(session, "t1"), make_turn(session, "t2", principal=BOB), make_turn(other, "t3")]
            for turn in turns:
                await work.turns.open(turn)
            mine, of_bob, of_scribe = turns
            for step in (
                make_step(mine, 1),
                make_step(mine, 2, hours=1),
                make_step(mine, 3, hours=-1),
                make_step(mine, 4, model="m2", usage=Usage(5, requests=1)),
                make_step(of_bob, 1, hours=12),
                make_step(of_scribe, 1, usage=Usage(1, 2, 3, 4, Decimal("0.000000000001"), 1)),
            ):
                await work.turns.add_step(step)
        twice = Usage(2000, 100, 1800, 200, Decimal("0.00246912"), 2)
        scribe_usage = UsageRow("2026-11-21", "scribe", "m1", Usage(1, 2, 3, 4, Decimal("0.000000000001"), 1))
        own = [
            UsageRow("2026-11-21", "denizen", "m1", twice),
            UsageRow("2026-11-21", "denizen", "m2", Usage(5, requests=1)),
        ]
        asked = UsageRow("2026-11-22", "denizen", "m1", USAGE)
        async with store.work(write=False) as work:
            assert await work.ledger.list_usage(since=at(0)) == [asked, *own, scribe_usage]
            assert await work.ledger.list_usage(since=at(0), agent="denizen") == [asked, *own]
            assert await work.ledger.list_usage(since=at(0), principal="api_key:1") == [asked]
            mine_only = await work.ledger.list_usage(since=at(0), agent="denizen", principal="platform_user:1")
            assert mine_only == own
            assert await work.ledger.list_usage(since=at(13)) == []

    async def test_money_is_added_exactly(self, store: Store) -> None:
        _, session = await open_conversation(store)
        turn = make_turn(session, "t1")
        async with store.work() as work:
            await work.turns.open(turn)
            for number in range(1, 11):
                await work.turns.add_step(make_step(turn, number, usage=Usage(cost_usd=Decimal("0.1"))))
            await work.turns.add_step(make_step(turn, 11, usage=Usage(cost_usd=Decimal("1234.000000000001"))))
        async with store.work(write=False) as work:
            (row,) = await work.ledger.list_usage(since=at(0))
        assert row.usage.cost_usd == Decimal("1235.000000000001")


SEGMENTS = (
    SegmentUse.of(Segment("persona", "You are Ada.\x00 \ud800", Stability.FOREVER)),
    SegmentUse.of(Segment("style", "Be brief.")),
    SegmentUse.of(Segment("instructions", "Call me Ana.", Stability.SESSION)),
)
MESSAGES = (MessageUse("history", 7, 900), MessageUse("question", 1, 12))


def make_prompt(turn: Turn, step: int = 1) -> PromptUse:
    return PromptUse(
        turn_id=turn.id,
        step=step,
        model="acme/large",
        segments=SEGMENTS,
        messages=MESSAGES,
        tools=("look", "write"),
        tool_tokens=340,
        memories=("mem_1", "mem_2"),
    )


async def open_turns(store: Store, *keys: str) -> list[Turn]:
    _, session = await open_conversation(store)
    turns = [make_turn(session, key) for key in keys]
    async with store.work() as work:
        for turn in turns:
            await work.turns.open(turn)
    return turns


@pytest.mark.anyio
class TraceContract:
    async def test_prompts_come_back_by_step_with_the_texts_that_are_kept(self, store: Store) -> None:
        (turn,) = await open_turns(store, "t1")
        later = replace(make_prompt(turn, 10), segments=SEGMENTS[1:2], tools=(), tool_tokens=0)
        async with store.work() as work:
            for prompt in (later, make_prompt(turn), replace(make_prompt(turn, 2), segments=(), messages=())):
                await work.turns.add_prompt(prompt)
        async with store.work(write=False) as work:
            first, second, third = await work.turns.list_prompts(turn.id)
            assert await work.turns.list_prompts(TurnId("none")) == []
        assert (first, third) == (make_prompt(turn), later)
        assert [segment.text for segment in first.segments] == ["You are Ada.\x00 \ud800", "Be brief.", None]
        assert (second.step, second.segments, second.messages) == (2, (), ())

    async def test_a_prompt_written_again_is_the_first_one(self, store: Store) -> None:
        (turn,) = await open_turns(store, "t1")
        for model in ("acme/large", "other"):
            async with store.work() as work:
                await work.turns.add_prompt(replace(make_prompt(turn), model=model))
        async with store.work(write=False) as work:
            assert await work.turns.list_prompts(turn.id) == [make_prompt(turn)]

    async def test_turns_with_the_same_segment_share_its_text(self, store: Store) -> None:
        turns = await open_turns(store, "t1", "t2")
        bare = tuple(replace(segment, text=None) for segment in SEGMENTS)
        async with store.work() as work:
            await work.turns.add_prompt(make_prompt(turns[0]))
            await work.turns.add_prompt(replace(make_prompt(turns[1]), segments=bare))
        async with store.work(write=False) as work:
            (second,) = await work.turns.list_prompts(turns[1].id)
        assert second.segments == SEGMENTS

    async def test_a_prompt_of_an_unknown_turn_is_refused(self, store: Store) -> None:
        (turn,) = await open_turns(store, "t1")
        with pytest.raises(NotFound):
            async with store.work() as work:
                await work.turns.add_prompt(replace(make_prompt(turn), turn_id=TurnId("none")))

    async def test_what_prompts_were_made_of_stays_when_an_author_is_forgotten(self, store: Store) -> None:
        """It holds nothing that they said."""
        (turn,) = await open_turns(store, "t1")
        async with store.work() as work:
            await work.turns.add_prompt(make_prompt(turn))
            await work.archive.forget_author(PLATFORM, ANA.id)
        async with store.work(write=False) as work:
            assert await work.turns.list_prompts(turn.id) == [make_prompt(turn)]


FULL_RULE = ApprovalRule(Deciders.QUORUM, ODD, 3, frozenset({"b", ODD}), 0.5, grant_on_timeout=True)


def make_approval(key: str, *, turn: str = "t1", hours: float = 0) -> Approval:
    return Approval(
        id=key,
        request=ApprovalRequest(
            turn_id=TurnId(turn),
            agent=AGENT,
            requester="platform_user:discord:1",
            place=PLACE,
            conversation_id=PLACE.conversation_id,
            tool="erase",
            args={"name": "list"},
            tier=Tier.DANGEROUS,
            reason="it destroys",
            preview="erases the list",
        ),
        rule=ApprovalRule(),
        created_at=at(hours),
        expires_at=at(hours + 1),
    )


def make_grant(key: str, *, hours: float, tool: str = "erase", args: str = "") -> ApprovalGrant:
    return ApprovalGrant(
        id=key,
        agent=AGENT,
        requester="platform_user:discord:1",
        conversation_id=PLACE.conversation_id,
        tool=tool,
        args=args,
        given_by=ODD,
        expires_at=at(hours),
    )


async def add_approvals(store: Store, *approvals: Approval) -> None:
    async with store.work() as work:
        for approval in approvals:
            await work.approvals.add(approval)


async def find_approval(store: Store, key: str) -> Approval | None:
    async with store.work(write=False) as work:
        return await work.approvals.find(key)


@pytest.mark.anyio
class ApprovalContract:
    async def test_an_approval_comes_back_as_it_was(self, store: Store) -> None:
        plain = make_approval("a1")
        full = replace(
            make_approval("a2"),
            request=replace(
                make_approval("a2").request,
                agent=AgentName(ODD),
                requester=ODD,
                requester_name=ODD,
                place=Place(ODD, ODD, ODD),
                tool=ODD,
                args={ODD: [ODD, 1, None]},
                tier=Tier.LIMITED,
                reason=ODD,
                preview=ODD,
                is_exact=True,
            ),
            rule=FULL_RULE,
            expires_at=None,
            status=ApprovalStatus.DENIED,
            voices=(ODD, "x"),
            decision=ApprovalDecision(by=ODD, name=ODD, at=at(2), note=ODD),
        )
        await add_approvals(store, plain, full)
        assert await find_approval(store, "a1") == plain
        assert await find_approval(store, "a2") == full
        assert await find_approval(store, "none") is None

    async def test_an_approval_that_is_asked_for_twice_is_one(self, store: Store) -> None:
        await add_approvals(store, make_approval("a1"))
        other = replace(make_approval("a1").request, tool="other")
        await add_approvals(store, replace(make_approval("a1"), request=other, status=ApprovalStatus.APPROVED))
        assert await find_approval(store, "a1") == make_approval("a1")

    async def test_what_a_decision_changes_is_written_and_the_rest_stays(self, store: Store) -> None:
        await add_approvals(store, make_approval("a1"))
        decided = replace(
            make_approval("a1"),
            status=ApprovalStatus.APPROVED,
            voices=("x",),
            decision=ApprovalDecision(by="x", name="X", at=at(0.5), note="fine"),
        )
        async with store.work() as work:
            other = replace(decided.request, tool="other", args={}, preview="other")
            await work.approvals.update(replace(decided, request=other))
        assert await find_approval(store, "a1") == decided
        async with store.work() as work:
            with pytest.raises(NotFound):
                await work.approvals.update(make_approval("none"))
        async with store.work() as work:
            with pytest.raises(NotFound):
                await work.approvals.take("none")

    async def test_of_two_who_decide_at_once_the_second_sees_the_first(self, store: Store) -> None:
        await add_approvals(store, make_approval("a1"))

        async def speak(voice: str) -> None:
            async with store.work() as work:
                taken = await work.approvals.take("a1")
                await work.approvals.update(replace(taken, voices=(*taken.voices, voice)))

        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(speak, str(number))
        found = await find_approval(store, "a1")
        assert found is not None
        assert sorted(found.voices) == ["0", "1", "2", "3"]

    async def test_approvals_are_listed_by_state_and_turn_the_newest_first(self, store: Store) -> None:
        closed = replace(make_approval("a2"), status=ApprovalStatus.EXPIRED)
        await add_approvals(store, make_approval("a1"), closed, make_approval("a3", turn="t2"))
        async with store.work(write=False) as work:
            listed = work.approvals.list_approvals
            assert [each.id for each in await listed()] == ["a3", "a2", "a1"]
            assert [each.id for each in await listed(limit=1)] == ["a3"]
            assert [each.id for each in await listed(status=ApprovalStatus.PENDING)] == ["a3", "a1"]
            assert [each.id for each in await listed(turn_id=TurnId("t1"))] == ["a2", "a1"]
            both = await listed(status=ApprovalStatus.EXPIRED, turn_id=TurnId("t1"))
            assert [each.id for each in both] == ["a2"]

    @pytest.mark.proves("X-storage")
    async def test_a_grant_holds_until_its_end_for_its_tool_and_people(self, store: Store) -> None:
        exact, other = make_grant("g1", hours=1, args="args_1"), make_grant("g2", hours=1, tool="look")
        async with store.work() as work:
            for grant in (exact, other, replace(exact, args="changed")):
                await work.approvals.add_grant(grant, now=at(0))
        async with store.work(write=False) as work:
            held = work.approvals.list_grants
            assert await held(AGENT, exact.requester, PLACE.conversation_id, "erase", now=at(0.9)) == [exact]
            assert not await held(AGENT, exact.requester, PLACE.conversation_id, "erase", now=at(1))
            assert not await held(AGENT, "platform_user:discord:2", PLACE.conversation_id, "erase", now=at(0))
            assert not await held(AgentName("other"), exact.requester, PLACE.conversation_id, "erase", now=at(0))

    async def test_a_new_grant_leaves_those_that_hold_and_forgets_those_that_are_over(self, store: Store) -> None:
        over, holds, new = make_grant("g1", hours=1), make_grant("g2", hours=2), make_grant("g3", hours=3)
        async with store.work() as work:
            await work.approvals.add_grant(over, now=at(0))
            await work.approvals.add_grant(holds, now=at(0))
            await work.approvals.add_grant(new, now=at(1.5))
        async with store.work(write=False) as work:
            left = await work.approvals.list_grants(AGENT, over.requester, PLACE.conversation_id, "erase", now=at(0))
        assert sorted(grant.id for grant in left) == ["g2", "g3"]
