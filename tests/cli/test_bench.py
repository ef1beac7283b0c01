"""`denizen bench security`, as far as it does not need AgentDojo."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest

from denizen.cli.main import run
from denizen.testing.security import corpus
from denizen.testing.security.case import AttackOutcome
from denizen.testing.security.corpus import CORPUS

FEW = CORPUS[:3]


@pytest.fixture(autouse=True)
def few_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them are run in tests/testing/security."""
    monkeypatch.setattr(corpus, "CORPUS", FEW)


def test_the_own_corpus_is_run_and_told_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "security", "--corpus", "own", "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (found["held"], found["agentdojo"]) == (True, [])
    assert [each["case"] for each in found["own"]] == [case.name for case in FEW]
    assert "[own corpus: 6 of 6]" in said.err


def test_without_agentdojo_the_rest_is_run_and_what_is_missing_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "agentdojo", None)
    assert run(["bench", "security", "--markdown"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("### Own corpus\n\n| Kind | Cases |")
    assert "AgentDojo is not installed" in said.err and "scripts/install bench" in said.err
    assert run(["bench", "security", "--corpus", "agentdojo"]) == 2


def test_a_case_that_ends_otherwise_is_told_by_the_exit_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(CORPUS[0], fate=AttackOutcome.ALLOWED)
    monkeypatch.setattr(corpus, "CORPUS", [wrong])
    assert run(["bench", "security", "--corpus", "own"]) == 1
    assert "NOT HELD:\n\n- web page, remember: asked instead of allowed" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", [("--suite", "bank", "--corpus", "own"), ("--json", "--markdown")])
def test_options_that_do_not_go_together_are_refused(wrong: tuple[str, ...]) -> None:
    assert run(["bench", "security", *wrong]) == 2
