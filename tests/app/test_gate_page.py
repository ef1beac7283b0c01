"""The gate on its page: tools by tier, rules tried on past calls and used, and what the observer decided."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from denizen.app.configuration import HomeConfiguration
from denizen.app.reload import Reloader
from denizen.domain.tool import Tier
from denizen.domain.verdict import Decision
from denizen.engine.configuration.tool_policy import GatePolicy, ObserverPolicy, ToolRule
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from denizen.web.pages.gate import PATH
from tests.app.home_folder import Home, open_home
from tests.app.test_configuration import TEXT
from tests.web.admin_pages_fixture import PageText, ask, read
from tests.web.knowledge_web_fixture import OWNER
from tests.web.test_turns_pages import chat, make_private
from tests.web_fixture import ADA, ANN, BEN, WebFixture, open_web

pytestmark = pytest.mark.anyio

RULES = """\
gate:
  mode: run  # as ever
  rules:
    # Paris is fine.
    - tool: weather
      args: {city: Paris}
      action: approve
      reason: ours
budgets: {}
"""


@dataclass
class GateFixture:
    home: Home
    web: WebFixture

    @property
    def text(self) -> str:
        return self.home.config.read_text(encoding="utf-8")


@asynccontextmanager
async def open_gate(
    home: Home, cities: Sequence[str] = (), policy: GatePolicy | None = None, text: str = TEXT + RULES
) -> AsyncGenerator[GateFixture]:
    """A server whose agent has asked for the weather of these cities, one in a turn of Ann's each."""
    replies = [each for city in cities for each in (ScriptedReply(calls=[call("weather", city=city)]), _said(city))]
    async with open_home(home, text) as denizen:
        files = HomeConfiguration(denizen, Reloader(denizen))
        async with open_web(
            ScriptedModel(*replies),
            keys=[OWNER, ADA, ANN, BEN],
            policy=policy,
            configuration=files,
            plan_policy=files.plan_policy,
        ) as web:
            for city in cities:
                await chat(web, "ann", f"How is {city}?")
            yield GateFixture(home, web)


def _said(city: str) -> ScriptedReply:
    return ScriptedReply(f"Sunny in {city}.")


