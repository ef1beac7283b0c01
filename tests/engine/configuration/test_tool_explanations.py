"""What is said beforehand about calls of a tool."""

from __future__ import annotations

import pytest

from denizen.domain.tool import Tier, ToolSpec
from denizen.domain.verdict import Decision
from denizen.engine.configuration.tool_policy import GatePolicy, ToolMode, ToolModes, ToolRule, explain_policy

APPROVING = GatePolicy(rules=(ToolRule("wipe*", Decision.APPROVE),))


@pytest.mark.parametrize("is_observed", [True, False])
def test_a_rule_that_approves_tier_3_is_told_to_change_nothing_and_what_would(is_observed: bool) -> None:
    spec = ToolSpec("wipe_all", "Wipes.", {}, tier=Tier.DANGEROUS)
    outlook = explain_policy(spec, APPROVING, is_observed=is_observed)
    assert outlook.mode == ("observer" if is_observed else "people")
    for part in ("1 rule", "no rule approves tier 3", "gate.tiers", "mcp.servers.NAME.tiers"):
        assert part in outlook.why


@pytest.mark.parametrize(("tier", "name"), [(Tier.SENSITIVE, "wipe_all"), (Tier.DANGEROUS, "fly")])
def test_where_a_rule_counts_or_there_is_none_nothing_is_said_of_it(tier: Tier, name: str) -> None:
    spec = ToolSpec(name, "Does something.", {}, tier=tier)
    assert "no rule approves" not in explain_policy(spec, APPROVING, is_observed=True).why


@pytest.mark.parametrize(("is_observed", "mode"), [(True, "observer, then people"), (False, "people")])
def test_a_mode_that_asks_comes_on_top_of_the_observer(is_observed: bool, mode: str) -> None:
    spec = ToolSpec("fly", "Flies.", {}, tier=Tier.SENSITIVE)
    policy = GatePolicy(modes=ToolModes(default=ToolMode.ASK))
    assert explain_policy(spec, policy, is_observed=is_observed).mode == mode
