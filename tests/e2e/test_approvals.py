"""Approvals from the shell: answered in the terminal, refused where nobody sits, decided with `denizen approvals`."""

from __future__ import annotations

import json

import pytest

from denizen.testing.model_server import HangingAnswer, ModelAnswer, ModelCall
from tests.e2e.home import Home, get_completion_text, receive
from tests.e2e.provider import Provider
from tests.timing import wait_until

pytestmark = pytest.mark.e2e

SUM = ModelAnswer(calls=[ModelCall("calculator", {"expression": "6 * 6"})])
ASKS = """\
gate:
  rules:
  - {tool: calculator, action: ask, reason: sums are serious}
"""
OWNERS = """\
gate:
  rules:
  - {tool: calculator, action: ask, deciders: role, role: owner}
"""


def get_last_request(provider: Provider) -> str:
    """Returns the last request to the model."""
    return json.dumps(provider.server.bodies[-1], ensure_ascii=False)


@pytest.mark.proves("T-approval-terminal", "T-approval-rules", "P2")
@pytest.mark.parametrize(
    ("typed", "told"),
    [
        pytest.param("y\r", "approved by operator, after", id="yes"),
        pytest.param("N\r", "Denied: denied by operator, who gave no reason.", id="no"),
        pytest.param("\r", "Denied: denied by operator, who gave no reason.", id="nothing"),
        pytest.param("not on a Sunday\r", "Denied: denied by operator: not on a Sunday.", id="a reason"),
    ],
)
def test_in_a_terminal_a_line_decides(typed: str, told: str, home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest=ASKS)
    provider.script(SUM, ModelAnswer(text="So be it."))
    with home.start_in_terminal("ask", "What is 6 * 6?") as asked:
        asked.out.await_text("sums are serious")
        asked.out.await_text("Allow it")
        asked.type(typed)
        asked.out.await_text("So be it.")
        assert asked.finish().code == 0
    assert told in get_last_request(provider)


def test_ctrl_c_at_the_question_denies_the_call_and_ends_the_turn(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest=ASKS)
    provider.script(SUM, HangingAnswer())
    with home.start_in_terminal("ask", "What is 6 * 6?") as asked:
        asked.out.await_text("Allow it")
        asked.type("\x03")
        asked.out.await_text("Stopped")
        assert asked.finish().code == 130
    [approval] = [json.loads(line) for line in home.do("approvals", "list", "--all", "--json").out.splitlines()]
    assert (approval["status"], approval["decision"]["by"]) == ("denied", "operator")


def test_ctrl_c_at_the_question_ends_the_turn_of_a_chat_and_at_its_prompt_twice_the_chat(
    home: Home, provider: Provider
) -> None:
    home.configure(provider.server.openai_url, rest=ASKS)
    provider.script(SUM, HangingAnswer())
    with home.start_in_terminal("chat") as chat:
        chat.out.await_text("> ")
        chat.type("What is 6 * 6?\r")
        chat.out.await_text("Allow it")
        chat.type("\x03")
        stopped = chat.out.await_text("stopped")
        chat.out.await_text("> ", after=stopped.end())
        chat.type("\x03")
        told = chat.out.await_text(r"Ctrl-C once more leaves\.")
        chat.out.await_text("> ", after=told.end())
        chat.type("\x03")
        assert chat.finish().code == 0


def test_ctrl_c_stops_a_turn_in_which_somebody_was_asked(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest=ASKS)
    provider.script(SUM, HangingAnswer(ModelAnswer(text="Once upon a time"), after_frames=2))
    with home.start_in_terminal("ask", "What is 6 * 6?") as asked:
        asked.out.await_text("Allow it")
        asked.type("y\r")
        asked.out.await_text("Once")
        asked.type("\x03")
        asked.out.await_text("Stopped")
        assert asked.finish().code == 130


@pytest.mark.proves("T-approval-terminal", "T-approval-modes")
def test_in_a_chat_a_line_decides_and_the_chat_goes_on(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest="gate: {modes: {calculator: ask}}\n")
    provider.script(SUM, ModelAnswer(text="It is 36."), ModelAnswer(text="Of course."))
    with home.start_in_terminal("chat") as chat:
        chat.out.await_text("> ")
        chat.type("What is 6 * 6?\r")
        chat.out.await_text("Allow it")
        chat.type("y\r")
        end = chat.out.await_text(r"It is 36\.").end()
        chat.out.await_text("> ", after=end)
        chat.type("Sure?\r")
        end = chat.out.await_text(r"Of course\.").end()
        chat.out.await_text("> ", after=end)
        chat.type("/quit\r")
        assert chat.finish().code == 0


@pytest.mark.proves("TW1", "X-approval-absent")
def test_without_a_terminal_nobody_can_be_asked_and_it_says_how_to_allow_it(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest=ASKS)
    provider.script(SUM, ModelAnswer(text="I may not."))
    done = home.do("ask", "What is 6 * 6?")
    assert done.ending == (0, "I may not.\n")
    assert "nobody can be asked here; a rule under gate.rules can allow it" in done.err
    assert home.do("approvals", "list", "--all").out == "Nothing has waited for approval yet.\n"


