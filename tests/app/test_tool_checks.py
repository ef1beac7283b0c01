"""Names in the gate's configuration that no tool has."""

from __future__ import annotations

import logging

import pytest

from denizen.app.build import OpenOptions, open_denizen
from denizen.app.tool_checks import find_unmatched
from denizen.cli.main import run
from tests.app.home_folder import Home
from tests.app.skill_loading.skill_folder_fixture import LAB

MISSPELT = """
gate:
  rules:
    - {tool: "calculator*", action: approve}
    - {tool: "bann*", action: deny}
    - {tool: replace_file, action: deny}
  tiers: {wheather: 2}
  roles: {"far_*": [admin]}
"""
SERVER = "mcp: {servers: {far: {command: node}}}\n"


def list_unmatched(home: Home, text: str) -> list[tuple[str, str]]:
    return [(each.key, each.pattern) for each in find_unmatched(home.load(LAB + text), ["calculator"])]


def test_a_name_that_no_tool_has_is_found_and_one_of_a_tool_that_is_off_is_not(home: Home) -> None:
    wrong = [("gate.rules[1].tool", "bann*"), ("gate.tiers", "wheather")]
    assert list_unmatched(home, MISSPELT) == [*wrong, ("gate.roles", "far_*")]
    assert list_unmatched(home, MISSPELT + SERVER) == wrong, "a tool of the server may be meant"


@pytest.mark.parametrize("pattern", ["*_wipe", "f*", "far_wipe", "far_*", "*"])
def test_what_may_fit_a_tool_of_a_server_is_not_held_against_anybody(home: Home, pattern: str) -> None:
    assert list_unmatched(home, f'{SERVER}gate: {{tiers: {{"{pattern}": 0}}}}\n') == []


@pytest.mark.anyio
async def test_a_name_that_no_tool_has_is_logged_at_the_start(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    home.write(LAB + MISSPELT)
    with caplog.at_level(logging.WARNING):
        async with open_denizen(home.path, OpenOptions(durable=False)):
            pass
    told = [vars(each) for each in caplog.records if each.message == "no tool matches"]
    assert [each["pattern"] for each in told] == ["bann*", "wheather", "far_*"]


def test_doctor_tells_it_once(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.write(LAB + MISSPELT)
    run(["--home", str(home.path), "doctor", "--offline"])
    said = capsys.readouterr()
    assert "warn  gate.rules[1].tool: no tool matches 'bann*'" in said.out
    assert "no tool matches" not in said.err
