"""Schedules run at their times, once each, never beside themselves; and what became of each time can be seen."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal

import anyio
import pytest

from denizen.adapters.cron import CroniterTimes
from denizen.domain.approval import ApprovalChoice
from denizen.domain.attention import AccountPolicy, AccountScope
from denizen.domain.audit import AuditKind
from denizen.domain.budget import BudgetLimits, BudgetPolicy, BudgetScope, BudgetScopeKind
from denizen.domain.errors import Conflict, NotFound, Unavailable
from denizen.domain.hook import Hook, Hooks
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.rate_limit import HOUR_S, RateLimit
from denizen.domain.schedule import (
    CatchUp,
    DeliveryRoute,
    RunStatus,
    Schedule,
    ScheduleBudget,
    ScheduleConduct,
    ScheduleDelivery,
)
from denizen.domain.tool import Tier
from denizen.domain.turn import TurnStatus
from denizen.domain.usage import Usage
from denizen.domain.workflow_run import STARTED, start_from_json
from denizen.domain.workflow_triggers import CALL_TRIGGER, read_tool_call
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.audit.audit_log import read_log
from denizen.engine.configuration.tool_policy import GatePolicy, RateLimits
from denizen.engine.events.signal import Signal
from denizen.engine.hooks.runner import hook_run_id
from denizen.engine.schedules.catalog import RunListing, ScheduleCatalog
from denizen.engine.schedules.runner import ScheduleResources, ScheduleRunner, session_place
from denizen.ports.inbox import AllowedKind
from denizen.testing.memory_durable import MemoryLog
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from denizen.testing.temporary_store import TemporaryStore
from tests.clock import NOON, ManualClock
from tests.engine.engine_fixture import (
    ANA,
    LOOK,
    NAME,
    WRITE,
    EngineFixture,
    ToolsetFixture,
    open_engine,
    wait_for_approvals,
)
from tests.memory_channel import MemoryChannel
from tests.memory_platform import MemoryPlatform
from tests.timing import HANG_LIMIT_S, poll

pytestmark = pytest.mark.anyio

HOURLY = Schedule(name="news", cron="0 * * * *", zone="UTC", prompt="What is new?", agent=NAME)
EIGHT = "platform_user:discord:8"
OF_SEVEN = replace(HOURLY, owner="platform_user:discord:7", life="one")


@dataclass
class Process:
    """A server on a store, with schedules whose clock a test moves."""

    engine: EngineFixture
    runner: ScheduleRunner
    catalog: ScheduleCatalog
    clock: ManualClock
    account: MemoryChannel
    platform: MemoryPlatform

    async def configure(self, *schedules: Schedule) -> None:
        """Reloads with these schedules."""
        current = self.engine.runtime.current
        named = {each.name: each for each in schedules}
        hooks = {each.principal.key: each.conduct.hooks for each in schedules}
        await self.engine.runtime.swap(
            replace(current, number=current.number + 1, schedules=named, trigger_hooks=hooks)
        )
        await self.runner.look()

    async def limit(self, name: str, *, per_day_usd: str) -> None:
        """Gives a schedule a budget."""
        current = self.engine.runtime.current
        special = {BudgetScope(BudgetScopeKind.JOB, name): BudgetLimits(Decimal(per_day_usd))}
        await self.engine.runtime.swap(replace(current, number=current.number + 1, budgets=BudgetPolicy({}, special)))

    async def pass_time(self, *, minutes: float = 0, hours: float = 0) -> None:
        self.clock.advance(minutes=minutes, hours=hours)
        await self.runner.look()

    async def runs(self) -> list[RunListing]:
        """The runs, the oldest first, once all turns have ended."""

        async def ended() -> list[RunListing] | None:
            found = await self.catalog.list_runs()
            return None if any(each.outcome == "running" for each in found) else [*reversed(found)]

        return (await poll(ended) or []) if await self.catalog.list_runs() else []

    async def outcomes(self) -> list[str]:
        return [each.outcome for each in await self.runs()]


@asynccontextmanager
async def open_process(
    *schedules: Schedule,
    model: ScriptedModel | None = None,
    store: TemporaryStore | None = None,
    log: MemoryLog | None = None,
    clock: ManualClock | None = None,
    next_task: str = "",
    tools: ToolsetFixture | None = None,
    policy: GatePolicy | None = None,
) -> AsyncGenerator[Process]:
    clock = clock or ManualClock()
    model = model or ScriptedModel(otherwise=ScriptedReply("Nothing."))
    async with open_engine(model, tools, store=store, log=log, policy=policy, clock=clock) as engine:
        channels, platform = ConnectedAccounts(), MemoryPlatform()
        for person in ("7", "8"):
            platform.add_person(person, person)
        platform.add_room("general", room_id="100")
        account = MemoryChannel(platform, NAME)
        channels.add(account)
        async with engine.store.work() as work:
            await work.archive.put_room(platform.get_room("100"))
        resources = ScheduleResources(
            runtime=engine.runtime,
            store=engine.store,
            clock=clock,
            times=CroniterTimes(),
            changed=Signal(channels.added, engine.runtime.swapped),
        )
        runner = ScheduleRunner(resources, engine.turns, channels, engine.deliveries, lambda _: next_task)
        process = Process(engine, runner, ScheduleCatalog(resources), clock, account, platform)
        await process.configure(*schedules)
        yield process


async def test_a_schedule_runs_at_its_time_and_not_before() -> None:
    async with open_process(HOURLY) as server:
        await server.pass_time(minutes=59)
        assert await server.outcomes() == []
        await server.pass_time(minutes=1)
        await server.pass_time(minutes=1)
        [run] = await server.runs()
        assert (run.outcome, run.run.planned_at, run.reason) == ("done", NOON + timedelta(hours=1), "")
        assert run.turn is not None
        assert (run.turn.principal.key, run.turn.result.reply) == ("schedule:news", "Nothing.")
        [asked, answered] = await server.engine.session(session_place(HOURLY))
        assert (asked.text, answered.text) == ("What is new?", "Nothing.")


async def test_a_schedule_for_one_time_runs_once_and_is_over() -> None:
    once = replace(HOURLY, cron="", at=NOON + timedelta(minutes=30), words="in 30 minutes")
    async with open_process(once) as server:
        assert (await server.catalog.get("news")).next_at == once.at
        await server.pass_time(minutes=29)
        assert await server.outcomes() == []
        for _ in range(3):
            await server.pass_time(minutes=1)
        assert await server.outcomes() == ["done"]
        await server.pass_time(hours=24)
        await server.configure(once)
        await server.pass_time(hours=24)
        assert await server.outcomes() == ["done"]
        listing = await server.catalog.get("news")
        assert (listing.next_at, listing.pause) == (None, "over")


async def test_one_time_without_a_server_is_missed_or_made_up_for() -> None:
    once = replace(HOURLY, cron="", at=NOON + timedelta(minutes=30))
    made_up = replace(once, name="other", catch_up=CatchUp.ONCE)
    async with open_process(once, made_up) as server:
        await server.pass_time(hours=3)
        assert {each.run.schedule: each.outcome for each in await server.runs()} == {"news": "missed", "other": "done"}


@pytest.mark.proves("T27")
async def test_the_session_is_that_of_the_schedule_or_one_that_it_shares() -> None:
    assert session_place(HOURLY).thread == "cron:news"
    shared = replace(HOURLY, conduct=ScheduleConduct(session="diary"))
    assert session_place(shared) == session_place(replace(shared, name="other"))


@pytest.mark.proves("T27", "T29")
async def test_runs_go_on_in_one_session_unless_each_has_a_new_one() -> None:
    fresh = replace(HOURLY, name="fresh", conduct=ScheduleConduct(new_session=True))
    async with open_process(HOURLY, fresh) as server:
        for _ in range(2):
            await server.pass_time(hours=1)
            assert set(await server.outcomes()) == {"done"}
        assert len(await server.engine.session(session_place(HOURLY))) == 4
        assert len(await server.engine.session(session_place(fresh))) == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (OF_SEVEN, replace(OF_SEVEN, owner=EIGHT, life="two")),
        (OF_SEVEN, replace(OF_SEVEN, life="two")),
        (HOURLY, OF_SEVEN),
        (OF_SEVEN, HOURLY),
    ],
    ids=["of somebody else", "of the same person, made anew", "of the operator before", "of the operator after"],
)
async def test_whoever_takes_the_name_of_a_schedule_reads_nothing_of_the_earlier_one(
    before: Schedule, after: Schedule
) -> None:
    model = ScriptedModel(ScriptedReply("The pin is 4711."), otherwise=ScriptedReply("Nothing."))
    async with open_process(replace(before, prompt="Keep my pin."), model=model) as server:
        await server.pass_time(hours=1)
        assert await server.outcomes() == ["done"]
        await server.configure(after)
        listed = await server.catalog.get("news")
        assert (listed.last, await server.catalog.list_runs("news")) == (None, [])
        await server.pass_time(hours=1)
        _, run = await server.runs()
        assert run.turn and isinstance(variables := run.turn.options["variables"], dict)
        assert variables["last_response"] == ""
        assert "pin" not in str(server.engine.model.requests[1].messages)
        assert len(await server.engine.session(session_place(after))) == 2


async def test_the_schedule_of_a_person_keeps_its_session_and_history_through_changes() -> None:
    async with open_process(OF_SEVEN) as server:
        await server.pass_time(hours=1)
        await server.configure(replace(OF_SEVEN, prompt="And now?"))
        await server.pass_time(hours=1)
        assert [each.run.schedule_name for each in await server.runs()] == ["news", "news"]
        assert len(await server.engine.session(session_place(OF_SEVEN))) == 4


@pytest.mark.proves("T27")
async def test_a_run_has_the_model_of_its_schedule() -> None:
    async with open_process(replace(HOURLY, conduct=ScheduleConduct(model="balanced"))) as server:
        await server.pass_time(hours=1)
        [run] = await server.runs()
        assert run.turn and run.turn.options["model"] == "balanced"


@pytest.mark.proves("T30")
async def test_runs_know_the_last_run_the_last_answer_and_the_next_task() -> None:
    async with open_process(HOURLY, next_task="Water the plants.") as server:
        await server.pass_time(hours=1)
        await server.runs()
        await server.pass_time(hours=1)
        first, second = [each.turn.options["variables"] for each in await server.runs() if each.turn]
        assert first == {
            "last_run": "2026-11-21T12:00:00+00:00",
            "last_run_epoch": str(int(NOON.timestamp())),
            "last_response": "",
            "next_task": "Water the plants.",
        }
        assert isinstance(second, dict)
        assert (second["last_run"], second["last_response"]) == ("2026-11-21T13:00:00+00:00", "Nothing.")


@pytest.mark.proves("T28")
async def test_without_waking_the_agent_the_prompt_is_left_in_the_session() -> None:
    note = replace(HOURLY, conduct=ScheduleConduct(wake_agent=False, delivery=ScheduleDelivery(DeliveryRoute.CHANNEL)))
    async with open_process(note) as server:
        await server.pass_time(hours=1)
        assert await server.outcomes() == ["noted"]
        assert [each.text for each in await server.engine.session(session_place(note))] == ["What is new?"]
        assert not server.engine.model.requests
        async with server.engine.store.work(write=False) as work:
            [state] = await work.schedules.list_states()
        assert state.last_run_at == server.clock.now()
        await server.configure(HOURLY)  # the same session, with an agent that answers
        await server.pass_time(hours=1)
        assert await server.outcomes() == ["noted", "done"]
        told = [part for each in server.engine.model.requests[0].messages for part in each.parts]
        assert sum("What is new?" in str(part) for part in told) == 2


async def test_of_two_servers_on_one_store_one_runs_it() -> None:
    store, log = TemporaryStore(), MemoryLog()
    async with (
        open_process(HOURLY, store=store, log=log) as one,
        open_process(HOURLY, store=store, log=log, clock=one.clock) as two,
    ):
        one.clock.advance(hours=1)
        await one.runner.look()
        await two.runner.look()
        assert await one.outcomes() == ["done"]
        await two.pass_time(hours=1)
        await one.runner.look()
        assert await one.outcomes() == ["done", "done"]
        assert len(one.engine.model.requests) + len(two.engine.model.requests) == 2


async def test_a_run_whose_process_died_before_its_turn_began_begins_in_the_next() -> None:
    store, log = TemporaryStore(), MemoryLog()
    async with open_process(HOURLY, store=store, log=log) as first:
        await first.catalog.run("news", ANA)  # written down, and nothing else
    async with open_process(HOURLY, store=store, log=log, clock=first.clock) as second:
        assert await second.outcomes() == ["done"]
        assert len(second.engine.model.requests) == 1


async def test_a_run_whose_process_died_before_its_turn_was_written_down_has_one_turn() -> None:
    store, log = TemporaryStore(), MemoryLog()
    async with open_process(HOURLY, store=store, log=log) as first:
        await first.pass_time(hours=1)
        [run] = await first.runs()
        async with store.work() as work:
            await work.schedules.set_status(run.run.id, RunStatus.WAITING)
    async with open_process(HOURLY, store=store, log=log, clock=first.clock) as second:
        assert await second.runs() == [run]
        assert not second.engine.model.requests


async def test_a_run_that_nobody_began_for_long_is_missed() -> None:
    store = TemporaryStore()
    async with open_process(HOURLY, store=store) as first:
        await first.catalog.run("news", ANA)
        first.clock.advance(minutes=61)
    async with open_process(replace(HOURLY, enabled=False), store=store, clock=first.clock) as second:
        assert await second.outcomes() == ["missed"]


@pytest.mark.proves("TW10")
async def test_a_schedule_never_runs_beside_itself() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("At last.", before=gate), otherwise=ScriptedReply("Nothing."))
    async with open_process(HOURLY, model=model) as server:
        await server.pass_time(hours=1)
        with anyio.fail_after(60):
            await gate.reached.wait()
        await server.pass_time(hours=1)
        with pytest.raises(Conflict, match="runs at the moment"):
            await server.catalog.run("news", ANA)
        gate.open.set()
        assert await server.outcomes() == ["done", "skipped"]
        assert (await server.runs())[1].reason == "The run before had not ended."
        await server.pass_time(hours=1)
        assert await server.outcomes() == ["done", "skipped", "done"]


@pytest.mark.parametrize(
    ("catch_up", "outcome", "reason"),
    [
        (CatchUp.SKIP, "missed", "5 times came while the server was not there."),
        (CatchUp.ONCE, "done", "5 times came while the server was not there; this run is for all of them."),
    ],
)
@pytest.mark.proves("TW10")
async def test_times_without_a_server_are_missed_or_made_up_for_once(
    catch_up: CatchUp, outcome: str, reason: str
) -> None:
    schedule, store = replace(HOURLY, catch_up=catch_up), TemporaryStore()
    async with open_process(schedule, store=store) as first:
        first.clock.advance(hours=5, minutes=30)
    async with open_process(schedule, store=store, clock=first.clock) as second:
        [run] = await second.runs()
        assert (run.outcome, run.reason) == (outcome, reason)
        assert run.run.planned_at == NOON + timedelta(hours=5)
        await second.pass_time(minutes=30)
        assert await second.outcomes() == [outcome, "done"]


@pytest.mark.parametrize(
    ("catch_up", "outcomes"), [(CatchUp.SKIP, ["missed", "done"]), (CatchUp.ONCE, ["done", "done"])]
)
async def test_after_a_day_asleep_a_process_goes_on_with_one_run_at_most_for_all_that_it_missed(
    catch_up: CatchUp, outcomes: list[str]
) -> None:
    async with open_process(replace(HOURLY, catch_up=catch_up)) as server:
        await server.pass_time(hours=24, minutes=30)
        [run] = await server.runs()
        assert "24 times came while the server was not there" in run.reason
        await server.pass_time(minutes=30)
        assert await server.outcomes() == outcomes


@pytest.mark.proves("T27")
async def test_a_schedule_that_is_off_does_not_run_nor_miss_anything() -> None:
    off = replace(HOURLY, enabled=False)
    async with open_process(off) as server:
        await server.pass_time(hours=3)
        await server.configure(HOURLY)
        assert await server.outcomes() == []
        await server.pass_time(hours=1)
        assert await server.outcomes() == ["done"]


@pytest.mark.proves("T1-automation", "T33")
async def test_a_reload_brings_changes_into_force_for_the_next_turn() -> None:
    async with open_process(HOURLY) as server:
        await server.configure(replace(HOURLY, cron="45 * * * *", prompt="What else?"))
        await server.pass_time(minutes=45)
        [run] = await server.runs()
        assert run.run.planned_at == NOON + timedelta(minutes=45)
        assert (await server.engine.session(session_place(HOURLY)))[0].text == "What else?"
        await server.configure()
        await server.pass_time(hours=2)
        assert await server.outcomes() == ["done"]


async def test_one_that_was_taken_out_and_put_back_has_missed_nothing() -> None:
    async with open_process(HOURLY) as server:
        await server.configure()
        server.clock.advance(hours=5)
        await server.configure(HOURLY)
        assert await server.outcomes() == []


async def test_a_clock_that_is_put_back_repeats_nothing_and_goes_on() -> None:
    async with open_process(HOURLY) as server:
        await server.pass_time(hours=1)
        assert await server.outcomes() == ["done"]
        await server.pass_time(minutes=-10)
        await server.pass_time(minutes=10)
        assert await server.outcomes() == ["done"]
        await server.pass_time(hours=1)
        assert await server.outcomes() == ["done", "done"]


async def test_a_run_waits_for_its_account_and_fails_with_the_reason() -> None:
    there = ScheduleConduct(delivery=ScheduleDelivery(DeliveryRoute.CHANNEL, "github", "123"))
    async with open_process(replace(HOURLY, conduct=there)) as server:
        await server.pass_time(hours=1)
        assert await server.outcomes() == ["waiting"]
        await server.pass_time(minutes=11)
        [run] = await server.runs()
        assert run.outcome == "failed"
        assert run.reason.startswith("The account of ada is not connected to github.")


@pytest.mark.parametrize("to", [each for each in DeliveryRoute if not each.is_sent_after])
async def test_the_schedule_of_a_person_runs_as_long_as_the_account_answers_them(to: DeliveryRoute) -> None:
    target = {DeliveryRoute.CHANNEL: "100", DeliveryRoute.DIRECT: "7"}.get(to, "")
    delivery = ScheduleDelivery(to, "discord" if target else "", target)
    async with open_process(replace(OF_SEVEN, conduct=ScheduleConduct(delivery=delivery))) as server:

        async def run_with(*, account_roles: set[str], roles: set[str] | None) -> str:
            scope = AccountScope(roles=frozenset(account_roles))
            policies = {("discord", NAME): AccountPolicy(scope=scope)}
            await server.engine.runtime.swap(replace(server.engine.runtime.current, account_policies=policies))
            del server.platform.people["7"]
            if roles is not None:
                server.platform.add_person("7", "Seven", roles=roles)
            await server.pass_time(hours=1)
            outcome = (await server.runs())[-1]
            if roles is None:
                server.platform.add_person("7", "Seven")
            return f"{outcome.outcome} {outcome.reason}".strip()

        assert await run_with(account_roles=set(), roles=set()) == "done"
        assert await run_with(account_roles={"friends"}, roles={"friends"}) == "done"
        refused = "failed The owner of 'news' may not talk with ada any more."
        assert (await run_with(account_roles={"friends"}, roles=set())).startswith(refused)
        async with server.engine.store.work() as work:
            await work.inbox.allow(NAME, "discord", AllowedKind.USER, "7", by="", now=NOON)
        assert await run_with(account_roles={"friends"}, roles=set()) == "done"
        assert (await run_with(account_roles=set(), roles=None)).startswith(refused)


async def test_a_run_waits_while_nobody_knows_whether_its_owner_is_there() -> None:
    async with open_process(OF_SEVEN) as server:
        server.account.fail("list_memberships", Unavailable("Discord is away.", code="away"))
        await server.pass_time(hours=1)
        assert await server.outcomes() == ["waiting"]
        await server.pass_time(minutes=1)
        assert await server.outcomes() == ["done"]


async def test_what_the_schedules_of_a_person_ask_and_cost_is_charged_to_that_person() -> None:
    policy = GatePolicy(rate_limits=RateLimits(per_user=(RateLimit(1, HOUR_S),)))
    second, of_eight = replace(OF_SEVEN, name="tea", life="two"), replace(OF_SEVEN, name="eight", owner=EIGHT)
    seven = BudgetScope(BudgetScopeKind.USER, OF_SEVEN.owner)
    async with open_process(OF_SEVEN, second, of_eight, replace(HOURLY, name="mine"), policy=policy) as server:
        await server.pass_time(hours=1)
        runs = {each.run.schedule_name: each for each in await server.runs()}
        assert {name: each.outcome for name, each in runs.items()} == {
            "news": "done",
            "tea": "failed",
            "eight": "done",
            "mine": "done",
        }
        assert runs["tea"].reason.startswith("You have asked 1 times within the hour.")
        async with server.engine.store.work(write=False) as work:
            spent = await work.spending.read([seven], now=server.clock.now())
        assert spent[seven].day_requests == 1


async def test_a_schedule_that_calls_a_tool_begins_the_run_of_a_workflow_and_no_prompt() -> None:
    made = read_tool_call("news", "look", {"q": "at {{planned_at}}"}, caller="schedule").workflow
    called = replace(HOURLY, prompt="", tool_call=made, trigger=CALL_TRIGGER)
    model = ScriptedModel()
    async with open_process(called, model=model) as server:
        await server.pass_time(hours=1)
        [run] = await server.runs()
        assert run.turn is not None and model.requests == []
        start = start_from_json(run.turn.options[STARTED])
        assert start is not None and (start.name, start.trigger) == ("schedule-news", CALL_TRIGGER)
        assert start.scope == {"event": {"planned_at": "2026-11-21T13:00:00+00:00"}}
        assert run.turn.principal.key == "schedule:news"


async def test_jitter_makes_each_time_later_in_the_same_way_everywhere() -> None:
    late = replace(HOURLY, jitter=timedelta(minutes=30))
    hours = [NOON + timedelta(hours=number) for number in range(24)]
    delays = [late.delay(hour) for hour in hours]
    assert len(set(delays)) > 12 and max(delays) <= late.jitter
    assert delays == [replace(late, prompt="x").delay(hour) for hour in hours]
    assert delays != [replace(late, name="other").delay(hour) for hour in hours]
    async with open_process(late) as server:
        await server.pass_time(minutes=delays[0].total_seconds() / 60 - 0.5)
        assert await server.outcomes() == []
        await server.pass_time(minutes=1)
        [run] = await server.runs()
        assert (run.outcome, run.run.planned_at) == ("done", hours[0] + delays[0])
        assert (await server.catalog.get("news")).next_at == hours[1] + delays[1]
        await server.pass_time(hours=4)
        assert [each.run.note for each in (await server.runs())[1:]] == ["4 times came while the server was not there."]


async def test_a_schedule_whose_budget_is_used_up_is_skipped_until_it_renews() -> None:
    cheap = ScriptedReply("Nothing.", usage=Usage(100, 50, cost_usd=Decimal("0.4"), requests=1))
    model = ScriptedModel(otherwise=cheap)
    async with open_process(HOURLY, replace(HOURLY, name="other"), model=model) as server:
        await server.limit("news", per_day_usd="0.7")
        for _ in range(4):
            await server.pass_time(hours=1)
            await server.runs()
        mine = [each for each in await server.runs() if each.run.schedule == "news"]
        assert [each.outcome for each in mine] == ["done", "done", "skipped", "skipped"]
        assert mine[-1].reason == (
            "Its budget for today is used up: $0.8000 of $0.70. It renews on 22 November at 00:00 UTC."
        )
        assert sum(each.cost_usd or 0 for each in mine) == Decimal("0.8")
        await server.catalog.run("news", ANA)
        await server.runner.look()
        assert (await server.runs())[-1].outcome == "skipped"
        await server.pass_time(hours=9)
        assert (await server.catalog.list_runs("news"))[0].outcome in ("running", "done")


async def test_a_run_that_would_cost_more_than_one_may_fails_before_the_request_is_sent() -> None:
    price = (Decimal("0.0001"), Decimal("0.001"))
    model = ScriptedModel(
        ScriptedReply("", calls=(call("look", q="x"),), usage=Usage(10, 10, cost_usd=Decimal("0.4"), requests=1)),
        otherwise=ScriptedReply("Nothing."),
        price_usd=price,
    )
    dear = replace(HOURLY, budget=ScheduleBudget(per_run_usd=Decimal("0.3")))
    async with open_process(dear, model=model, tools=ToolsetFixture()) as server:
        await server.pass_time(hours=1)
        [run] = await server.runs()
        assert (run.outcome, run.reason) == ("failed", "The budget of this run is used up.")


async def test_a_run_by_hand_begins_at_once_also_of_one_that_is_off() -> None:
    async with open_process(replace(HOURLY, enabled=False)) as server:
        for _ in range(2):
            await server.catalog.run("news", ANA, key="once")
            await server.runner.look()
        [run] = await server.runs()
        assert (run.outcome, run.run.asked_by) == ("done", ANA.key)
        with pytest.raises(NotFound, match="no schedule 'nws'"):
            await server.catalog.run("nws", ANA)


@pytest.mark.proves("TW10")
async def test_the_list_shows_the_next_time_the_last_outcome_and_its_cost() -> None:
    async with open_process(HOURLY, replace(HOURLY, name="off", enabled=False)) as server:
        await server.pass_time(hours=1)
        await server.runs()
        news, off = await server.catalog.list_schedules()
        assert (news.next_at, off.next_at) == (NOON + timedelta(hours=2), None)
        assert off.last is None and news.last and news.last.outcome == "done"
        assert news.last.turn and news.last.turn.status is TurnStatus.DONE
        assert news.last.cost_usd == news.last.turn.result.usage.cost_usd


async def test_the_principal_of_a_schedule_is_nobody_else() -> None:
    assert HOURLY.principal == Principal(PrincipalKind.SCHEDULE, "news", "news")
    assert not HOURLY.principal.roles


async def test_without_schedules_nothing_is_looked_for() -> None:
    async with open_process() as server:
        assert await server.runner.look() is None
        await server.configure(HOURLY)
        assert await server.runner.look() == 20
        server.clock.advance(minutes=59)
        server.clock.advance(seconds=50)
        assert await server.runner.look() == 10


# --- hooks and tools --------------------------------------------------------------------------------------------------


@pytest.mark.proves("T24")
async def test_the_hooks_of_a_run_know_the_last_run_the_last_answer_and_the_next_task() -> None:
    told: JsonObject = {"q": "{{last_run}}, {{last_run_epoch}}, {{last_response}}, {{next_task}}"}
    hooks = Hooks((Hook("look", told),), (Hook("write", {"q": "{{response}} after {{last_run}}"}),))
    async with open_process(replace(HOURLY, conduct=ScheduleConduct(hooks=hooks)), next_task="Water.") as server:
        for _ in range(2):
            await server.pass_time(hours=1)
            *_, last = await server.runs()
            assert last.turn
            with anyio.fail_after(HANG_LIMIT_S):
                await server.engine.durable.wait(hook_run_id(last.turn.id))
        noon, one = int(NOON.timestamp()), int(NOON.timestamp()) + 3600
        assert [each.args["q"] for each in server.engine.tools.calls] == [
            f"2026-11-21T12:00:00+00:00, {noon}, , Water.",
            "Nothing. after 2026-11-21T12:00:00+00:00",
            f"2026-11-21T13:00:00+00:00, {one}, Nothing., Water.",
            "Nothing. after 2026-11-21T13:00:00+00:00",
        ]


@pytest.mark.proves("T29")
async def test_a_run_that_a_hook_skips_counts_as_run_and_each_run_may_have_a_session_of_its_own() -> None:
    skip = Hooks((Hook("look", {"q": "news"}, "found news"),))
    schedule = replace(HOURLY, conduct=ScheduleConduct(hooks=skip, new_session=True))
    async with open_process(schedule) as server:
        await server.pass_time(hours=1)
        [run] = await server.runs()
        assert (run.outcome, run.reason) == ("skipped", "A hook found that there was nothing to do.")
        assert not server.engine.model.requests
        await server.configure(replace(schedule, conduct=ScheduleConduct(new_session=True)))
        for _ in range(2):
            await server.pass_time(hours=1)
        skipped, first, second = [each.turn for each in await server.runs()]
        assert skipped and first and second
        variables = first.options["variables"]
        assert isinstance(variables, dict) and variables["last_run"] == "2026-11-21T13:00:00+00:00"
        assert len({skipped.session_id, first.session_id, second.session_id}) == 3


@pytest.mark.proves("X-internal-calls-automation")
async def test_the_calls_of_a_run_and_of_its_hooks_pass_the_gate_in_the_name_of_the_schedule() -> None:
    hooks = Hooks((Hook("look", {"q": "hook"}), Hook("wipe", {"q": "hook"})))
    model = ScriptedModel(ScriptedReply(calls=[call("wipe", q="run"), call("look", q="run")]), ScriptedReply("Done."))
    wipe, owner = replace(WRITE, name="wipe", tier=Tier.DANGEROUS), replace(ANA, roles=frozenset({RoleName.OWNER}))
    async with open_process(
        replace(HOURLY, conduct=ScheduleConduct(hooks=hooks)), model=model, tools=ToolsetFixture([LOOK, wipe])
    ) as server:
        await server.pass_time(hours=1)
        # Nobody is asked about what a hook wants where nobody asked for the run.
        [asked] = await wait_for_approvals(server.engine.store)
        assert (asked.request.requester, asked.request.args) == ("schedule:news", {"q": "run"})
        await server.engine.turns.approvals.decide(asked.id, owner, ApprovalChoice.DENY)
        assert await server.outcomes() == ["done"]
        assert [each.args["q"] for each in server.engine.tools.calls] == ["hook", "run"]
        events = [each.event async for each in read_log(server.engine.store) if each.event.kind is AuditKind.CALL]
        assert [(each.actor, each.subject, each.details["origin"]) for each in events] == [
            ("schedule:news", "look", "hook"),
            ("schedule:news", "wipe", "hook"),
            ("schedule:news", "wipe", "model"),
            ("schedule:news", "look", "model"),
        ]
