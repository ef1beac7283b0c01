"""Hooks as they are configured: the examples of their page, killed and resumed, wrong ones, and how they are shown."""

from __future__ import annotations

import json
import signal
from contextlib import closing
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from denizen.domain.turn import TurnStatus
from denizen.testing.model_server import HangingAnswer, ModelAnswer
from scripts.docs.markdown import load_page
from tests.e2e.home import Home, get_completion_text
from tests.e2e.provider import Provider
from tests.e2e.records import read_turns
from tests.timing import wait_until

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/how-to/run-tools-around-turns.md"
LOG = "answers.log"

NOTING = """\
schedules:
  digest:
    cron: "0 0 1 1 *"
    prompt: Write the digest.
    hooks: {after_run: {tool: append_note, args: {name: answers, text: "- {{response}}"}}}
"""
SCHEDULED = """\
  denizen: {hooks: {before_run: {tool: calculator, args: {expression: 1 + 1}}}}
schedules:
  digest:
    cron: "0 0 1 1 *"
    prompt: Write the digest.
    hooks: {before_run: [{tool: read_note, args: {name: no-such-note}}, {tool: calculator, args: {expression: 2 + 2}}]}
"""


def configure(home: Home, provider: Provider, *examples: int) -> None:
    """Configures a provider and these examples of the page."""
    blocks = [block.text for block in load_page(PAGE, ROOT).blocks if block.info == ("yaml", "config")]
    home.configure(provider.server.openai_url)
    text = home.config.read_text().replace("agents:\n  denizen: {}\n", "")
    hooks, tools = {}, {}
    for number in examples:
        example = YAML(typ="safe").load(blocks[number])
        hooks |= example.pop("agents")["denizen"]["hooks"]
        tools |= example.pop("custom_tools", {})
        assert not example
    home.write(f"{text}custom_tools: {json.dumps(tools)}\nagents: {{denizen: {{hooks: {json.dumps(hooks)}}}}}\n")


def ask(home: Home, question: str = "Hello") -> dict[str, object]:
    done = home.do("ask", "--json", question)
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.proves("T20", "T23")
def test_the_examples_of_the_page_do_what_it_says(home: Home, provider: Provider) -> None:
    configure(home, provider, 0, 1)
    duty, log = home.folder / "duty.txt", home.folder / LOG
    duty.write_text("nobody until noon\n")
    skipped = ask(home)
    assert (skipped["status"], skipped["answer"], skipped["error"]) == ("skipped", "", None)
    assert provider.server.bodies == [] and not log.exists()

    duty.write_text("Ana\n")
    provider.script(ModelAnswer(text="Ahoy."))
    with home.serve() as server:
        assert get_completion_text(server.ask("Hello", key="m1")) == "Ahoy."
        wait_until(log.exists)
        assert server.running.stop(signal.SIGTERM).code == 0
    assert log.read_text() == "- Ahoy.\n"
    assert [message["role"] for message in provider.server.bodies[0]["messages"][1:]] == ["user"]

    configure(home, provider, 0, 1, 2)
    duty.write_text("quiet, but Ana is here\n")
    provider.script(ModelAnswer(text="Shh."))
    asked = ask(home)
    shown = home.do("trace", str(asked["turn"])).out
    assert asked["answer"] == "Shh." and log.read_text() == "- Ahoy.\n"
    before, _, after = shown.partition("hooks after the answer:\n")
    assert "hook duty" in before and "hook duty" in after and "log_answer" not in after


def test_a_schedule_whose_hook_reads_what_a_program_put_out_logs_its_answer_and_keeps_no_note(
    home: Home, provider: Provider
) -> None:
    configure(home, provider, 0, 1)
    (home.folder / "duty.txt").write_text("Ana\n")
    home.write(home.config.read_text() + NOTING)
    provider.script(ModelAnswer(text="Ahoy."))
    with home.serve() as server:
        assert home.do("schedules", "run", "digest").code == 0
        wait_until((home.folder / LOG).exists)
        wait_until(lambda: len(home.do("audit", "export").out.splitlines()) >= 3)
        assert server.running.stop(signal.SIGTERM).code == 0
    rows = [json.loads(line) for line in home.do("audit", "export").out.splitlines()]
    decided = {row["subject"]: row["details"]["decided_by"] for row in rows}
    assert (home.folder / LOG).read_text() == "- Ahoy.\n"
    assert decided == {"duty": "tier-0", "log_answer": "tier-1", "append_note": "nobody-to-ask"}
    assert not (home.folder / "agents/denizen/notes/answers.md").exists()


