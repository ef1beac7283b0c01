"""Calls that wait for people: asked once, decided once, in this process or another, and what the model hears of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio
import pytest

from denizen.domain.agent import Agent, TurnLimits
from denizen.domain.approval import (
    Approval,
    ApprovalChoice,
    ApprovalRule,
    ApprovalStatus,
    AskerReach,
    Deciders,
    VoteOutcome,
)
from denizen.domain.errors import NotAllowed, Unavailable
from denizen.domain.events import ApprovalDecided, ApprovalRequested, TurnEvent, TurnFinished
from denizen.domain.ids import derive, turn_id
from denizen.domain.message import FilePart, TextPart, ToolResultPart
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import DataFlow, Effect, Tier, ToolCall, ToolResult
from denizen.domain.turn import TurnStatus
from denizen.domain.verdict import Decision
from denizen.engine.configuration.tool_policy import GatePolicy, ObserverPolicy, ResultPolicy, ToolRule
from denizen.engine.gate.approval_card import plan_card
from denizen.engine.gate.approvals import MAX_PENDING, ApprovalQueue
from denizen.engine.tools.toolbox import NestedCalls
from denizen.ports.model import Capabilities
from denizen.ports.toolset import CallScope
from denizen.testing.memory_durable import MemoryLog
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from denizen.testing.temporary_store import TemporaryStore
from tests.clock import ManualClock
from tests.engine.engine_fixture import (
    LOOK,
    NAME,
    PLACE,
    WRITE,
    EngineFixture,
    ToolsetFixture,
    generation,
    message,
    open_engine,
    wait_for_approvals,
)
from tests.engine.gate.gate_fixture import verdict
from tests.timing import HANG_LIMIT_S, controlled_clock

pytestmark = pytest.mark.anyio

ANA = Principal(PrincipalKind.WEB_USER, "ana", "Ana")
BEN = Principal(PrincipalKind.WEB_USER, "ben", "Ben", frozenset({"judge"}))
CLO = Principal(PrincipalKind.WEB_USER, "clo", "Clo", frozenset({"judge"}))
TURN = call("write", q="milk")


def ask_for_tool(rule: ApprovalRule | None = None, *, tool: str = "write") -> GatePolicy:
    """A policy under which that tool needs people."""
    return GatePolicy(rules=(ToolRule(tool, Decision.ASK, reason="the owner wants to know", approval=rule),))


def script(*last: ScriptedReply) -> ScriptedModel:
    return ScriptedModel(ScriptedReply(calls=(TURN,)), *(last or (ScriptedReply("Done."),)))


def read_last_result(model: ScriptedModel) -> str:
    """What the model read of its last call."""
    parts = [part for sent in model.requests[-1].messages for part in sent.parts]
    return [part.text for part in parts if getattr(part, "call_id", "")][-1]  # pyright: ignore[reportAttributeAccessIssue]


async def ask(engine: EngineFixture, *, watched: bool = True) -> list[TurnEvent]:
    reach = AskerReach.WATCHER if watched else AskerReach.NOBODY
    return await engine.watch("go", principal=ANA, reach=reach)


async def ask_and_decide(
    engine: EngineFixture,
    voter: Principal,
    choice: ApprovalChoice,
    *,
    note: str = "",
    meanwhile: Callable[[], None] = lambda: None,
) -> list[TurnEvent]:
    """Ana asks, and that one person decides after what happens meanwhile."""
    events: list[TurnEvent] = []

    async def run() -> None:
        events.extend(await ask(engine))

    with anyio.fail_after(HANG_LIMIT_S):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            [approval] = await wait_for_approvals(engine.store)
            meanwhile()
            await engine.turns.approvals.decide(approval.id, voter, choice, note=note)
    return events


async def kill_while_waiting(engine: EngineFixture) -> Approval:
    """What Ana asked for when the process died."""
    found: list[Approval] = []
    async with anyio.create_task_group() as group:
        group.start_soon(ask, engine)
        found += await wait_for_approvals(engine.store)
        await engine.durable.crash()
        group.cancel_scope.cancel()
    return found[0]


@pytest.mark.proves("T-approval-modes", "T17", "VW2", "V9")
async def test_what_the_requester_approves_runs_once_and_the_model_is_told_how_long_that_took() -> None:
    clock = ManualClock()
    async with open_engine(script(), policy=ask_for_tool(), clock=clock) as engine:
        events = await ask_and_decide(engine, ANA, ApprovalChoice.ONCE, meanwhile=lambda: clock.advance(90))
        assert [made.args for made in engine.tools.calls] == [{"q": "milk"}]
        assert read_last_result(engine.model) == "found milk\n[approved by Ana, after 2 min]"
        kinds = [type(event) for event in events]
        assert kinds.index(ApprovalRequested) < kinds.index(ApprovalDecided) < kinds.index(TurnFinished)
        async with engine.store.work(write=False) as work:
            [turn] = await work.turns.list_turns()
            [made] = await work.turns.list_calls(turn.id)
        assert (made.outcome.verdict.decision, made.outcome.verdict.decided_by) == (Decision.APPROVE, "approval")


@pytest.mark.proves("T-approval-rejected")
async def test_a_no_and_its_reason_are_the_result_of_the_call() -> None:
    async with open_engine(script(), policy=ask_for_tool()) as engine:
        await ask_and_decide(engine, ANA, ApprovalChoice.DENY, note="not\ntoday")
        assert not engine.tools.calls
        assert read_last_result(engine.model) == "Denied: denied by Ana: not today."


@pytest.mark.proves("T-approval-rejected", "V19")
async def test_a_model_that_plans_is_told_of_a_no_and_its_reason_too() -> None:
    planned, no_tool = ScriptedReply('{"tool": "write", "args": {"q": "milk"}}'), ScriptedReply('{"tool": "none"}')
    small = Capabilities(native_tools=False, small=True, context_tokens=8192)
    model = ScriptedModel(planned, no_tool, ScriptedReply("Done."), capabilities=small)
    async with open_engine(model, policy=ask_for_tool()) as engine:
        await ask_and_decide(engine, ANA, ApprovalChoice.DENY, note="not today")
        assert not engine.tools.calls
    for request in model.requests[1:]:
        assert "failed: Denied: denied by Ana: not today." in str(request.messages)


async def test_nobody_is_asked_about_a_call_that_would_be_refused_all_the_same() -> None:
    tools = ToolsetFixture(refusal="I may not write.\nfix: Let me.")
    async with open_engine(script(), tools=tools, policy=ask_for_tool()) as engine:
        events = await ask(engine)
        assert not tools.calls
        assert not [event for event in events if isinstance(event, ApprovalRequested)]
        said = read_last_result(engine.model)
        assert said.startswith("Denied: the owner wants to know. People were not asked")
        assert "I may not write.\nfix: Let me." in said


async def test_a_refusal_is_told_without_secrets_and_without_what_no_model_accepts() -> None:
    tools = ToolsetFixture(refusal="There is no role '\ud83d' for sk-secret.")
    policy = replace(ask_for_tool(), results=ResultPolicy(mask=lambda text: text.replace("sk-secret", "•••")))
    async with open_engine(script(), tools=tools, policy=policy) as engine:
        await ask(engine)
        assert "There is no role '?' for •••" in read_last_result(engine.model)


async def test_people_are_asked_when_a_check_fails_inside() -> None:
    tools = ToolsetFixture(refusal=ZeroDivisionError())
    async with open_engine(script(), tools=tools, policy=ask_for_tool()) as engine:
        await ask_and_decide(engine, ANA, ApprovalChoice.ONCE)
        assert len(tools.calls) == 1


async def test_a_call_that_people_were_asked_about_before_a_crash_is_not_checked_again() -> None:
    """What would refuse it now may be what it has done itself."""
    store, log, policy = TemporaryStore(), MemoryLog(), ask_for_tool()
    async with open_engine(script(), store=store, log=log, policy=policy) as engine:
        approval = await kill_while_waiting(engine)
    tools, model = ToolsetFixture(refusal="It is there already."), ScriptedModel(ScriptedReply("Done."))
    async with open_engine(model, tools=tools, store=store, log=log, policy=policy) as again:
        await again.turns.approvals.decide(approval.id, ANA, ApprovalChoice.ONCE)
        with anyio.fail_after(HANG_LIMIT_S):
            await again.durable.wait(approval.request.turn_id)
        assert len(tools.calls) == 1


@pytest.mark.proves("TW1", "X-approval-absent", "V9")
async def test_what_nobody_can_be_asked_about_is_denied_at_once_and_says_so() -> None:
    async with open_engine(script(), policy=ask_for_tool()) as engine:
        with anyio.fail_after(HANG_LIMIT_S):
            await ask(engine, watched=False)
        assert not engine.tools.calls
        assert read_last_result(engine.model) == (
            "Denied: the owner wants to know. It needs approval by the one who asked, and nobody can be asked here; "
            "a rule under gate.rules can allow it, or name others who decide."
        )
        async with engine.store.work(write=False) as work:
            assert not await work.approvals.list_approvals()


@pytest.mark.proves("TW1", "X-approval-absent")
@pytest.mark.parametrize("change", [{"tier": Tier.SENSITIVE}, {"tier": Tier.DANGEROUS}, {"destructive": True}])
async def test_without_any_configuration_what_nobody_can_be_asked_about_is_denied_too(change: dict[str, Any]) -> None:
    async with open_engine(script(), ToolsetFixture([replace(WRITE, **change)])) as engine:
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.say("go")
        assert not engine.tools.calls
        assert "nobody can be asked here" in read_last_result(engine.model)
        async with engine.store.work(write=False) as work:
            assert not await work.approvals.list_approvals()


@pytest.mark.proves("V9")
@pytest.mark.parametrize("change", [{}, {"read_only": True}, {"idempotent": True}, {"source": "mcp:x"}], ids=str)
async def test_a_call_of_any_tool_passes_the_gate_before_it_runs(change: dict[str, Any]) -> None:
    async with open_engine(script(), ToolsetFixture([replace(WRITE, **change)]), policy=ask_for_tool()) as engine:
        await ask(engine, watched=False)
        assert not engine.tools.calls
        assert "nobody can be asked here" in read_last_result(engine.model)


@pytest.mark.proves("X-approval-absent")
async def test_who_does_not_watch_cannot_be_asked() -> None:
    async with open_engine(script(), policy=ask_for_tool()) as engine:
        turn = await engine.turns.submit(message("go", principal=ANA, reach=AskerReach.WATCHER))
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.wait(turn.id)
        assert not engine.tools.calls


@pytest.mark.proves("P2")
@pytest.mark.parametrize("error", [ZeroDivisionError("secret detail"), Unavailable("The database is busy.")], ids=str)
async def test_when_asking_people_fails_the_call_does_not_run(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(ApprovalQueue, "ask", fail)
    async with open_engine(script(), policy=ask_for_tool()) as engine:
        with anyio.fail_after(HANG_LIMIT_S):
            events = await ask(engine)
        assert isinstance(events[-1], TurnFinished) and events[-1].status is TurnStatus.FAILED
        assert not engine.tools.calls


async def test_others_who_are_configured_can_be_asked_although_nobody_watches() -> None:
    rule = ApprovalRule(Deciders.ROLE, "judge")
    async with open_engine(script(), policy=ask_for_tool(rule)) as engine:
        turn = await engine.turns.submit(message("go", principal=ANA, reach=AskerReach.OTHERS))
        [approval] = await wait_for_approvals(engine.store)
        with pytest.raises(NotAllowed, match="people with the role 'judge'"):
            await engine.turns.approvals.decide(approval.id, ANA, ApprovalChoice.ONCE)
        assert (
            await engine.turns.approvals.decide(approval.id, BEN, ApprovalChoice.ONCE)
        ).outcome is VoteOutcome.DECIDED
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.wait(turn.id)
        assert len(engine.tools.calls) == 1


async def test_a_quorum_waits_for_the_second_vote_and_counts_nobody_twice() -> None:
    rule = ApprovalRule(Deciders.QUORUM, "judge", 2)
    async with open_engine(script(), policy=ask_for_tool(rule)) as engine:
        turn = await engine.turns.submit(message("go", principal=ANA, reach=AskerReach.OTHERS))
        [approval] = await wait_for_approvals(engine.store)
        say = engine.turns.approvals.decide
        assert (await say(approval.id, BEN, ApprovalChoice.ONCE)).text == "Your yes is counted: 1 of 2."
        assert (await say(approval.id, BEN, ApprovalChoice.ONCE)).text == "Your yes is counted: 1 of 2."
        assert not engine.tools.calls
        assert (await say(approval.id, CLO, ApprovalChoice.ONCE)).outcome is VoteOutcome.DECIDED
        assert (await say(approval.id, BEN, ApprovalChoice.DENY)).text == "This was decided already: approved by Clo."
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.wait(turn.id)
        assert len(engine.tools.calls) == 1


@pytest.mark.proves("T-approval-timeout", "VW2", "TW1")
@pytest.mark.parametrize("grants", [False, True])
async def test_what_nobody_decides_in_time_is_denied_or_granted_as_configured(grants: bool) -> None:
    rule = ApprovalRule(timeout_s=0.01, grant_on_timeout=grants)
    async with open_engine(script(), policy=ask_for_tool(rule)) as engine:
        with anyio.fail_after(HANG_LIMIT_S):
            await ask(engine)
        assert len(engine.tools.calls) == int(grants)
        expected = "since nobody decided in time" if grants else "Denied: nobody approved it in time."
        assert expected in read_last_result(engine.model)


@pytest.mark.proves("T-approval-timeout")
@pytest.mark.parametrize(("rule", "waits"), [(None, timedelta(minutes=5)), (ApprovalRule(timeout_s=0), None)])
async def test_an_approval_waits_for_five_minutes_and_with_a_timeout_of_zero_for_ever(
    rule: ApprovalRule | None, waits: timedelta | None
) -> None:
    async with open_engine(script(), policy=ask_for_tool(rule)) as engine, anyio.create_task_group() as group:
        group.start_soon(ask, engine)
        [approval] = await wait_for_approvals(engine.store)
        assert (approval.expires_at and approval.expires_at - approval.created_at) == waits
        group.cancel_scope.cancel()


@pytest.mark.proves("T-approval-discord")
async def test_a_yes_for_an_hour_lets_calls_of_that_tool_run_unasked_until_it_is_over() -> None:
    later = [(ScriptedReply(calls=(call("write", q=q),)), ScriptedReply("Again.")) for q in ("bread", "tea")]
    model = ScriptedModel(ScriptedReply(calls=(TURN,)), ScriptedReply("Done."), *itertools.chain(*later))
    clock = ManualClock()
    async with open_engine(model, policy=ask_for_tool(), clock=clock) as engine:
        await ask_and_decide(engine, ANA, ApprovalChoice.HOUR)
        with anyio.fail_after(HANG_LIMIT_S):
            clock.advance(minutes=59)
            await ask(engine, watched=False)
            assert read_last_result(model).endswith("[approved for a while by Ana]")
            clock.advance(minutes=1)
            await ask(engine, watched=False)
        assert [made.args["q"] for made in engine.tools.calls] == ["milk", "bread"]
        assert "nobody can be asked here" in read_last_result(model)


async def test_a_yes_for_an_hour_to_what_destroys_is_for_the_same_arguments_only() -> None:
    model = ScriptedModel(
        ScriptedReply(calls=(TURN,)),
        ScriptedReply("1"),
        ScriptedReply(calls=(TURN,)),
        ScriptedReply("2"),
        ScriptedReply(calls=(call("write", q="all"),)),
        ScriptedReply("3"),
    )
    tools = ToolsetFixture([LOOK, replace(WRITE, destructive=True)])
    async with open_engine(model, tools, policy=ask_for_tool()) as engine:
        await ask_and_decide(engine, ANA, ApprovalChoice.HOUR)
        with anyio.fail_after(HANG_LIMIT_S):
            await ask(engine, watched=False)
            await ask(engine, watched=False)
        assert [made.args["q"] for made in tools.calls] == ["milk", "milk"]


async def test_a_yes_of_the_one_who_asks_is_none_for_a_call_that_others_decide_about() -> None:
    model = ScriptedModel(
        ScriptedReply(calls=(TURN,)),
        ScriptedReply("Done."),
        ScriptedReply(calls=(call("write", q="all"),)),
        ScriptedReply("Again."),
    )
    rules = (
        ToolRule("write", Decision.ASK, args={"q": "all"}, approval=ApprovalRule(Deciders.ROLE, "judge")),
        ToolRule("write", Decision.ASK),
    )
    async with open_engine(model, policy=GatePolicy(rules=rules)) as engine:
        await ask_and_decide(engine, ANA, ApprovalChoice.HOUR)
        await ask_and_decide(engine, BEN, ApprovalChoice.DENY)
        assert [made.args["q"] for made in engine.tools.calls] == ["milk"]
        assert read_last_result(model) == "Denied: denied by Ben, who gave no reason."


async def test_one_of_several_who_decide_together_gives_no_hour_in_the_name_of_the_others() -> None:
    model = ScriptedModel(
        ScriptedReply(calls=(TURN,)), ScriptedReply("Done."), ScriptedReply(calls=(TURN,)), ScriptedReply("Again.")
    )
    rule = ApprovalRule(Deciders.QUORUM, "judge")
    async with open_engine(model, policy=ask_for_tool(rule)) as engine:
        turn = await engine.turns.submit(message("go", principal=ANA, reach=AskerReach.OTHERS))
        [approval] = await wait_for_approvals(engine.store)
        await engine.turns.approvals.decide(approval.id, BEN, ApprovalChoice.ONCE)
        ruling = await engine.turns.approvals.decide(approval.id, CLO, ApprovalChoice.HOUR)
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.wait(turn.id)
        assert (ruling.outcome, ruling.text) == (VoteOutcome.DECIDED, "Approved.")
        await ask_and_decide(engine, BEN, ApprovalChoice.DENY)
        assert len(engine.tools.calls) == 1
        assert [button.label for button in plan_card(approval).buttons] == ["Approve", "Deny"]


async def test_an_approval_is_for_the_very_call_that_people_were_shown() -> None:
    async with open_engine(script(), policy=ask_for_tool()) as engine:
        waiting = await kill_while_waiting(engine)
    turn = turn_id(NAME, PLACE.platform, "other")
    key = derive("apr", derive("call", turn, "1.0"))
    for shown, ran in (({"q": "bread"}, 0), ({"q": "milk"}, 1)):
        request = replace(waiting.request, turn_id=turn, args=shown)
        known = replace(waiting, id=key, request=request, status=ApprovalStatus.APPROVED)
        async with open_engine(script(), policy=ask_for_tool()) as engine:
            async with engine.store.work() as work:
                await work.approvals.add(known)
            with anyio.fail_after(HANG_LIMIT_S):
                await engine.say("go", principal=ANA, platform_id="other")
            assert len(engine.tools.calls) == ran


async def test_one_person_has_so_many_calls_waiting_in_a_talk_and_no_more() -> None:
    calls = tuple(call("write", q=str(number)) for number in range(MAX_PENDING + 2))
    async with open_engine(
        ScriptedModel(ScriptedReply(calls=calls), ScriptedReply("Done.")), policy=ask_for_tool()
    ) as engine:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, engine)
            for approval in await wait_for_approvals(engine.store, count=MAX_PENDING):
                await engine.turns.approvals.decide(approval.id, ANA, ApprovalChoice.DENY)
        parts = [part for sent in engine.model.requests[-1].messages for part in sent.parts]
        results = [part.text for part in parts if isinstance(part, ToolResultPart)]
        assert len(results) == MAX_PENDING + 2
        assert sum("10 calls wait for that here already" in text for text in results) == 2
        assert not engine.tools.calls


async def test_while_one_turn_waits_the_agent_answers_others_of_the_same_talk() -> None:
    model = ScriptedModel(ScriptedReply(calls=(TURN,)), ScriptedReply("Meanwhile."), ScriptedReply("Done."))
    async with open_engine(model, policy=ask_for_tool()) as engine:
        finished: list[str] = []

        async def first() -> None:
            [*_, last] = await ask(engine)
            assert isinstance(last, TurnFinished)
            finished.append(last.reply)

        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(first)
                [approval] = await wait_for_approvals(engine.store)
                assert (await engine.say("and you?")).reply == "Meanwhile."
                assert not finished
                await engine.turns.approvals.decide(approval.id, ANA, ApprovalChoice.ONCE)
        assert finished == ["Done."]


async def test_the_time_in_which_people_are_waited_for_is_not_the_turns() -> None:
    agent = Agent(NAME, limits=TurnLimits(turn_timeout_s=HANG_LIMIT_S))
    async with open_engine(script(), agent=agent, policy=ask_for_tool()) as engine:
        finished: list[TurnEvent] = []

        async def run() -> None:
            finished.extend(await ask(engine))

        with controlled_clock() as clock:
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                [approval] = await wait_for_approvals(engine.store)
                clock.advance(2 * HANG_LIMIT_S)
                await anyio.wait_all_tasks_blocked()
                await engine.turns.approvals.decide(approval.id, ANA, ApprovalChoice.ONCE)
        assert isinstance(finished[-1], TurnFinished)
        assert finished[-1].status is TurnStatus.DONE


async def test_a_rule_that_forbids_it_meanwhile_holds_for_the_waiting_call() -> None:
    async with open_engine(script(), policy=ask_for_tool()) as engine:
        forbid = GatePolicy(rules=(ToolRule("write", Decision.DENY, reason="not any more"),), generation=2)
        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(ask, engine)
                [approval] = await wait_for_approvals(engine.store)
                await engine.runtime.swap(generation(engine.model, engine.tools, number=2, policy=forbid))
                await engine.turns.approvals.decide(approval.id, ANA, ApprovalChoice.ONCE)
        assert not engine.tools.calls
        assert read_last_result(engine.model) == "Denied: not any more."


@pytest.mark.proves("VW2", "P2")
async def test_killed_while_it_waits_it_goes_on_waiting_and_runs_once() -> None:
    store, log = TemporaryStore(), MemoryLog()
    async with open_engine(script(), store=store, log=log, policy=ask_for_tool()) as engine:
        approval = await kill_while_waiting(engine)
    model = ScriptedModel(ScriptedReply("Done."))
    async with open_engine(model, store=store, log=log, policy=ask_for_tool()) as again:
        assert await wait_for_approvals(store) == [approval]
        await again.turns.approvals.decide(approval.id, ANA, ApprovalChoice.ONCE)
        with anyio.fail_after(HANG_LIMIT_S):
            await again.durable.wait(approval.request.turn_id)
        assert len(again.tools.calls) == 1
        assert not engine.tools.calls


@pytest.mark.proves("VW2")
async def test_decided_while_nothing_runs_it_is_acted_upon_at_the_next_start() -> None:
    store, log = TemporaryStore(), MemoryLog()
    async with open_engine(script(), store=store, log=log, policy=ask_for_tool()) as engine:
        approval = await kill_while_waiting(engine)
    # Another process, with its own runs.
    async with open_engine(ScriptedModel(), store=store, policy=ask_for_tool()) as other:
        await other.turns.approvals.decide(approval.id, ANA, ApprovalChoice.ONCE)
    async with open_engine(ScriptedModel(ScriptedReply("Done.")), store=store, log=log, policy=ask_for_tool()) as again:
        with anyio.fail_after(HANG_LIMIT_S):
            await again.durable.wait(approval.request.turn_id)
        assert len(again.tools.calls) == 1


async def test_a_decision_of_another_process_is_noticed() -> None:
    store = TemporaryStore()
    async with open_engine(script(), store=store, policy=ask_for_tool()) as here:
        here.turns.approvals.poll_s = 0.005
        async with open_engine(ScriptedModel(), store=store, policy=ask_for_tool()) as there:
            with anyio.fail_after(HANG_LIMIT_S):
                async with anyio.create_task_group() as group:
                    group.start_soon(ask, here)
                    [approval] = await wait_for_approvals(store)
                    await there.turns.approvals.decide(approval.id, ANA, ApprovalChoice.ONCE)
        assert len(here.tools.calls) == 1


async def test_a_turn_that_is_stopped_leaves_nothing_to_decide() -> None:
    async with open_engine(script(), policy=ask_for_tool()) as engine:
        found: list[Approval] = []
        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(ask, engine)
                found += await wait_for_approvals(engine.store)
                assert engine.turns.cancel(found[0].request.turn_id)
        approval = found[0]
        ruling = await engine.turns.approvals.decide(approval.id, ANA, ApprovalChoice.ONCE)
        assert ruling.outcome is VoteOutcome.OVER
        assert ruling.approval.status is ApprovalStatus.EXPIRED
        assert not engine.tools.calls


async def test_two_calls_at_once_are_two_approvals_and_the_queue_is_free_only_while_both_wait() -> None:
    other = call("write", q="bread")
    model = ScriptedModel(ScriptedReply(calls=(TURN, other)), ScriptedReply("Done."))
    running, proceed, is_free = anyio.Event(), anyio.Event(), anyio.Event()

    async def run(_: ToolCall, scope: CallScope) -> ToolResult:
        running.set()
        await proceed.wait()
        return ToolResult("ok")

    async with open_engine(model, ToolsetFixture(run=run), policy=ask_for_tool()) as engine:

        async def wait_for_queue() -> None:
            async with engine.turns.hold(NAME, PLACE.conversation_id):
                is_free.set()

        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(ask, engine)
                first, second = await wait_for_approvals(engine.store, count=2)
                assert first.request.args != second.request.args
                queue_is_free = engine.turns.hold(NAME, PLACE.conversation_id)
                async with queue_is_free:
                    pass
                await engine.turns.approvals.decide(first.id, ANA, ApprovalChoice.ONCE)
                await running.wait()
                group.start_soon(wait_for_queue)
                await anyio.wait_all_tasks_blocked()
                assert not is_free.is_set(), "a call of the turn runs"
                proceed.set()
                await is_free.wait()
                await engine.turns.approvals.decide(second.id, ANA, ApprovalChoice.DENY)
        assert len(engine.tools.calls) == 1


async def test_a_tool_waits_for_the_approval_of_what_it_calls_itself_without_running_out_of_time() -> None:
    model = ScriptedModel(ScriptedReply(calls=(call("outer", q="milk"),)), ScriptedReply("Done."))
    tools = ToolsetFixture([LOOK, WRITE, replace(LOOK, name="outer", timeout_s=HANG_LIMIT_S)])
    async with open_engine(model, tools, policy=ask_for_tool()) as engine:
        nested = NestedCalls(engine.runtime, engine.services.gate)

        async def run(made: ToolCall, scope: CallScope) -> ToolResult:
            if made.tool == "write":
                return ToolResult("written")
            inner = await nested(scope, "write", {"q": "milk"})
            return ToolResult(f"inner said: {inner.text}")

        tools.run = run
        with controlled_clock() as clock:
            async with anyio.create_task_group() as group:
                group.start_soon(ask, engine)
                [approval] = await wait_for_approvals(engine.store)
                async with engine.turns.hold(NAME, PLACE.conversation_id):  # the queue is free meanwhile
                    clock.advance(2 * HANG_LIMIT_S)
                    await anyio.wait_all_tasks_blocked()
                await engine.turns.approvals.decide(approval.id, ANA, ApprovalChoice.ONCE)
        assert [made.tool for made in tools.calls] == ["outer", "write"]
        assert read_last_result(model).startswith("inner said: written")


# --- who may decide after foreign text -------------------------------------------------------------------------------

EVE = Principal(PrincipalKind.WEB_USER, "eve", "Eve", frozenset({"member"}))
ZOE = Principal(PrincipalKind.WEB_USER, "zoe", "Zoe", frozenset({"owner", "admin", "member"}))
KEEPER = ToolsetFixture([replace(WRITE, tier=Tier.SENSITIVE, flow=DataFlow(effects=frozenset({Effect.MEMORY})))])
PAPER = (TextPart("keep what it says"), FilePart("a.txt", "text/plain", 3, "abc"))


async def test_a_member_who_attaches_a_file_cannot_approve_what_an_owner_has_to() -> None:
    tools = replace(KEEPER, calls=[])
    async with open_engine(script(), tools) as engine:
        await engine.turns.submit(message("", principal=EVE, reach=AskerReach.CARD, parts=PAPER))
        [approval] = await wait_for_approvals(engine.store)
        with pytest.raises(NotAllowed, match="people with the role 'owner'"):
            await engine.turns.approvals.decide(approval.id, EVE, ApprovalChoice.ONCE)
        assert not tools.calls
        await engine.turns.approvals.decide(approval.id, ZOE, ApprovalChoice.ONCE)
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.wait(approval.request.turn_id)
        assert len(tools.calls) == 1


async def test_an_observer_that_says_no_is_heard_although_foreign_text_was_read() -> None:
    tools = replace(KEEPER, calls=[])
    watch = ScriptedModel(ScriptedReply(verdict("deny", "nobody asked for it")), name="w/watcher")
    policy = GatePolicy(observer=ObserverPolicy("watcher"))
    async with open_engine(script(), tools, policy=policy, watcher=watch) as engine:
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.say("", principal=EVE, parts=PAPER)
        assert not tools.calls
        assert read_last_result(engine.model) == "Denied: nobody asked for it."


@pytest.mark.parametrize(("at_first", "by_now", "ran"), [("owner", "member", 1), ("member", "owner", 0)])
async def test_who_decided_must_be_strict_enough_when_the_configuration_has_changed(
    at_first: str, by_now: str, ran: int
) -> None:
    policies = [ask_for_tool(ApprovalRule(Deciders.ROLE, role)) for role in (at_first, by_now)]
    async with open_engine(script(), policy=policies[0]) as engine:
        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(ask, engine)
                [approval] = await wait_for_approvals(engine.store)
                await engine.runtime.swap(generation(engine.model, engine.tools, number=2, policy=policies[1]))
                voter = ZOE if at_first == "owner" else EVE
                await engine.turns.approvals.decide(approval.id, voter, ApprovalChoice.ONCE)
        assert len(engine.tools.calls) == ran
        assert ran or read_last_result(engine.model) == "Denied: others have to decide this by now; ask for it again."
