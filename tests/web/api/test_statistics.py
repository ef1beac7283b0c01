"""Usage over HTTP: who may report and read what, and what the numbers say."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import httpx2
import pytest

from denizen.domain.usage import Usage
from denizen.engine.inspection.statistics import REPORTS
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from denizen.web.http.auth import ApiKey, make_csrf_token
from denizen_sdk import DenizenClient
from denizen_sdk.records import from_json
from denizen_sdk.usage import TokenCounts, UsageOverview
from tests.rate_rows import count_rate_keys
from tests.web.people import add_user, sign_in
from tests.web_fixture import ADA, ANN, BEN, LOCAL, WebFixture, open_web

pytestmark = pytest.mark.anyio

REPORT = {
    "source": "github-bot",
    "sourceId": "issue-7",
    "model": "m2",
    "inputTokens": 70,
    "outputTokens": 30,
    "durationMs": 250,
    "metadata": {"repo": "a/b"},
}


class StatisticsCaller:
    """Requests with one key."""

    def __init__(self, web: WebFixture, key: str) -> None:
        self._site = web
        self._headers = {"x-api-key": key}

    async def post(self, path: str, body: Mapping[str, Any] | None = None, **headers: str) -> tuple[int, Any]:
        async with self._site.client(**self._headers, **headers) as client:
            answer = await client.post(path, json=body)
        return answer.status_code, answer.json()

    async def get(self, path: str, **params: Any) -> tuple[int, Any]:
        async with self._site.client(**self._headers) as client:
            answer: httpx2.Response = await client.get(path, params=params)
        return answer.status_code, answer.json()

    async def ask(self) -> None:
        async with self._site.client(**self._headers) as client:
            assert (await client.post("/api/chat", json={"message": "hi"})).status_code == 200

    async def sums(self, path: str = "/api/stats", **params: Any) -> UsageOverview:
        status, row = await self.get(path, **params)
        assert status == 200, row
        return from_json(UsageOverview, row)


def callers(web: WebFixture) -> tuple[StatisticsCaller, StatisticsCaller, StatisticsCaller]:
    return (
        StatisticsCaller(web, "key-of-ann"),
        StatisticsCaller(web, "key-of-ben"),
        StatisticsCaller(web, "key-of-ada"),
    )


def make_numbered_model() -> ScriptedModel:
    used = Usage(input_tokens=10, output_tokens=5, requests=1, cost_usd=Decimal("0.02"))
    return ScriptedModel(*(ScriptedReply(f"Answer {number}.", usage=used) for number in range(9)), name="m1")


@pytest.mark.proves("S-http-stats-usage-post", "S-data-api-usage")
async def test_everybody_with_a_key_reports_usage_and_gets_its_id() -> None:
    async with open_web(keys=[ANN]) as web:
        ann, *_ = callers(web)
        status, told = await ann.post("/api/stats/usage", REPORT)
        _, same = await ann.post("/api/stats/usage", {"source": "sdk", "input_tokens": 1}, **{"idempotency-key": "1"})
        _, again = await ann.post("/api/stats/usage", {"source": "sdk", "input_tokens": 1}, **{"idempotency-key": "1"})
        other = await ann.post("/api/stats/usage", {"source": "sdk", "input_tokens": 2}, **{"idempotency-key": "1"})
        edges = [(await ann.post("/api/stats/usage", {"source": "x" * length}))[0] for length in (1, 50)]
        async with web.store.work(write=False) as work:
            kept = await work.statistics.find_report(told["id"])
        assert (await ann.sums("/api/stats/me")).totals.messages == 4
        stranger = await StatisticsCaller(web, "wrong").post("/api/stats/usage", REPORT)
    assert (status, told["recorded"], edges) == (201, True, [201, 201])
    assert kept is not None
    assert (kept.reporter, kept.source, kept.source_id, kept.model) == ("api_key:ann", "github-bot", "issue-7", "m2")
    assert (kept.usage.input_tokens, kept.usage.output_tokens, kept.duration_ms) == (70, 30, 250)
    assert kept.metadata == {"repo": "a/b"}
    assert same == again
    assert (other[0], other[1]["error"]["code"]) == (409, "idempotency_conflict")
    assert stranger[0] == 401


@pytest.mark.proves("S-http-stats-usage-post", "S-http-stats-me-get")
async def test_a_user_who_is_signed_in_reports_usage_too_and_reads_their_own() -> None:
    async with open_web(keys=[ANN]) as web, web.client() as browser:
        await browser.post("/login", data={"key": "key-of-ann"})
        token = {"x-csrf-token": make_csrf_token(browser.cookies["denizen_login"])}
        by_key = await browser.post("/api/stats/usage", json=REPORT, headers=token)
        await add_user(web, "olga")
        async with sign_in(web, await add_user(web, "kim")) as kim:
            by_account = await kim.client.post("/api/stats/usage", json=REPORT)
            own = from_json(UsageOverview, (await kim.client.get("/api/stats/me")).json())
        async with web.store.work(write=False) as work:
            kept = [await work.statistics.find_report(each.json()["id"]) for each in (by_key, by_account)]
    assert [each.status_code for each in (by_key, by_account)] == [201, 201]
    assert [each and (each.reporter, each.source) for each in kept] == [
        ("api_key:ann", "github-bot"),
        (f"web_user:{kim.user.id}", "github-bot"),
    ]
    assert [(row.key, row.messages) for row in own.by_source] == [("github-bot", 1)], "and not what the key reported"


@pytest.mark.proves("S-sdk-usage")
async def test_what_the_sdk_reports_is_in_the_statistics_once() -> None:
    async with open_web(keys=[ANN, ADA]) as web:
        transport = httpx2.ASGITransport(web.app)
        async with DenizenClient(LOCAL, "key-of-ann", source="ci", source_id="7", transport=transport) as client:
            first, again = [
                await client.report_usage(TokenCounts(70, 30), model="m2", duration_ms=5, idempotency_key="run-1")
                for _ in range(2)
            ]
        found = await callers(web)[2].sums(days=1)
    assert first == again
    assert [(row.key, row.messages, row.input_tokens) for row in found.by_source] == [("ci", 1, 70)]


@pytest.mark.proves("S-http-stats-usage-post")
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"source": ""}, "source"),
        ({"source": "x" * 51}, "source"),
        ({"source": "a\nb"}, "source"),
        ({"source": None}, "source"),
        ({"source": 7}, "source"),
        ({"sourceId": "x" * 201}, "source_id"),
        ({"model": "x" * 201}, "model"),
        ({"inputTokens": -1}, "input_tokens"),
        ({"outputTokens": 1.5}, "output_tokens"),
        ({"inputTokens": 10**18}, "input_tokens"),
        ({"durationMs": True}, "duration_ms"),
        ({"metadata": [1]}, "metadata"),
        ({"metadata": {"a": "x" * 4001}}, "metadata"),
    ],
)
async def test_a_report_that_cannot_be_kept_is_refused_with_the_field(change: dict[str, Any], field: str) -> None:
    async with open_web(keys=[ANN]) as web:
        ann, *_ = callers(web)
        status, told = await ann.post("/api/stats/usage", REPORT | change)
        assert (await ann.sums("/api/stats/me")).totals.messages == 0
    assert (status, told["error"]["code"]) == (400, "field_invalid")
    assert field in told["error"]["message"]


async def test_numbers_that_are_none_are_refused() -> None:
    async with open_web(keys=[ANN]) as web, web.client(**{"x-api-key": "key-of-ann"}) as client:
        for number in ("NaN", "1e999", "-Infinity"):
            raw, headers = f'{{"source": "a", "metadata": {{"x": {number}}}}}', {"content-type": "application/json"}
            answer = await client.post("/api/stats/usage", content=raw, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "field_invalid")


async def test_a_refusal_says_why_and_what_to_do() -> None:
    async with open_web(keys=[ANN]) as web:
        _, told = await callers(web)[0].post("/api/stats/usage", REPORT | {"source": "x" * 51})
    assert told["error"]["why"] == "it has 51 characters"
    assert told["error"]["fix"]


@pytest.mark.proves("X-rate-limit")
async def test_a_key_cannot_fill_the_disk_with_reports() -> None:
    a_minute, a_day = REPORTS
    assert (a_minute.calls, a_minute.window_s, a_day.calls, a_day.window_s) == (120, 60, 5000, 86_400)
    async with open_web(keys=[ANN, BEN]) as web:
        ann, ben, _ = callers(web)
        for _ in range(a_minute.calls):
            assert (await ann.post("/api/stats/usage", {"source": "loop"}))[0] == 201
        status, told = await ann.post("/api/stats/usage", {"source": "loop"})
        assert (status, told["error"]["code"]) == (429, "reports_exhausted")
        assert (await ben.post("/api/stats/usage", {"source": "loop"}))[0] == 201
        web.clock.advance(minutes=1)
        assert (await ann.post("/api/stats/usage", {"source": "loop"}))[0] == 201
        assert count_rate_keys(web.store) == 2


@pytest.mark.proves("S-http-stats-get")
async def test_an_admin_sees_all_usage_by_model_source_user_day_and_hour() -> None:
    async with open_web(make_numbered_model(), keys=[ANN, BEN, ADA]) as web:
        ann, ben, ada = callers(web)
        await ann.ask()
        web.clock.advance(days=2, hours=-3)
        await ann.ask()
        await ben.ask()
        await ben.post("/api/stats/usage", REPORT)
        found = await ada.sums(days=3)
        of_bot = await ada.sums(days=3, source="github-bot")
        of_model = await ada.sums(days=1, model="m1")
        refused = await ben.get("/api/stats")
    assert refused[0] == 403
    assert (found.days, found.first_day, found.last_day) == (3, "2026-11-21", "2026-11-23")
    assert (found.totals.messages, found.totals.input_tokens, found.totals.cost_usd) == (4, 100, "0.06")
    assert [(row.key, row.messages) for row in found.by_model] == [("m1", 3), ("m2", 1)]
    assert [(row.key, row.messages) for row in found.by_source] == [("web", 3), ("github-bot", 1)]
    assert found.top_users is not None
    assert {(row.key, row.name, row.messages) for row in found.top_users} == {
        ("api_key:ann", "ann", 2),
        ("api_key:ben", "ben", 2),
    }
    assert [(row.key, row.messages) for row in found.daily] == [("2026-11-21", 1), ("2026-11-22", 0), ("2026-11-23", 3)]
    assert found.hourly is not None
    assert len(found.hourly) == 24
    assert {row.key: row.messages for row in found.hourly if row.messages} == {"12": 1, "09": 3}
    assert found.feedback_score is None, "messages have no votes yet"
    assert (of_bot.totals.messages, of_bot.totals.input_tokens, of_bot.totals.duration_ms) == (1, 70, 250)
    assert of_bot.top_users is not None and of_bot.hourly is not None
    assert [(row.name, row.messages) for row in of_bot.top_users] == [("ben", 1)]
    assert sum(row.messages for row in of_bot.hourly) == 1
    assert (of_model.totals.messages, of_model.previous.messages) == (2, 0)
    assert of_model.top_users is not None and of_model.hourly is not None
    shares = (of_model.by_model, of_model.by_source, of_model.top_users, of_model.daily, of_model.hourly)
    assert [sum(row.messages for row in rows) for rows in shares] == [2] * 5


@pytest.mark.proves("S-http-stats-get")
async def test_the_trend_compares_with_as_many_days_before() -> None:
    async with open_web(make_numbered_model(), keys=[ANN, ADA]) as web:
        ann, _, ada = callers(web)
        await ann.ask()
        await ann.ask()
        first = await ada.sums(days=1)
        web.clock.advance(days=1)
        for _ in range(3):
            await ann.ask()
        second = await ada.sums(days=1)
    assert (first.trend.messages_percent, first.trend.cost_percent) == (None, None)
    assert (second.trend.messages_percent, second.previous.messages, second.totals.messages) == (50.0, 2, 3)
    assert (second.trend.tokens_percent, second.trend.cost_percent) == (50.0, 50.0)


@pytest.mark.proves("S-http-stats-get")
async def test_the_ten_users_with_the_most_messages_are_listed() -> None:
    keys = [ApiKey.from_text(f"user{number:02}", f"key-{number:02}", ("member",)) for number in range(12)]
    async with open_web(keys=[*keys, ADA]) as web:
        for number in range(12):
            user = StatisticsCaller(web, f"key-{number:02}")
            for message in range(number + 1):
                assert (await user.post("/api/stats/usage", REPORT | {"sourceId": str(message)}))[0] == 201
        found = await callers(web)[2].sums(days=1)
    assert found.top_users is not None
    assert [(row.name, row.messages) for row in found.top_users] == [
        (f"user{number:02}", number + 1) for number in range(11, 1, -1)
    ]


@pytest.mark.proves("S-http-stats-get")
async def test_days_out_of_range_are_refused() -> None:
    async with open_web(keys=[ADA]) as web:
        ada = callers(web)[2]
        for days in (0, 366, "many"):
            assert (await ada.get("/api/stats", days=days))[0] == 400
        assert len((await ada.sums(days=365)).daily) == 365


@pytest.mark.proves("S-http-stats-me-get")
async def test_a_user_sees_their_own_usage_and_nobody_elses() -> None:
    async with open_web(make_numbered_model(), keys=[ANN, BEN, ADA]) as web:
        ann, ben, ada = callers(web)
        await ann.ask()
        await ben.ask()
        await ben.ask()
        await ben.post("/api/stats/usage", REPORT)
        for computed in (False, True):
            if computed:
                web.clock.advance(days=1)
                assert (await ada.post("/api/stats/compute"))[0] == 200
            mine, theirs = await ann.sums("/api/stats/me"), await ben.sums("/api/stats/me", days=2)
            assert (mine.totals.messages, theirs.totals.messages) == (1, 3)
            assert [row.key for row in mine.by_source] == ["web"]
            assert [(row.key, row.messages) for row in mine.by_model] == [("m1", 1)]
            assert sum(row.messages for row in mine.daily) == 1
            assert (mine.top_users, mine.hourly) == (None, None)
            assert (await ada.sums("/api/stats/me")).totals.messages == 0


@pytest.mark.proves("S-http-stats-compute-post", "SW9")
async def test_an_admin_has_a_day_computed_as_often_as_they_like() -> None:
    async with open_web(make_numbered_model(), keys=[ANN, ADA]) as web:
        ann, _, ada = callers(web)
        for _ in range(2):
            await ann.ask()
        await ann.post("/api/stats/usage", REPORT)
        before = await ada.sums(days=2)
        web.clock.advance(days=1)
        told = [await ada.post("/api/stats/compute") for _ in range(3)]
        named = await ada.post("/api/stats/compute", {"date": "2026-11-20"})
        after = await ada.sums(days=2)
        refused = [await ada.post("/api/stats/compute", {"date": day}) for day in ("2026-11-22", "2027-01-01", "1.1.")]
        member = await ann.post("/api/stats/compute")
    assert told == [(200, {"date": "2026-11-21", "rows": 4})] * 3, "one of each model, of the user and of everybody"
    assert named == (200, {"date": "2026-11-20", "rows": 0})
    assert (after.totals, after.by_model, after.by_source) == (before.totals, before.by_model, before.by_source)
    assert [(status, row["error"]["code"]) for status, row in refused] == [
        (400, "day_not_over"),
        (400, "day_not_over"),
        (400, "field_invalid"),
    ]
    assert member[0] == 403
