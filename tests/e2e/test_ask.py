"""`denizen ask`: one process, one question, one answer; and what it says and returns when there is none."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from denizen.testing.model_server import FailedAnswer, HangingAnswer, ModelAnswer, ModelCall, ScriptEntry
from tests.e2e.home import Home
from tests.e2e.process import start
from tests.e2e.provider import Provider
from tests.engine.engine_fixture import strip_date
from tests.ports import hold_unused_port
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.e2e

SUMS = [f"{number} * {number}" for number in range(2, 7)]
SQUARES = ["4", "9", "16", "25", "36"]
DOUBLES = ["4", "6", "8", "10", "12"]
KEY = "sk-ant-0123456789abcdef"


def calculations(*expressions: str) -> list[ModelCall]:
    return [ModelCall("calculator", {"expression": each}, id=f"call_{each.partition(' ')[0]}") for each in expressions]


def configure_compatible_model(provider: Provider) -> Sequence[str]:
    """A model named on the command line, on the wire of OpenAI's chat completions."""
    return ("--base-url", provider.server.openai_url, "--model", "tiny")


def anthropic(provider: Provider) -> Sequence[str]:
    """The same on Anthropic's wire."""
    return (
        "--provider",
        "anthropic",
        "--base-url",
        provider.server.url,
        "--model",
        "claude-tiny",
        "--api-key-env",
        "KEY",
    )


def list_tool_results(body: Any) -> list[str]:
    """What the tools gave, as the provider sees it in a request; both wires."""
    found: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            found.append(message["content"])
        elif isinstance(message["content"], list):
            blocks = [part["content"] for part in message["content"] if part["type"] == "tool_result"]
            found += [text["text"] for block in blocks for text in block]
    return found


def test_a_question_from_standard_input_is_answered_as_json_by_the_model_that_was_named(
    home: Home, provider: Provider
) -> None:
    provider.script(ModelAnswer(text="Hello."))
    answered = home.do("ask", "--json", *configure_compatible_model(provider), stdin="Good morning\n")
    assert (answered.code, answered.told) == (0, [])
    said = json.loads(answered.out)
    assert (said["status"], said["answer"], said["error"]) == ("done", "Hello.", None)
    assert said["usage"] == {
        "input_tokens": 12,
        "output_tokens": 7,
        "cache_read_tokens": 0,
        "cost_usd": None,
        "requests": 1,
    }
    [body] = provider.server.bodies
    asked = body["messages"][-1]
    assert (body["model"], asked["role"], strip_date(asked["content"])) == ("tiny", "user", "Good morning")


def test_a_provider_that_is_busy_is_asked_again_and_a_tool_is_used(home: Home, provider: Provider) -> None:
    provider.script(
        FailedAnswer(429, headers={"retry-after": "0"}),
        ModelAnswer(calls=calculations("6 * 6")),
        ModelAnswer(text="It is 36."),
    )
    answered = home.do("ask", "--no-stream", *configure_compatible_model(provider), "What is 6 * 6?")
    assert answered.ending == (0, "It is 36.\n")
    assert answered.told == [
        "[The provider 'chosen' limits the rate of requests. Trying again in 1 s.]",
        '[calculator {"expression": "6 * 6"}]',
    ]
    assert [list_tool_results(body) for body in provider.server.bodies] == [[], [], ["36"]]


def test_tools_are_used_one_after_another_and_at_once_while_the_answer_streams(home: Home, provider: Provider) -> None:
    home.variables["KEY"] = KEY
    steps = [ModelAnswer(text=f"Step {each[0]}.", calls=calculations(each)) for each in SUMS]
    at_once = ModelAnswer(calls=calculations(*(each.replace("*", "+") for each in SUMS)))
    provider.script(FailedAnswer(529, kind="overloaded_error"), *steps, at_once, ModelAnswer(text="All done."))
    answered = home.do("ask", "--stream", *anthropic(provider), "Square and double 2 to 6")
    assert answered.ending == (0, "Step 2.\nStep 3.\nStep 4.\nStep 5.\nStep 6.\nAll done.\n")
    asides = [f'[calculator {{"expression": "{each}"}}]' for each in SUMS]
    assert answered.told[1:6] == asides
    assert sorted(answered.told[6:]) == [aside.replace("*", "+") for aside in asides]
    assert [len(list_tool_results(body)) for body in provider.server.bodies] == [0, 0, 1, 2, 3, 4, 5, 10]
    assert list_tool_results(provider.server.bodies[-1]) == [*SQUARES, *DOUBLES]
    assert {request.headers["authorization"] for request in provider.requests} == {f"Bearer {KEY}"}


