"""Workflows as files of the home folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.adapters.discord.client.settings import DiscordEndpoints
from denizen.app.settings import Simulation, find_config_problems, load_settings
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
        ("{{event.user.name}}", "{{event.user.name}", 8, "this place is not closed"),
        ("{{event.user.name}}", "{{event.user.nmae}}", 8, "these events have no field 'user.nmae'"),
        ("{{event.user.name}}", "{{event.@kind}}", 8, "these events have no field '@kind'"),
        ("{{event.user.name}}", "{{run.nmae}}", 8, "'run' has no 'nmae'"),
        (
            'type: send_message\n    channel: "123"',
            "type: match\n    pattern: '((a{999}){999}){9}'",
            7,
            "multiply to more",
        ),
        ("nodes:", "nodes: [", 0, ""),
    ],
)
def test_a_fault_is_told_with_its_file_and_line(tmp_path: Path, old: str, new: str, line: int, message: str):
    write(tmp_path, GOOD.replace(old, new))
    found = check(tmp_path)
    assert found
    assert all(each.file.name == "welcome.yaml" and each.fix for each in found)
    assert not message or any(each.line == line and message in each.message for each in found), found


def test_a_broken_workflow_is_left_out_with_those_that_run_it_and_hinders_nothing_else(tmp_path: Path):
    write(tmp_path, GOOD)
    before = load_settings(tmp_path, {})
    write(tmp_path, GOOD.replace("then: greet", "then: grete"), "broken.yaml")
    nests = "nodes: {a: {type: manual, then: b}, b: {type: sub_workflow, workflow: %s}}\n"
    write(tmp_path, nests % "broken", "outer.yaml")
    write(tmp_path, nests % "outer", "outermost.yaml")
    write(tmp_path, "nodes: [\n", "torn.yaml")
    settings = load_settings(tmp_path, {})
    assert list(settings.workflows) == ["welcome"]
    assert sorted(settings.broken_workflows) == ["broken", "outer", "outermost", "torn"]
    assert "'outer' cannot be used" in settings.broken_workflows["outermost"][0].message
    told = [*settings.broken_workflows["broken"]]
    assert told and told[0].line == 4 and set(told) <= set(settings.warnings)
    assert settings.digest != before.digest
    assert len(check(tmp_path)) == sum(map(len, settings.broken_workflows.values()))


WAITING = """\
nodes:
  a:
    type: on_event
    on:
      - denizen.emitted.x
      - discord.mesage
    then: z
  b: {type: on_reaction, then: z}
  c: {type: on_webhook, route: shop, then: z}
  z: {type: join}
"""


def test_a_trigger_whose_events_never_come_is_warned_of_with_its_line(tmp_path: Path):
    (tmp_path / "denizen.yaml").write_text("webhooks: {routes: {shop: {}}}\n", encoding="utf-8")
    write(tmp_path, WAITING)
    write(tmp_path, f"enabled: false\n{WAITING}", "off.yaml")
    told = [each for each in load_settings(tmp_path, {}).warnings if each.file.parent.name == "workflows"]
    assert [(each.file.name, each.line) for each in told] == [("welcome.yaml", line) for line in (6, 8, 9)]
    assert "no event of the type 'discord.mesage' ever comes" in told[0].message
    assert all(each.fix for each in told)


def test_a_simulation_stands_in_for_the_accounts_whose_events_workflows_wait_for(tmp_path: Path):
    write(tmp_path, GOOD)
    assert "discord.member.join" in load_settings(tmp_path, {}).warnings[0].message
    simulation = Simulation((), DiscordEndpoints("http://127.0.0.1:9/api/v10"))
    settings = load_settings(tmp_path, {}, simulation=simulation)
    assert (settings.simulation, settings.warnings) == (simulation, ())


def test_a_workflow_whose_route_or_agent_is_missing_tells_how_to_make_it(tmp_path: Path):
    write(
        tmp_path,
        "nodes:\n  a: {type: on_webhook, route: shop, then: b}\n  b: {type: ask_agent, agent: reader, task: x}\n",
    )
    route, agent = (each.fix for each in check(tmp_path))
    assert "denizen agents create reader" in agent
    (tmp_path / "denizen.yaml").write_text(f"agents: {{denizen: {{}}, reader: {{}}}}\n{route.split('`')[1]}\n")
    assert not find_config_problems(tmp_path, {"SHOP_WEBHOOK_SECRET": "a-secret-of-the-routes"})


def test_a_source_for_which_a_workflow_waits_is_not_idle(tmp_path: Path):
    source = "events: {polls: {site: {url: https://x.example, every: 60}}}\n"
    (tmp_path / "denizen.yaml").write_text(source, encoding="utf-8")
    assert any("no listener waits" in each.message for each in load_settings(tmp_path, {}).warnings)
    write(tmp_path, "nodes:\n  a: {type: on_event, on: poll.site}\n")
    assert not any("no listener waits" in each.message for each in load_settings(tmp_path, {}).warnings)


def test_a_file_with_another_ending_is_told(tmp_path: Path):
    write(tmp_path, GOOD, "welcome.yml")
    assert "this name is not read" in check(tmp_path)[0].message


def test_a_workflow_within_itself_is_told(tmp_path: Path):
    write(tmp_path, "nodes:\n  a: {type: manual, then: b}\n  b: {type: sub_workflow, workflow: welcome}\n")
    found = check(tmp_path)
    assert [(each.line, "leads back" in each.message) for each in found] == [(3, True)]
