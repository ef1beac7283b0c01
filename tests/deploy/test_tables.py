"""`make tables` writes what runs say, with their commands, and nothing when one fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.tables import PAGE, RUNS, Run, RunError, add_link, build_page

ROOT = Path(__file__).parents[2]


def test_the_page_has_what_each_run_said_below_its_command() -> None:
    text = build_page(
        ROOT, [Run("Version", ("denizen", "--version")), Run("Help", ("denizen", "bench", "--help"), is_markdown=True)]
    )
    assert "## Version\n\n`python -m denizen --version`\n\n```text\ndenizen " in text
    assert "## Help\n\n`python -m denizen bench --help`\n\nUsage: denizen bench" in text


def test_a_run_that_fails_leaves_no_page() -> None:
    with pytest.raises(RunError, match="no-such-command ended with 2"):
        build_page(ROOT, [Run("Version", ("denizen", "--version")), Run("Broken", ("denizen", "no-such-command"))])


def test_the_runs_of_a_release_are_known() -> None:
    from benchmarks.__main__ import PARTS, WHOLE

    named = {name for run in RUNS if run.arguments[0] == "benchmarks" for name in run.arguments[1:]}
    assert named <= {*PARTS, *WHOLE}


def test_the_readme_leads_to_the_page_once() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = add_link(readme)
    assert linked.count(f"]({PAGE})") == 1
    assert add_link(linked) == linked
