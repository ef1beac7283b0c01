"""Calls that a program makes itself: through the gate, of the agent's own tools, on record, never past people."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from denizen.domain.agent import Agent, ToolAccess
from denizen.domain.clock import SystemClock
from denizen.domain.conversation import Place
from denizen.domain.errors import InvalidInput, LimitExceeded, NeedsApproval, NotAllowed, NotFound
from denizen.domain.json import Json
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.rate_limit import RateLimit
from denizen.domain.tool import Origin, Tier, ToolCall, ToolResult
from denizen.domain.verdict import Decision
from denizen.engine.audit.audit_log import read_log
from denizen.engine.configuration.generation import Runtime
from denizen.engine.configuration.tool_policy import GatePolicy, RateLimits, ToolRule
from denizen.engine.external.requests import DirectCall, DirectCallResult, DirectCalls
from denizen.engine.loop.services import build_services
from denizen.ports.toolset import CallScope
from denizen.skill import ArchiveLookup
from denizen.testing.memory_durable import MemoryDurable
from denizen.testing.scripted_model import ScriptedModel
from denizen.testing.temporary_store import TemporaryStore
from tests.engine.archive.archive_fixture import ArchiveFixture
from tests.engine.engine_fixture import LOOK, NAME, WRITE, ToolsetFixture, generation

pytestmark = pytest.mark.anyio

KEY = Principal(PrincipalKind.API_KEY, "ci", "ci", frozenset({"member"}))
DROP = replace(WRITE, name="drop", tier=Tier.LIMITED, destructive=True)


@dataclass
class DirectCallFixture:
    """Where a program makes its calls."""

    calls: DirectCalls
    tools: ToolsetFixture
    store: TemporaryStore

    async def call(self, tool: str = "look", agent: str = "", **args: Json) -> DirectCallResult:
        return await self.calls.make(DirectCall(KEY, tool, args or {"q": "x"}, agent))

    async def audited(self) -> list[tuple[str, str, Json, Json]]:
        entries = [entry.event async for entry in read_log(self.store)]
        return [(each.actor, each.subject, each.details["origin"], each.details["state"]) for each in entries]


@asynccontextmanager
async def counter(
    tools: ToolsetFixture, *, policy: GatePolicy | None = None, agent: Agent | None = None
) -> AsyncGenerator[DirectCallFixture]:
    clock, runtime, store = SystemClock(), Runtime(), TemporaryStore()
    services = build_services(runtime, store, MemoryDurable(), clock)
    await runtime.swap(generation(ScriptedModel(), tools, policy=policy, agent=agent))
    yield DirectCallFixture(DirectCalls(runtime, services), tools, store)
    await runtime.aclose()


@pytest.mark.proves("X-internal-calls")
async def test_a_call_runs_on_behalf_of_its_caller_and_stands_in_the_audit_log() -> None:
    scopes: list[CallScope] = []

    async def run(call: ToolCall, scope: CallScope) -> ToolResult:
        scopes.append(scope)
        return ToolResult("found", data={"rows": [1]})

    async with counter(ToolsetFixture(run=run)) as at:
        done = await at.call()
        await at.call()
        assert await at.audited() == [("api_key:ci", "look", "api", "done")] * 2
    assert (done.result.text, done.result.data) == ("found", {"rows": [1]})
    assert {call.origin for call in at.tools.calls} == {Origin.API}
    assert scopes[0].principal == KEY
    assert scopes[0].place == Place("api", "api_key:ci", "direct calls")
    assert scopes[0].session_id == scopes[1].session_id
    assert scopes[0].options.idempotency_key != scopes[1].options.idempotency_key


async def test_only_tools_of_the_agent_can_be_called() -> None:
    async with counter(ToolsetFixture(), agent=Agent(NAME, tool_access=ToolAccess(tools=("look",)))) as at:
        assert [spec.name for spec in await at.calls.list_tools()] == ["look"]
        for tool in ("write", "gone"):
            with pytest.raises(NotFound, match=f"has no tool '{tool}'"):
                await at.call(tool)
        with pytest.raises(NotFound, match="no agent 'bob'"):
            await at.call("look", agent="bob")
    assert at.tools.calls == []


async def test_arguments_are_checked_before_anything_is_decided() -> None:
    async with counter(ToolsetFixture()) as at:
        with pytest.raises(InvalidInput, match="Wrong arguments for 'look'"):
            await at.call(q=3, more="x")
        assert await at.audited() == []


@pytest.mark.proves("X-approval-absent")
async def test_what_people_have_to_decide_is_refused_and_says_how_to_ask_them() -> None:
    tools = ToolsetFixture(specs=[LOOK, replace(WRITE, tier=Tier.DANGEROUS), DROP])
    ask = GatePolicy(rules=(ToolRule("look", Decision.ASK),))
    async with counter(tools, policy=ask) as at:
        for tool in ("look", "write", "drop"):
            with pytest.raises(NeedsApproval) as caught:
                await at.call(tool)
            assert "in a turn" in caught.value.fix
            assert caught.value.why
        assert [row[3] for row in await at.audited()] == ["failed"] * 3
    assert tools.calls == []


@pytest.mark.proves("X-internal-calls")
async def test_a_denied_call_does_not_run_and_says_why() -> None:
    policy = GatePolicy(
        rules=(ToolRule("look", Decision.DENY, reason="not over HTTP", origins=frozenset({Origin.API})),)
    )
    async with counter(ToolsetFixture(), policy=policy) as at:
        with pytest.raises(NotAllowed) as caught:
            await at.call()
    assert caught.value.why == "not over HTTP"
    assert at.tools.calls == []


@pytest.mark.proves("X-rate-limit")
async def test_a_caller_has_the_rate_that_the_owner_set() -> None:
    policy = GatePolicy(rate_limits=RateLimits(by_tool=(("look", (RateLimit(1, 60.0),)),)))
    async with counter(ToolsetFixture(), policy=policy) as at:
        await at.call()
        with pytest.raises(LimitExceeded):
            await at.call()
    assert len(at.tools.calls) == 1


async def test_a_fault_of_the_gate_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = GatePolicy()

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    async with counter(ToolsetFixture(), policy=policy) as at:
        monkeypatch.setattr(GatePolicy, "find_rule", fail)
        with pytest.raises(NotAllowed, match="denied"):
            await at.call()
    assert at.tools.calls == []


async def test_a_tools_own_error_is_a_result() -> None:
    async def fail(call: ToolCall, scope: CallScope) -> ToolResult:
        raise ZeroDivisionError

    async with counter(ToolsetFixture(run=fail)) as at:
        done = await at.call()
    assert done.result.is_error
    assert "reference" in done.result.text


async def test_a_direct_call_sees_nothing_of_the_archive() -> None:
    """Promise 3: whoever calls over HTTP is nobody on the platform, whatever the place of the call is called."""
    archived = ArchiveFixture()
    archived.platform.write(archived.general, "kim", "the key is under the mat")
    await archived.mirror_all()
    asked: list[Callable[[ArchiveLookup], Awaitable[object]]] = [
        lambda archive: archive.search("key"),
        lambda archive: archive.history(archived.general.id),
        lambda archive: archive.stats("room"),
    ]

    async def look(call: ToolCall, scope: CallScope) -> ToolResult:
        archive = archived.lookup.open(scope)
        assert archive is not None
        return ToolResult(str(await asked[int(str(call.args["q"]))](archive)))

    async with counter(ToolsetFixture(run=look)) as at:
        for number in range(len(asked)):
            done = await at.call(q=str(number))
            assert done.result.is_error
            assert done.result.text == "There is no archive of messages here."
