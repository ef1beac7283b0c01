"""Budgets: money is reserved before a request is sent, or refused by a limit, and counted when the reply is there.

Reserving is one unit of work, so of two that want the last of a budget at the same time, one gets it. `TurnBudget` is
for requests of turns; `engine/embedding` reserves for embeddings in the same way.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

import anyio

from denizen.domain.budget import (
    SERVER,
    BudgetLimit,
    BudgetLimits,
    BudgetPeriod,
    BudgetPolicy,
    BudgetScope,
    BudgetScopeKind,
    BudgetStatus,
    WhenExhausted,
    decide_request,
    renews_at,
    utc_day,
)
from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, LimitExceeded
from denizen.domain.events import Notice
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.prompt import CHARS_PER_TOKEN, count_tool_tokens, estimate_tokens
from denizen.domain.prompt_messages import count_tokens
from denizen.domain.record import record
from denizen.domain.statistics import SideRequest
from denizen.domain.turn import RUN_BUDGET, Step, Turn
from denizen.domain.usage import Usage
from denizen.engine.configuration.choices import ModelMode, list_aliases
from denizen.engine.configuration.generation import Generation
from denizen.engine.events.live_events import LiveEvents
from denizen.ports.model import Model, ModelReply, ModelRequest, Models
from denizen.ports.store import Store, UnitOfWork
from denizen.ports.usage import Reservation

_log = logging.getLogger("denizen.budget")


@record
class BudgetRefusal:
    limit: BudgetLimit
    standing: BudgetStatus
    wanted_usd: Decimal


@record
class ReservedBudget:
    """`near` are the budgets that are nearly used up now, each told once a day."""

    refusal: BudgetRefusal | None = None
    near: tuple[BudgetScope, ...] = ()


async def reserve(store: Store, policy: BudgetPolicy, wanted: Reservation, *, now: datetime) -> ReservedBudget:
    """Reserves unless a limit of the reservation's scopes says no."""
    limits = policy.plan_limits(wanted.scopes)
    scopes = list(dict.fromkeys(limit.scope for limit in limits))
    async with store.work() as work:
        await work.spending.lock(scopes)
        standings = dict(await work.spending.read(scopes, now=now, besides=wanted.id))
        ruling = decide_request(limits, standings, wanted.usd, warn_at=policy.warn_at)
        refused = ruling.refused_by
        if refused is not None:
            return ReservedBudget(BudgetRefusal(refused, standings[refused.scope], wanted.usd))
        await work.spending.reserve(wanted, now=now)
        near = [scope for scope in ruling.near if await work.spending.note_warning(scope, day=utc_day(now))]
    for scope in near:
        _log.warning("a budget is nearly used up", extra=scope_fields(scope))
    return ReservedBudget(near=tuple(near))


def scope_fields(scope: BudgetScope) -> dict[str, str]:
    """For the log."""
    return {"scope": scope.kind.value, "key": scope.key}


def describe_scope(scope: BudgetScope) -> str:
    """For people, at the beginning of a sentence."""
    match scope.kind:
        case BudgetScopeKind.SERVER:
            return "My budget"
        case BudgetScopeKind.GUILD:
            return "The budget of this server"
        case BudgetScopeKind.CHANNEL:
            return "The budget of this channel"
        case BudgetScopeKind.USER:
            return "Your budget"
        case BudgetScopeKind.AGENT:
            return f"The budget of {scope.key}"
        case BudgetScopeKind.JOB:
            return "The budget of this schedule"
        case BudgetScopeKind.RUN:
            return "The budget of this run"


RESERVED_FOR = timedelta(minutes=15)
"""Longer than a request may take; what a killed process has reserved is free again after it."""

CHEAPER = (ModelMode.CHEAP, ModelMode.FAST)
"""Aliases of the model that answers when a budget says so, the first that is configured."""


