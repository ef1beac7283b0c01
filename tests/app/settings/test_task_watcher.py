"""The section `task_watcher`: off, its defaults, and what is refused with the line and the reason."""

from __future__ import annotations

from typing import Any, cast

import pytest

from denizen.domain.errors import InvalidInput
from denizen.domain.hook import Hook, Hooks
from denizen.domain.project import TaskAction, TaskWatcherPolicy
from denizen.domain.schedule import DeliveryRoute, ScheduleDelivery
from tests.app.home_folder import Home

DISCORD = """\
channels:
  discord:
    accounts: {denizen: "${TOKEN}"}
"""


def write(lines: str) -> str:
    return "task_watcher:\n" + "".join(f"  {line}\n" for line in lines.splitlines())


def refuse(home: Home, text: str) -> Any:
    """Returns the first problem of a configuration."""
    with pytest.raises(InvalidInput) as raised:
        home.load(text, TOKEN="t")
    problem, *_ = cast("list[Any]", raised.value.context["problems"])
    return problem


@pytest.mark.proves("T-config-task-watcher")
def test_it_is_off_until_it_is_switched_on_and_then_has_its_defaults(home: Home) -> None:
    assert home.load("").task_watcher is None
    assert home.load(write("prompt: Look.")).task_watcher is None
    settings = home.load(write("enabled: true\nprompt: Look."))
    assert settings.task_watcher == TaskWatcherPolicy(
        agent=settings.default_agent,
        prompt="Look.",
        debounce_ms=5000,
        triggers=frozenset({TaskAction.CREATED, TaskAction.UPDATED}),
        delivery=ScheduleDelivery(),
        hooks=Hooks(),
        per_hour=60,
    )
    usual = home.load(write("enabled: true")).task_watcher
    assert usual is not None and usual.prompt


@pytest.mark.proves("T-config-task-watcher")
def test_everything_about_it_can_be_said(home: Home) -> None:
    text = write(
        "enabled: true\nagent: denizen\nprompt: Look.\ndebounce_ms: 0\ntriggers: [created]\n"
        "delivery: {to: discord, target: 123}\nhooks: {before_run: {tool: task_query}}\nper_hour: 7"
    )
    settings = home.load(text + DISCORD, TOKEN="t")
    assert settings.task_watcher == TaskWatcherPolicy(
        agent=settings.default_agent,
        prompt="Look.",
        debounce_ms=0,
        triggers=frozenset({TaskAction.CREATED}),
        delivery=ScheduleDelivery(DeliveryRoute.CHANNEL, "discord", "123"),
        hooks=Hooks(before=(Hook("task_query"),)),
        per_hour=7,
    )


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        ("enabled: true\nagent: nobody", "task_watcher.agent"),
        ("enabled: true\ntriggers: [deleted]", "task_watcher.triggers"),
        ("enabled: true\ntriggers: []", "task_watcher.triggers"),
        ("enabled: true\ndebounce_ms: -1", "task_watcher.debounce_ms"),
        ("enabled: true\nper_hour: 0", "task_watcher.per_hour"),
        ("enabled: true\nprompt: ''", "task_watcher.prompt"),
        ("enabled: true\ndelivery: discord-dm", "task_watcher.delivery"),
        ("enabled: true\ndelivery: discord", "task_watcher.delivery"),
    ],
)
def test_what_cannot_be_is_refused_at_its_place(home: Home, lines: str, where: str) -> None:
    assert where in str(refuse(home, write(lines) + DISCORD))


def test_of_an_empty_list_is_said_that_it_is_empty_and_of_a_wrong_entry_only_what_fits(home: Home) -> None:
    empty = refuse(home, write("triggers: []"))
    assert (empty["path"], empty["message"]) == ("task_watcher.triggers", "must not be empty.")
    wrong = refuse(home, write("triggers: [deleted]"))
    assert (wrong["path"], wrong["fix"]) == ("task_watcher.triggers[0]", "Write one of: created, updated.")


def test_it_needs_the_tools_for_tasks(home: Home) -> None:
    problem = refuse(home, write("enabled: true") + "tools: {projects: {enabled: false}}\n")
    assert "tools.projects" in str(problem)
