"""How the system stands now, in one look: what runs, what waits for people, what failed last, and what is spent."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from denizen.domain.approval import Approval, ApprovalStatus
from denizen.domain.budget import SERVER, BudgetLimit, BudgetScope, BudgetScopeKind, BudgetStatus
from denizen.domain.clock import Clock
from denizen.domain.record import record
from denizen.domain.turn import Turn, TurnStatus
from denizen.engine.configuration.generation import Runtime
from denizen.ports.store import Store, UnitOfWork

RUNNING = 50
WAITING = 100
FAILURES = 5


@record
class BudgetUse:
    """A limit, and what is spent of it in its period now."""

    limit: BudgetLimit
    spent_usd: Decimal

    @property
    def share(self) -> float:
        """1 when it is used up."""
        return min(1.0, float(self.spent_usd / self.limit.usd)) if self.limit.usd else 1.0


@record(kw_only=True)
class SystemOverview:
    """`running` are turns that have not ended, oldest first; `waiting` calls that people have to decide about, and
    `failed` the last turns without an answer, newest first. `spent` is what everything together has cost.
    """

    running: Sequence[Turn]
    waiting: Sequence[Approval]
    failed: Sequence[Turn]
    spent: BudgetStatus
    budgets: Sequence[BudgetUse]


async def load_overview(store: Store, runtime: Runtime, clock: Clock) -> SystemOverview:
    async with store.work(write=False) as work:
        running = await work.turns.list_turns(status=TurnStatus.OPEN, limit=RUNNING)
        waiting = await work.approvals.list_approvals(status=ApprovalStatus.PENDING, limit=WAITING)
        failed = await work.turns.list_turns(status=TurnStatus.FAILED, limit=FAILURES)
        spent, budgets = await list_budgets(work, runtime, clock)
    return SystemOverview(running=running, waiting=waiting, failed=failed, spent=spent, budgets=budgets)


async def list_budgets(work: UnitOfWork, runtime: Runtime, clock: Clock) -> tuple[BudgetStatus, Sequence[BudgetUse]]:
    """Returns what everything together has cost, and the budgets of the whole server and of its agents; people's own
    are theirs.
    """
    current = runtime.current
    scopes = [SERVER, *(BudgetScope(BudgetScopeKind.AGENT, name) for name in sorted(current.agents))]
    standings = await work.spending.read(scopes, now=clock.now())
    limits = current.budgets.plan_limits(scopes)
    used = [BudgetUse(each, standings.get(each.scope, BudgetStatus()).spent(each.period)) for each in limits]
    return standings.get(SERVER, BudgetStatus()), used