def test_each_call_of_a_hook_is_in_the_audit_log_with_its_origin(home: Home, provider: Provider) -> None:
    configure(home, provider, 0, 1)
    (home.folder / "duty.txt").write_text("Ana\n")
    provider.script(ModelAnswer(text="Ahoy."))
    ask(home)
    rows = [json.loads(line) for line in home.do("audit", "export").out.splitlines()]
    assert {(row["subject"], row["details"]["origin"]) for row in rows} == {("duty", "hook"), ("log_answer", "hook")}


def test_hooks_after_a_turn_that_was_killed_run_once_after_the_restart(home: Home, provider: Provider) -> None:
    configure(home, provider, 0, 1)
    (home.folder / "duty.txt").write_text("Ana\n")
    provider.script(HangingAnswer(), ModelAnswer(text="Ahoy."))
    with home.serve() as first, closing(first.send("Hello", key="m1")):
        provider.requests.await_count(1)
        assert first.running.kill().code == -signal.SIGKILL
    (home.folder / "duty.txt").write_text("nobody\n")  # the hook has run already
    with home.serve() as second:
        assert get_completion_text(second.ask("Hello", key="m1")) == "Ahoy."
        wait_until((home.folder / LOG).exists)
        assert second.running.stop(signal.SIGTERM).code == 0
    with home.serve() as third:
        assert get_completion_text(third.ask("Hello", key="m1")) == "Ahoy."
        assert third.running.stop(signal.SIGTERM).code == 0
    assert (home.folder / LOG).read_text() == "- Ahoy.\n"
    [(turn, _)] = read_turns(home.store_url)
    assert turn.status is TurnStatus.DONE


@pytest.mark.proves("T5", "T25")
def test_a_schedule_reads_what_the_hooks_of_its_agent_and_its_own_put_out_and_a_question_does_not(
    home: Home, provider: Provider
) -> None:
    home.configure(provider.server.openai_url)
    text = home.config.read_text().replace("  denizen: {}\n", "")
    home.write(f"{text}{SCHEDULED}")
    provider.script(ModelAnswer(text="Done."), ModelAnswer(text="Hello."))
    with home.serve() as server:
        assert home.do("schedules", "run", "digest").code == 0
        provider.requests.await_count(1)
        assert get_completion_text(server.ask("Hello", key="m1")) == "Hello."
        assert server.running.stop(signal.SIGTERM).code == 0
    told, asked = (json.dumps(body["messages"][1:]) for body in provider.server.bodies)
    places = [told.find(each) for each in (">\\n2\\n<", "---", ">\\n4\\n<", "---", "Write the digest.")]
    assert -1 not in places and places[0] < places[1] < places[2] < places[4], told
    assert told.rindex("---") > places[2] and "untrusted" not in asked and "---" not in asked


@pytest.mark.parametrize(
    ("hook", "says", "fix"),
    [
        ("{tool: calculater}", "there is no tool 'calculater'", "Did you mean 'calculator'?"),
        ("{tool: exec}", "'exec' belongs to the skill system, which is off", "tools.system.enabled"),
        ("{tool: calculator, skip_if: '(2'}", "this is not a regular expression", "Correct it"),
    ],
)
def test_a_hook_that_cannot_work_is_refused_with_file_and_line(home: Home, hook: str, says: str, fix: str) -> None:
    home.write(f"agents:\n  denizen:\n    hooks:\n      after_run: {hook}\n")
    checked = home.do("config", "check")
    assert checked.code == 2
    assert checked.err.startswith(f"error: {home.config}:4:") and says in checked.err and fix in checked.err