@pytest.mark.proves("TW1", "X-approval-absent", "TW8", "E1")
def test_by_default_nothing_dangerous_runs_where_nobody_is_there(home: Home, provider: Provider) -> None:
    folder = home.folder / "shared"
    home.configure(provider.server.openai_url, rest=f"tools: {{files: {{enabled: true, allowed: ['{folder}']}}}}\n")
    folder.mkdir()
    write = ModelAnswer(calls=[ModelCall("write", {"path": "note.txt", "content": "x"})])
    provider.script(write, ModelAnswer(text="I may not."), write, ModelAnswer(text="I may not."))
    assert home.do("ask", "Write it down.").ending == (0, "I may not.\n")
    assert "nobody can be asked here" in get_last_request(provider)
    with home.serve() as server:
        assert get_completion_text(server.ask("Write it down.", key="k1")) == "I may not."
    assert "nobody can be asked here" in get_last_request(provider)
    assert not list(folder.iterdir())


@pytest.mark.proves("TW1", "VW2")
def test_without_a_terminal_a_call_waits_for_others_only_when_told_to_and_it_says_how(
    home: Home, provider: Provider
) -> None:
    home.configure(provider.server.openai_url, rest=OWNERS)
    provider.script(SUM, ModelAnswer(text="I may not."), SUM, ModelAnswer(text="It is 36."))
    assert home.do("ask", "What is 6 * 6?").ending == (0, "I may not.\n")
    with home.start("ask", "--wait", "What is 6 * 6?") as asking:
        waits = asking.err.await_text(r"denizen approvals approve (apr_\w+)").group(1)
        assert home.do("approvals", "approve", waits).ending == (0, "Approved.\n")
        assert asking.finish().ending == (0, "It is 36.\n")


@pytest.mark.proves("TW1")
def test_a_client_of_the_api_that_does_not_ask_to_wait_is_answered_at_once(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest="gate: {tiers: {calculator: 3}}\n")
    provider.script(SUM, ModelAnswer(text="I may not."))
    with home.serve() as server:
        assert get_completion_text(server.ask("What is 6 * 6?", key="k1")) == "I may not."
    assert home.do("approvals", "list", "--all").out == "Nothing has waited for approval yet.\n"
    told = get_last_request(provider)
    assert "the owner of this server asks for approval of 'calculator'." in told
    assert "nobody can be asked here" in told


@pytest.mark.proves("P2", "VW2")
def test_what_waits_in_a_server_is_listed_and_decided_from_the_shell(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest=OWNERS)
    provider.script(SUM, ModelAnswer(text="It is 36."))
    with home.serve() as server:
        connection = server.send("What is 6 * 6?", key="k1", waits=True)
        listed: list[str] = []

        def is_listed() -> bool:
            listed[:] = home.do("approvals", "list", "--json").out.splitlines()
            return bool(listed)

        wait_until(is_listed)
        [waits] = [json.loads(line) for line in listed]
        assert (waits["call"]["tool"], waits["status"], waits["may_decide"]) == ("calculator", "pending", True)
        assert "6 * 6" in home.do("approvals", "list").out
        assert home.do("approvals", "approve", waits["id"][:10]).ending == (0, "Approved.\n")
        answered = receive(connection)
        assert answered.body["choices"][0]["message"]["content"] == "It is 36."
    again = home.do("approvals", "deny", waits["id"], "--reason", "no")
    assert again.ending == (2, "")
    assert "error: This was decided already: approved by operator.\n" in again.err
    assert home.do("approvals", "approve", waits["id"]).ending == (
        0,
        "This was decided already: approved by operator.\n",
    )
    assert home.do("approvals", "list").out == "Nothing waits for approval.\n"
    unknown = home.do("approvals", "approve", "apr_x")
    assert unknown.code == 2
    assert "`denizen approvals list` shows them." in unknown.err


@pytest.mark.proves("T-tool-md-to-pdf")
def test_in_a_terminal_a_pdf_is_made_once_somebody_says_yes(home: Home, provider: Provider) -> None:
    folder = home.folder / "shared"
    home.configure(provider.server.openai_url, rest=f"tools: {{files: {{enabled: true, allowed: ['{folder}']}}}}\n")
    folder.mkdir()
    (folder / "report.md").write_text("# Report", encoding="utf-8")
    provider.script(ModelAnswer(calls=[ModelCall("md_to_pdf", {"path": "report.md"})]), ModelAnswer(text="Here it is."))
    with home.start_in_terminal("ask", "Make a PDF of report.md.") as asked:
        asked.out.await_text("Allow it")
        assert not (folder / "report.pdf").exists()
        asked.type("y\r")
        asked.out.await_text("Here it is.")
        assert asked.finish().code == 0
    assert "Made report.pdf." in get_last_request(provider)
    assert (folder / "report.pdf").read_bytes().startswith(b"%PDF-")