@record(kw_only=True)
class Payer:
    """Who pays for requests: for whom they are made, where they asked (`source`, a platform), and by which rules, which
    are those of the generation that the turn began with.
    """

    turn_id: TurnId
    agent: AgentName
    asker: Principal
    source: str
    scopes: tuple[BudgetScope, ...]
    policy: BudgetPolicy
    models: Models

    @classmethod
    def from_turn(cls, turn: Turn, place: Place, generation: Generation, key: str = "") -> Payer:
        """Returns the payer for a turn: who asked. `key` names reservations for requests that are not its steps."""
        owed = turn.options.get("owed")
        guild = str(owed.get("guild", "")) if isinstance(owed, dict) else None
        payer = cls.at_place(TurnId(key) if key else turn.id, turn.agent, turn.principal, place, guild, generation)
        limit = turn.options.get(RUN_BUDGET)
        return payer if limit is None else payer.within(BudgetScope(BudgetScopeKind.RUN, turn.id), Decimal(str(limit)))

    @classmethod
    def at_place(
        cls, key: TurnId, agent: AgentName, asker: Principal, place: Place, guild: str | None, generation: Generation
    ) -> Payer:
        """`guild` is empty in a direct talk, and None where the place has no budget, outside of platforms."""
        mine = (SERVER, BudgetScope(BudgetScopeKind.AGENT, agent), BudgetScope(BudgetScopeKind.USER, asker.payer.key))
        if asker.kind is PrincipalKind.SCHEDULE:
            mine = (*mine, BudgetScope(BudgetScopeKind.JOB, asker.id))
        return cls(
            turn_id=key,
            agent=agent,
            asker=asker,
            source=place.platform,
            scopes=mine if guild is None else (*mine, *place_scopes(place, guild)),
            policy=generation.budgets,
            models=generation.models,
        )

    def within(self, run: BudgetScope, limit_usd: Decimal) -> Payer:
        """Returns the payer for requests that all together cost no more than this."""
        special = {**self.policy.special, run: BudgetLimits(per_month_usd=limit_usd)}
        return replace(self, scopes=(*self.scopes, run), policy=replace(self.policy, special=special))

    def without_cheaper(self) -> Payer:
        """Returns the payer for requests in which no cheaper model stands in."""
        return replace(self, policy=replace(self.policy, when_exhausted=WhenExhausted.STOP, of_agents={}))


@dataclass(slots=True)
class Payment:
    """One request that may be sent, to this model. `heard_chars` and `is_answered` are told by who sends it."""

    model: Model
    request: ModelRequest
    reservation: str
    heard_chars: int = 0
    is_answered: bool = False


