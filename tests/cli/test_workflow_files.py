"""`denizen workflows draw`, `examples` and `add`."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from denizen.app.workflow_configuration import list_examples
from tests.e2e.home import Home

REST = """\
  reader: {}
default_agent: denizen
webhooks: {enabled: true, secret: "${HOOK}", routes: {hub: {scheme: github, action: log}, alerts: {action: log}}}
"""
EXAMPLES = (
    "feed-digest moderation-escalation nightly-check on-call poll reaction-roles release-notes stand-up triage-issues "
    "welcome"
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home", {"HOOK": "a-secret-of-the-routes"})
    found.configure("http://127.0.0.1:9/v1", rest=REST)
    return found


def test_every_example_can_be_added_and_drawn(home: Home, tmp_path: Path) -> None:
    listed = home.do("workflows", "examples").out.splitlines()
    assert [line.split()[0] for line in listed] == EXAMPLES.split() == [each.name for each in list_examples()]
    for name in EXAMPLES.split():
        done = home.do("workflows", "add", "--example", name)
        assert (done.code, done.out) == (0, f"Added {name}: {home.folder / 'workflows' / f'{name}.yaml'}\n"), done
    assert "10 workflows can be used." in home.do("workflows", "check").out
    picture = tmp_path / "picture.svg"
    for name in EXAMPLES.split():
        assert home.do("workflows", "draw", name, "--to", str(picture)).code == 0
        assert ET.parse(picture).getroot().attrib["aria-label"] == f"Workflow {name}"


def test_a_broken_workflow_hinders_no_command_and_is_listed_with_its_line(home: Home, tmp_path: Path) -> None:
    assert home.do("workflows", "add", "--example", "poll").code == 0
    file = home.folder / "workflows/wrong.yaml"
    file.write_text("nodes:\n  go: {type: manual, then: nowhere}\n", encoding="utf-8")
    listed = home.do("workflows", "list").out.splitlines()
    assert listed[0].startswith("poll  ") and listed[1].startswith("wrong  broken  ") and "wrong.yaml:2" in listed[1]
    assert home.do("workflows", "disable", "poll").code == 0
    off = home.do("workflows", "disable", "wrong")
    assert off.code == 0 and "It cannot be used" in off.err and "enabled: false" in file.read_text()
    added = home.do("workflows", "add", "--example", "welcome")
    assert added.code == 0 and "Write `tools.members.enabled: true`." in added.err and "wrong.yaml" not in added.err
    assert "wrong.yaml:2" in home.do("doctor", "--offline").out
    assert home.do("backup", "--to", str(tmp_path / "backup.zip")).code == 0
    for command in (("workflows", "check"), ("config", "check")):
        refused = home.do(*command)
        assert refused.code == 2 and "wrong.yaml:2" in refused.err
    run = home.do("workflows", "run", "wrong")
    assert run.code == 2 and "cannot be used" in run.err and "nowhere" in run.err
    assert "wrong.yaml:2" in home.do("workflows", "show", "wrong").err


def test_a_check_warns_of_tools_that_the_agent_has_not_and_of_events_that_never_come(home: Home) -> None:
    folder = home.folder / "workflows"
    folder.mkdir()
    text = """\
nodes:
  on: {type: on_event, on: discord.mesage, then: [page, odd, mcp, said]}
  page: {type: create_task, project: x, title: x}
  odd:
    type: call_tool
    tool: look_up
  mcp: {type: emit_event, name: a}
  said: {type: send_message, channel: "1", text: x}
"""
    (folder / "tools.yaml").write_text(text, encoding="utf-8")
    (folder / "off.yaml").write_text(f"enabled: false\n{text}", encoding="utf-8")
    done = home.do("workflows", "check")
    assert (done.code, done.out) == (0, "2 workflows can be used.\n")
    told = [line.partition("warning: ")[2] for line in done.err.splitlines() if line.startswith("warning: ")]
    assert [re.sub(r".*tools.yaml:(\d+):\d+: ", r"\1 ", line) for line in told] == [
        "2 nodes.on.on: no event of the type 'discord.mesage' ever comes.",
        "3 nodes.page.type: 'tasks' belongs to the skill projects, which is off.",
        "6 nodes.odd.tool: the agent 'denizen' has no tool 'look_up'.",
    ]
    assert all(line in home.do("config", "check").err for line in told)


def test_a_workflow_is_added_from_a_file_under_a_name_of_its_own_and_never_over_another(
    home: Home, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("nodes: {go: {type: manual, then: say}, say: {type: log, text: Hello}}", encoding="utf-8")
    assert home.do("workflows", "add", "other", "--file", str(file)).code == 0
    assert (home.folder / "workflows/other.yaml").read_text() == f"{file.read_text()}\n"
    refused = home.do("workflows", "add", "other", "--file", str(file))
    assert refused.code != 0 and "There is a workflow 'other' already." in refused.err
    assert "cannot be the name" in home.do("workflows", "add", "../evil", "--file", str(file)).err
    file.write_text("nodes:\n  go: {type: manual, then: nowhere}\n", encoding="utf-8")
    wrong = home.do("workflows", "add", "wrong", "--file", str(file))
    assert wrong.code != 0 and "wrong.yaml:2" in wrong.err and "nowhere" in wrong.err
    assert not (home.folder / "workflows/wrong.yaml").exists()
    assert "There are: feed-digest" in home.do("workflows", "add", "--example", "welcom").err
