"""Calls that wait for people: asked once, decided once, wherever and in whatever process.

The executor asks from within the call's durable step and waits there. After a restart the step runs again, finds what
was asked, and goes on waiting or has its answer: the record in the store is what counts, and waiting is looking at it.
Cards go out and are tidied up through the outbox, planned in the unit of work that asks or decides.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from math import ceil

import anyio

from denizen.domain.approval import (
    Approval,
    ApprovalChoice,
    ApprovalGrant,
    ApprovalRequest,
    ApprovalRule,
    ApprovalRuling,
    ApprovalStatus,
    AskerReach,
    VoteOutcome,
    can_be_asked,
    cancel_approval,
    decide_approval,
    decides_alone,
    derive_approval_id,
    digest_args,
    expire_approval,
    grant_covers,
    is_past_deadline,
    may_decide,
    needs_others,
    plan_grant,
)
from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.delivery import Delivery, DeliveryKind, DeliveryTarget
from denizen.domain.errors import DenizenError, LimitExceeded, NotAllowed, Unavailable, list_fields
from denizen.domain.events import ApprovalDecided, ApprovalRequested
from denizen.domain.ids import AgentName, TurnId, derive
from denizen.domain.principal import Principal, RoleName
from denizen.domain.rate_limit import HOUR_S, RateLimit
from denizen.domain.record import record
from denizen.domain.tool import Tier, ToolCall, ToolSpec
from denizen.domain.turn import Turn
from denizen.domain.verdict import Verdict
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.audit.audit_log import approval_event
from denizen.engine.configuration.generation import Runtime
from denizen.engine.configuration.tool_policy import GatePolicy
from denizen.engine.events.live_events import LiveEvents
from denizen.engine.gate.approval_card import describe_call, plan_card, plan_end
from denizen.engine.intake.opening import find_reply_target
from denizen.engine.intake.rate_limiter import take_rate
from denizen.engine.intake.turn_queue import TurnPauses
from denizen.ports.store import Store, UnitOfWork
from denizen.ports.toolset import CallScope

POLL_S = 2.0
"""How often a wait looks at the store: another process may have decided."""
LISTED = 200
MAX_PENDING = 10
"""Calls of one person that wait in one conversation: each has a card that everybody there sees."""
MAX_DIRECT = 3
"""So many people at most are written to about one call."""
MAX_CARDS = 1 + MAX_DIRECT
ASKED_OF_OTHERS = RateLimit(calls=20, window_s=HOUR_S)
"""How often others are asked about what one person wants, wherever that is: each time they are pinged or written to."""
DIRECT_TIMEOUT_S = 10.0

_log = logging.getLogger("denizen.gate")


@record
class PendingCall:
    """A call that people have to decide about, and why. `change` is what it would change, where that is known."""

    spec: ToolSpec
    wanted: ToolCall
    scope: CallScope
    verdict: Verdict
    change: str = ""

    @property
    def is_exact(self) -> bool:
        return self.spec.destructive or self.verdict.tier is Tier.DANGEROUS

    @property
    def rule(self) -> ApprovalRule:
        return self.verdict.rule or ApprovalRule()


class ApprovalQueue:
    """The calls that wait for people, one queue for a process. `wake` tells the outbox of an account that there is
    something to send.
    """

    def __init__(
        self,
        runtime: Runtime,
        store: Store,
        clock: Clock,
        live: LiveEvents,
        wake: Callable[[str, AgentName], None],
        *,
        channels: ConnectedAccounts,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._clock = clock
        self._live = live
        self._wake = wake
        self._channels = channels
        self._signals: dict[str, anyio.Event] = {}
        self.pauses = TurnPauses()
        self.poll_s = POLL_S

    @property
    def policy(self) -> GatePolicy:
        """The policy in force now, which may differ from that when the call was made."""
        return self._runtime.current.policy

    # --- asking ------------------------------------------------------------------------------------------------------

    async def ask(self, asked: PendingCall) -> Approval | ApprovalGrant | None:
        """The decision, once there is one; the grant that makes it needless; None when nobody can be asked here.

        Raises LimitExceeded when as many calls wait here already as one person may have.
        """
        found = await self._open(asked, await self._open_direct_places(asked))
        if not isinstance(found, Approval) or found.status.is_final:
            return found
        self._wake_all()
        self._live.publish(found.request.turn_id, ApprovalRequested(found))
        async with self._away(asked.scope):
            decided = await self._wait(found)
        self._wake_all()
        self._live.publish(decided.request.turn_id, ApprovalDecided(decided))
        return decided

    async def find(self, scope: CallScope) -> Approval | None:
        """Returns the approval that was asked for this call before, or None."""
        if not scope.options.idempotency_key:
            return None
        async with self._store.work(write=False) as work:
            return await work.approvals.find(derive_approval_id(scope.options.idempotency_key))

    async def _open_direct_places(self, asked: PendingCall) -> Sequence[Place]:
        """Returns where the account talks with each of those who decide, for a call that was wanted where they do not
        read along. None where there is an alert channel, which they read.
        """
        scope, rule = asked.scope, asked.rule
        if scope.account is None or self.policy.observer.alert_place or not needs_others(rule, scope.principal):
            return ()
        channel = self._channels.find(scope.place.platform, scope.account)
        async with self._store.work(write=False) as work:
            turn = await work.turns.find(scope.turn_id)
        if channel is None or turn is None or turn.options.get("reach") != AskerReach.PRIVATE:
            return ()
        places: list[Place] = []
        for user_id in self._list_deciders(rule, scope.place.platform, scope.account)[:MAX_DIRECT]:
            try:
                with anyio.fail_after(DIRECT_TIMEOUT_S):
                    places.append(await channel.open_direct(user_id))
            except (DenizenError, TimeoutError) as error:
                about = {"user": user_id, **list_fields(error)}
                _log.warning("somebody who decides cannot be written to: %s", error, extra=about)
        return places

    def _list_deciders(self, rule: ApprovalRule, platform: str, account: AgentName) -> list[str]:
        """Returns the user ids of those who decide, as far as the configuration names them one by one."""
        policy = self._runtime.current.account_policies.get((platform, account))
        if policy is None:
            return []
        admins = policy.staff.admins if rule.role == RoleName.ADMIN else frozenset[str]()
        return sorted(policy.staff.owners | admins) if rule.role in (RoleName.OWNER, RoleName.ADMIN) else []

    async def _open(self, asked: PendingCall, direct: Sequence[Place]) -> Approval | ApprovalGrant | None:
        scope, now = asked.scope, self._clock.now()
        if not scope.options.idempotency_key:
            return None
        key = derive_approval_id(scope.options.idempotency_key)
        async with self._store.work() as work:
            known = await work.approvals.find(key)
            if known is not None:
                return known if _is_about(known, asked) else None
            turn = await work.turns.find(scope.turn_id)
            if turn is None or turn.status.is_final:
                return None
            # What was approved for the agent that delegates holds for the task that it has given away, too.
            agents = (scope.agent, *([scope.delegator.agent] if scope.delegator else []))
            grants = [
                grant
                for agent in agents
                for grant in await work.approvals.list_grants(
                    agent, scope.principal.key, scope.conversation_id, asked.wanted.tool, now=now
                )
            ]
            taint = scope.taint | scope.trail.taint
            args = asked.wanted.args
            held = [
                each for each in grants if grant_covers(each, args, asked.rule, is_exact=asked.is_exact, taint=taint)
            ]
            if held:
                return held[0]
            reach = AskerReach(str(turn.options.get("reach", "")))
            if not can_be_asked(asked.rule, reach, is_watched=self._is_watched(scope)):
                return None
            await _check_pending_limit(work, scope)
            if needs_others(asked.rule, scope.principal):
                await _check_rate(work, scope, now)
            approval = self._plan(key, asked)
            await work.approvals.add(approval)
            await work.outbox.add(self._plan_cards(approval, turn, asked, direct))
        return approval

    def _is_watched(self, scope: CallScope) -> bool:
        """Whether somebody who could be asked watches: of a delegated turn, the turn that waits for it."""
        return self._live.is_watched(scope.delegator.turn_id if scope.delegator else scope.turn_id)

    def _plan(self, key: str, asked: PendingCall) -> Approval:
        scope, call, rule, now = asked.scope, asked.wanted, asked.rule, self._clock.now()
        taint, why = scope.taint | scope.trail.taint, asked.verdict.reason
        return Approval(
            id=key,
            request=ApprovalRequest(
                turn_id=scope.turn_id,
                agent=scope.agent,
                requester=scope.principal.key,
                requester_name=scope.principal.name,
                place=scope.place,
                conversation_id=scope.conversation_id,
                tool=call.tool,
                args=call.args,
                tier=asked.verdict.tier,
                reason=why,
                preview=describe_call(asked.spec, call.args, why=why, taint=taint, change=asked.change),
                is_exact=asked.is_exact,
            ),
            rule=rule,
            created_at=now,
            expires_at=now + timedelta(seconds=rule.timeout_s) if rule.timeout_s else None,
        )

    def _plan_cards(
        self, approval: Approval, turn: Turn, asked: PendingCall, direct: Sequence[Place]
    ) -> list[Delivery]:
        """Where the talk is, and where those are who decide, when they do not read along there or are to be alerted."""
        owed, reach = find_reply_target(turn), turn.options.get("reach")
        others = needs_others(asked.rule, asked.scope.principal)
        first = _position(approval)
        cards: list[tuple[AgentName, DeliveryTarget, bool]] = []
        if owed is not None and reach != AskerReach.ELSEWHERE:
            is_read = others and reach != AskerReach.PRIVATE
            cards.append((owed.account, DeliveryTarget(approval.request.place, owed.reply_to), is_read))
        alert_place = self.policy.observer.alert_place
        is_seen = any(is_read for _, _, is_read in cards)
        if alert_place is not None and (asked.verdict.alert or (others and not is_seen)):
            asked_at = owed.account if owed else turn.agent
            accounts = [
                name for platform, name in self._runtime.current.account_policies if platform == alert_place.platform
            ]
            if accounts:
                account = asked_at if asked_at in accounts else accounts[0]
                cards.append((account, DeliveryTarget(alert_place), others))
        elif owed is not None:
            cards += [(owed.account, DeliveryTarget(place), False) for place in direct]
        if owed is not None and others and not cards:
            fix = "Set gate.observer.alert_channel, or look at `denizen approvals list`."
            extra = {"tool": approval.request.tool, "approval": approval.id, "fix": fix}
            _log.warning("a call waits for people, and nobody is told", extra=extra)
        deliveries: list[Delivery] = []
        for number, (account, target, is_pinged) in enumerate(cards):
            named = self._list_deciders(asked.rule, target.place.platform, account)
            is_orphan = others and not named and not asked.rule.people and asked.rule.role == RoleName.OWNER
            deliveries.append(
                Delivery(
                    id=_card_id(approval, number),
                    turn_id=turn.id,
                    position=first + number,
                    kind=DeliveryKind.CARD,
                    agent=account,
                    target=target,
                    content=plan_card(approval, named if is_pinged else (), is_orphan=is_orphan),
                    created_at=approval.created_at,
                )
            )
        return deliveries

    def _wake_all(self) -> None:
        """The cards may be of any account here; one that has nothing to send sleeps on."""
        for platform, account in self._runtime.current.account_policies:
            self._wake(platform, account)

    # --- waiting -----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _away(self, scope: CallScope) -> AsyncGenerator[None]:
        pause = self.pauses.find(scope.turn_id)
        if pause is None:
            yield
        else:
            async with pause.away():
                yield

    async def _wait(self, approval: Approval) -> Approval:
        try:
            while not approval.status.is_final:
                decided = self._signals.setdefault(approval.id, anyio.Event())
                approval = await self._look(approval)
                if approval.status.is_final:
                    break
                pause_s = self.poll_s
                if approval.expires_at is not None:
                    pause_s = min(pause_s, (approval.expires_at - self._clock.now()).total_seconds())
                with anyio.move_on_after(max(pause_s, 0.0)):
                    await decided.wait()
        finally:
            self._signals.pop(approval.id, None)
        return approval

    async def _look(self, approval: Approval) -> Approval:
        """As it is now. A store that is away is looked at again later: the wait may be for days."""
        try:
            async with self._store.work(write=False) as work:
                current = await work.approvals.find(approval.id) or approval
                turn = await work.turns.find(approval.request.turn_id)
            is_ended = turn is None or turn.status.is_final
            if current.status.is_final or not (is_past_deadline(current, self._clock.now()) or is_ended):
                return current
            async with self._store.work() as work:
                return await self._close(work, current.id, is_ended=is_ended)
        except Unavailable as error:
            _log.warning("an approval waits for the store", extra={"approval": approval.id, **error.fields})
            return approval

    async def _close(self, work: UnitOfWork, key: str, *, is_ended: bool) -> Approval:
        """Nobody has decided it: it is over all the same."""
        current, now = await work.approvals.take(key), self._clock.now()
        if current.status.is_final:
            return current
        closed = cancel_approval(current, now) if is_ended else expire_approval(current)
        await self._write(work, closed)
        return closed

    async def end_turn(self, work: UnitOfWork, turn: Turn) -> None:
        """The turn has ended, or was stopped: nobody need decide what it waited for."""
        for pending in await work.approvals.list_approvals(status=ApprovalStatus.PENDING, turn_id=turn.id):
            await self._close(work, pending.id, is_ended=True)

    async def withdraw(self, call_key: str) -> None:
        """The turn goes on without the call with this idempotency key: nobody need decide it any more."""
        async with self._store.work() as work:
            known = await work.approvals.find(derive_approval_id(call_key))
            if known is None or known.status.is_final:
                return
            closed = await self._close(work, known.id, is_ended=True)
        self._wake_all()
        self._live.publish(closed.request.turn_id, ApprovalDecided(closed))

    # --- deciding ----------------------------------------------------------------------------------------------------

    async def decide(self, key: str, voter: Principal, choice: ApprovalChoice, *, note: str = "") -> ApprovalRuling:
        """One person's word. Raises NotFound, and NotAllowed for somebody who may not decide it."""
        now = self._clock.now()
        async with self._store.work() as work:
            approval = await work.approvals.take(key)
            turn = await work.turns.find(approval.request.turn_id)
            if may_decide(approval, voter) and (turn is None or turn.status.is_final):
                approval = await self._close(work, key, is_ended=True)
            ruling = decide_approval(approval, voter, choice, now=now, note=note)
            if ruling.approval != approval:
                await self._write(work, ruling.approval)
            is_for_an_hour = choice is ApprovalChoice.HOUR and decides_alone(approval.rule, voter)
            if ruling.outcome is VoteOutcome.DECIDED and is_for_an_hour:
                await work.approvals.add_grant(plan_grant(ruling.approval, now=now), now=now)
        if ruling.outcome is VoteOutcome.REFUSED:
            raise NotAllowed(
                f"This is not yours to decide. {ruling.text}",
                code="approval_not_yours",
                fix="Ask one of them to decide it.",
            )
        signal = self._signals.get(key)
        if signal is not None:
            signal.set()
            del self._signals[key]
        self._wake_all()
        _log.info(
            "approval",
            extra={"approval": key, "by": voter.key, "outcome": ruling.outcome, "status": ruling.approval.status},
        )
        return ruling

    async def _write(self, work: UnitOfWork, approval: Approval) -> None:
        """Writes the approval, what becomes of its cards, and the audit log last, since that is where others wait."""
        now = self._clock.now()
        await work.approvals.update(approval)
        if approval.status.is_final:
            cards, content = {_card_id(approval, number) for number in range(MAX_CARDS)}, plan_end(approval)
            ends = [
                Delivery(
                    id=derive("dlv", card.id, "end"),
                    turn_id=card.turn_id,
                    position=card.position,
                    kind=DeliveryKind.CARD_END,
                    agent=card.agent,
                    target=DeliveryTarget(card.target.place),
                    content=content,
                    created_at=now,
                )
                for card in await work.outbox.list_for_turn(approval.request.turn_id)
                if card.id in cards
            ]
            await work.outbox.add(ends)
        await work.audit.add([approval_event(approval, now)])

    async def list_pending(self, turn_id: TurnId) -> Sequence[Approval]:
        """Returns the approvals that the turn waits for now."""
        async with self._store.work(write=False) as work:
            return await work.approvals.list_approvals(status=ApprovalStatus.PENDING, turn_id=turn_id)

    async def list_for(self, voter: Principal, *, status: ApprovalStatus | None = None) -> Sequence[Approval]:
        """Those that the principal asked for or may decide, newest first."""
        async with self._store.work(write=False) as work:
            found = await work.approvals.list_approvals(status=status, limit=LISTED)
        return [each for each in found if each.request.requester == voter.key or may_decide(each, voter)]


