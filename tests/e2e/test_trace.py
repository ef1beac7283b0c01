"""`denizen trace`, `denizen replay` and `denizen prompt`: seeing why, from the command line."""

from __future__ import annotations

import json
import re

import pytest

from denizen.engine.loop.outcome import NOT_IN_SOURCES
from denizen.testing.model_server import ModelAnswer, ModelCall
from denizen.testing.model_wire import AnswerTokens
from tests.e2e.home import Home
from tests.e2e.provider import Provider

pytestmark = pytest.mark.e2e


def ask_with_tool(home: Home, provider: Provider) -> str:
    """A turn with one tool call; its id."""
    home.configure(provider.server.openai_url)
    provider.script(
        ModelAnswer(calls=[ModelCall("calculator", {"expression": "6 * 7"})]), ModelAnswer(text="It is 42.\nReally.")
    )
    answered = home.do("ask", "--json", "What is 6 * 7?")
    assert answered.code == 0, answered.err
    return json.loads(answered.out)["turn"]


@pytest.mark.proves("P4")
def test_a_trace_tells_prompt_steps_calls_verdicts_cache_and_cost(home: Home, provider: Provider) -> None:
    turn = ask_with_tool(home, provider)
    shown = home.do("trace", turn).out
    for words in (
        rf"{turn}  agent denizen  done  opened .* UTC, took [\d.]+ s",
        r"question: What is 6 \* 7\?",
        r"reply:\n  \| It is 42\.\n  \| Really\.",
        r"prompt from step 1 on, for local/scripted: about [\d,]+ tokens",
        r"  style +\d+ +[\d.]+%  config, sha256 [0-9a-f]{12}",
        r"  tools +[\d,]+ +[\d.]+%  .*calculator",
        r"  question +\d+ +[\d.]+%  1 message",
        r"step 1 act on \S+: 12 tokens in, 7 out, cost unknown, [\d,]+ ms",
        r'calculator {"expression": "6 \* 7"}: approve by \S+, tier 0 \(.+\), ran, [\d,]+ ms: 42$',
    ):
        assert re.search(words, shown, re.MULTILINE), (words, shown)
    assert "  | Answer briefly" not in shown
    assert "    | Answer briefly" in home.do("trace", "--texts", "--last").out


SMALL = """\
models:
  providers:
    local: {{kind: openai-compatible, base_url: "{url}"}}
  aliases: {{balanced: local/scripted}}
  overrides: {{local/scripted: {{small: true}}}}
agents:
  denizen: {{tools: [search_docs]{more}}}
"""


def ask_small(home: Home, provider: Provider, question: str, said: str, *, more: str = "") -> str:
    """A turn of an agent on a small model with a file of knowledge; its id. `more` are further keys of the agent."""
    home.write(SMALL.format(url=provider.server.openai_url, more=more))
    (home.folder / "knowledge").mkdir(exist_ok=True)
    (home.folder / "knowledge" / "loans.md").write_text("# Loans\n\nBoard games are lent for 7 days.\n")
    provider.script(ModelAnswer(text=said))
    answered = home.do("ask", "--json", question)
    assert answered.code == 0, answered.err
    return json.loads(answered.out)["turn"]


@pytest.mark.proves("P4")
def test_a_trace_shows_what_was_looked_up_before_a_small_model_was_asked(home: Home, provider: Provider) -> None:
    turn = ask_small(home, provider, "How long are board games lent?", "For 7 days.")
    shown = home.do("trace", turn).out
    unasked = (
        r"^looked up or done before the model was asked:\n  search_docs {.*}: approve by \S+, tier 0 \(.+\), ran, .*\n"
    )
    assert re.search(unasked + r"steps: 1, after these calls$", shown, re.MULTILINE), shown
    assert "  | 3: Board games" not in shown
    assert "    | 3: Board games are lent for 7 days.\n" in home.do("trace", "--texts", turn).out


