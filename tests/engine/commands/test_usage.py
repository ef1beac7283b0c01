"""/usage: one's own for everybody, the rest for admins."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from denizen.domain.budget import SERVER, BudgetLimits, BudgetPolicy, BudgetScope, BudgetScopeKind
from denizen.domain.usage import Usage
from denizen.testing.scripted_model import ScriptedModel, ScriptedModels, ScriptedReply
from tests.engine.commands.command_fixture import ADA, ANA, BEN, DIRECT, ZOE, CommandFixture, open_commands

pytestmark = pytest.mark.anyio

AGENT, MINE = BudgetScope(BudgetScopeKind.AGENT, ADA), BudgetScope(BudgetScopeKind.USER, "platform_user:chat:1")
HERE, GUILD = BudgetScope(BudgetScopeKind.CHANNEL, "chat:10"), BudgetScope(BudgetScopeKind.GUILD, "chat:1")
LIMITS = BudgetPolicy(
    {
        BudgetScopeKind.USER: BudgetLimits(per_day_usd=Decimal(1)),
        BudgetScopeKind.GUILD: BudgetLimits(Decimal(5), Decimal(50)),
        BudgetScopeKind.SERVER: BudgetLimits(per_month_usd=Decimal(0)),
    }
)


async def spend(engine: CommandFixture, budgets: BudgetPolicy = LIMITS) -> None:
    """Quarter of a dollar of Ana's today, in the room."""
    await engine.runtime.swap(replace(engine.runtime.current, number=2, budgets=budgets))
    used = Usage(100, 10, cost_usd=Decimal("0.25"), requests=3)
    async with engine.store.work() as work:
        now = engine.services.clock.now()
        await work.spending.add([SERVER, AGENT, MINE, HERE, GUILD], used, at=now)
        await work.spending.add([SERVER, AGENT], used, at=now - timedelta(days=40))


@pytest.mark.proves("V24")
async def test_everybody_sees_what_they_have_spent_themselves_and_nothing_else() -> None:
    async with open_commands() as engine:
        await spend(engine)
        mine, bens = await engine.give("/usage", ANA), await engine.give("/usage", BEN)
    assert mine.text.splitlines() == [
        "You today: $0.2500, 3 requests, 25 % of your budget.",
        "This month: $0.2500, 3 requests.",
        "-# Days and months are those of UTC.",
    ]
    assert "You today: $0.0000, 0 requests, 0 % of your budget." in bens.text
    assert "```" not in bens.text


@pytest.mark.proves("V24")
async def test_an_admin_sees_everything_that_this_place_spends_from_with_limits_and_shares() -> None:
    async with open_commands() as engine:
        await spend(engine)
        told = await engine.give("/usage", ZOE)
        direct = await engine.give("/usage", ZOE, room=DIRECT)
    rows = [" ".join(line.split()) for line in told.text.splitlines()]
    assert rows[3:8] == [
        "USD today limit share month limit share",
        "everything 0.2500 - - 0.2500 0.00 -",
        "this server 0.2500 5.00 5 % 0.2500 50.00 0 %",
        "this channel 0.2500 - - 0.2500 - -",
        "agent ada 0.2500 - - 0.2500 - -",
    ]
    assert "this server" not in direct.text


async def test_summing_up_is_paid_for_by_who_asks_for_it_and_refused_when_nothing_is_left() -> None:
    answer = ScriptedReply("A dog.", usage=Usage(100, 10, cost_usd=Decimal("0.25"), requests=1))
    model = ScriptedModel(answer, price_usd=(Decimal("0.000001"), Decimal("0.0001")))
    async with open_commands(scripted=ScriptedModels({"balanced": model})) as engine:
        await engine.runtime.swap(
            replace(
                engine.runtime.current,
                number=2,
                budgets=BudgetPolicy({BudgetScopeKind.USER: BudgetLimits(per_day_usd=Decimal("0.3"))}),
            )
        )
        await engine.talk("My dog is Rex.", "Noted.", "He is four.", "A good age.")
        assert not (await engine.give("/compact")).is_failure
        async with engine.store.work(write=False) as work:
            found = await work.spending.read([MINE, HERE, GUILD, AGENT, SERVER], now=engine.services.clock.now())
        assert {at.day_usd for at in found.values()} == {Decimal("0.25")}
        await engine.talk("And a cat.", "Noted.", "She is two.", "Young.")
        refused = await engine.give("/compact")
        assert refused.is_failure
        assert "Your budget for today is used up." in refused.text
        session = (await engine.session())[0].session_id
        assert session is not None
        async with engine.store.work(write=False) as work:
            (summary,) = await work.summaries.list_summaries(session)
        assert (summary.text, summary.reference) == ("A dog.", "1-4")
    assert len(model.requests) == 1
