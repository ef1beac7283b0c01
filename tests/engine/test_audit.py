"""The audit log in use: what gets into it, that it is there before harm can be done, and that it verifies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import anyio
import pytest

from denizen.domain.approval import Choice, Reach
from denizen.domain.audit import AuditEntry, AuditKind, digest_text
from denizen.domain.errors import Unavailable
from denizen.domain.events import TurnFinished
from denizen.domain.ids import AgentName, CallId, ConversationId, SessionId, TurnId
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import Origin, Tier, ToolCall, ToolResult
from denizen.domain.turn import TurnStatus
from denizen.domain.verdict import Decision, Verdict
from denizen.engine.audit import Ledger, read_log, verify_log
from denizen.engine.gate.policy import GatePolicy, Rule
from denizen.engine.toolbox import NestedCalls, list_all
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope
from denizen.testing.memory_store import MemoryStore
from denizen.testing.scripted_model import Say, ScriptedModel, call
from tests.engine.house import PLACE, House, Tools, message, open_house
from tests.engine.platform_fixture import World, open_town

pytestmark = pytest.mark.anyio

ANA = Principal(PrincipalKind.WEB_USER, "ana", "Ana")
SENSITIVE = GatePolicy(tiers=(("write", Tier.SENSITIVE),), rules=(Rule("write", Decision.APPROVE),))


def script() -> ScriptedModel:
    return ScriptedModel(Say(calls=(call("look", q="milk"), call("write", q="milk"))), Say("Done."))


async def log_of(store: Store, kind: AuditKind | None = None) -> Sequence[AuditEntry]:
    return [entry async for entry in read_log(store) if kind in (None, entry.event.kind)]


def told(entries: Sequence[AuditEntry]) -> list[tuple[str, object]]:
    return [(entry.event.subject, entry.event.details["state"]) for entry in entries]


async def test_each_call_of_a_turn_is_in_the_log_once_with_who_asked_and_who_decided() -> None:
    async with open_house(script()) as house:
        await house.say("buy milk")
        entries = await log_of(house.store)
    assert told(entries) == [("look", "done"), ("write", "done")]
    first = entries[0].event
    assert (first.kind, first.actor) == (AuditKind.CALL, "local:ana")
    assert (first.details["decided_by"], first.details["origin"]) == ("tier-0", "model")
    assert first.details["args"] == digest_text('{"q": "milk"}')
    assert "milk" not in str(first.details), "texts are kept as digests"


async def test_what_could_do_harm_is_in_the_log_before_it_runs() -> None:
    seen: list[list[tuple[str, object]]] = []
    store = MemoryStore()

    async def run(made: ToolCall, scope: CallScope) -> ToolResult:
        del scope
        if made.tool == "write":
            seen.append(told(await log_of(store)))
        return ToolResult("ok")

    async with open_house(script(), Tools(run=run), store=store, policy=SENSITIVE) as house:
        await house.say("buy milk")
        entries = await log_of(store)
    assert seen == [[("write", "begun")]]
    assert told(entries) == [("write", "begun"), ("look", "done"), ("write", "done")]
    assert (await verify_log(store)).fault == ""


async def test_what_cannot_be_written_down_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    async def begin(self: Ledger, made: ToolCall, scope: CallScope, verdict: Verdict) -> None:
        raise Unavailable("The store is away.", code="store_unavailable")

    monkeypatch.setattr(Ledger, "begin", begin)
    async with open_house(script(), policy=SENSITIVE) as house:
        await house.say("buy milk")
        entries = await log_of(house.store)
        assert [made.tool for made in house.tools.calls] == ["look"]
    assert told(entries) == [("look", "done"), ("write", "denied")]
    assert entries[1].event.details["decided_by"] == "audit"


@pytest.mark.proves("X-internal-calls")
async def test_calls_from_within_a_call_are_recorded_with_their_origin() -> None:
    houses: list[House] = []

    async def run(made: ToolCall, scope: CallScope) -> ToolResult:
        if made.tool == "write":
            return await NestedCalls(houses[0].runtime, houses[0].services.gate)(scope, "look", {"q": "inside"})
        return ToolResult(f"saw {made.args['q']}")

    model = ScriptedModel(Say(calls=(call("write", q="milk"),)), Say("Done."))
    async with open_house(model, Tools(run=run)) as house:
        houses.append(house)
        done = await house.say("buy milk")
        async with house.store.work(write=False) as work:
            records = await work.turns.list_calls(done.turn_id)
        entries = await log_of(house.store)
    assert [(record.tool, record.origin) for record in records] == [("write", Origin.MODEL), ("look", Origin.SKILL)]
    assert (records[1].result, dict(records[1].args)) == ("saw inside", {"q": "inside"})
    assert [entry.event.details["origin"] for entry in entries] == ["skill", "model"], "as they ended"


async def test_a_call_that_no_turn_records_is_written_by_the_door() -> None:
    async with open_house(script()) as house:
        bound = (await list_all(house.runtime.current.toolsets))["look"]
        made = ToolCall(CallId("c1"), "look", {"q": "x"}, Origin.COMMAND)
        scope = CallScope(AgentName("ada"), ANA, PLACE, ConversationId("c"), SessionId("s"), TurnId("none"))
        await house.services.gate.run(bound, made, scope, GatePolicy())
        entries = await log_of(house.store)
    assert told(entries) == [("look", "done")]
    assert entries[0].event.details["origin"] == "command"


async def test_what_people_decide_is_in_the_log() -> None:
    policy = GatePolicy(rules=(Rule("write", Decision.ASK),))
    model = ScriptedModel(Say(calls=(call("write", q="milk"),)), Say("Done."))
    store = MemoryStore()
    async with open_house(model, policy=policy, store=store) as house, anyio.create_task_group() as tasks:

        async def say_no() -> None:
            while True:
                async with house.store.work(write=False) as work:
                    found = await work.approvals.list_approvals()
                if found:
                    await house.turns.approvals.decide(found[0].id, ANA, Choice.DENY, note="too much milk")
                    return
                await anyio.sleep(0.001)

        tasks.start_soon(say_no)
        async for event in house.turns.stream(message("buy milk", principal=ANA, reach=Reach.WATCHER)):
            if isinstance(event, TurnFinished):
                assert event.status is TurnStatus.DONE
    [entry] = await log_of(store, AuditKind.APPROVAL)
    assert (entry.event.actor, entry.event.details["status"]) == ("web_user:ana", "denied")
    assert "too much" not in str(entry.event)


async def test_what_is_posted_is_in_the_log_once() -> None:
    world = World()
    async with open_town(world) as town:
        world.platform.say(world.general, "ana", "@ada hi")
        await town.settled()
        sent = town.ada.sent[0].id
    [entry] = await log_of(world.store, AuditKind.SEND)
    assert entry.event.actor == "agent:ada"
    assert entry.event.details["text"] == digest_text("Hello.")
    assert entry.event.details["message"] == sent


class Forgery(MemoryStore):
    """A store whose rows somebody can get at."""

    @property
    def rows(self) -> dict[int, AuditEntry]:
        return self._tables.audit


async def test_a_log_that_was_changed_afterwards_is_found_out() -> None:
    store = Forgery()
    async with open_house(script(), store=store) as house:
        await house.say("buy milk")
    whole, kept = await verify_log(store), dict(store.rows)
    assert (whole.fault, whole.head.number) == ("", 2)
    assert (await verify_log(store, noted=kept[1].digest)).fault == ""
    store.rows[1] = replace(kept[1], event=replace(kept[1].event, actor="somebody else"))
    assert "Entry 1 was changed" in (await verify_log(store)).fault
    store.rows[1] = kept[1]
    del store.rows[2]
    assert "noted" in (await verify_log(store, noted=whole.head.digest)).fault
