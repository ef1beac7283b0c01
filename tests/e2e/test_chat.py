"""`denizen chat`, through a pipe and in a terminal."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from denizen.testing.model_server import HangingAnswer, ModelAnswer, ModelCall
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.engine.engine_fixture import strip_date

pytestmark = pytest.mark.e2e

TYPED = """\
What is 6 * 6?
/tools
/context
/new
/model
/model big
/model local/scripted
And now?
/nope
/why
/memory
/help
"""


def test_a_chat_through_a_pipe_answers_uses_tools_and_knows_its_commands(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    provider.script(
        ModelAnswer(calls=[ModelCall("calculator", {"expression": "6 * 6"})]),
        ModelAnswer(text="It is 36."),
        ModelAnswer(text="A fresh start."),
    )
    done = home.do("chat", stdin=TYPED)
    assert (done.code, done.told) == (0, [])
    said = [part.splitlines() for part in done.out.split("> ")]
    assert said[0] == ["denizen on local/scripted. /help lists the commands."]
    assert said[1][:2] == ["What is 6 * 6?", 'calculator {"expression": "6 * 6"}']
    assert (said[1][2].split()[0], said[1][3]) == ("36", "It is 36.")
    tools, context, new, models, big, chosen, after, nope, why, memory, help_ = said[2:]
    assert any(line.startswith("  calculator  (tier 0)") for line in tools)
    assert {line.split()[0] for line in context[1:]} >= {"persona", "tools", "messages"}
    assert len({line[:14] for line in context[1:]}) == len(context[1:]), "no two lines have the same name"
    assert new[1:] == ["A fresh session begins with your next message."]
    assert models[1:] == ["  local/scripted  balanced, fast, quality"]
    assert big[1] == "There is no model 'big'."
    assert chosen[1:] == ["Answers come from local/scripted now."]
    assert after[1:] == ["A fresh start."]
    assert nope[1:] == ["There is no command /nope. /help lists them."]
    assert "denizen trace --last --agent denizen" in why[1]
    assert "denizen memory list --agent denizen" in memory[1]
    assert "/quit            leave (also Ctrl-D, or Ctrl-C twice)" in help_
    assert [len(body["messages"]) for body in provider.server.bodies] == [2, 4, 2], "/new begins without the old talk"


def test_ctrl_c_stops_an_answer_and_the_chat_goes_on(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    provider.script(HangingAnswer(ModelAnswer(text="Once upon a time"), after_frames=3), ModelAnswer(text="Fine."))
    with home.start_in_terminal("chat") as chat:
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
    asked = [strip_date(body["messages"][-1]["content"]) for body in provider.server.bodies]
    assert asked == ["Tell me a story", "And now?"]


@pytest.mark.parametrize("beside_server", [False, True])
def test_in_a_terminal_a_long_wait_for_the_answer_is_told(beside_server: bool, home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    waiting = r"\[waiting for the answer: \d+ s\]"
    with ExitStack() as opened:
        if beside_server:
            opened.enter_context(home.serve())
        answer = provider.hold(ModelAnswer(text="Hello."))
        asked = opened.enter_context(home.start_in_terminal("ask", "Hello"))
        asked.out.await_text(waiting)
        answer.release()
        assert asked.finish().out.endswith("\rHello.\r\n")
        answer = provider.hold(ModelAnswer(text="Good morning."))
        chat = opened.enter_context(home.start_in_terminal("chat"))
        chat.out.await_text("> ")
        chat.type("Good morning\r")
        chat.out.await_text(waiting)
        answer.release()
        chat.out.await_text(r"\rGood morning\.")


AGENTS = """\
  denizen: {delegates_to: [scribe]}
  scribe: {description: Keeps notes.}
default_agent: denizen
"""


@pytest.mark.proves("V35-handover")
def test_a_chat_is_handed_to_another_agent_until_its_messages_are_over_or_somebody_says_exit(
    home: Home, provider: Provider
) -> None:
    home.configure(provider.server.openai_url)
    home.write(home.config.read_text().replace("  denizen: {}\n", AGENTS))
    provider.script(
        ModelAnswer(calls=[ModelCall("hand_over", {"agent": "scribe", "messages": 1})]),
        ModelAnswer(text="Ask scribe."),
        *(ModelAnswer(text=f"Answer {number}.") for number in (1, 2, 3, 4)),
    )
    begun = home.do("chat", stdin="I want the one who takes notes\n")
    told = "scribe answers here from now on, for 15 minutes or 1 messages. Write `!exit` to end it."
    assert told in " ".join(begun.out.split())
    # Another process: what was handed over is still.
    typed = ["One", "Two", "/handover scribe 5 9", "Three", "!exit", "Four", "/handover scribe 0"]
    typed += ["/handover scribe", "/handover back", "/handover back"]
    said = home.do("chat", stdin="\n".join([*typed, ""])).out
    parts = [part.splitlines()[1:] for part in said.split("\n> ")[1:]]
    over = "That was the last message: scribe does not answer here any more, denizen does."
    assert parts[:2] == [["scribe:", "Answer 1."], [over, "Answer 2."]]
    assert parts[2] == ["scribe answers here from now on, for 5 minutes or 9 messages. Write `!exit` to end it."]
    assert parts[3] == ["scribe:", "Answer 3."]
    assert parts[4] == ["You have ended it: scribe does not answer here any more, denizen does."]
    assert parts[5] == ["Answer 4."]
    assert parts[6][0] == "A room is not handed over for that long."
    assert parts[8:] == [parts[4], ["This session was not handed over."]]
    asked = [body["messages"] for body in provider.server.bodies[2:]]
    assert [len(messages) for messages in asked] == [2, 6, 4, 8], "each agent has a history of its own"