class TurnBudget:
    """The budget of one turn."""

    def __init__(self, payer: Payer, store: Store, live: LiveEvents, clock: Clock) -> None:
        self._payer = payer
        self._store = store
        self._live = live
        self._clock = clock
        self._limits = payer.policy.plan_limits(payer.scopes)

    @property
    def is_limited(self) -> bool:
        return bool(self._limits)

    @asynccontextmanager
    async def paying(self, number: int, model: Model, request: ModelRequest) -> AsyncGenerator[Payment]:
        """Around the request of a step. Raises LimitExceeded (`budget_exhausted`) when no limit lets it through, and
        then nothing was sent.
        """
        payment = await self._admit(number, model, request)
        was_sent = True
        try:
            yield payment
        except DenizenError:
            was_sent = payment.heard_chars > 0  # else the provider said no, and charges nothing
            raise
        finally:
            if not payment.is_answered:
                with anyio.CancelScope(shield=True):
                    await self._break_off(payment, was_sent=was_sent)

    async def settle(self, work: UnitOfWork, step: Step) -> None:
        """Counts the step, which is new in this unit of work, and frees what was reserved for it."""
        await work.spending.release(self._reservation_key(step.number))
        await work.spending.add(self._payer.scopes, step.usage, at=step.created_at)

    async def settle_early(self, payment: Payment, usage: Usage) -> None:
        """Counts the money of an answered request that is written as a step later, if the turn gets so far."""
        payment.is_answered = True
        async with self._store.work() as work:
            await work.spending.release(payment.reservation)
            await work.spending.add(self._payer.scopes, usage, at=self._clock.now())

    async def settle_request(self, payment: Payment, reply: ModelReply) -> None:
        """Counts an answered request that is no step of a turn."""
        payment.is_answered = True
        async with self._store.work() as work:
            await work.spending.release(payment.reservation)
            await self._count(work, reply.model, reply.usage)

    # --- before ------------------------------------------------------------------------------------------------------

    async def _admit(self, number: int, model: Model, request: ModelRequest) -> Payment:
        reservation = self._reservation_key(number)
        refusal = await self._reserve(reservation, model, request)
        if refusal is None:
            return Payment(model, request, reservation)
        cheaper = self._find_cheaper(model, request)
        if cheaper is not None and await self._reserve(reservation, cheaper, request) is None:
            self._tell(f"A budget is used up, so {cheaper.name} answers instead of {model.name}.")
            return Payment(cheaper, request, reservation)
        _log.info("budget exhausted", extra={**scope_fields(refusal.limit.scope), "turn": self._payer.turn_id})
        raise self._exhausted(refusal)

    async def _reserve(self, reservation: str, model: Model, request: ModelRequest) -> BudgetRefusal | None:
        """None when the request may be sent. What costs nothing, as far as is known, needs no reservation."""
        if not self._limits:
            return None
        wanted = await model.estimate_cost_usd(count_request_tokens(request), _output_tokens(model, request))
        if not wanted:
            return None
        now = self._clock.now()
        wish = Reservation(reservation, wanted, self._payer.scopes, now + RESERVED_FOR)
        reserved = await reserve(self._store, self._payer.policy, wish, now=now)
        for scope in reserved.near:
            self._tell(
                f"{describe_scope(scope)} is nearly used up ({int(self._payer.policy.warn_at * 100)} % or more)."
            )
        return reserved.refusal

    def _find_cheaper(self, model: Model, request: ModelRequest) -> Model | None:
        """The configured stand-in, when it can take the request as it is."""
        if self._payer.policy.when_exhausted_for(self._payer.agent) is not WhenExhausted.CHEAPER:
            return None
        models = self._payer.models
        alias = next((alias for alias in CHEAPER if alias in list_aliases(models)), None)
        cheaper = models.get(alias) if alias else None
        if cheaper is None or cheaper.name == model.name:
            return None
        can, need = cheaper.capabilities, model.capabilities
        fits = count_request_tokens(request) + _output_tokens(cheaper, request) <= can.context_tokens
        takes_tools = can.native_tools or not request.tools
        return cheaper if fits and takes_tools and (can.prefill or not need.prefill) else None

    # --- after -------------------------------------------------------------------------------------------------------

    async def _break_off(self, payment: Payment, *, was_sent: bool) -> None:
        """The request ended without a reply. Once sent it costs at least its input and what was heard of the answer.

        A store that is away must not hide why the request ended; what was reserved then stays so until it expires.
        """
        try:
            used = await self.estimate(payment) if was_sent else None
            if used is None and not self._limits:
                return
            async with self._store.work() as work:
                await work.spending.release(payment.reservation)
                if used is not None:
                    await self._count(work, payment.model.name, used)
        except DenizenError as error:
            about = {"turn": self._payer.turn_id, **error.fields}
            _log.warning("a broken-off request was not counted: %s", error.message, extra=about)

    async def _count(self, work: UnitOfWork, model: str, usage: Usage) -> None:
        """In the budgets, and beside the steps of turns in the records of usage."""
        payer, now = self._payer, self._clock.now()
        await work.spending.add(payer.scopes, usage, at=now)
        request = SideRequest(
            agent=payer.agent, user=payer.asker.key, source=payer.source, model=model, usage=usage, asked_at=now
        )
        await work.statistics.add_side_request(request)

    async def estimate(self, payment: Payment) -> Usage:
        """Estimates the cost of a request whose stream was not read to its end."""
        given, heard = count_request_tokens(payment.request), -(-payment.heard_chars // CHARS_PER_TOKEN)
        return Usage(given, heard, cost_usd=await payment.model.estimate_cost_usd(given, heard), requests=1)

    # --- words -------------------------------------------------------------------------------------------------------

    def _reservation_key(self, number: int) -> str:
        return f"{self._payer.turn_id}:{number}"

    def _exhausted(self, refusal: BudgetRefusal) -> LimitExceeded:
        limit, at = refusal.limit, refusal.standing
        when = "today" if limit.period is BudgetPeriod.DAY else "this month"
        renewed = renews_at(limit.period, self._clock.now())
        why = ""
        if self._is_trusted:
            why = (
                f"Of {_usd(limit.usd)} {_usd(at.spent(limit.period))} is spent and {_usd(at.reserved_usd)} reserved; "
                f"this request may cost {_usd(refusal.wanted_usd)}."
            )
        if limit.scope.kind is BudgetScopeKind.RUN:
            raised = "Raise budget.per_run_usd of the schedule."
            return LimitExceeded("The budget of this run is used up.", code="budget_exhausted", why=why, fix=raised)
        return LimitExceeded(
            f"{describe_scope(limit.scope)} for {when} is used up. "
            f"It renews on {renewed.day} {renewed:%B} at 00:00 UTC.",
            code="budget_exhausted",
            why=why,
            fix="Raise the limit under budgets, or wait." if self._is_trusted else "Ask again then.",
        )

    @property
    def _is_trusted(self) -> bool:
        """Whether the asker may know about money."""
        return may_see_money(self._payer.asker)

    def _tell(self, text: str) -> None:
        if self._is_trusted:
            self._live.publish(self._payer.turn_id, Notice(text))


def place_scopes(place: Place, guild: str) -> list[BudgetScope]:
    """Returns the budget scopes of a room of a platform; `guild` is empty in a direct talk. Threads count by their
    channel.
    """
    channel = BudgetScope(BudgetScopeKind.CHANNEL, f"{place.platform}:{place.channel}")
    return [channel, BudgetScope(BudgetScopeKind.GUILD, f"{place.platform}:{guild}")] if guild else [channel]


def may_see_money(principal: Principal) -> bool:
    """Amounts are for owners, admins and whoever has a shell on the machine."""
    return principal.kind is PrincipalKind.LOCAL or bool(principal.roles & {RoleName.OWNER, RoleName.ADMIN})


def count_request_tokens(request: ModelRequest) -> int:
    """Estimates the input tokens of a request."""
    return (
        sum(estimate_tokens(segment.text) for segment in request.segments)
        + sum(map(count_tokens, request.messages))
        + sum(map(count_tool_tokens, request.tools))
    )


def _output_tokens(model: Model, request: ModelRequest) -> int:
    return min(request.max_output_tokens, model.capabilities.max_output_tokens or request.max_output_tokens)


def _usd(amount: Decimal) -> str:
    return f"${amount:.4f}" if amount % Decimal("0.01") else f"${amount:.2f}"
