"""Money is reserved before a request is sent, and what was really spent is counted once."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import anyio
import pytest

from denizen.domain.agent import Agent
from denizen.domain.budget import (
    SERVER,
    BudgetLimits,
    BudgetPolicy,
    BudgetScope,
    BudgetScopeKind,
    BudgetStatus,
    WhenExhausted,
)
from denizen.domain.conversation import Place
from denizen.domain.errors import Unavailable
from denizen.domain.events import Notice
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import ToolCall, ToolResult
from denizen.domain.usage import Usage
from denizen.ports.model import Capabilities
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope
from denizen.testing.memory_durable import MemoryLog
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedModels, ScriptedReply, call
from denizen.testing.temporary_store import TemporaryStore
from tests.engine.engine_fixture import NAME, EngineFixture, ToolsetFixture, message, open_engine
from tests.engine.platform_fixture import ADA, World, open_platform
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

STRANGER = Principal(PrincipalKind.PLATFORM_USER, "discord:5", "Eve")
AGENT = BudgetScope(BudgetScopeKind.AGENT, NAME)
OUT = Decimal("0.0001")
PRICE = (Decimal("0.000001"), OUT)
"""An answer of at most 1000 tokens costs 10 cents; what goes in next to nothing."""
SHORT = Agent(NAME, limits=replace(Agent(NAME).limits, max_output_tokens=1000))


def make_reply(text: str = "Hello.", *, cents: int = 2, gate: ReplyGate | None = None, **more: object) -> ScriptedReply:
    usage = Usage(100, 50, cost_usd=Decimal(cents) / 100, requests=1)
    return replace(ScriptedReply(text, usage=usage, before=gate), **more)


def make_priced_model(
    *script: ScriptedReply, name: str = "scripted/dear", otherwise: ScriptedReply | None = None
) -> ScriptedModel:
    return ScriptedModel(*script, name=name, otherwise=otherwise, price_usd=PRICE)


def make_policy(per_day: str, kind: BudgetScopeKind = BudgetScopeKind.AGENT, *, cheaper: bool = False) -> BudgetPolicy:
    what = WhenExhausted.CHEAPER if cheaper else WhenExhausted.STOP
    return BudgetPolicy({kind: BudgetLimits(per_day_usd=Decimal(per_day))}, when_exhausted=what)


async def set_budgets(engine: EngineFixture, budgets: BudgetPolicy, models: ScriptedModels | None = None) -> None:
    current = engine.runtime.current
    await engine.runtime.swap(replace(current, number=2, budgets=budgets, models=models or current.models))


@asynccontextmanager
async def open_limited(
    model: ScriptedModel,
    budgets: BudgetPolicy,
    *,
    models: ScriptedModels | None = None,
    tools: ToolsetFixture | None = None,
) -> AsyncGenerator[EngineFixture]:
    async with open_engine(model, tools, agent=SHORT) as engine:
        await set_budgets(engine, budgets, models)
        yield engine


async def read_status(store: Store, engine: EngineFixture, scope: BudgetScope = AGENT) -> BudgetStatus:
    async with store.work(write=False) as work:
        return (await work.spending.read([scope], now=engine.services.clock.now()))[scope]


async def sum_records(store: Store) -> Usage:
    """What the records of usage come to."""
    async with store.work(write=False) as work:
        return sum((row.usage for row in await work.ledger.list_usage(since=datetime.min.replace(tzinfo=UTC))), Usage())


@pytest.mark.proves("P5")
async def test_a_request_that_does_not_fit_is_refused_before_it_is_sent() -> None:
    model = make_priced_model()
    async with open_limited(model, make_policy("0.09")) as engine:
        failure = await engine.fail("hello")
        assert (failure.code, failure.family) == ("budget_exhausted", "LimitExceeded")
        assert failure.message.startswith("The budget of ada for today is used up. It renews on ")
        assert await read_status(engine.store, engine) == BudgetStatus()
    assert model.requests == []


async def test_what_was_really_spent_is_counted_for_all_that_pay_and_the_reservation_is_free_again() -> None:
    async with open_limited(make_priced_model(make_reply(), make_reply("Again.")), make_policy("0.13")) as engine:
        assert [(await engine.say(text)).reply for text in ("one", "two")] == ["Hello.", "Again."]
        spent = BudgetStatus(Decimal("0.04"), Decimal("0.04"), day_requests=2, month_requests=2)
        for scope in (SERVER, AGENT, BudgetScope(BudgetScopeKind.USER, "local:ana")):
            assert await read_status(engine.store, engine, scope) == spent
        assert (await engine.fail("three")).code == "budget_exhausted", "4 cents and 10 more are too much"


async def test_without_limits_nothing_is_reserved_and_everything_is_counted() -> None:
    async with open_engine(make_priced_model(make_reply())) as engine:
        await engine.say("one")
        assert (await read_status(engine.store, engine)).day_usd == Decimal("0.02")


async def test_a_model_without_a_price_answers_whatever_the_limit() -> None:
    async with open_limited(ScriptedModel(ScriptedReply("Free.")), make_policy("0")) as engine:
        assert (await engine.say("one")).reply == "Free."
        assert (await read_status(engine.store, engine)).day_requests == 1


async def test_amounts_are_told_to_those_who_may_know_them_only() -> None:
    async with open_limited(make_priced_model(), make_policy("0.09", BudgetScopeKind.USER)) as engine:
        mine, theirs = await engine.fail("one"), await engine.fail("one", principal=STRANGER)
        admin = await engine.fail("one", principal=replace(STRANGER, roles=frozenset({"admin"})))
    assert "Of $0.09 $0.00 is spent and $0.00 reserved; this request may cost $0.1" in mine.message
    assert "$0.09" in admin.message
    assert theirs.message.startswith("Your budget for today is used up.")
    assert "$" not in theirs.message + theirs.fix


@pytest.mark.proves("P5")
async def test_two_turns_at_once_cannot_both_spend_the_last_money() -> None:
    gate = ReplyGate()
    model = make_priced_model(make_reply("first", gate=gate), make_reply("third"))
    async with open_limited(model, make_policy("0.15")) as engine:
        first = await engine.turns.submit(message("one", place=Place("terminal", "a")))
        with anyio.fail_after(HANG_LIMIT_S):
            await gate.reached.wait()
        second = await engine.fail("two", place=Place("terminal", "b"))
        assert second.code == "budget_exhausted"
        assert "$0.1" in second.message and "reserved" in second.message
        gate.open.set()
        await engine.durable.wait(first.id)
        assert (await engine.say("three", place=Place("terminal", "b"))).reply == "third"
    assert len(model.requests) == 2


async def test_the_cheaper_model_answers_when_the_budget_says_so() -> None:
    expensive = make_priced_model(make_reply("dear", cents=8))
    cheap = ScriptedModel(make_reply("cheap", cents=0), name="scripted/cheap")
    models = ScriptedModels({"balanced": expensive, "cheap": cheap})
    async with open_limited(expensive, make_policy("0.12", cheaper=True), models=models) as engine:
        assert (await engine.say("one")).reply == "dear"
        events = await engine.watch("two")
        assert [event.text for event in events if isinstance(event, Notice)] == [
            "A budget is used up, so scripted/cheap answers instead of scripted/dear."
        ]
        async with engine.store.work(write=False) as work:
            (turn, _) = await work.turns.list_turns()
        assert (turn.result.reply, turn.result.model) == ("cheap", "scripted/cheap")
    assert (len(expensive.requests), len(cheap.requests)) == (1, 1)


@pytest.mark.parametrize(
    ("name", "can"),
    [
        ("scripted/dear", Capabilities()),
        ("scripted/cheap", Capabilities(native_tools=False)),
        ("scripted/cheap", Capabilities(context_tokens=1000)),
    ],
    ids=["the same model", "no tools", "too small"],
)
async def test_a_cheaper_model_that_cannot_take_the_request_is_not_asked(name: str, can: Capabilities) -> None:
    expensive, cheap = make_priced_model(), ScriptedModel(name=name, capabilities=can)
    models = ScriptedModels({"balanced": expensive, "cheap": cheap})
    async with open_limited(expensive, make_policy("0.09", cheaper=True), models=models) as engine:
        assert (await engine.fail("one")).code == "budget_exhausted"


async def test_a_cheaper_model_has_to_fit_the_budget_too() -> None:
    expensive, fast = make_priced_model(), make_priced_model(name="scripted/fast")
    models = ScriptedModels({"balanced": expensive, "fast": fast})
    async with open_limited(expensive, make_policy("0.09", cheaper=True), models=models) as engine:
        assert (await engine.fail("one")).code == "budget_exhausted"
    assert expensive.requests == fast.requests == []


async def test_a_limit_that_is_near_is_told_once_a_day(caplog: pytest.LogCaptureFixture) -> None:
    model = make_priced_model(otherwise=make_reply(cents=1))
    async with open_limited(model, make_policy("0.125", BudgetScopeKind.SERVER)) as engine:
        with caplog.at_level(logging.WARNING, logger="denizen.budget"):
            events = [event for _ in range(2) for event in await engine.watch("one")]
        assert [(record.message, record.__dict__["scope"]) for record in caplog.records] == [
            ("a budget is nearly used up", "server")
        ]
        assert [event.text for event in events if isinstance(event, Notice)] == [
            "My budget is nearly used up (80 % or more)."
        ]


async def test_a_stranger_hears_nothing_of_a_limit_that_is_near() -> None:
    async with open_limited(make_priced_model(make_reply()), make_policy("0.125")) as engine:
        events = await engine.watch("one", principal=STRANGER)
        assert not [event for event in events if isinstance(event, Notice)]


async def test_a_step_is_counted_before_its_tools_run() -> None:
    seen: list[BudgetStatus] = []

    async def look(asked: ToolCall, scope: CallScope) -> ToolResult:
        seen.append(await read_status(engine.store, engine))
        return ToolResult("ok")

    model = make_priced_model(make_reply("", calls=[call("look", q="x")]), make_reply("done"))
    async with open_limited(model, make_policy("1"), tools=ToolsetFixture(run=look)) as engine:
        assert (await engine.say("one")).reply == "done"
        assert (await read_status(engine.store, engine)).day_usd == Decimal("0.04")
    assert seen == [BudgetStatus(Decimal("0.02"), Decimal("0.02"), day_requests=1, month_requests=1)]


async def test_a_turn_that_is_killed_and_resumed_is_counted_once() -> None:
    store, log = TemporaryStore(), MemoryLog()
    reached, never = anyio.Event(), anyio.Event()

    async def hang(asked: ToolCall, scope: CallScope) -> ToolResult:
        reached.set()
        await never.wait()
        return ToolResult("ok")

    turn_request = message("do it")
    async with open_engine(
        make_priced_model(make_reply("", calls=[call("write", q="x")])), ToolsetFixture(run=hang), store=store, log=log
    ) as engine:
        await set_budgets(engine, make_policy("5"))
        await engine.turns.submit(turn_request)
        with anyio.fail_after(HANG_LIMIT_S):
            await reached.wait()
        await engine.durable.crash()
    async with open_engine(make_priced_model(make_reply("done")), store=store, log=log) as engine:
        await set_budgets(engine, make_policy("5"))
        await engine.turns.resume()
        with anyio.fail_after(HANG_LIMIT_S):
            assert (await engine.turns.ask(turn_request)).reply == "done"
        found = await read_status(store, engine)
    assert found == BudgetStatus(Decimal("0.04"), Decimal("0.04"), day_requests=2, month_requests=2)


@pytest.mark.parametrize("limited", [True, False])
async def test_a_request_that_is_stopped_counts_with_its_input_and_what_was_heard(limited: bool) -> None:
    gate = ReplyGate()
    model = make_priced_model(ScriptedReply("x" * 80, halfway=gate))
    async with open_engine(model, agent=SHORT) as engine:
        await set_budgets(engine, make_policy("5") if limited else BudgetPolicy())
        turn = await engine.turns.submit(message("one"))
        with anyio.fail_after(HANG_LIMIT_S):
            await gate.reached.wait()
            assert engine.turns.cancel(turn.id)
            await engine.durable.wait(turn.id)
        found = await read_status(engine.store, engine)
        used = await sum_records(engine.store)
    assert (found.day_requests, found.reserved_usd) == (1, Decimal(0))
    assert (used.requests, used.cost_usd) == (1, found.day_usd)
    assert 10 * OUT < found.day_usd < 12 * OUT


async def test_a_turn_that_is_stopped_while_a_tool_runs_has_cost_its_requests() -> None:
    reached, never = anyio.Event(), anyio.Event()

    async def hang(asked: ToolCall, scope: CallScope) -> ToolResult:
        reached.set()
        await never.wait()
        return ToolResult("ok")

    async with open_engine(
        make_priced_model(make_reply("", calls=[call("look", q="x")])), ToolsetFixture(run=hang)
    ) as engine:
        turn = await engine.turns.submit(message("one"))
        with anyio.fail_after(HANG_LIMIT_S):
            await reached.wait()
            assert engine.turns.cancel(turn.id)
            await engine.durable.wait(turn.id)
        assert (await read_status(engine.store, engine)).day_usd == Decimal("0.02")


@pytest.mark.parametrize(("text", "requests"), [("", 0), ("half of it", 1)])
async def test_a_request_that_fails_costs_something_only_once_an_answer_began(text: str, requests: int) -> None:
    model = make_priced_model(ScriptedReply(text, error=Unavailable("gone")))
    async with open_limited(model, make_policy("5")) as engine:
        assert (await engine.fail("one")).family == "Unavailable"
        found = await read_status(engine.store, engine)
        assert (await sum_records(engine.store)).requests == requests
    assert (found.day_requests, found.reserved_usd) == (requests, Decimal(0))


@pytest.mark.proves("P5")
async def test_on_a_platform_channel_and_guild_pay_and_the_refusal_is_said_without_amounts() -> None:
    world, model = World(), make_priced_model(make_reply(), otherwise=make_reply())
    async with open_platform(
        world, model, agents={ADA: replace(SHORT, history=replace(SHORT.history, recent_messages=0))}
    ) as fixture:
        current = fixture.runtime.current
        await fixture.runtime.swap(replace(current, number=2, budgets=make_policy("0.11", BudgetScopeKind.GUILD)))
        world.platform.say(world.general, "ana", "@ada hello")
        first = await fixture.said()
        world.platform.say(world.general, "ana", "@ada and now?")
        second = (await fixture.said())[-1]
        scopes = [
            BudgetScope(BudgetScopeKind.GUILD, "discord:1"),
            BudgetScope(BudgetScopeKind.CHANNEL, f"discord:{world.general.id}"),
        ]
        async with fixture.store.work(write=False) as work:
            spent = await work.spending.read(scopes, now=world.clock.now())
    assert first == ["Hello."]
    assert second.startswith("The budget of this server for today is used up. It renews on ")
    assert "$" not in second
    assert [spent[scope].day_usd for scope in scopes] == [Decimal("0.02")] * 2
    assert len(model.requests) == 1