def _field(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None
    return html.unescape(found[1])


async def test_the_page_shows_which_tool_is_in_which_tier_and_why_and_the_rules_in_their_order(home: Home) -> None:
    policy = GatePolicy(
        tiers=(("weather", Tier.SENSITIVE),),
        rules=(
            ToolRule("weather", Decision.DENY, {"city": "<b>Oslo"}, reason="too cold", agents=frozenset({"scribe"})),
            ToolRule("weather", Decision.ASK),
        ),
    )
    async with open_gate(home, policy=policy) as gate:
        page = await read(gate.web, "ada", PATH)
        source = (await ask(gate.web, "ada", "GET", PATH)).text
        refused = await ask(gate.web, "ann", "GET", PATH)
    [tool] = [row for row in page.rows if row[0] == "weather"]
    assert (tool[1], "tier 2 by gate.tiers (declared: 0)" in tool[2]) == ("people", True)
    assert "2 sensitive: 1 tools." in page.text
    assert [row[:3] for row in page.rows[:2]] == [["1", "weather", "deny"], ["2", "weather", "ask"]]
    assert page.rows[0][3] == "argument city <b>Oslo agent scribe too cold"
    assert ("<b>Oslo" in source, refused.status_code) == (False, 403)


async def test_a_rule_is_tried_on_past_calls_and_used_with_the_comments_of_the_file_kept(home: Home) -> None:
    async with open_gate(home, ["Paris", "Oslo", "Rome"]) as gate:
        before = await read(gate.web, "olga", PATH)
        source = (await ask(gate.web, "olga", "GET", PATH)).text
        [text] = re.findall(r'(?s)<textarea id="rules".*?>\n(.*?)</textarea>', source)
        assert html.unescape(text).startswith("# Paris is fine.\n- tool: weather\n  args: {city: Paris}\n")
        tried = await ask(
            gate.web,
            "olga",
            "POST",
            f"{PATH}/trial",
            rules=html.unescape(text),
            tool="weath*",
            action="deny",
            place="last",
            reason='so "cold"',
        )
        page = PageText(tried.text)
        assert (tried.status_code, gate.text) == (200, TEXT + RULES)
        assert "2 of 3 past calls would come out otherwise" in page.text
        assert "2 allowed by the rules in force, denied by these" in page.text
        assert [row[2] for row in page.rows[:2]] == ['denied so "cold"'] * 2
        assert len(gate.web.weather.calls) == 3
        used = await ask(
            gate.web,
            "olga",
            "POST",
            f"{PATH}/rules",
            rules=_field(tried.text, "rules"),
            digest=_field(tried.text, "digest"),
        )
    assert "There are no rules" in before.text
    assert used.headers["location"] == f"{PATH}?done=saved"
    rule = '    - tool: "weath*"\n      action: "deny"\n      reason: "so \\"cold\\""\n'
    assert gate.text == (TEXT + RULES).replace("      reason: ours\n", f"      reason: ours\n{rule}")


async def test_rules_that_cannot_be_used_are_refused_with_what_was_typed_and_nothing_is_written(home: Home) -> None:
    async with open_gate(home) as gate:
        for form, words in (
            ({"rules": "- tool: weather\n  action: perhaps\n"}, "Write one of: approve, deny, ask."),
            ({"rules": "- tool: [\n"}, "YAML"),
            ({"rules": "", "role": "member"}, "The new rule says for no tool."),
        ):
            for path in ("trial", "rules") if "role" not in form else ("trial",):
                wrong = await ask(gate.web, "olga", "POST", f"{PATH}/{path}", **form)
                assert (wrong.status_code, words in PageText(wrong.text).text) == (400, True), words
                assert html.escape(form["rules"], quote=False).strip() in wrong.text
        late = await ask(gate.web, "olga", "POST", f"{PATH}/rules", rules="", digest="0" * 64)
        assert (late.status_code, gate.text) == (409, TEXT + RULES)


async def test_admins_see_no_trial_and_may_not_use_rules(home: Home) -> None:
    async with open_gate(home, ["Paris"]) as gate:
        page = await read(gate.web, "ada", PATH)
        refused = [
            (await ask(gate.web, "ada", "POST", f"{PATH}/{path}", rules="")).status_code for path in ("trial", "rules")
        ]
    assert ("Try rules" in page.text, refused) == (False, [403, 403])


async def test_what_the_observer_decided_is_listed_with_its_turn_and_kept_by_a_trial(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = GatePolicy(tiers=(("weather", Tier.SENSITIVE),), observer=ObserverPolicy("watcher", cache_ttl_s=0))
    verdicts = [("approve", "it is asked for"), ("deny", "it is <i>odd</i>")]
    replies = [
        each
        for (verdict, reason), city in zip(verdicts, ("Paris", "Oslo"), strict=True)
        for each in (
            ScriptedReply(calls=[call("weather", city=city)]),
            ScriptedReply(f'{{"decision": "{verdict}", "reason": "{reason}"}}'),
            _said(city),
        )
    ]
    text = TEXT + "gate:\n  tiers: {weather: 2}\n  observer: {model: balanced}\n"
    async with open_home(home, text) as denizen:
        files = HomeConfiguration(denizen, Reloader(denizen))
        async with open_web(
            ScriptedModel(*replies),
            keys=[OWNER, ADA, ANN],
            policy=policy,
            configuration=files,
            plan_policy=files.plan_policy,
        ) as web:
            await chat(web, "ann", "one")
            await chat(web, "ann", "two")
            page = await read(web, "ada", PATH)
            tried = await ask(web, "olga", "POST", f"{PATH}/trial", rules="", tool="weather", action="approve")
            await make_private(web, monkeypatch)
            private = await read(web, "ada", PATH)
    rows = [row for row in page.rows if row[2] == "weather"]
    assert [row[3] for row in rows] == ["deny it is <i>odd</i>", "approve it is asked for"]
    assert len({row[4] for row in rows}) == 2
    assert "1 of 2 past calls would come out otherwise" in PageText(tried.text).text
    assert "1 denied by the rules in force, allowed by these" in PageText(tried.text).text
    assert "it is asked for" not in private.text
