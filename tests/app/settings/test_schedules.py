"""The section `schedules`: off where it is empty, its defaults, and what is refused with the line and the reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

import pytest

from denizen.domain.budget import BudgetLimits, BudgetScope, BudgetScopeKind
from denizen.domain.errors import InvalidInput
from denizen.domain.schedule import CatchUp, DeliveryRoute, Schedule, ScheduleBudget, ScheduleConduct, ScheduleDelivery
from tests.app.home_folder import Home

DISCORD = """\
channels:
  discord:
    accounts: {denizen: "${TOKEN}"}
"""


def write(lines: str) -> str:
    return "schedules:\n  news:\n" + "".join(f"    {line}\n" for line in lines.splitlines())


def refuse(home: Home, text: str) -> Any:
    """Returns the problem of a configuration that has one."""
    with pytest.raises(InvalidInput) as raised:
        home.load(text, TOKEN="t")
    [problem] = cast("list[Any]", raised.value.context["problems"])
    return problem


@pytest.mark.proves("T-config-cron")
def test_there_are_no_schedules_until_some_are_listed(home: Home) -> None:
    assert home.load("").schedules == {}
    assert list(home.load(write("cron: '@daily'\nprompt: News?")).schedules) == ["news"]


@pytest.mark.proves("T27")
def test_a_schedule_needs_its_times_and_its_prompt_only(home: Home) -> None:
    assert home.load(write("cron: 0 9 * * *\nprompt: News?")).schedules["news"] == Schedule(
        name="news", cron="0 9 * * *", zone="UTC", prompt="News?", agent=home.load("").default_agent
    )


@pytest.mark.proves("T27")
def test_everything_about_a_schedule_can_be_said(home: Home) -> None:
    text = write(
        "cron: 0 9 * * mon-fri\nzone: Europe/Berlin\nprompt: News?\nagent: denizen\nsession: diary\nnew_session: true\n"
        "model: balanced\nenabled: false\nwake_agent: false\ndelivery: {to: discord, target: 123}\ncatch_up: once"
    )
    assert home.load(text + DISCORD, TOKEN="t").schedules["news"] == Schedule(
        name="news",
        cron="0 9 * * mon-fri",
        zone="Europe/Berlin",
        prompt="News?",
        agent=home.load("").default_agent,
        enabled=False,
        barred=True,
        catch_up=CatchUp.ONCE,
        conduct=ScheduleConduct(
            session="diary",
            new_session=True,
            model="balanced",
            wake_agent=False,
            delivery=ScheduleDelivery(DeliveryRoute.CHANNEL, "discord", "123"),
        ),
    )


def test_a_schedule_that_its_owner_has_switched_off_is_off_and_theirs_to_switch_on(home: Home) -> None:
    found = home.load(write("cron: '@daily'\nprompt: x\nowner: platform_user:discord:7\npaused: true")).schedules[
        "news"
    ]
    assert (found.enabled, found.barred) == (False, False)


@pytest.mark.proves("TW10")
def test_the_zone_is_that_of_the_agent_unless_the_schedule_has_one(home: Home) -> None:
    agent = "agents: {denizen: {timestamps: {enabled: true, zone: Asia/Tokyo}}}\n"
    assert home.load(agent + write("cron: '@daily'\nprompt: x")).schedules["news"].zone == "Asia/Tokyo"


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ("cron: 0 9 31 2 *\nprompt: x", 3, "no cron expression"),
        ("cron: 0 9 * *\nprompt: x", 3, "no cron expression that comes true some day: '0 9 * *' has 4 fields"),
        ("cron: 0 9 * * frx\nprompt: x", 3, "'frx' is no weekday"),
        ("cron: '@dayly'\nprompt: x", 3, "'@dayly' is no name of times"),
        ("prompt: x\ncron: '@daily'\nzone: Europe/Berln", 5, "not a time zone"),
        ("prompt: x\ncron: '@daily'\nagent: nobody", 5, "there is no agent 'nobody'"),
        ("prompt: x\ncron: '@daily'\nmodel: none", 5, "there is no alias 'none'"),
        ("prompt: x\ncron: '@daily'\ndelivery: discord", 5, "needs its id"),
        ("prompt: x\ncron: '@daily'\ndelivery: {to: discord, target: general}", 5, "not an id of Discord"),
        ("prompt: x\ncron: '@daily'\ndelivery: {target: 1}", 5, "the log has no target"),
        ("prompt: ' '\ncron: '@daily'", 3, "must not be empty"),
        ("cron: '@daily'", 2, "prompt"),
    ],
)
def test_what_cannot_run_is_refused_with_line_and_reason(home: Home, lines: str, line: int, message: str) -> None:
    problem = refuse(home, write(lines))
    assert (problem["line"], message in str(problem)) == (line, True), problem


def test_a_delivery_by_an_agent_without_an_account_is_refused_and_warned_of_where_there_is_no_account(
    home: Home,
) -> None:
    text = write("prompt: x\ncron: '@daily'\ndelivery: {to: discord, target: 1}")
    other = "agents: {denizen: {}, eve: {}}\n" + DISCORD.replace("denizen", "eve")
    assert "'denizen' has no account" in refuse(home, text + other)["message"]
    [warning] = home.load(text).warnings
    assert "nothing arrives on Discord" in warning.message
    assert "denizen run --simulate" in warning.fix
    assert home.load(text + DISCORD, TOKEN="t").warnings == ()


@pytest.mark.proves("T27")
def test_a_message_to_the_owner_needs_an_owner(home: Home) -> None:
    text = write("prompt: x\ncron: '@daily'\ndelivery: discord-dm")
    assert "nobody is the owner" in refuse(home, text + DISCORD)["message"]
    owned = home.load(text + DISCORD + "    owners: [7]\n", TOKEN="t").schedules["news"]
    assert owned.conduct.delivery == ScheduleDelivery(DeliveryRoute.DIRECT, "discord")


@pytest.mark.parametrize(
    "lines",
    [
        "prompt: Tell ${TOKEN}.",
        "prompt: x\nsession: ${TOKEN:-mine}",
        "prompt: x\nhooks: {before_run: {tool: t, args: {a: ['${TOKEN}']}}}",
    ],
)
def test_the_schedule_of_a_person_names_no_variable(home: Home, lines: str) -> None:
    text = write(f"cron: '@daily'\n{lines}")
    assert home.load(text, TOKEN="t").schedules["news"].owner == ""
    owned = text + "    owner: platform_user:discord:7\n"
    assert "names no variables, and this one names TOKEN" in refuse(home, owned)["message"]
    assert home.load(owned.replace("${", "$${"), TOKEN="t").schedules["news"].owner == "platform_user:discord:7"


@pytest.mark.parametrize(
    "line", ["owner: discord:7", "owner: schedule:tea", "owner: platform_user:discord:7, life: A#"]
)
def test_an_owner_is_a_person_of_a_platform(home: Home, line: str) -> None:
    text = write("cron: '@daily'\nprompt: x\n" + line.replace(", ", "\n"))
    assert refuse(home, text)["line"] == text.count("\n")


@pytest.mark.parametrize("name", ["News", "a b", "ä", "-x", "x" * 65])
def test_a_name_that_would_not_fit_a_path_or_a_command_is_refused(home: Home, name: str) -> None:
    assert "name of a schedule" in refuse(home, f'schedules: {{"{name}": {{cron: "@daily", prompt: x}}}}')["message"]


def test_a_cron_expression_out_of_a_variable_is_refused_by_the_name_of_the_variable_alone(home: Home) -> None:
    with pytest.raises(InvalidInput) as raised:
        home.load(write("cron: ${TIMES}\nprompt: x"), TIMES="hunter2 * * * *")
    assert "what ${TIMES} stands for" in raised.value.explain()
    assert "hunter2" not in raised.value.explain()


def test_words_are_times_that_come_again_and_one_moment_stands_as_such(home: Home) -> None:
    found = home.load(write("when: every weekday at 18:30\nprompt: x")).schedules["news"]
    assert (found.cron, found.words, found.at) == ("30 18 * * mon-fri", "every weekday at 18:30", None)
    zone = "zone: Europe/Berlin\nprompt: x\n"
    for at in ("2026-12-24T18:30", "'2026-12-24 18:30'", "2026-12-24T18:30:00", "2026-12-24T17:30+00:00"):
        once = home.load(write(f"{zone}at: {at}\nsaid: on Christmas Eve")).schedules["news"]
        assert once.at == datetime(2026, 12, 24, 17, 30, tzinfo=UTC)
        assert once.when == "on Christmas Eve (Thu 24 Dec 2026 18:30)"


@pytest.mark.parametrize(
    ("shown", "moment"), [("2027-03-28T02:30", "2027-03-28T01:00Z"), ("2027-10-31T02:30", "2027-10-31T00:30Z")]
)
def test_a_moment_that_the_clocks_leave_out_is_when_they_have_jumped_and_a_doubled_one_the_first(
    home: Home, shown: str, moment: str
) -> None:
    found = home.load(write(f"zone: Europe/Rome\nprompt: x\nat: {shown}")).schedules["news"]
    assert found.at == datetime.fromisoformat(moment)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ("", "says no time"),
        ("when: every day at 9\ncron: '@daily'", "has when and cron"),
        ("when: in 3 hours", "no times that come again"),
        ("when: every day", "no time of the day"),
        ("when: every 30 February at 9:00", "no month has that day"),
        ("at: tomorrow", "no moment"),
        ("at: 2026-12-24", "no moment"),
        ("cron: '@daily'\nsaid: daily", "belongs to `at`"),
    ],
)
def test_times_that_are_none_are_refused_with_how_to_write_them(home: Home, times: str, message: str) -> None:
    problem = refuse(home, write(f"prompt: x\n{times}"))
    assert message in problem["message"] and problem["fix"]


def test_jitter_and_budget_are_said_for_each_schedule(home: Home) -> None:
    text = write("when: every hour\nprompt: x\njitter: 5m\nbudget: {per_run_usd: 0.5, per_day_usd: 2}")
    settings = home.load(text)
    found = settings.schedules["news"]
    assert found.jitter == timedelta(minutes=5)
    assert found.budget == ScheduleBudget(Decimal("0.5"), BudgetLimits(Decimal(2), None))
    assert settings.budgets.get_limits(BudgetScope(BudgetScopeKind.JOB, "news")).per_day_usd == 2
    assert home.load(write("when: every hour\nprompt: x\njitter: 90")).schedules["news"].jitter.total_seconds() == 90


@pytest.mark.parametrize("times", ["when: every 5 minutes", "at: 2026-12-24T18:30"])
def test_a_jitter_that_would_mix_up_the_runs_is_refused(home: Home, times: str) -> None:
    assert "shorter than the time between" in refuse(home, write(f"{times}\nprompt: x\njitter: 5m"))["message"]


def test_a_schedule_calls_a_tool_or_runs_a_workflow_instead_of_a_prompt(home: Home) -> None:
    tool = home.load(write("when: every hour\ntool: calculator\nargs: {expression: 1 + 1}")).schedules["news"]
    assert tool.tool_call is not None and (tool.prompt, tool.trigger) == ("", "start")
    workflow = home.load(write("when: every hour\nworkflow: greet\nargs: {who: Ana}")).schedules["news"]
    assert (workflow.workflow, workflow.args, workflow.tool_call) == ("greet", {"who": "Ana"}, None)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("prompt: x\ntool: calculator", "has prompt and tool"),
        ("prompt: x\nargs: {a: 1}", "a prompt has no arguments"),
        ("tool: calculator\ndelivery: {to: mail, target: a@example.org}", "no answer to deliver"),
        ("tool: calculator\nsession: diary", "belongs to a prompt"),
        ("workflow: greet\nnew_session: true", "belongs to a prompt"),
        ("workflow: greet\nmodel: balanced", "belongs to a prompt"),
        ("tool: calculator\nwake_agent: false", "belongs to a prompt"),
        ("tool: calculator\nhooks: {before_run: {tool: calculator}}", "belongs to a prompt"),
        ("tool: calculator\nowner: platform_user:discord:7", "the schedule of a person has a prompt"),
        ("tool: calculator\nargs: {a: '${TOKEN}'}", "arguments name no variables"),
    ],
)
def test_what_a_schedule_cannot_do_is_refused(home: Home, lines: str, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        home.load(write(f"when: every hour\n{lines}"), TOKEN="t")
    assert message in str(raised.value.context["problems"])
