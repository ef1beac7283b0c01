"""`denizen ask` and `denizen chat` beside a running server: it answers, in the same sessions; and what if it ends."""

from __future__ import annotations

import http.client
import json
import re
import signal
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from denizen.domain.turn import TurnStatus
from denizen.testing.model_server import HangingAnswer, ModelAnswer, ModelCall
from tests.e2e.home import Home, Server
from tests.e2e.provider import Provider
from tests.e2e.records import count_rows, read_turns
from tests.e2e.test_approvals import ASKS, SUM
from tests.e2e.test_chat import TYPED
from tests.engine.engine_fixture import strip_date
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.e2e

KEY = "a-key-that-is-long-enough"
KEYED = """\
server: {api_keys: [{name: ann, key: "${ANN}", roles: [owner]}]}
channels: {web: {enabled: false}, api: {enabled: false}}
"""


def list_questions(provider: Provider) -> list[list[str]]:
    """Returns what people said, in each request to the model."""
    bodies = provider.server.bodies
    return [[strip_date(said["content"]) for said in body["messages"] if said["role"] == "user"] for body in bodies]


def await_logged_turn(server: Server, turn: str) -> None:
    """Waits for the line in the server's log that tells the end of a turn which ran there."""
    server.running.err.await_text(rf"\] turn .*turn={turn}\b")


def test_a_question_runs_in_the_server_and_its_session_is_the_same_without_one(home: Home, provider: Provider) -> None:
    home.variables["ANN"] = KEY
    home.configure(provider.server.openai_url, rest=KEYED)
    provider.script(*(ModelAnswer(text=f"Answer {number}.") for number in (1, 2, 3)))
    assert home.do("ask", "-s", "s", "One").ending == (0, "Answer 1.\n")
    with home.serve() as server:
        database = home.folder / "denizen.db"
        opened = count_rows(database, "config_generations")
        asked = home.do("ask", "-s", "s", "--json", "Two")
        assert (asked.code, asked.told) == (0, [])
        said = json.loads(asked.out)
        assert (said["answer"], said["usage"]["requests"]) == ("Answer 2.", 1)
        await_logged_turn(server, said["turn"])
        assert count_rows(database, "config_generations") == opened, "the command did not open the home itself"
        assert server.running.stop(signal.SIGTERM).code == 0
    assert home.do("ask", "-s", "s", "Three").ending == (0, "Answer 3.\n")
    assert list_questions(provider) == [["One"], ["One", "Two"], ["One", "Two", "Three"]]
    assert not (home.folder / "denizen.sock").exists()


