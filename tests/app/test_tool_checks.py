"""Names in the configuration that no tool has: in the tools of agents, among custom tools, in the gate."""

from __future__ import annotations

import logging

import anyio
import pytest

from denizen.app.build import OpenOptions, open_denizen
from denizen.app.settings.problem import format_path
from denizen.app.tool_checks import (
    KnownTools,
    check_agent_tools,
    find_gate_problems,
    find_skill_problems,
    find_unmatched,
    read_known_tools,
    survey_tools,
)
from denizen.cli.main import run
from denizen.domain.errors import InvalidInput
from tests.app.home_folder import Home
from tests.app.skill_loading.skill_folder_fixture import LAB, enable_skills, write_skill

MISSPELT = """
gate:
  rules:
    - {tool: "calculator*", action: approve}
    - {tool: "bann*", action: deny}
    - {tool: replace_file, action: deny}
    - {tool: command_log, action: approve}
  tiers: {"wheather*": 2}
  roles: {"far_*": [admin]}
commands: {log: {description: Shows the log., shell: [date]}}
"""
SERVER = "mcp: {servers: {far: {command: node}}}\n"


def list_unmatched(home: Home, text: str) -> list[tuple[str, str]]:
    found = find_unmatched(home.load(LAB + text), ["calculator"])
    return [(format_path(each.path), each.pattern) for each in found]


def test_a_name_that_no_tool_has_is_found_and_one_of_a_tool_that_is_off_is_not(home: Home) -> None:
    wrong = [("gate.rules[1].tool", "bann*"), ('gate.tiers."wheather*"', "wheather*")]
    assert list_unmatched(home, MISSPELT) == [*wrong, ('gate.roles."far_*"', "far_*")]
    assert list_unmatched(home, MISSPELT + SERVER) == wrong, "a tool of the server may be meant"


@pytest.mark.parametrize("pattern", ["*_wipe", "f*", "far_wipe", "far_*", "*"])
def test_what_may_fit_a_tool_of_a_server_is_not_held_against_anybody(home: Home, pattern: str) -> None:
    assert list_unmatched(home, f'{SERVER}gate: {{tiers: {{"{pattern}": 0}}}}\n') == []


@pytest.mark.parametrize("name", ["workflow_post", "workflow_post_to", "workflow_emit", "workflow_*"])
def test_the_gate_may_name_what_only_workflows_do(home: Home, name: str) -> None:
    text = f'gate: {{rate_limits: {{tool: {{"{name}": {{calls: 600, per_s: 60}}}}}}}}\n'
    assert list_unmatched(home, text) == []


