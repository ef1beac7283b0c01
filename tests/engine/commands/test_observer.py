"""/observer: owners, and nobody else, switch and clear the model that looks at risky calls."""

import pytest

from denizen.domain.attention import AccountPolicy, AccountStaff
from denizen.domain.errors import InvalidInput, NeedsAttention
from denizen.engine.commands.admin import run_observer_command
from denizen.engine.configuration.tool_policy import GatePolicy, ObserverPolicy
from tests.engine.commands.command_fixture import ANA, BEN, ZOE, open_commands

pytestmark = pytest.mark.anyio

POLICY = GatePolicy(observer=ObserverPolicy("house"))


@pytest.mark.proves("V22", "V24")
async def test_an_owner_switches_the_observer_off_and_on_and_clears_it() -> None:
    async with open_commands(policy=POLICY) as engine:
        observer = engine.services.observer
        assert observer is not None
        assert (
            "The observer is on: `house` looks at calls of tier 2 and 3"
            in (await engine.give("/observer status", ZOE)).text
        )
        off = await engine.give("/observer disable", ZOE)
        assert "people are asked" in off.text
        assert not (await observer.load()).is_on
        assert "switched off" in (await engine.give("/observer status", ZOE)).text
        assert "is on" in (await engine.give("/observer enable", ZOE)).text
        assert (await observer.load()).is_on
        assert "forgotten" in (await engine.give("/observer reset", ZOE)).text
        assert (await observer.load()).resets == 1


@pytest.mark.proves("V22", "V24")
@pytest.mark.parametrize("way", ["enable", "disable", "reset", "status"])
async def test_only_owners_control_the_observer_and_admins_do_not(way: str) -> None:
    account_policy = AccountPolicy(staff=AccountStaff(owners=frozenset({ZOE.id}), admins=frozenset({BEN.id})))
    async with open_commands(policy=POLICY, account_policy=account_policy) as engine:
        for who in (ANA, BEN):
            refused = await engine.give(f"/observer {way}", who)
            assert refused.is_failure
            assert "is for owners only" in refused.text
        assert engine.services.observer is not None
        switch = await engine.services.observer.load()
        assert (switch.is_on, switch.resets) == (True, 0)


async def test_without_a_configured_observer_the_way_to_one_is_told() -> None:
    async with open_commands() as engine:
        told = (await engine.give("/observer status", ZOE)).text
        assert "No observer is configured, so people are asked" in told
        assert "gate.observer.model" in told
        assert (await engine.give("/observer flip", ZOE)).is_failure
        with pytest.raises(InvalidInput, match="has no 'flip'"):
            await run_observer_command("flip", engine.services.observer, ObserverPolicy())
        with pytest.raises(NeedsAttention):
            await run_observer_command("status", None, ObserverPolicy())
