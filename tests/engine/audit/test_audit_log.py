"""The audit log in use: what gets into it, that it is there before harm can be done, and that it verifies."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing

import anyio
import pytest

from denizen.domain.approval import ApprovalChoice, AskerReach
from denizen.domain.audit import AuditEntry, AuditKind, digest_text
from denizen.domain.errors import Unavailable
from denizen.domain.events import TurnFinished
from denizen.domain.ids import AgentName, CallId, SessionId, TurnId
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import Origin, Tier, ToolCall, ToolResult
from denizen.domain.turn import TurnStatus
from denizen.domain.verdict import Decision, Verdict
from denizen.engine.audit.audit_log import AuditLog, read_log, verify_log
from denizen.engine.configuration.tool_policy import GatePolicy, ToolRule
from denizen.engine.tools.toolbox import NestedCalls, list_all
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from denizen.testing.temporary_store import TemporaryStore
from tests.engine.engine_fixture import PLACE, EngineFixture, ToolsetFixture, message, open_engine, wait_for_approvals
from tests.engine.platform_fixture import World, open_platform

pytestmark = pytest.mark.anyio

ANA = Principal(PrincipalKind.WEB_USER, "ana", "Ana")
SENSITIVE = GatePolicy(tiers=(("write", Tier.SENSITIVE),), rules=(ToolRule("write", Decision.APPROVE),))


def script() -> ScriptedModel:
    return ScriptedModel(ScriptedReply(calls=(call("look", q="milk"), call("write", q="milk"))), ScriptedReply("Done."))


async def load_log(store: Store, kind: AuditKind | None = None) -> Sequence[AuditEntry]:
    return [entry async for entry in read_log(store) if kind in (None, entry.event.kind)]


def list_states(entries: Sequence[AuditEntry]) -> list[tuple[str, object]]:
    return [(entry.event.subject, entry.event.details["state"]) for entry in entries]


async def test_each_call_of_a_turn_is_in_the_log_once_with_who_asked_and_who_decided() -> None:
    async with open_engine(script()) as engine:
        await engine.say("buy milk")
        entries = await load_log(engine.store)
    assert list_states(entries) == [("look", "done"), ("write", "done")]
    first = entries[0].event
    assert (first.kind, first.actor) == (AuditKind.CALL, "local:ana")
    assert (first.details["decided_by"], first.details["origin"]) == ("tier-0", "model")
    assert first.details["args"] == digest_text('{"q": "milk"}')
    assert "milk" not in str(first.details), "texts are kept as digests"


async def test_what_could_do_harm_is_in_the_log_before_it_runs() -> None:
    seen: list[list[tuple[str, object]]] = []
    store = TemporaryStore()

    async def run(made: ToolCall, scope: CallScope) -> ToolResult:
        del scope
        if made.tool == "write":
            seen.append(list_states(await load_log(store)))
        return ToolResult("ok")

    async with open_engine(script(), ToolsetFixture(run=run), store=store, policy=SENSITIVE) as engine:
        await engine.say("buy milk")
        entries = await load_log(store)
    assert seen == [[("write", "begun")]]
    assert list_states(entries) == [("write", "begun"), ("look", "done"), ("write", "done")]
    assert (await verify_log(store)).fault == ""


@pytest.mark.proves("P2")
async def test_what_cannot_be_written_down_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    async def begin(self: AuditLog, made: ToolCall, scope: CallScope, verdict: Verdict) -> None:
        raise Unavailable("The store is away.", code="store_unavailable")

    monkeypatch.setattr(AuditLog, "begin", begin)
    async with open_engine(script(), policy=SENSITIVE) as engine:
        await engine.say("buy milk")
        entries = await load_log(engine.store)
        assert [made.tool for made in engine.tools.calls] == ["look"]
    assert list_states(entries) == [("look", "done"), ("write", "denied")]
    assert entries[1].event.details["decided_by"] == "audit"


@pytest.mark.proves("X-internal-calls")
async def test_calls_from_within_a_call_are_recorded_with_their_origin() -> None:
    engines: list[EngineFixture] = []

    async def run(made: ToolCall, scope: CallScope) -> ToolResult:
        if made.tool == "write":
            return await NestedCalls(engines[0].runtime, engines[0].services.gate)(scope, "look", {"q": "inside"})
        return ToolResult(f"saw {made.args['q']}")

    model = ScriptedModel(ScriptedReply(calls=(call("write", q="milk"),)), ScriptedReply("Done."))
    async with open_engine(model, ToolsetFixture(run=run)) as engine:
        engines.append(engine)
        done = await engine.say("buy milk")
        async with engine.store.work(write=False) as work:
            records = await work.turns.list_calls(done.turn_id)
        entries = await load_log(engine.store)
    assert [(record.tool_call.tool, record.tool_call.origin) for record in records] == [
        ("write", Origin.MODEL),
        ("look", Origin.SKILL),
    ]
    assert (records[1].outcome.result.text, dict(records[1].tool_call.args)) == ("saw inside", {"q": "inside"})
    assert [entry.event.details["origin"] for entry in entries] == ["skill", "model"], "as they ended"


@pytest.mark.proves("X-internal-calls")
async def test_a_call_that_no_turn_records_is_audited_by_the_gate() -> None:
    async with open_engine(script()) as engine:
        bound = (await list_all(engine.runtime.current.toolsets))["look"]
        made = ToolCall(CallId("c1"), "look", {"q": "x"}, Origin.COMMAND)
        scope = CallScope(
            agent=AgentName("ada"), principal=ANA, place=PLACE, session_id=SessionId("s"), turn_id=TurnId("none")
        )
        await engine.services.gate.run(bound, made, scope, GatePolicy())
        entries = await load_log(engine.store)
    assert list_states(entries) == [("look", "done")]
    assert entries[0].event.details["origin"] == "command"


async def test_what_people_decide_is_in_the_log() -> None:
    policy = GatePolicy(rules=(ToolRule("write", Decision.ASK),))
    model = ScriptedModel(ScriptedReply(calls=(call("write", q="milk"),)), ScriptedReply("Done."))
    store = TemporaryStore()
    async with open_engine(model, policy=policy, store=store) as engine, anyio.create_task_group() as tasks:

        async def say_no() -> None:
            [approval] = await wait_for_approvals(engine.store)
            await engine.turns.approvals.decide(approval.id, ANA, ApprovalChoice.DENY, note="too much milk")

        tasks.start_soon(say_no)
        async for event in engine.turns.stream(message("buy milk", principal=ANA, reach=AskerReach.WATCHER)):
            if isinstance(event, TurnFinished):
                assert event.status is TurnStatus.DONE
    [entry] = await load_log(store, AuditKind.APPROVAL)
    assert (entry.event.actor, entry.event.details["status"]) == ("web_user:ana", "denied")
    assert "too much" not in str(entry.event)


async def test_what_is_posted_is_in_the_log_once() -> None:
    world = World()
    async with open_platform(world) as fixture:
        world.platform.say(world.general, "ana", "@ada hi")
        await fixture.settled()
        sent = fixture.ada.sent[0].id
    [entry] = await load_log(world.store, AuditKind.SEND)
    assert entry.event.actor == "agent:ada"
    assert entry.event.details["text"] == digest_text("Hello.")
    assert entry.event.details["message"] == sent


def forge(store: TemporaryStore, statement: str) -> None:
    """Somebody who has the file changes the rows of the log."""
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(statement)


async def test_a_log_that_was_changed_afterwards_is_found_out() -> None:
    store = TemporaryStore()
    async with open_engine(script(), store=store) as engine:
        await engine.say("buy milk")
    whole, entries = await verify_log(store), await load_log(store)
    assert (whole.fault, whole.head.number) == ("", 2)
    assert (await verify_log(store, noted=entries[0].digest)).fault == ""
    actor = entries[0].event.actor
    forge(store, "UPDATE audit SET actor = 'somebody else' WHERE number = 1")
    assert "Entry 1 was changed" in (await verify_log(store)).fault
    forge(store, f"UPDATE audit SET actor = '{actor}' WHERE number = 1")
    forge(store, "DELETE FROM audit WHERE number = 2")
    assert "The end is missing" in (await verify_log(store)).fault
    forge(store, f"UPDATE audit_head SET number = 1, digest = '{entries[0].digest}'")
    assert (await verify_log(store)).fault == ""
    assert "noted" in (await verify_log(store, noted=whole.head.digest)).fault
