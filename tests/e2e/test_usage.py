"""Money from the command line: what was spent is told, and a budget ends a question before it is sent."""

from __future__ import annotations

import json
from datetime import timedelta

import anyio
import pytest

from denizen.adapters.store import open_store
from denizen.domain.clock import SystemClock
from denizen.domain.statistics import UsageReport
from denizen.domain.usage import Usage
from denizen.testing.model_server import ModelAnswer
from tests.e2e.home import Home
from tests.e2e.provider import Provider

pytestmark = pytest.mark.e2e

CONFIG = """\
models:
  providers:
    claude: {{kind: anthropic, base_url: "{url}", api_key: "${{KEY}}"}}
  aliases: {{balanced: claude/claude-sonnet-4-5}}
agents:
  denizen: {{limits: {{max_output_tokens: 1000}}}}
budgets: {budgets}
"""


def configure(home: Home, provider: Provider, budgets: str) -> None:
    home.variables["KEY"] = "sk-ant-0123456789abcdef"
    home.write(CONFIG.format(url=provider.server.url, budgets=budgets))


def test_what_was_spent_is_told_by_agent_model_and_user(home: Home, provider: Provider) -> None:
    configure(home, provider, "{}")
    assert home.do("usage").ending == (0, "Nothing was used in the last 30 days.\n")
    provider.script(ModelAnswer(text="Hello."), ModelAnswer(text="Again."))
    for _ in range(2):
        assert home.do("ask", "--no-stream", "Hello?").code == 0
    told = "2 requests, 24 tokens in (0 cached), 14 out, $0.0003"
    assert home.do("usage").ending == (0, f"denizen: {told}\nin all: {told}\n")
    assert home.do("usage", "--by", "guild").out == "Nothing was used in the last 30 days.\n"
    by_model = json.loads(home.do("usage", "--by", "model", "--days", "2", "--json").out)
    assert by_model.pop("day")
    assert by_model == {
        "model": "claude/claude-sonnet-4-5",
        "requests": 2,
        "input_tokens": 24,
        "cache_read_tokens": 0,
        "output_tokens": 14,
        "cost_usd": "0.000282",
    }
    assert home.do("usage", "--by", "source").out == f"terminal: {told}\nin all: {told}\n"
    by_day = [json.loads(line) for line in home.do("usage", "--by", "day", "--json").out.splitlines()]
    assert {len(each["day"]) for each in by_day} == {10}
    assert sum(each["requests"] for each in by_day) == 2  # of two days, if it is midnight
    by_user = json.loads(home.do("usage", "--by", "user", "--json").out)
    assert (by_user["user"], by_user["cost_usd"]) == ("local:operator", "0.000282")


@pytest.mark.proves("S-data-usage-stats")
def test_a_server_sums_up_the_days_that_are_over(home: Home, provider: Provider) -> None:
    configure(home, provider, "{}")
    yesterday = SystemClock().now() - timedelta(days=1)

    async def report() -> None:
        store = await open_store(home.store_url, clock=SystemClock())
        async with store.work() as work:
            await work.statistics.add_report(UsageReport("use_1", "api_key:bot", "bot", yesterday, usage=Usage(7, 3)))
        await store.aclose()

    anyio.run(report)
    with home.serve("-v") as server:
        server.running.err.await_text("usage computed")
        told = server.get("/api/stats?days=3").body
    assert [(row["key"], row["messages"], row["input_tokens"]) for row in told["by_source"]] == [("bot", 1, 7)]


@pytest.mark.proves("P5")
def test_a_question_beyond_the_budget_is_refused_before_it_is_sent_with_its_own_exit_code(
    home: Home, provider: Provider
) -> None:
    configure(home, provider, "{agents: {denizen: {per_day_usd: 0.01}}}")
    refused = home.do("ask", "Hello?")
    assert (refused.code, refused.out) == (5, "")
    assert "The budget of denizen for today is used up. It renews on" in refused.err
    assert "Of $0.01 $0.00 is spent" in refused.err
    assert provider.server.bodies == []


def test_a_budget_for_an_agent_that_does_not_exist_is_refused(home: Home, provider: Provider) -> None:
    configure(home, provider, "{agents: {denizn: {per_day_usd: 1}}, guilds: {123: {per_month_usd: 5}}}")
    checked = home.do("config", "check")
    assert checked.code == 2
    assert "there is no agent 'denizn'" in checked.err + checked.out
    assert "guilds" not in checked.err + checked.out
