"""The overview: what it tells, to whom, and that it goes on by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import anyio
import httpx2
import pytest

from denizen.domain.budget import BudgetLimits, BudgetPolicy, BudgetScopeKind
from denizen.domain.diagnosis import Diagnosis, Severity
from denizen.domain.errors import Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.usage import Usage
from denizen.engine.accounts.connected_accounts import AccountState
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply
from denizen.web.http.dependencies import InstanceServices
from tests.app.home_folder import Home
from tests.app.test_configuration import open_configuration
from tests.timing import HANG_LIMIT_S
from tests.web.admin_pages_fixture import KEYS, ask, read
from tests.web.knowledge_web_fixture import OWNER
from tests.web_fixture import ADA, ANN, make_hello_model, open_web

pytestmark = pytest.mark.anyio

WAITING = "/admin?examined=wait"
ACCOUNTS = [
    AccountState("discord", AgentName("denizen"), is_listening=True, told="connected or connecting"),
    AccountState("github", AgentName("scribe"), is_listening=False, told="The token was refused.\nfix: Make another."),
]


class Examiner:
    """Finds the same each time, and notes how it was asked."""

    def __init__(self, *findings: Diagnosis) -> None:
        self.findings = findings
        self.asked: list[bool] = []

    async def __call__(self, *, is_thorough: bool) -> Sequence[Diagnosis]:
        self.asked.append(is_thorough)
        return self.findings


def instance(examiner: Examiner | None = None, **problems: str) -> InstanceServices:
    async def find_problems() -> Mapping[str, str]:
        return problems

    return InstanceServices(
        find_problems=find_problems, diagnose=examiner or Examiner(), list_accounts=lambda: ACCOUNTS
    )


@pytest.mark.proves("T-ui-dashboard")
async def test_the_overview_shows_health_accounts_messages_money_and_failures() -> None:
    used = Usage(input_tokens=10, output_tokens=5, requests=1, cost_usd=Decimal("0.25"))
    model = ScriptedModel(ScriptedReply("Yes.", usage=used), ScriptedReply("No.", usage=used), name="m1")
    budgets = BudgetPolicy(usual={BudgetScopeKind.SERVER: BudgetLimits(per_day_usd=Decimal(1))})
    examiner = Examiner(
        Diagnosis(Severity.WARNING, "nobody is an owner", "Set owners."), Diagnosis(Severity.OK, "tools: 3 known")
    )
    async with open_web(model, keys=[ADA, ANN], instance=instance(examiner, disk="it is full"), budgets=budgets) as web:
        for _ in range(2):
            async with web.client(**{"x-api-key": "key-of-ann"}) as client:
                await client.post("/api/chat", json={"message": "hi"})
        page = await read(web, "ada", WAITING)
    assert "2 messages today" in page.text
    assert "$0.50 spent today" in page.text
    assert "0 turns in flight" in page.text
    assert "disk is not ready. it is full" in page.text
    assert "warning nobody is an owner Set owners." in page.text
    assert "1 things work tools: 3 known" in page.text
    assert ["denizen", "discord", "listening"] in page.rows
    assert ["scribe", "github", "not connected The token was refused. fix: Make another."] in page.rows
    assert ["everything", "day", "$0.50", "$1.00", "50 %"] in page.rows
    assert "No turn has failed." in page.text


async def test_a_finding_leads_to_the_form_of_the_setting_that_it_names_and_shards_are_counted(tmp_path: Path) -> None:
    examiner = Examiner(
        Diagnosis(Severity.WARNING, "nobody is told", "Set gate.observer.alert_channel to a channel."),
        Diagnosis(Severity.WARNING, "nobody is an owner", "Set channels.discord.owners."),
        Diagnosis(Severity.ERROR, "the disk is full", "Make room."),
    )
    accounts = [AccountState("discord", AgentName("denizen"), is_listening=True, told="", shards=(1, 2))]
    services = replace(instance(examiner), list_accounts=lambda: accounts)
    async with (
        open_configuration(Home(tmp_path)) as configured,
        open_web(keys=[ADA], instance=services, configuration=configured.files) as web,
    ):
        page = await read(web, "ada", WAITING)
    links = [str(attrs["href"]) for attrs in page.all("a") if "/section/" in str(attrs.get("href"))]
    assert links == [
        "/admin/config/section/gate#gate.observer.alert_channel",
        "/admin/config/section/channels.discord#channels.discord.owners",
    ]
    assert "Fix under Permissions" in page.text
    assert ["denizen", "discord", "listening 1 of 2 shards"] in page.rows


async def test_turns_that_wait_behind_others_are_told_apart_from_those_that_run() -> None:
    before = ReplyGate()
    model = ScriptedModel(ScriptedReply("One.", before=before), ScriptedReply("Two."))
    async with (
        open_web(model, keys=[OWNER], instance=instance()) as web,
        web.serve() as url,
        httpx2.AsyncClient(base_url=url, headers={"x-api-key": KEYS["olga"]}, timeout=HANG_LIMIT_S) as client,
        anyio.create_task_group() as group,
    ):
        for _ in range(2):
            group.start_soon(lambda: client.post("/api/chat", json={"message": "hi"}))
            await before.reached.wait()
        with anyio.fail_after(HANG_LIMIT_S):
            while "2 turns in flight, 1 of them wait" not in (page := await read(web, "olga", WAITING)).text:
                await anyio.lowlevel.checkpoint()
        before.open.set()
        assert [row[-1].endswith("waits") for row in page.rows if row[1:3] == ["denizen", "olga"]] == [False, True]


async def test_the_newest_failures_are_listed_with_what_to_do() -> None:
    away = Unavailable("The model does not answer.", fix="Try <b>later</b>.")
    async with open_web(ScriptedModel(ScriptedReply(error=away)), keys=[ADA, ANN], instance=instance()) as web:
        async with web.client(**{"x-api-key": "key-of-ann"}) as client:
            await client.post("/api/chat", json={"message": "hi"})
        [turn] = await web.turns()
        page = await read(web, "ada", WAITING)
    assert page.rows[-1][1:] == ["denizen", "The model does not answer. Try <b>later</b>."]
    assert {"href": f"/admin/turns/{turn.id}"} in page.all("a")


async def test_a_member_may_not_see_the_overview_and_nobody_without_a_sign_in() -> None:
    async with open_web(keys=[ANN, ADA]) as web, web.client() as client:
        assert (await ask(web, "ann", "GET", "/admin")).status_code == 403
        assert (await ask(web, "ann", "POST", "/admin/examination")).status_code == 403
        assert (await client.get("/admin")).status_code == 303


async def test_checks_are_repeated_once_a_minute_and_thoroughly_on_demand() -> None:
    examiner = Examiner(Diagnosis(Severity.ERROR, "model fast: <b>no answer</b>", "Look at the provider."))
    async with open_web(make_hello_model(), keys=[ADA], instance=instance(examiner)) as web:
        assert "The checks are under way." in (await read(web, "ada", "/admin")).text
        assert examiner.asked == []
        await read(web, "ada", WAITING)
        page = await ask(web, "ada", "GET", WAITING)
        assert examiner.asked == [False]
        assert "<b>no answer" not in page.text
        web.clock.advance(61)
        await read(web, "ada", WAITING)
        assert examiner.asked == [False, False]
        again = await ask(web, "ada", "POST", "/admin/examination")
        assert (again.status_code, again.headers["location"]) == (303, "/admin#health")
        await read(web, "ada", WAITING)
    assert examiner.asked == [False, False, True]


async def test_the_page_loads_its_figures_again_by_itself() -> None:
    async with open_web(keys=[ADA], instance=instance()) as web:
        page = await read(web, "ada", WAITING)
    [live] = [attrs for _, attrs in page.tags if attrs.get("id") == "live"]
    assert (live["hx-get"], live["hx-trigger"], live["hx-select"]) == (WAITING, "every 3s", "#live")
