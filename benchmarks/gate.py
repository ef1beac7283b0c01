"""Measures the cost of the gate for a call, without the tool: tiers 0 and 1, and tier 2 with a cached verdict.

The store of the observer's switch and of the rate limits is SQLite, as in a usual home folder; the policy has 50 rules
of which none matches.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure, middle
from denizen.adapters.store import open_store
from denizen.domain.clock import SystemClock
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, CallId, SessionId, TurnId
from denizen.domain.message import TextPart
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.rate_limit import RateLimit
from denizen.domain.tool import Tier, ToolCall, ToolSpec
from denizen.domain.usage import Usage
from denizen.domain.verdict import Decision
from denizen.engine.configuration.tool_policy import GatePolicy, ObserverPolicy, RateLimits, ToolRule
from denizen.engine.gate.decision import PolicyEngine
from denizen.engine.gate.observer import Observer
from denizen.engine.intake.rate_limiter import RateLimiter
from denizen.ports.model import ModelReply, ModelRequest
from denizen.ports.toolset import AskedText, CallScope

TIMES = 2000
POLICY = GatePolicy(
    rules=tuple(ToolRule(f"other_{number}_*", Decision.DENY, {"path": "x"}) for number in range(50)),
    rate_limits=RateLimits(default=RateLimit(60, 0.01)),
    observer=ObserverPolicy("watcher"),
)
SCOPE = CallScope(
    agent=AgentName("ada"),
    principal=Principal(PrincipalKind.LOCAL, "ana", "Ana"),
    place=Place("terminal", "t"),
    session_id=SessionId("s"),
    turn_id=TurnId("t"),
    question=AskedText("What is the weather like?"),
)
CALL = ToolCall(CallId("1"), "look", {"place": "Paris", "days": 3, "words": "rain or shine " * 20})


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_measure(Path(folder)))


async def _measure(folder: Path) -> list[Figure]:
    clock = SystemClock()
    store = await open_store(f"sqlite:///{folder / 'denizen.db'}", clock=clock)
    try:
        engine = PolicyEngine(RateLimiter(store, clock), Observer(store, clock, _approve))
        return [
            Figure("gate, tier 0", await _time(engine, Tier.HARMLESS), "ms", aim=0.2),
            Figure("gate, tier 1", await _time(engine, Tier.LIMITED), "ms", aim=2.0),
            Figure("gate, tier 2 with a kept verdict", await _time(engine, Tier.SENSITIVE), "ms", aim=2.0),
        ]
    finally:
        await store.aclose()


async def _time(engine: PolicyEngine, tier: Tier) -> float:
    spec = ToolSpec("look", "Looks something up.", {"type": "object"}, tier=tier)
    took: list[float] = []
    for _ in range(TIMES):
        started = time.perf_counter()
        verdict = await engine.decide(spec, CALL, SCOPE, POLICY)
        took.append((time.perf_counter() - started) * 1e3)
        assert verdict.decision is Decision.APPROVE
    return middle(took)


async def _approve(scope: CallScope, model: str, request: ModelRequest) -> ModelReply:
    """The only request: the others have its verdict."""
    del scope, model, request
    text = '{"decision": "approve", "reason": "it was asked for"}'
    return ModelReply((TextPart(text),), Usage(requests=1), "stop", "bench/watcher", "bench")