def test_tools_asked_for_at_once_give_their_results_in_the_order_asked(home: Home, provider: Provider) -> None:
    provider.script(ModelAnswer(calls=calculations(*SUMS)), ModelAnswer(text="All done."))
    assert home.do("ask", *configure_compatible_model(provider), "Square 2 to 6").ending == (0, "All done.\n")
    assert list_tool_results(provider.server.bodies[-1]) == SQUARES


@pytest.mark.parametrize(
    ("entry", "code", "says", "fix"),
    [
        pytest.param(HangingAnswer(), 4, "did not answer in time", "raise the provider's time-outs", id="silent"),
        pytest.param(
            FailedAnswer(401, f"Wrong key {KEY}"), 2, "refused the key", "valid key into KEY", id="key refused"
        ),
        pytest.param(
            FailedAnswer(404, "no such model", code="model_not_found"), 2, "does not know", "name", id="no model"
        ),
    ],
)
def test_a_provider_that_does_not_answer_ends_the_question_with_the_reason_and_the_remedy(
    entry: ScriptEntry, code: int, says: str, fix: str, home: Home, provider: Provider
) -> None:
    home.variables["KEY"] = KEY
    timeout_s = (
        1 if isinstance(entry, HangingAnswer) else HANG_LIMIT_S
    )  # the others must answer, however busy the machine
    home.configure(provider.server.openai_url, more=f'timeout_s: {timeout_s:g}, api_key: "${{KEY}}"')
    provider.script(entry)
    answered = home.do("ask", "--json", "Hello")
    assert answered.code == code
    error = json.loads(answered.out)["error"]
    assert says in error["message"] and fix in error["fix"]
    assert answered.told == [f"error: {error['message']}", f"fix: {error['fix']}"]
    assert KEY not in answered.out + answered.err
    assert len(provider.requests) == 1


def test_a_server_that_is_not_there_is_said_to_be_unreachable(home: Home) -> None:
    with hold_unused_port() as port:
        answered = home.do("ask", "--base-url", f"http://127.0.0.1:{port}/v1", "--model", "tiny", "Hello")
    assert answered.ending == (4, "")
    assert f"cannot be reached. (There is no connection to http://127.0.0.1:{port}: " in answered.told[-2]
    assert answered.told[-1] == "fix: Check the network and the provider's base_url."
    assert answered.err.count("There is no connection") == 1, "and not in the log as well"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["ask"], 'error: There is no question.\nfix: Write it behind the command: denizen ask "..."\n'),
        (["ask", " "], 'error: There is no question.\nfix: Write it behind the command: denizen ask "..."\n'),
        (["ask", "-a", "nobody", "Hello"], "error: There is no agent 'nobody'.\nfix: Known agents: denizen.\n"),
        (["ask", "--model", "big", "Hello"], "error: There is no model 'big'.\nfix: Known: balanced, fast, quality."),
        (["ask", "--modle", "x", "Hello"], "No such option '--modle'. Did you mean '--model'?"),
        (["aks", "Hello"], "No such command 'aks'."),
    ],
)
def test_a_command_line_that_cannot_be_meant_is_explained(args: list[str], says: str, home: Home) -> None:
    home.configure("http://127.0.0.1:9/v1")
    answered = home.do(*args)
    assert answered.ending == (2, "")
    assert says in answered.err
    assert "Traceback" not in answered.err


@pytest.mark.proves("T-cli-home")
def test_the_home_folder_is_the_users_own_unless_another_is_named(tmp_path: Path) -> None:
    for name in (".denizen", "variable", "option"):
        Home(tmp_path / name).write(f"agents: {{denizen: {{description: lives in {name}}}}}\n")
    user = {"HOME": str(tmp_path), "PATH": ""}
    variable = {**user, "DENIZEN_HOME": str(tmp_path / "variable")}
    shown = [
        start([sys.executable, "-m", "denizen", *args, "config", "show"], environment).finish().out
        for args, environment in [((), user), ((), variable), (("--home", "~/option"), variable)]
    ]
    assert [re.findall("lives in (.*)", text) for text in shown] == [[".denizen"], ["variable"], ["option"]]
