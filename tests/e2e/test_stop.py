"""Told to stop, by SIGTERM or Ctrl-C, a process ends soon and cleanly, and leaves nothing that blocks the next one."""

from __future__ import annotations

import json
import signal
from contextlib import closing

import pytest

from denizen.domain.turn import TurnStatus
from denizen.testing.model_server import HangingAnswer, ModelAnswer
from tests.e2e.home import Home, get_completion_text, receive
from tests.e2e.provider import Provider
from tests.e2e.records import read_turns
from tests.timing import wait_until

pytestmark = pytest.mark.e2e


@pytest.mark.proves("T7")
def test_a_server_told_to_end_leaves_its_turn_to_the_next_one_which_finishes_it(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    provider.script(HangingAnswer(), ModelAnswer(text="Done."))
    with home.serve() as first, closing(first.send("Hello", key="m1")) as asked:
        provider.requests.await_count(1)
        ended = first.running.stop(signal.SIGTERM)
        assert (ended.ending, ended.told[1:]) == ((0, ""), ["Stopped."])
        told = receive(asked)
        assert told.status == 503
        said = told.body["error"]["message"]
        assert said.startswith("Denizen is shutting down") and said.endswith("what was under way goes on then.")
    with home.serve() as second:
        provider.requests.await_count(2)
        assert get_completion_text(second.ask("Hello", key="m1")) == "Done."
        ended = second.running.stop(signal.SIGINT)
        assert (ended.ending, ended.told[1:]) == ((0, ""), ["Stopped."])
    assert len(provider.requests) == 2


@pytest.mark.proves("T7")
def test_who_reads_along_is_told_too_and_finds_the_answer_in_the_chat(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    provider.script(HangingAnswer(ModelAnswer(text="Once upon a time"), after_frames=2), ModelAnswer(text="The end."))
    with home.serve() as first, closing(first.send_to_chat("Tell me a story", "stories")) as asked:
        stream = asked.getresponse()
        while b"Once" not in stream.readline():
            pass
        assert first.running.stop(signal.SIGTERM).ending == (0, "")
        *_, last = (line for line in stream if line.startswith(b"data: "))
        told = json.loads(last.removeprefix(b"data: "))["error"]
        assert told["message"].startswith("Denizen is shutting down")
        assert told["fix"].endswith("what was under way goes on then.")
    with home.serve() as second:
        wait_until(lambda: second.get("/api/chats/stories").body["messages"][-1]["text"] == "The end.")


@pytest.mark.proves("TW16")
def test_on_a_terminal_an_answer_is_printed_as_it_comes(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    provider.script(HangingAnswer(ModelAnswer(text="Once upon a time"), after_frames=2))
    with home.start_in_terminal("ask", "Tell me a story") as asking:
        asking.out.await_text("Once")
        assert asking.stop(signal.SIGINT).code == 130


@pytest.mark.proves("TW16")
def test_a_question_that_is_interrupted_leaves_nothing_in_the_way_of_the_next(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    provider.script(HangingAnswer(ModelAnswer(text="Once upon a time"), after_frames=2), ModelAnswer(text="Hello."))
    with home.start("ask", "--session", "s", "--stream", "Tell me a story") as asking:
        asking.out.await_text("Once")
        ended = asking.stop(signal.SIGINT)
        assert (ended.ending, ended.told[-1]) == ((130, "Once\n"), "Stopped.")
    asked = home.do("ask", "--session", "s", "Hello")
    assert (asked.ending, asked.told) == ((0, "Hello.\n"), [])
    assert [turn.status for turn, _ in read_turns(home.store_url)] == [TurnStatus.DONE, TurnStatus.CANCELLED]
