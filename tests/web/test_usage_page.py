"""Usage on its page, in its charts and as CSV."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pytest

from denizen.domain.budget import BudgetLimits, BudgetPolicy, BudgetScopeKind
from denizen.domain.usage import Usage
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from denizen.web.pages.usage import PATH
from tests.web.admin_pages_fixture import KEYS, ask, read
from tests.web.api.test_chats import read as read_chat
from tests.web.api.test_chats import say
from tests.web.test_turns_pages import chat
from tests.web_fixture import ADA, ANN, BEN, WebFixture, open_web

pytestmark = pytest.mark.anyio

USED = Usage(input_tokens=100, cache_read_tokens=40, output_tokens=10, requests=1, cost_usd=Decimal("0.25"))
REPORT = {"source": "=cmd", "model": "m2", "inputTokens": 7, "outputTokens": 3}


def make_model() -> ScriptedModel:
    return ScriptedModel(*[ScriptedReply("Yes.", usage=USED)] * 4, name="m1")


async def use(web: WebFixture) -> None:
    """Two messages of Ann, the first one of five days ago, one of Ben to another agent, and a report of a program."""
    await chat(web, "ann", "one")
    web.clock.advance(days=5)
    await chat(web, "ann", "two")
    await chat(web, "ben", "three", agent="scribe")
    async with web.client(**{"x-api-key": KEYS["ben"]}) as client:
        assert (await client.post("/api/stats/usage", json=REPORT)).status_code == 201


@pytest.mark.parametrize("days", [1, 30, 365])
async def test_the_page_sums_up_messages_tokens_and_cost_of_the_chosen_days(days: int) -> None:
    async with open_web(make_model(), keys=[ADA, ANN, BEN]) as web:
        await use(web)
        page = await read(web, "ada", f"{PATH}?days={days}")
    chats = 2 if days == 1 else 3
    assert f"{chats + 1} messages" in page.text
    assert f"{chats * 110 + 10} tokens" in page.text
    assert f"${chats * 0.25:.2f} cost" in page.text
    for row in (
        ["m1", f"{chats}", f"{chats * 100}", f"{chats * 40}", f"{chats * 10}", f"${chats * 0.25:.2f}"],
        ["web", f"{chats}", f"{chats * 100}", f"{chats * 40}", f"{chats * 10}", f"${chats * 0.25:.2f}"],
        ["ann", f"{chats - 1}", f"{(chats - 1) * 100}", f"{(chats - 1) * 40}", f"{(chats - 1) * 10}"],
        ["denizen", f"{chats - 1}", f"{(chats - 1) * 100}", f"{(chats - 1) * 40}", f"{(chats - 1) * 10}"],
        ["scribe", "1", "100", "40", "10", "$0.25"],
        ["=cmd", "1", "7", "0", "3", "unknown"],
    ):
        assert row in [found[: len(row)] for found in page.rows], row
    assert sum(row[0].startswith("2026-") or row[0].startswith("2025-") for row in page.rows) == days


async def test_the_trend_compares_with_as_many_days_before() -> None:
    async with open_web(make_model(), keys=[ADA, ANN, BEN]) as web:
        await use(web)
        page = await read(web, "ada", f"{PATH}?days=5")
    assert "3 messages +200 %" in page.text
    assert "$0.50 cost +100 %" in page.text


async def test_source_and_model_narrow_the_page_and_its_charts() -> None:
    async with open_web(make_model(), keys=[ADA, ANN, BEN]) as web:
        await use(web)
        page = await read(web, "ada", f"{PATH}?model=m2&days=10")
        [charts] = [attrs for _, attrs in page.tags if attrs.get("id") == "charts"]
        points = (await ask(web, "ada", "GET", str(charts["data-url"]))).json()
        everything = (await ask(web, "ada", "GET", f"{PATH}/days?days=10")).json()
    assert "1 messages" in page.text
    assert [option["value"] for option in page.all("option") if option.get("value") is not None] == ["", ""]
    assert [row["messages"] for row in points["daily"]] == [0] * 9 + [1]
    assert [row["messages"] for row in everything["daily"]] == [0] * 4 + [1] + [0] * 4 + [3]
    assert [row["messages"] for row in everything["hourly"]] == [0] * 12 + [4] + [0] * 11


async def test_the_csv_has_a_row_for_each_day_source_model_and_user_and_no_formulas() -> None:
    async with open_web(make_model(), keys=[ADA, ANN, BEN]) as web:
        await use(web)
        answer = await ask(web, "ada", "GET", f"{PATH}.csv?days=30")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer.headers["content-disposition"]
    assert [(row["day"], row["source"], row["model"], row["user"], row["messages"]) for row in rows] == [
        ("2026-11-21", "web", "m1", "api_key:ann", "1"),
        ("2026-11-26", "'=cmd", "m2", "api_key:ben", "1"),
        ("2026-11-26", "web", "m1", "api_key:ann", "1"),
        ("2026-11-26", "web", "m1", "api_key:ben", "1"),
    ]
    assert (rows[0]["input_tokens"], rows[0]["cached_tokens"], rows[0]["cost_usd"]) == ("100", "40", "0.25")


async def test_members_may_not_see_it_and_days_have_bounds() -> None:
    async with open_web(keys=[ADA, ANN]) as web:
        refused = [
            (await ask(web, "ann", "GET", f"{PATH}{more}")).status_code
            for more in ("", "/days", ".csv", "/feedback.csv")
        ]
        wrong = [(await ask(web, "ada", "GET", f"{PATH}?days={days}")).status_code for days in ("0", "366", "x")]
        empty = await read(web, "ada", PATH)
    assert (refused, wrong) == ([403] * 4, [400, 400, 400])
    assert "Nothing was used in these days." in empty.text


async def vote(web: WebFixture, *votes: str) -> None:
    """Ann asks something for each of these votes, and votes on the answer."""
    async with web.client(**{"x-api-key": KEYS["ann"]}) as client:
        for number, each in enumerate(votes):
            name = f"c{web.clock.now():%d}-{number}"
            await say(client, name, "hi")
            [_, answer] = (await read_chat(client, name))["messages"]
            await client.patch(f"/api/messages/{answer['id']}/feedback", json={"feedback": each})


@pytest.mark.proves("S-admin-statistics")
async def test_usage_cost_and_feedback_are_shown_over_time_in_charts_in_tables_as_csv_and_in_the_api() -> None:
    model = ScriptedModel(*[ScriptedReply("Yes.", usage=USED)] * 4, name="m1")
    async with open_web(model, keys=[ADA, ANN]) as web:
        before = await read(web, "ada", PATH)
        await vote(web, "positive", "positive", "negative")
        web.clock.advance(days=2)
        await vote(web, "positive")
        after = await read(web, "ada", f"{PATH}?days=4")
        [charts] = [attrs for _, attrs in after.tags if attrs.get("id") == "charts"]
        points = (await ask(web, "ada", "GET", str(charts["data-url"]))).json()
        sheet = await ask(web, "ada", "GET", f"{PATH}/feedback.csv?days=4")
        api = (await ask(web, "ada", "GET", "/api/stats?days=4")).json()
        feedback = (await ask(web, "ada", "GET", "/api/stats/feedback?days=4")).json()
        filtered = (await ask(web, "ada", "GET", f"{PATH}/days?days=4&model=m1")).json()
        refused = [await ask(web, "ann", "GET", f"/api/stats/{name}") for name in ("feedback", "budgets")]
    assert "– nobody voted on answers" in before.text
    assert "75 % positive votes" in after.text
    assert {"chart-messages", "chart-cost", "chart-feedback"} <= {attrs.get("id") for attrs in after.all("div")}
    assert after.rows[-2:] == [["2026-11-23", "1", "0"], ["2026-11-21", "2", "1"]]
    assert ["2026-11-23", "1", "100", "40", "10", "$0.25"] in after.rows
    assert ["2026-11-21", "3", "300", "120", "30", "$0.75"] in after.rows
    days = ["2026-11-20", "2026-11-21", "2026-11-22", "2026-11-23"]
    assert [(row["key"], row["messages"], row["cost_usd"]) for row in points["daily"]] == [
        (days[0], 0, None),
        (days[1], 3, "0.75"),
        (days[2], 0, None),
        (days[3], 1, "0.25"),
    ]
    votes = [(0, 0), (2, 1), (0, 0), (1, 0)]
    assert [(row["day"], row["positive"], row["negative"]) for row in points["feedback"]] == [
        (day, *count) for day, count in zip(days, votes, strict=True)
    ]
    assert sheet.text.splitlines() == [
        "day,positive,negative",
        *(f"{day},{positive},{negative}" for day, (positive, negative) in zip(days, votes, strict=True)),
    ]
    assert (feedback, api["daily"], api["feedback_score"]) == (points["feedback"], points["daily"], 0.75)
    assert (filtered["feedback"], [each.status_code for each in refused]) == ([], [403, 403])


async def test_costs_stand_against_budgets_on_the_page_in_the_chart_and_in_the_api() -> None:
    budgets = BudgetPolicy(
        usual={BudgetScopeKind.SERVER: BudgetLimits(Decimal(2)), BudgetScopeKind.AGENT: BudgetLimits(None, Decimal(5))}
    )
    async with open_web(make_model(), keys=[ADA, ANN, BEN], budgets=budgets) as web:
        await chat(web, "ann", "one")
        page = await read(web, "ada", PATH)
        points = (await ask(web, "ada", "GET", f"{PATH}/days")).json()
        api = (await ask(web, "ada", "GET", "/api/stats/budgets")).json()
    assert ["everything", "day", "$0.25", "$2.00", "12 %"] in page.rows
    assert ["denizen", "month", "$0.25", "$5.00", "5 %"] in page.rows
    assert points["day_budget_usd"] == "2"
    assert api[0] == {"scope": "server", "key": "", "period": "day", "limit_usd": "2", "spent_usd": "0.25"}
