"""What `hooks` of an agent in the configuration means, and what of it is refused."""

from __future__ import annotations

import pytest

from denizen.app.settings import find_config_problems
from denizen.app.settings.effective import render_settings
from denizen.domain.hook import Hook, Hooks
from denizen.domain.ids import AgentName
from tests.app.home_folder import Home

HELPER = AgentName("helper")


def load_hooks(home: Home, text: str) -> Hooks:
    return home.load(text).agents[HELPER].hooks


def test_there_may_be_one_hook_or_a_list_before_and_after_a_turn(home: Home) -> None:
    hooks = load_hooks(
        home,
        """\
agents:
  helper:
    hooks:
      before_run: {tool: calculator, args: {expression: 1 + 1}, skip_if: '^2$'}
      after_run:
        - tool: remember
          args: {text: "{{response}}", tags: [log, "{{response}}"], old: null, n: 3}
        - {tool: calculator}
""",
    )
    assert hooks == Hooks(
        (Hook("calculator", {"expression": "1 + 1"}, "^2$"),),
        (
            Hook("remember", {"text": "{{response}}", "tags": ["log", "{{response}}"], "old": None, "n": 3}),
            Hook("calculator"),
        ),
    )


def test_an_agent_takes_over_the_side_that_it_does_not_set_itself(home: Home) -> None:
    hooks = load_hooks(
        home,
        """\
agent_defaults: {hooks: {before_run: {tool: a}, after_run: {tool: b}}}
agents: {helper: {hooks: {after_run: {tool: c}}}}
""",
    )
    assert hooks == Hooks((Hook("a"),), (Hook("c"),))


@pytest.mark.parametrize(
    ("hook", "says", "fix"),
    [
        ("{tool: calculator, skip_if: '(a'}", "[0].skip_if: this is not a regular expression", "Correct it"),
        ("{args: {a: b}}", "[0].tool: this key is missing", "tool: ..."),
        ("{tool: calculator, skipIf: a}", "[0].skipIf: this key is not known", "'skip_if'"),
        ("{tool: calculator, args: [1]}", "[0].args: must be a group of keys", "key: value"),
    ],
)
@pytest.mark.parametrize("form", ["{}", "[{}]"])
def test_what_is_no_hook_is_refused_with_its_place(home: Home, form: str, hook: str, says: str, fix: str) -> None:
    home.write(f"agents:\n  helper:\n    hooks: {{before_run: {form.format(hook)}}}\n")
    (problem,) = find_config_problems(home.path, {})
    assert str(problem).startswith(f"{home.path / 'denizen.yaml'}:3:")
    assert f"agents.helper.hooks.before_run{says}" in str(problem) and fix in problem.fix


def test_one_hook_without_a_list_is_shown_as_it_was_written_and_without_the_values_of_the_environment(
    home: Home,
) -> None:
    home.environment["TOKEN"] = "s3cret"
    settings = home.load("agents: {helper: {hooks: {after_run: {tool: calculator, args: {a: ['${TOKEN}']}}}}}\n")
    shown = render_settings(settings)
    hook = shown.partition("after_run:\n")[2].partition("default_agent:")[0]
    assert [line.split("#")[0].strip() for line in hook.splitlines()][:2] == ["- tool: calculator", "args:"]
    assert "${TOKEN}" in hook and "calculator # default" not in hook
    assert "s3cret" not in shown


def test_a_misspelt_variable_of_a_hook_or_a_prompt_is_warned_of_where_it_is_nearly_a_known_one(home: Home) -> None:
    settings = home.load(
        """\
agents:
  denizen:
    hooks:
      after_run: [{tool: t, args: {a: "{{respons}} {{event_typ}} {{response}} {{event_id}} {{other_word}}"}}]
schedules:
  news:
    cron: "@daily"
    prompt: "Since {{lastrun}} and {{last_run}}, {{whatever}}."
    hooks: {before_run: {tool: t, args: {a: ["{{nexttask}}", "{{next_task}}"]}}}
"""
    )
    assert [(".".join(map(str, each.path)), each.message[:16].split()[0], each.fix) for each in settings.warnings] == [
        ("schedules.news.hooks.before_run", "{{nexttask}}", "Did you mean {{next_task}}?"),
        ("schedules.news.prompt", "{{lastrun}}", "Did you mean {{last_run}}?"),
        ("agents.denizen.hooks.after_run.0", "{{event_typ}}", "Did you mean {{event_type}}?"),
        ("agents.denizen.hooks.after_run.0", "{{respons}}", "Did you mean {{response}}?"),
    ]