@pytest.mark.proves("P4")
@pytest.mark.parametrize(
    ("said", "more"), [("[[unknown]]", ""), ("The club was founded in 1953.", ", answers_from: sources")]
)
def test_a_trace_tells_that_an_answer_was_replaced_and_a_replay_replaces_it_too(
    home: Home, provider: Provider, said: str, more: str
) -> None:
    turn = ask_small(home, provider, "Are board games lent by the club?", said, more=more)
    shown = home.do("trace", turn).out
    assert f"reply: {NOT_IN_SOURCES}\nreplaced: Denizen says so where " in shown
    provider.script(ModelAnswer(text=said))
    again = home.do("replay", turn).out
    assert again.startswith(f"{NOT_IN_SOURCES}\n\nThe answer is the same, word for word.\n"), again
    assert provider.server.bodies[-1]["messages"] == provider.server.bodies[-2]["messages"]
    ask_small(home, provider, "How long are board games lent?", "For 7 days.")
    assert "\nreplaced: " not in home.do("trace", "--last").out


def test_a_trace_as_json_is_what_the_server_gives_and_turns_are_found_by_their_beginning(
    home: Home, provider: Provider
) -> None:
    turn = ask_with_tool(home, provider)
    told = json.loads(home.do("trace", "--json", turn[:12]).out)
    assert (told["id"], told["question"], told["trace"]["prompts"][0]["segments"][0]["name"]) == (
        turn,
        "What is 6 * 7?",
        "persona",
    )
    assert json.loads(home.do("trace", "--json", "--last", "--agent", "denizen").out) == told
    with home.serve() as server:
        served = server.get(f"/api/turns/{turn}")
    assert (served.status, served.body) == (200, told)


def test_a_turn_that_is_not_there_is_explained(home: Home, provider: Provider) -> None:
    turn = ask_with_tool(home, provider)
    wrong = home.do("trace", f"{turn[:-1]}x")
    assert wrong.code == 2
    assert f"Did you mean {turn}?" in wrong.err
    assert "denizen trace --last" in home.do("trace", "nonsense").err
    assert "Which turn?" in home.do("trace").err
    missing = home.do("trace", "--last", "--agent", "terse").err
    assert "no turn of terse" in missing and "denizen ask" in missing


@pytest.mark.proves("P4")
def test_a_replay_shows_the_new_answer_the_difference_and_both_costs_and_records_nothing(
    home: Home, provider: Provider
) -> None:
    turn = ask_with_tool(home, provider)
    before = home.do("trace", "--json", "--last").out
    calls = [
        ModelCall("calculator", {"expression": "6 * 7"}, id="a"),
        ModelCall("calculator", {"expression": "1 + 1"}, id="b"),
    ]
    provider.script(ModelAnswer(calls=calls), ModelAnswer(text="It is 42.\nI am sure."))
    again = home.do("replay", turn, "--model", "local/other")
    assert again.code == 0, again.err
    assert provider.server.bodies[-1]["model"] == "other"
    results = [message["content"] for message in provider.server.bodies[-1]["messages"] if message["role"] == "tool"]
    assert results == ["42", "This call was not recorded, and nothing runs in a replay."]
    for words in (
        "It is 42.\nI am sure.\n",
        "--- then\n+++ now\n@@ -1,2 +1,2 @@\n It is 42.\n-Really.\n+I am sure.\n",
        "then: denizen on local/scripted: 2 steps, 24 tokens in, 14 out, cost unknown",
        "now:  denizen on local/other: 2 steps, 24 tokens in, 14 out, cost unknown; not recorded",
        'without a result: calculator {"expression": "1 + 1"}',
    ):
        assert words in again.out, again.out
    assert home.do("trace", "--json", "--last").out == before
    provider.script(ModelAnswer(text="It is 42.\nReally."))
    told = json.loads(home.do("replay", "--json", turn).out)
    assert (told["diff"], told["now"]["model"], told["unrecorded"]) == ("", "local/scripted", [])


PRICED = """\
models:
  providers:
    claude: {{kind: anthropic, base_url: "{url}", api_key: "${{KEY}}"}}
  aliases: {{balanced: claude/claude-sonnet-4-5}}
agents:
  denizen: {{}}
"""