@pytest.mark.anyio
async def test_a_pattern_that_fits_no_tool_is_logged_at_the_start(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    home.write(LAB + MISSPELT)
    with caplog.at_level(logging.WARNING):
        async with open_denizen(home.path, OpenOptions(durable=False)):
            pass
    told = [vars(each) for each in caplog.records if each.message == "no tool matches"]
    assert [each["pattern"] for each in told] == ["bann*", "wheather*", "far_*"]


def test_doctor_tells_it_once(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.write(LAB + MISSPELT)
    run(["--home", str(home.path), "doctor", "--offline"])
    said = capsys.readouterr()
    assert "warn  gate.rules[1].tool: no tool matches 'bann*'" in said.out
    assert "no tool matches" not in said.err


@pytest.mark.anyio
@pytest.mark.proves("T-config-validation")
async def test_a_name_in_the_gate_that_no_tool_has_is_refused_at_its_place(home: Home) -> None:
    places = [
        "rules:\n  - {tool: calculater, action: deny}",
        "tiers:\n    calculater: 2",
        "modes:\n    calculater: ask",
        "roles:\n    calculater: [admin]",
        "rate_limits: {tool:\n    {calculater: {calls: 1, per_s: 1}}}",
    ]
    for text in places:
        home.write(f"gate:\n  {text}\n{LAB}")
        with pytest.raises(InvalidInput, match=rf"^{home.config}:3:.*: there is no tool 'calculater'") as caught:
            async with open_denizen(home.path, OpenOptions(durable=False)):
                pass
        assert "Did you mean 'calculator'?" in caught.value.fix
        assert [place.split(".")[0] for place, _, _ in list_refused(home, f"gate:\n  {text}\n")] == ["gate"]


def test_a_name_in_the_gate_is_not_refused_while_its_skill_may_be_the_one_that_is_left_out(home: Home) -> None:
    write_skill(home, "echo", manifest="tyer: 1\n")
    text = enable_skills(home, "echo").removeprefix(LAB)
    assert list_refused(home, f"{text}gate: {{tiers: {{echo_say: 2}}}}\n") == []


def list_refused(home: Home, text: str) -> list[tuple[str, str, str]]:
    """The problems that the files alone show: place, message, fix."""
    settings = home.load(LAB + text)
    known = survey_tools(settings)
    problems = [
        *find_skill_problems(settings),
        *check_agent_tools(settings, known).problems,
        *find_gate_problems(settings, known),
    ]
    return [(format_path(each.path), each.message, each.fix) for each in problems]


@pytest.mark.proves("T-config-validation")
@pytest.mark.parametrize(
    ("listed", "message", "fix"),
    [
        ("calculater", "there is no tool 'calculater'.", "Did you mean 'calculator'?"),
        ("calculater*", "no tool can match 'calculater*'.", "`denizen tools` lists them"),
        ("exec", "'exec' belongs to the skill system, which is off.", "Write `tools.system.enabled: true`."),
        ("search_archive", "'search_archive' belongs to the skill archive, which is off.", "Connect an account"),
        ("farm_wipe", "there is no tool 'farm_wipe'.", "Known tools: "),
    ],
)
def test_a_tool_that_an_agent_cannot_have_is_refused_at_its_place(
    home: Home, listed: str, message: str, fix: str
) -> None:
    found = list_refused(home, f'{SERVER}agents: {{ada: {{tools: [calculator, "{listed}"]}}}}\n')
    assert [(place, said) for place, said, _ in found] == [("agents.ada.tools[1]", message)]
    assert fix in found[0][2]


def test_a_tool_of_a_listener_that_is_not_there_is_refused_at_its_place(home: Home) -> None:
    listener = "listeners: {sky: {on: 'local.x', action: tool, tool: wheather}}\n"
    [(place, message, fix)] = list_refused(home, listener)
    assert (place, message) == ("listeners.sky.tool", "there is no tool 'wheather'.") and "'weather'" in fix


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("agents: {ada: {hooks: {before_run: {tool: calculater}}}}", "agents.ada.hooks.before_run.tool"),
        (
            "agents: {ada: {hooks: {after_run: [{tool: calculator}, {tool: calculater}]}}}",
            "agents.ada.hooks.after_run[1].tool",
        ),
        (
            "agents: {ada: {}}\nagent_defaults: {hooks: {before_run: {tool: calculater}}}",
            "agent_defaults.hooks.before_run.tool",
        ),
    ],
)
def test_a_tool_of_a_hook_that_there_is_not_is_refused_at_its_place(home: Home, written: str, place: str) -> None:
    found = list_refused(home, f"{SERVER}{written}\n")
    assert [(at, said) for at, said, _ in found] == [(place, "there is no tool 'calculater'.")]
    assert "Did you mean 'calculator'?" in found[0][2]
    allowed = written.replace("calculater", "far_wipe")
    assert list_refused(home, f"{SERVER}{allowed}\n") == [], "a tool of the server may be meant"


@pytest.mark.parametrize(
    "listed", ["*", "*_note", "far_wipe", "far_*", "*_wipe", "list_chann*", "web_search", "mine", "remind", "echo_say"]
)
def test_a_tool_that_an_agent_may_have_is_not_refused(home: Home, listed: str) -> None:
    write_skill(home, "echo")
    text = enable_skills(home, "echo").removeprefix(LAB)
    own = "custom_tools: {mine: {description: Says the date., argv: [date]}}\n"
    assert list_refused(home, f'{text}{SERVER}{own}agents: {{ada: {{tools: ["{listed}"]}}}}\n') == []