def _is_about(approval: Approval, asked: PendingCall) -> bool:
    """Whether people were shown this very call, should the same step ever hold another one."""
    wanted = asked.wanted
    return approval.request.tool == wanted.tool and digest_args(approval.request.args) == digest_args(wanted.args)


async def _check_pending_limit(work: UnitOfWork, scope: CallScope) -> None:
    pending = await work.approvals.list_approvals(status=ApprovalStatus.PENDING, limit=LISTED)
    mine = [
        each
        for each in pending
        if (each.request.requester, each.request.conversation_id) == (scope.principal.key, scope.conversation_id)
    ]
    if len(mine) >= MAX_PENDING:
        raise LimitExceeded(
            f"It needs approval, and {MAX_PENDING} calls wait for that here already.",
            code="approvals_full",
            fix="Ask again when these are decided.",
        )


async def _check_rate(work: UnitOfWork, scope: CallScope, now: datetime) -> None:
    excess = await take_rate(work, f"approval\x00{scope.principal.key}", (ASKED_OF_OTHERS,), now=now)
    if excess is not None:
        raise LimitExceeded(
            f"It needs approval by others, who were asked {ASKED_OF_OTHERS.calls} times within the hour for the same "
            "person already.",
            code="approvals_full",
            fix=f"Ask again in {ceil(excess.wait_s / 60)} min.",
        )


def _position(approval: Approval) -> int:
    """Returns the position of the first card among the messages of the turn, the same in every process; never 0, which
    is that of the answer.
    """
    return MAX_CARDS * int(approval.id[-7:], 16) + MAX_CARDS


def _card_id(approval: Approval, number: int) -> str:
    return derive("dlv", approval.id, str(number))
