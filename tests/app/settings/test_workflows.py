"""Workflows as files of the home folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.app.settings import find_config_problems, load_settings
from denizen.app.settings.problem import ConfigProblem

GOOD = """\
# Greets.
description: Welcomes new members.
nodes:
  joined: {type: on_event, on: discord.member.join, then: greet}
  greet:
    type: send_message
    channel: "123"
    text: Hi {{event.user.name}}
"""


def write(home: Path, text: str, name: str = "welcome.yaml") -> None:
    (home / "workflows").mkdir(exist_ok=True)
    (home / "workflows" / name).write_text(text, encoding="utf-8")


def check(home: Path) -> list[ConfigProblem]:
    return list(find_config_problems(home, {}))


def test_the_workflows_of_a_home_are_loaded_with_its_configuration(tmp_path: Path):
    before = load_settings(tmp_path, {}).digest
    write(tmp_path, GOOD)
    settings = load_settings(tmp_path, {})
    assert list(settings.workflows) == ["welcome"]
    assert settings.workflows["welcome"].description == "Welcomes new members."
    assert settings.digest != before


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("send_message", "send_mesage", 6, "there is no type"),
        ("then: greet", "then: grete", 4, "there is no node"),
        ("description: W", "descriptoin: W", 2, "this key is not known"),
        ('    channel: "123"\n', "", 5, "`channel` is missing"),
        ("{{event.user.name}}", "{{evnt.user.name}}", 8, "names nothing"),
        ("description: W", "agent: nobody\ndescription: W", 2, "there is no agent"),
        ("on_event, on: discord.member.join", "on_webhook, route: shop", 4, "there is no route"),
        ("on_event, on: discord.member.join", "on_schedule, cron: '99 * * * *'", 4, "no cron expression"),
        ('type: send_message\n    channel: "123"', "type: match\n    pattern: '(a'", 7, "no regular expression"),
        ("join, then", "join, filter: {user.is_bott: false}, then", 4, "these events have no field 'user.is_bott'"),
        ("join, then", "join, filter: {'@kind': x}, then", 4, "these events have no field '@kind'"),
        ("join, then", "join, filter: {user.is_bot: {not_anny: true}}, then", 4, "no condition 'not_anny'"),
        ("on_event, on: discord.member.join", "on_webhook, route: a, filter: {'@kind': x}", 4, "have no field '@kind'"),
        ("nodes:", "nodes: [", 0, ""),
    ],
)
def test_a_fault_is_told_with_its_file_and_line(tmp_path: Path, old: str, new: str, line: int, message: str):
    write(tmp_path, GOOD.replace(old, new))
    found = check(tmp_path)
    assert found
    assert all(each.file.name == "welcome.yaml" and each.fix for each in found)
    assert not message or any(each.line == line and message in each.message for each in found), found


def test_a_file_with_another_ending_is_told(tmp_path: Path):
    write(tmp_path, GOOD, "welcome.yml")
    assert "this name is not read" in check(tmp_path)[0].message


def test_a_workflow_within_itself_is_told(tmp_path: Path):
    write(tmp_path, "nodes:\n  a: {type: manual, then: b}\n  b: {type: sub_workflow, workflow: welcome}\n")
    found = check(tmp_path)
    assert [(each.line, "leads back" in each.message) for each in found] == [(3, True)]