def test_a_tool_that_no_agent_can_have_is_refused_once_where_it_is_given_to_all(home: Home) -> None:
    agents = "agents: {denizen: {}, ben: {}, cat: {tools: [calculater]}}\n"
    found = list_refused(home, f"agent_defaults: {{tools: [calculator, wether]}}\n{agents}")
    assert [place for place, _, _ in found] == ["agent_defaults.tools[1]", "agents.cat.tools[0]"]


def test_a_tool_that_has_to_be_named_in_full_is_said_to_need_that(home: Home) -> None:
    text = "tools: {system: {enabled: true}}\nagents: {ada: {tools: ["
    assert list_refused(home, f"{text}exec, restart_denizen]}}}}\n") == []
    ((_, message, fix),) = list_refused(home, f'{text}"ex*"]}}}}\n')
    assert (message, fix) == ("'ex*' gives no tool: these have to be named in full.", "Write exec.")


def test_a_pattern_for_tools_that_are_off_is_told_with_how_to_switch_them_on(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.write(LAB + 'agents: {ada: {tools: ["*", "list_chann*"]}}\n')
    assert run(["--home", str(home.path), "config", "check"]) == 0
    said = capsys.readouterr().err
    assert "warning" in said and "'list_chann*' belongs to the skill" in said and ".enabled: true" in said


@pytest.mark.parametrize(
    ("written", "has_files", "place"),
    [
        ("agents: {ada: {answers_from: sources}}\n", False, "agents.ada.answers_from"),
        ("agents: {ada: {answers_from: sources}}\n", True, ""),
        ("agents: {ada: {answers_from: sources, tools: [calculator]}}\n", True, "agents.ada.answers_from"),
        (
            "agent_defaults: {answers_from: sources, tools: [calculator]}\nagents: {ada: {}}\n",
            True,
            "agent_defaults.ans",
        ),
        ("agents: {ada: {tools: [calculator]}}\n", True, ""),
    ],
)
def test_an_agent_that_answers_from_sources_and_cannot_read_any_is_warned_of(
    home: Home, capsys: pytest.CaptureFixture[str], written: str, place: str, *, has_files: bool
) -> None:
    home.write(LAB + written)
    if has_files:
        (home.path / "knowledge").mkdir()
    assert run(["--home", str(home.path), "config", "check"]) == 0
    said = capsys.readouterr()
    assert said.out == "The configuration can be used.\n"
    assert ("'ada' has no tool that reads sources." in said.err) is bool(place)
    assert place in said.err


def test_the_files_alone_show_what_the_start_would_refuse(home: Home) -> None:
    """The names that `survey_tools` reads from files are those of the tools that are loaded."""
    write_skill(home, "echo")
    text = enable_skills(home, "echo", more="tools: {system: {enabled: true}, files: {enabled: true}}")
    settings = home.load(text)
    surveyed = survey_tools(settings)

    async def load() -> KnownTools:
        async with open_denizen(home.path, OpenOptions(durable=False)) as denizen:
            return await read_known_tools(denizen.runtime.current.toolsets, may_miss=False)

    assert anyio.run(load) == surveyed


def test_the_list_of_tools_tells_what_is_off_how_to_switch_it_on_and_what_has_to_be_named_in_full(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.write(LAB + "tools: {skill_manager: {enabled: true}}\n")
    run(["--home", str(home.path), "tools"])
    on, _, off = capsys.readouterr().out.partition("\nOff:\n")
    assert "create_skill" in on and "only for an agent whose `tools` name it in full" in on
    assert "system: Write `tools.system.enabled: true`.\n    exec, " in off
    assert "archive: Connect an account" in off
    assert "create_skill" not in off and "calculator" not in off
