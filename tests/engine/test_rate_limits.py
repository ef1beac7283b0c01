"""How often people, API keys and tools may be heard: in the store, so that a restart and another process change
nothing.
"""

import pytest

from denizen.app.settings.gate import GateSection
from denizen.domain.errors import LimitExceeded
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.rate_limit import DAY_S, HOUR_S, RateLimit
from denizen.engine.configuration.tool_policy import GatePolicy, RateLimits
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from denizen.testing.temporary_store import TemporaryStore
from tests.clock import ManualClock
from tests.engine.engine_fixture import EngineFixture, ToolsetFixture, open_engine

pytestmark = pytest.mark.anyio

ANA = Principal(PrincipalKind.PLATFORM_USER, "7", "Ana")
BOB = Principal(PrincipalKind.PLATFORM_USER, "8", "Bob")
SCRIPT = Principal(PrincipalKind.API_KEY, "script", "script")


def talkative() -> ScriptedModel:
    return ScriptedModel(otherwise=ScriptedReply("ok"))


async def ask(engine: EngineFixture, who: Principal, times: int = 1) -> list[str]:
    """Returns an empty text for each answer, and for each refusal its words."""
    said: list[str] = []
    for _ in range(times):
        try:
            await engine.say("x", principal=who)
            said.append("")
        except LimitExceeded as error:
            said.append(error.message)
    return said


@pytest.mark.proves("L2", "LW1", "X-rate-limit")
async def test_by_default_a_user_has_20_requests_in_a_sliding_hour_in_all_processes_of_a_store() -> None:
    store, clock, policy = TemporaryStore(), ManualClock(), GateSection().policy()
    async with open_engine(talkative(), store=store, clock=clock, policy=policy) as engine:
        assert await ask(engine, ANA) == [""]
        clock.advance(minutes=30)
        assert await ask(engine, ANA, 14) == [""] * 14
        async with open_engine(talkative(), store=store, clock=clock, policy=policy) as other:
            assert await ask(other, ANA, 5) == [""] * 5
            refused = "You have asked 20 times within the hour. Please come back in 30 min."
            assert await ask(other, ANA, 3) == [refused] * 3
        assert await ask(engine, ANA) == [refused]
        assert await ask(engine, BOB) == [""]
        clock.advance(minutes=30)
    async with open_engine(talkative(), store=store, clock=clock, policy=policy) as later:
        # The first request left the window; of those that were refused since, none is in it.
        assert await ask(later, ANA, 2) == ["", refused]


@pytest.mark.proves("LW2", "L-config-rate-limit")
async def test_the_limit_that_is_configured_holds() -> None:
    policy = GateSection.model_validate({"rate_limits": {"per_user_per_hour": 3}}).policy()
    async with open_engine(talkative(), policy=policy) as engine:
        assert [bool(why) for why in await ask(engine, ANA, 4)] == [False, False, False, True]
    unlimited = GateSection.model_validate({"rate_limits": {"per_user_per_hour": 0}}).policy()
    async with open_engine(talkative(), policy=unlimited) as engine:
        assert not any(await ask(engine, ANA, 25))


@pytest.mark.proves("X-rate-limit")
async def test_users_and_api_keys_have_limits_of_an_hour_and_a_day() -> None:
    limits = RateLimit(2, HOUR_S), RateLimit(3, DAY_S)
    clock, policy = ManualClock(), GatePolicy(rate_limits=RateLimits(per_user=limits, per_key=limits[:1]))
    async with open_engine(talkative(), clock=clock, policy=policy) as engine:
        assert [bool(why) for why in await ask(engine, ANA, 3)] == [False, False, True]
        assert [bool(why) for why in await ask(engine, SCRIPT, 3)] == [False, False, True]
        clock.advance(hours=1)
        why = "You have asked 3 times within the day. Please come back in 23 h."
        assert await ask(engine, ANA, 2) == ["", why]
        assert await ask(engine, SCRIPT, 1) == [""]
        assert not any(await ask(engine, Principal(PrincipalKind.LOCAL, "me", "me"), 5))


@pytest.mark.proves("X-rate-limit", "V18")
async def test_calls_of_a_tool_are_counted_in_all_its_windows_for_each_asker_in_all_processes() -> None:
    store, clock, calls = TemporaryStore(), ManualClock(), [call("look", q="x")]
    limits = RateLimits(by_tool=(("look", (RateLimit(1, 60), RateLimit(2, HOUR_S))),))
    policy = GatePolicy(rate_limits=limits)

    async def use(tools: ToolsetFixture, who: Principal) -> int:
        model = ScriptedModel(ScriptedReply(calls=calls), ScriptedReply("done"))
        async with open_engine(model, tools, store=store, clock=clock, policy=policy) as engine:
            await engine.say("look", principal=who)
        return len(tools.calls)

    assert [await use(ToolsetFixture(), who) for who in (ANA, ANA, BOB)] == [1, 0, 1]
    clock.advance(60)
    assert [await use(ToolsetFixture(), ANA) for _ in range(2)] == [1, 0]
    clock.advance(60)
    assert await use(ToolsetFixture(), ANA) == 0
    clock.advance(hours=1)
    assert await use(ToolsetFixture(), ANA) == 1


async def test_uses_counted_by_a_clock_that_was_years_ahead_lock_nobody_out_who_keeps_trying() -> None:
    clock, policy = ManualClock(), GatePolicy(rate_limits=RateLimits(per_user=(RateLimit(2, HOUR_S),)))
    async with open_engine(talkative(), clock=clock, policy=policy) as engine:
        assert [bool(why) for why in await ask(engine, ANA, 3)] == [False, False, True]
        clock.advance(days=-1000)
        assert [bool(why) for why in await ask(engine, ANA, 3)] == [False, False, True]
        clock.advance(minutes=30)
        assert [bool(why) for why in await ask(engine, ANA)] == [True]
