"""What tests of the gate are made of: tools that remember, calls, places, an observer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError
from denizen.domain.ids import AgentName, CallId, SessionId, TurnId
from denizen.domain.json import Json, JsonObject
from denizen.domain.message import Part, TextPart
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import Origin, Taint, Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.usage import Usage
from denizen.domain.verdict import Verdict
from denizen.engine.configuration.tool_policy import GatePolicy, ObserverPolicy
from denizen.engine.gate.decision import PolicyEngine
from denizen.engine.gate.observer import Observer
from denizen.engine.intake.rate_limiter import RateLimiter
from denizen.ports.model import FinishReason, ModelReply, ModelRequest
from denizen.ports.toolset import CallScope, CallTrail
from denizen.testing.temporary_store import TemporaryStore
from tests.clock import ManualClock

ANA = Principal(PrincipalKind.PLATFORM_USER, "discord:1", "Ana")
OWNER = replace(ANA, id="discord:9", name="Zoe", roles=frozenset({"owner"}))
PLACE = Place("discord", "10")
WATCHED = GatePolicy(observer=ObserverPolicy("watcher", timeout_s=5.0, cache_ttl_s=60.0))


@dataclass
class RecordingToolset:
    """A toolset that remembers its calls."""

    specs: list[ToolSpec]
    error: Exception | None = None
    calls: list[tuple[ToolCall, CallScope]] = field(default_factory=list)
    name: str = "recorder"

    async def list_tools(self) -> list[ToolSpec]:
        return self.specs

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        self.calls.append((call, scope))
        if self.error is not None:
            raise self.error
        return ToolResult("done")

    async def aclose(self) -> None: ...


@dataclass
class ScriptedObserver:
    """What the observer's model says, one after another, the last one again and again; and what it was asked."""

    says: list[str | DenizenError | TimeoutError | ModelReply]
    asked: list[ModelRequest] = field(default_factory=list)

    async def __call__(self, scope: CallScope, model: str, request: ModelRequest) -> ModelReply:
        assert model == "watcher"
        said = self.says[min(len(self.asked), len(self.says) - 1)]
        self.asked.append(request)
        if isinstance(said, DenizenError | TimeoutError):
            raise said
        return said if isinstance(said, ModelReply) else reply(said)


def reply(text: str, finish: FinishReason = "stop", *parts: Part) -> ModelReply:
    return ModelReply((TextPart(text), *parts), Usage(10, 5, requests=1), finish, "w/1", "w")


def verdict(decision: str, reason: str = "because") -> str:
    return f'{{"decision": "{decision}", "reason": "{reason}"}}'


def spec(name: str = "look", tier: Tier = Tier.HARMLESS, **more: object) -> ToolSpec:
    return replace(ToolSpec(name, "", {"type": "object"}, tier=tier), **more)


def call(name: str = "look", args: JsonObject | None = None, origin: Origin = Origin.MODEL) -> ToolCall:
    return ToolCall(CallId("1"), name, args or {}, origin)


def scope(who: Principal = ANA, *taint: Taint, **more: object) -> CallScope:
    base = CallScope(
        agent=AgentName("ada"),
        principal=who,
        place=PLACE,
        session_id=SessionId("s"),
        turn_id=TurnId("t"),
        taint=frozenset(taint),
        trail=CallTrail(),
    )
    return replace(base, **more)


@dataclass
class GateFixture:
    """A policy engine with an observer, or without one where `says` is empty."""

    says: list[str | DenizenError | TimeoutError | ModelReply] = field(default_factory=list)
    clock: ManualClock = field(default_factory=ManualClock)
    store: TemporaryStore = field(default_factory=TemporaryStore)

    def __post_init__(self) -> None:
        self.opinions = ScriptedObserver(self.says)
        self.observer = Observer(self.store, self.clock, self.opinions)
        self.policy_engine = PolicyEngine(RateLimiter(self.store, self.clock), self.observer if self.says else None)

    @property
    def asked(self) -> int:
        """How often the observer's model was asked."""
        return len(self.opinions.asked)

    async def about(
        self,
        tool: ToolSpec,
        policy: GatePolicy | None = None,
        *,
        at: CallScope | None = None,
        origin: Origin = Origin.MODEL,
        floor: Tier = Tier.HARMLESS,
        **args: Json,
    ) -> Verdict:
        policy = policy or (WATCHED if self.says else GatePolicy())
        asked = call(tool.name, args, origin)
        return await self.policy_engine.decide(tool, asked, at or scope(), policy, floor=floor)