def test_tools_and_the_stream_are_shown_as_without_a_server(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    script = (
        ModelAnswer(text="Let me see.", calls=[ModelCall("calculator", {"expression": "6 * 6"})]),
        ModelAnswer(calls=[ModelCall("calculator", {"expression": "6 *"})]),
        ModelAnswer(text="It is 36."),
    )
    provider.script(*script, *script)
    alone = home.do("ask", "--stream", "What is 6 * 6?")
    with home.serve():
        beside = home.do("ask", "--stream", "What is 6 * 6?")
    assert (alone.ending, alone.told) == (beside.ending, beside.told)
    assert beside.out == "Let me see.\nIt is 36.\n"
    assert beside.told[0] == '[calculator {"expression": "6 * 6"}]'


def test_a_model_that_is_named_is_asked_without_the_server(home: Home, provider: Provider) -> None:
    home.configure("http://127.0.0.1:9/v1")
    provider.script(ModelAnswer(text="Hello."))
    with home.serve() as server:
        asked = home.do("ask", "--json", "--base-url", provider.server.openai_url, "--model", "tiny", "Hello")
        turn = json.loads(asked.out)["turn"]
        ended = server.running.stop(signal.SIGTERM)
    assert asked.code == 0
    assert turn not in ended.err


@pytest.mark.parametrize("args", [["ask", "-a", "nobody", "Hello"], ["chat", "-a", "nobody"]])
def test_an_error_of_the_server_is_the_error_of_the_command(args: list[str], home: Home) -> None:
    home.configure("http://127.0.0.1:9/v1")
    with home.serve():
        done = home.do(*args)
    assert (done.ending, done.told) == ((2, ""), ["error: There is no agent 'nobody'.", "fix: Known agents: denizen."])


def test_a_terminal_that_is_switched_off_is_refused_by_the_server_too(home: Home) -> None:
    home.configure("http://127.0.0.1:9/v1", rest="channels: {terminal: {enabled: false}}\n")
    with home.serve():
        for args in (["ask", "Hello"], ["chat"]):
            done = home.do(*args)
            assert done.ending == (3, "")
            assert "error: The terminal channel is switched off." in done.err


# --- chat and prompts -------------------------------------------------------------------------------------------------


def test_a_chat_beside_a_server_says_what_a_chat_without_one_says(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    script = (
        ModelAnswer(calls=[ModelCall("calculator", {"expression": "6 * 6"})]),
        ModelAnswer(text="It is 36."),
        ModelAnswer(text="A fresh start."),
    )
    provider.script(*script, *script)
    typed = f"{TYPED}/agent\n/agent denizen\n/observer\n/observer sideways\n"
    alone = home.do("chat", "-s", "one", stdin=typed)
    with home.serve():
        beside = home.do("chat", "-s", "other", stdin=typed)
    assert (beside.code, beside.told) == (0, [])
    assert re.sub(r"\d+ ms", "", beside.out) == re.sub(r"\d+ ms", "", alone.out)


def test_ctrl_c_stops_an_answer_of_the_server_and_the_chat_goes_on(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    provider.script(HangingAnswer(ModelAnswer(text="Once upon a time"), after_frames=3), ModelAnswer(text="Fine."))
    with home.serve(), home.start_in_terminal("chat") as chat:
        chat.out.await_text("> ")
        chat.type("Tell me a story\r")
        chat.out.await_text("Once upon")
        chat.type("\x03")
        stopped = chat.out.await_text("stopped")
        prompt = chat.out.await_text("> ", after=stopped.end())
        chat.type("And now?\r")
        fine = chat.out.await_text("Fine.", after=prompt.end())
        chat.out.await_text("> ", after=fine.end())
        chat.type("/quit\r")
        assert chat.finish().code == 0
    assert "Traceback" not in chat.out.text
    assert [turn.status for turn, _ in read_turns(home.store_url)] == [TurnStatus.DONE, TurnStatus.CANCELLED]


def test_ctrl_c_stops_a_question_in_the_server_that_was_asked_beside_a_silent_pipe(
    home: Home, provider: Provider
) -> None:
    home.configure(provider.server.openai_url)
    provider.script(HangingAnswer(ModelAnswer(text="Once upon a time"), after_frames=2))
    with home.serve(), home.start("ask", "--stream", "Tell me a story") as asking:
        asking.out.await_text("Once")
        ended = asking.stop(signal.SIGINT)
        [without_pipe, stopped] = ended.told
        assert (ended.ending, stopped) == ((130, "Once\n"), "Stopped.")
        assert without_pipe.startswith("[Nothing came through the pipe within 1 s")
        assert [turn.status for turn, _ in read_turns(home.store_url)] == [TurnStatus.CANCELLED]


@pytest.mark.proves("T-approval-terminal", "P2")
def test_a_call_in_the_server_is_decided_by_a_line_in_the_terminal(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest=ASKS)
    provider.script(SUM, ModelAnswer(text="It is 36."))
    with home.serve() as server:
        with home.start_in_terminal("ask", "What is 6 * 6?") as asked:
            asked.out.await_text("sums are serious")
            asked.out.await_text("Allow it")
            asked.type("y\r")
            asked.out.await_text("It is 36.")
            assert asked.finish().code == 0
        server.running.err.await_text("calls=1 .*status=done")
    assert "approved by operator" in json.dumps(provider.server.bodies[-1])


def test_the_question_in_the_terminal_is_taken_back_when_somebody_else_decides(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest=ASKS)
    provider.script(SUM, ModelAnswer(text="I may not."))
    with home.serve(), home.start_in_terminal("ask", "What is 6 * 6?") as asked:
        asked.out.await_text("Allow it")
        [waits] = [json.loads(line) for line in home.do("approvals", "list", "--json").out.splitlines()]
        assert home.do("approvals", "deny", waits["id"], "--reason", "not today").code == 0
        asked.out.await_text(r"\[calculator: denied by operator: not today\]")
        asked.out.await_text("I may not.")
        assert asked.finish().code == 0


@pytest.mark.proves("TW1", "X-approval-absent")
def test_where_nobody_sits_the_server_asks_nobody(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest=ASKS)
    provider.script(SUM, ModelAnswer(text="I may not."))
    with home.serve():
        done = home.do("ask", "What is 6 * 6?")
    assert done.ending == (0, "I may not.\n")
    assert "nobody can be asked here" in done.err


# --- the end of the server --------------------------------------------------------------------------------------------


@pytest.mark.proves("T7")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_goes_away_leaves_word_where_its_answer_will_be(
    number: signal.Signals, home: Home, provider: Provider
) -> None:
    home.configure(provider.server.openai_url)
    provider.script(HangingAnswer(ModelAnswer(text="Once upon a time"), after_frames=2), ModelAnswer(text="The end."))
    with home.serve() as server, home.start("ask", "--stream", "Tell me a story") as asking:
        asking.out.await_text("Once")
        server.running.stop(number)
        ended = asking.finish()
    assert ended.code == 4
    [error, why, fix] = ended.told[-3:]
    assert error == "error: Denizen went away before the answer was complete."
    assert "The turn goes on when Denizen runs again." in why
    shows = re.search(r"`denizen (trace turn_\w+)` shows the answer", fix)
    assert shows is not None
    with home.serve() as server:
        await_logged_turn(server, shows[1].removeprefix("trace "))
    assert "The end." in home.do(*shows[1].split()).out
    assert [turn.status for turn, _ in read_turns(home.store_url)] == [TurnStatus.DONE]


def test_a_chat_whose_server_ended_says_so_and_goes_on_with_the_next_one(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    provider.script(ModelAnswer(text="One."))
    with home.serve() as server, home.start_in_terminal("chat") as chat:
        begun = chat.out.await_text("> ")
        server.running.stop(signal.SIGTERM)
        chat.type("Hello\r")
        told = chat.out.await_text(r"The server of this home folder has ended\.[^>]*> ", after=begun.end())
        assert "fix: Start `denizen run` in another terminal and say it again, or start this" in told[0]
        with home.serve():
            chat.type("Hello\r")
            answer = chat.out.await_text(r"One\.", after=told.end())
            chat.out.await_text("> ", after=answer.end())
            chat.type("/quit\r")
            assert chat.finish().code == 0


def test_the_socket_of_a_killed_server_is_in_nobodys_way(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    provider.script(ModelAnswer(text="One."), ModelAnswer(text="Two."))
    with home.serve() as server:
        server.running.kill()
    assert (home.folder / "denizen.sock").is_socket()
    assert home.do("ask", "Hello").ending == (0, "One.\n")
    with home.serve() as server:
        said = json.loads(home.do("ask", "--json", "Hello").out)
        assert said["answer"] == "Two."
        await_logged_turn(server, said["turn"])


def test_the_first_server_of_a_home_keeps_its_terminals_and_a_second_one_says_so(
    home: Home, provider: Provider
) -> None:
    home.configure(provider.server.openai_url)
    provider.script(ModelAnswer(text="One."))
    with home.serve() as first:
        with home.serve() as second:
            told = second.running.err.await_text("terminals cannot use this server").string
            assert told.startswith(
                f"warning: Another Denizen runs on {home.folder} already (process {first.running.pid}).\n"
                "why: Both answer, each message once. `denizen ask` and `denizen chat` stay with the first.\n"
                f"fix: If only one is to run, stop the other: kill {first.running.pid}\n"
            )
            assert second.running.stop(signal.SIGTERM).code == 0
        said = json.loads(home.do("ask", "--json", "Hello").out)
        await_logged_turn(first, said["turn"])


# --- over TCP ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["", KEY])
def test_no_request_over_tcp_reaches_what_the_socket_serves(token: str, home: Home) -> None:
    """Nor is it the operator's, whatever it says of itself."""
    home.variables["ANN"] = KEY
    home.configure("http://127.0.0.1:9/v1", rest=KEYED)
    claims = {
        "Host": "localhost",
        "X-Forwarded-For": "unix:",
        "X-Real-IP": str(home.folder / "denizen.sock"),
        "Forwarded": "for=unix;host=localhost",
        "Content-Type": "application/json",
    }
    credentials = {"Authorization": f"Bearer {token}"} if token else {}
    body = json.dumps({"key": "k", "command": "ask", "session": "s", "text": "Hello"})
    with home.serve() as server:
        address = urlsplit(server.url)
        for target in ("/calls/greet", "/calls/list_agents", "/chat", f"http://unix:{home.folder}/denizen.sock:/chat"):
            with closing(
                http.client.HTTPConnection(str(address.hostname), address.port, timeout=HANG_LIMIT_S)
            ) as connection:
                connection.request("POST", target, body, {**claims, **credentials})
                response = connection.getresponse()
                code = json.loads(response.read())["error"]["code"]
            assert (response.status, code) == ((404, "route_unknown") if token else (401, "credentials_missing"))
    assert read_turns(home.store_url) == []


def test_a_workflow_runs_in_the_server_and_again_without_one(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    file = home.folder / "workflows/hi.yaml"
    file.parent.mkdir()
    file.write_text(
        'nodes: {go: {type: manual, input: {who: you}, then: end}, end: {type: reply, text: "Hi {{input.who}}"}}'
    )
    with home.serve() as server:
        done = home.do("workflows", "run", "hi", "--input", "who=Ada", "--json")
        run = json.loads(done.out)
        assert (done.code, run["status"], run["reply"]) == (0, "done", "Hi Ada")
        assert done.told == [f"The running server does {run['id']}; calls may wait for `denizen approvals`."]
        await_logged_turn(server, run["id"])
        assert "There is no workflow 'ho'." in home.do("workflows", "run", "ho").err
        assert server.running.stop(signal.SIGTERM).code == 0
    again = home.do("workflows", "rerun", run["id"], "--json")
    assert (again.code, again.told, json.loads(again.out)["reply"]) == (0, [], "Hi Ada")
