"""Side completions: one request to a model beside a turn, billed like the turn's own. The observer and skills use them,
and programs that want something about a conversation.

It is reserved and counted in the budgets of the call's asker, agent and place, and noted on the call's trail, from
where it gets into the usage of the turn. No cheaper model stands in for it: the owner chose who watches.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace

from denizen.domain.agent import Agent
from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.demands import AnswerDemands, StopFilter
from denizen.domain.errors import Unavailable
from denizen.domain.ids import SessionId, TurnId, fresh
from denizen.domain.message import Role, TextPart, join_text
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.prompt import PromptMessage, Segment
from denizen.engine.budget.budgets import Payer, Payment, TurnBudget
from denizen.engine.configuration.generation import Runtime
from denizen.engine.events.live_events import LiveEvents
from denizen.engine.intake.rate_limiter import RateLimiter, rate_error, turn_rate_key
from denizen.ports.model import ModelReply, ModelRequest, TextDelta, ThinkingDelta
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope


class BilledCompletion:
    """`denizen.engine.gate.observer.BilledCompletion`, with the models of the current configuration."""

    def __init__(self, runtime: Runtime, store: Store, clock: Clock) -> None:
        self._runtime = runtime
        self._store = store
        self._clock = clock

    async def __call__(self, scope: CallScope, model: str, request: ModelRequest) -> ModelReply:
        """Raises NotFound for an unknown model, LimitExceeded when no budget is left, and what the model raises."""
        async with self._runtime.lease() as generation:
            # A key of its own: it neither takes nor frees what the turn's steps have reserved.
            key, asker = TurnId(fresh("consult")), scope.principal
            guild = scope.guild if asker.kind is PrincipalKind.PLATFORM_USER else None
            payer = Payer.at_place(key, scope.agent, asker, scope.place, guild, generation)
            budgets = TurnBudget(payer.without_cheaper(), self._store, LiveEvents(), self._clock)
            async with budgets.paying(1, generation.models.get(model), request) as payment:
                reply = await complete(payment)
                await budgets.settle_request(payment, reply)
        scope.trail.usage += reply.usage
        return reply


async def complete(payment: Payment) -> ModelReply:
    """The reply to a request that is paid for. Raises what the model raises."""
    async with aclosing(payment.model.stream(payment.request)) as events:
        async for event in events:
            match event:
                case TextDelta() | ThinkingDelta():
                    payment.heard_chars += len(event.text)
                case ModelReply():
                    return event
                case _:
                    pass
    raise Unavailable("The model ended its answer too early.", code="model_incomplete", model=payment.model.name)


class SideCompletion:
    """Completions of a skill with its agent's model, sent and paid for as `BilledCompletion`."""

    def __init__(self, runtime: Runtime, consult: BilledCompletion) -> None:
        self._runtime = runtime
        self._consult = consult

    async def __call__(self, scope: CallScope, instructions: str, text: str, *, max_output_tokens: int = 4000) -> str:
        """The answer's text. Raises Unavailable for an empty one, and what `BilledCompletion` raises."""
        async with self._runtime.lease() as generation:
            agent = generation.agent(scope.agent)
            can = generation.models.get(agent.model).capabilities
        request = ModelRequest(
            segments=(Segment("skill", instructions),),
            messages=(PromptMessage(Role.USER, (TextPart(text),)),),
            max_output_tokens=min(max_output_tokens, can.max_output_tokens or max_output_tokens),
            sampling=agent.sampling,
            conversation_key=f"{scope.session_id}-aside",
        )
        answer = join_text((await self._consult(scope, agent.model, request)).parts).strip()
        if not answer:
            raise Unavailable("The model gave no answer.", code="model_incomplete", fix="Try again.")
        return answer


class TaskCompletion:
    """Completions beside all conversations: an agent's model alone, without its persona, tools, memory and sessions.

    For what a program wants about a conversation, such as a title. It counts as a question in the asker's rate limits.
    """

    def __init__(self, runtime: Runtime, consult: BilledCompletion, limiter: RateLimiter) -> None:
        self._runtime = runtime
        self._consult = consult
        self._limiter = limiter

    async def __call__(
        self,
        agent: Agent,
        asker: Principal,
        place: Place,
        *,
        instructions: str,
        messages: tuple[PromptMessage, ...],
        max_output_tokens: int | None,
        demands: AnswerDemands,
    ) -> ModelReply:
        """Raises LimitExceeded for somebody who asks too often, and what `BilledCompletion` raises."""
        async with self._runtime.lease() as generation:
            limits = generation.policy.rate_limits.of(asker)
            can = generation.models.get(agent.model).capabilities
        excess = await self._limiter.take(turn_rate_key(asker), limits)
        if excess is not None:
            raise rate_error(excess)
        most = min(agent.limits.max_output_tokens, can.max_output_tokens or agent.limits.max_output_tokens)
        request = ModelRequest(
            segments=(Segment("task", instructions),) if instructions else (),
            messages=messages,
            max_output_tokens=min(max_output_tokens or most, most),
            sampling=demands.apply_sampling(agent.sampling),
        )
        scope = CallScope(agent=agent.name, principal=asker, place=place, session_id=SessionId(""), turn_id=TurnId(""))
        reply = await self._consult(scope, agent.model, request)
        stop = StopFilter(demands.stop)
        text = stop.feed(join_text(reply.parts)) + stop.finish()
        return replace(reply, parts=(TextPart(text),))
