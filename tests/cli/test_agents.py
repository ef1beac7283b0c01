"""`denizen agents`: the list, and settings that lie over the configuration."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from click.testing import CliRunner

from denizen.app.settings import load_settings
from denizen.cli.agents import command
from denizen.cli.main import run
from denizen.domain.ids import AgentName

CONFIG = """\
models:
  providers: {lab: {kind: openai-compatible, base_url: "http://127.0.0.1:9/v1"}}
  aliases: {fast: lab/small, balanced: lab/middle, quality: lab/large}
agents:
  denizen: {model: auto, description: Sorts its questions.}
  ada: {model: quality, sampling: {temperature: 0.7}}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    (tmp_path / "denizen.yaml").write_text(CONFIG, encoding="utf-8")
    with Path(os.devnull).open(encoding="utf-8") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield tmp_path


def denizen(home: Path, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    code = run(["--home", str(home), *args])
    said = capsys.readouterr()
    return code, said.out + said.err


def test_agents_are_listed_with_the_model_that_was_written(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = denizen(home, capsys, "agents")
    assert code == 0
    assert [line.split() for line in said.splitlines()] == [
        ["*", "denizen", "model", "auto", "Sorts", "its", "questions."],
        ["ada", "model", "quality"],
    ]


@pytest.mark.proves("S-config-save", "S-data-agent-config")
def test_settings_are_shown_changed_and_reset(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ada = ("agents", "settings", "-a", "ada")
    assert denizen(home, capsys, *ada)[1].startswith("ada: as configured\n")
    code, said = denizen(home, capsys, *ada, "--set", "temperature=0.2", "--set", "language=de")
    assert code == 0
    for line in ("the set default lies over the configuration", "temperature           0.2  (set)", "de  (set)"):
        assert line in said
    assert "temperature           0.7\n" in denizen(home, capsys, *ada, "--set", "temperature=")[1]
    denizen(home, capsys, *ada, "--name", "exam", "--set", "citation_format=none")
    config = json.loads(denizen(home, capsys, *ada, "--json")[1])
    assert (config["name"], config["changed"], config["language"]) == ("exam", ["citation_format"], "en")
    assert "other sets: exam" in denizen(home, capsys, *ada, "--use", "default")[1]
    assert "other sets" not in denizen(home, capsys, *ada, "--delete", "exam")[1]
    assert denizen(home, capsys, *ada, "--reset")[1].startswith("ada: as configured\n")
    assert denizen(home, capsys, "agents", "settings")[1].startswith("denizen: as configured\n")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--set", "temprature=1"], "Did you mean 'temperature'?"),
        (["--set", "temperature=9"], "9 is out of range"),
        (["--set", "temperature=warm"], "it is no number"),
        (["--set", "temperature"], "Write --set NAME=VALUE"),
        (["--set", "default_model=opus"], "Known: "),
        (["--use", "exam"], "has no settings named 'exam'"),
        (["--name", "exam"], "--name belongs to"),
        (["--reset", "--use", "exam"], "more than one thing"),
    ],
)
def test_what_cannot_be_is_refused_with_what_would_do(
    home: Path, capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    code, told = denizen(home, capsys, "agents", "settings", *args)
    assert code in {1, 2}
    assert said in told


def test_an_alias_that_nobody_configured_is_refused_with_the_providers_that_there_are(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = 'models: {providers: {lab: {kind: openai-compatible, base_url: "http://127.0.0.1:9/v1"}}}'
    (home / "denizen.yaml").write_text(f"{lab}\nagents: {{denizen: {{model: lab/small}}}}\n", encoding="utf-8")
    code, told = denizen(home, capsys, "agents", "settings", "--set", "default_model=quality")
    assert code == 2
    assert told.endswith("why: There is no model 'quality'.\nfix: Name it provider/model. Providers: lab.\n")


def test_a_prompt_that_is_shown_begins_with_the_request_that_sorts_the_question(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requests = json.loads(denizen(home, capsys, "prompt", "--json", "Why does it crash?")[1])
    assert [request["model"] for request in requests] == ["lab/small", "lab/middle"]
    assert "at most 13 tool calls" in json.dumps(requests[1]["messages"])


def answer(home: Path, *lines: str) -> tuple[int, str]:
    """Runs `denizen agents create` at a terminal where these lines are typed."""
    typed = "".join(f"{line}\n" for line in lines)
    result = CliRunner().invoke(command, ["create"], input=typed, obj=home, catch_exceptions=False)
    return result.exit_code, result.output


@pytest.mark.proves("V35")
def test_an_agent_is_made_in_an_interview_that_refuses_a_bad_answer_at_its_own_step(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("denizen.cli.agents.can_prompt", lambda: True)
    code, said = answer(
        home,
        *("Bea!", "ada", "bea"),
        *("", "Answers about boats."),
        *("You are an old sailor. ${KEY}", "You are an old sailor."),
        "Never advise to sail alone.",
        *("no_such_tool", "current_time, *_note"),
        *("lab/huge", "quality"),
        "write",
    )
    assert code == 0, said
    for told in (
        "This cannot be an agent's name.",
        "There is an agent 'ada' already.",
        "It has to be said what the agent is for.",
        "stands for a secret",
        "There is no tool no_such_tool.",
        "There is no model 'lab/huge'.",
        "+++ denizen.yaml",
        "+You are an old sailor.",
    ):
        assert told in said
    assert (home / "agents" / "bea" / "IDENTITY.md").read_text() == "You are an old sailor.\n"
    assert (home / "agents" / "bea" / "RULES.md").read_text() == "Never advise to sail alone.\n"
    agent = load_settings(home, {}).agents[AgentName("bea")]
    assert (agent.description, agent.model, agent.tool_access.tools) == (
        "Answers about boats.",
        "quality",
        ("current_time", "*_note"),
    )
    assert [text for _, text in agent.instructions.persona] == ["You are an old sailor.", "Never advise to sail alone."]
    assert "bea" in denizen(home, capsys, "agents")[1]


def test_an_answer_can_be_changed_before_anything_is_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("denizen.cli.agents.can_prompt", lambda: True)
    before = (home / "denizen.yaml").read_text()
    first = ("bea", "Answers about boats.", "", "", "", "", "change")
    again = ("", "Answers about ships.", "", "", "", "", "quit")
    code, said = answer(home, *first, *again)
    assert (code, (home / "denizen.yaml").read_text()) == (0, before)
    assert "+    description: Answers about ships." in said and "Name [bea]" in said
    assert not (home / "agents" / "bea").exists()


def test_agents_are_made_switched_and_removed_without_questions(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "There is no terminal" in denizen(home, capsys, "agents", "create", "bea")[1]
    options = ("--description", "Boats.", "--tool", "current_time", "--yes")
    made = denizen(home, capsys, "agents", "create", "bea", *options)
    assert made[0] == 0, made
    assert denizen(home, capsys, "agents", "disable", "bea")[0] == 0
    assert "- bea" in denizen(home, capsys, "agents")[1]
    assert "bea is switched off" in denizen(home, capsys, "ask", "-a", "bea", "hello")[1]
    assert denizen(home, capsys, "agents", "enable", "bea")[0] == 0
    assert denizen(home, capsys, "agents", "remove", "bea")[0] == 0
    assert "bea" not in denizen(home, capsys, "agents")[1]
    code, said = denizen(home, capsys, "agents", "disable", "denizen")
    assert code != 0 and "denizen is the default agent" in said