@pytest.mark.proves("P4")
def test_trace_and_replay_tell_what_was_cached_and_what_it_cost(home: Home, provider: Provider) -> None:
    home.variables["KEY"] = "sk-ant-0123456789abcdef"
    home.write(PRICED.format(url=provider.server.url))
    calls = [ModelCall("calculator", {"expression": "6 * 7"})]
    provider.script(
        ModelAnswer(calls=calls, tokens=AnswerTokens(input=2000, output=100, cache_write=1000)),
        ModelAnswer(text="It is 42.", tokens=AnswerTokens(input=2100, output=10, cache_read=1000)),
        ModelAnswer(text="42.", tokens=AnswerTokens(input=2000, output=10)),
    )
    turn = json.loads(home.do("ask", "--json", "What is 6 * 7?").out)["turn"]
    shown = home.do("trace", turn).out
    for words in (
        "2,000 tokens in (0 read from the cache, 1,000 written to it, 1,000 new), 100 out, $0.00825, ",
        "2,100 tokens in (1,000 read from the cache, 0 written to it, 1,100 new), 10 out, $0.00375, ",
        "in all: 4,100 tokens in (1,000 read from the cache, 1,000 written to it, 2,100 new), 110 out, $0.012",
    ):
        assert words in shown, shown
    again = home.do("replay", turn, "--model", "claude/claude-haiku-4-5").out
    for words in (
        "then: denizen on claude/claude-sonnet-4-5: 2 steps, 4,100 tokens in (1,000 read from the cache, ",
        " 110 out, $0.012\n",
        "now:  denizen on claude/claude-haiku-4-5: 1 steps, 2,000 tokens in, 10 out, $0.00205; not recorded",
    ):
        assert words in again, again


def test_a_replay_of_a_turn_whose_agent_is_gone_says_what_to_name(home: Home, provider: Provider) -> None:
    turn = ask_with_tool(home, provider)
    home.write(home.config.read_text().replace("denizen: {}", "terse: {}"))
    refused = home.do("replay", turn)
    assert refused.code == 2
    assert "The agent 'denizen' of this turn is not configured any more." in refused.err
    provider.script(ModelAnswer(text="42."))
    assert "now:  terse on local/scripted" in home.do("replay", turn, "--agent", "terse").out


@pytest.mark.proves("C-inspect-payload", "X-max-output-tokens")
def test_the_prompt_of_a_question_is_shown_as_it_would_be_sent_and_nothing_is_sent_or_written(
    home: Home, provider: Provider
) -> None:
    ask_with_tool(home, provider)
    provider.script(ModelAnswer(text="Of course."))
    home.do("ask", "-s", "talk", "Remember 17.")
    sent, before = len(provider.server.bodies), home.do("trace", "--last").out
    shown = home.do("prompt", "-s", "talk", "Which number?")
    assert shown.code == 0, shown.err
    for words in (
        "To local/scripted, at most 4,096 tokens back; not sent\n",
        "system: style, config, about 8 tokens\n  | Answer briefly and to the point.\n",
        "tool: calculator {",
        "]\n  | Remember 17.\nassistant: history\n  | Of course.\nuser: question\n  | Which number?\n",
    ):
        assert words in shown.out, shown.out
    assert home.do("trace", "--last").out == before
    conversation = re.search(r"conv_\w+", before)
    assert conversation
    [told] = json.loads(home.do("prompt", "--json", "--conversation", conversation[0], "Which number?").out)
    assert len(provider.server.bodies) == sent
    provider.script(ModelAnswer(text="17."))
    home.do("ask", "-s", "talk", "Which number?")
    body = provider.server.bodies[-1]
    assert body["max_tokens"] == 4096
    assert [message["kind"] for message in told["messages"]] == ["history", "history", "question"]
    texts = [part["text"] for message in told["messages"] for part in message["parts"]]
    assert texts == [message["content"] for message in body["messages"] if message["role"] != "system"]
    assert [tool["name"] for tool in told["tools"]] == [tool["function"]["name"] for tool in body["tools"]]
    assert "".join(segment["text"] for segment in told["segments"]) in "".join(
        message["content"] for message in body["messages"] if message["role"] == "system"
    ).replace("\n\n", "")
