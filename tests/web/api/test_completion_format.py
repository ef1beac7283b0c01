"""The OpenAI wire format: requests that are read, and the text of a stream, in which nothing can be taken back."""

from typing import Any

import pytest

from denizen.domain.demands import DEMANDS, OutputForm, StopFilter, demands_from_json, demands_to_json
from denizen.domain.errors import InvalidInput
from denizen.domain.events import TextAdded
from denizen.domain.ids import CallId
from denizen.domain.message import ImagePart, Role, TextPart, ToolCallPart, ToolResultPart
from denizen.domain.prompt import PromptMessage
from denizen.web.api.completion_format import StreamedText, parse_completion, write_arguments

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


def ask(**fields: Any) -> dict[str, Any]:
    return {"model": "denizen", "messages": [user("hi")], **fields}


def test_the_last_message_triggers_and_the_earlier_ones_are_history() -> None:
    asked = parse_completion(ask(messages=[user("one"), {"role": "assistant", "content": "two"}, user("three")]))
    assert asked.parts == (TextPart("three"),)
    assert asked.history == (
        PromptMessage(Role.USER, (TextPart("one"),)),
        PromptMessage(Role.ASSISTANT, (TextPart("two"),)),
    )


def test_system_and_developer_messages_become_instructions_wherever_they_stand() -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        user("hi"),
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
    ]
    asked = parse_completion(ask(messages=messages))
    assert asked.instructions == "Be kind.\n\nBe brief."
    assert (asked.parts, asked.history) == ((TextPart("hi"),), ())


def test_parts_of_text_and_pictures_are_taken() -> None:
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
        {"type": "image_url", "image_url": "https://example.org/a.png"},
    ]
    assert parse_completion(ask(messages=[user(content)])).parts == (
        TextPart("What is this?"),
        ImagePart(PIXEL, "image/png"),
        ImagePart("https://example.org/a.png"),
    )


@pytest.mark.parametrize(("model", "agent"), [("denizen", "denizen"), ("default", ""), ("", ""), (None, "")])
def test_the_model_names_an_agent_and_may_be_left_open(model: str | None, agent: str) -> None:
    assert parse_completion(ask(model=model)).model == agent


def test_limits_and_sampling_are_taken() -> None:
    asked = parse_completion(ask(max_tokens=50, max_completion_tokens=40, temperature=0.5))
    assert (asked.max_output_tokens, asked.demands.sampling.temperature) == (40, 0.5)
    assert parse_completion(ask(max_tokens=50)).max_output_tokens == 50
    assert parse_completion(ask()).max_output_tokens is None


def test_usage_of_a_stream_is_asked_for_and_a_session_may_be_named() -> None:
    asked = parse_completion(ask(stream=True, stream_options={"include_usage": True}, metadata={"session": "s"}))
    assert (asked.stream, asked.include_usage, asked.session) == (True, True, "s")
    assert not parse_completion(ask(stream=True)).include_usage


def test_fields_that_ask_for_nothing_are_accepted() -> None:
    extras = {
        "logit_bias": {},
        "store": True,
        "tools": [],
        "n": 1,
        "user": None,
        "logprobs": False,
        "modalities": ["text"],
    }
    usual = {
        "presence_penalty": 0.0,
        "service_tier": "auto",
        "response_format": {"type": "text"},
        "tool_choice": "auto",
    }
    assert parse_completion(ask(**extras, **usual)) == parse_completion(ask())


def test_sampling_stops_and_forms_are_demands() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "city", "schema": {"type": "object"}}}
    demands = parse_completion(ask(top_p=0.5, seed=7, stop="END", response_format=form)).demands
    assert (demands.sampling.top_p, demands.sampling.seed, demands.stop) == (0.5, 7, ("END",))
    assert demands.output == OutputForm({"type": "object"}, "city")
    assert demands_from_json({DEMANDS: demands_to_json(demands)}) == demands


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **more}}


def test_the_choice_of_a_tool_says_which_may_and_which_must_be_called() -> None:
    tools = [function("one"), function("two", strict=True)]
    chosen = [
        parse_completion(ask(tools=tools, tool_choice=choice)).demands.tools
        for choice in ("auto", "none", "required", {"type": "function", "function": {"name": "two"}})
    ]
    assert [sorted(each.names) for each in chosen] == [["one", "two"], [], ["one", "two"], ["two"]]
    assert [each.is_required for each in chosen] == [False, False, True, True]
    demands = parse_completion(ask(tools=tools, parallel_tool_calls=False)).demands
    assert (demands.tools.is_parallel, demands.tools.strict) == (False, frozenset({"two"}))
    assert demands_from_json({DEMANDS: demands_to_json(demands)}) == demands


def test_calls_and_results_are_history_and_results_at_the_end_are_answered() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "sky"}'}}
    talk = [user("hi"), {"role": "assistant", "content": None, "tool_calls": [call]}]
    result = {"role": "tool", "tool_call_id": "c1", "content": "blue"}
    asked = parse_completion(ask(messages=[*talk, result]))
    made = PromptMessage(Role.ASSISTANT, (ToolCallPart(CallId("c1"), "look", {"at": "sky"}),))
    told = ToolResultPart(CallId("c1"), "look", "blue")
    assert (asked.history[1:], asked.parts) == ((made,), (told,))
    later = parse_completion(ask(messages=[*talk, result, user("and?")]))
    assert (later.history[1:], later.parts) == ((made, PromptMessage(Role.TOOL, (told,))), (TextPart("and?"),))


def test_arguments_that_are_no_json_stay_as_they_were_written() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "sky!"}}
    asked = parse_completion(ask(messages=[user("hi"), {"role": "assistant", "tool_calls": [call]}, user("go on")]))
    [part] = asked.history[1].parts
    assert isinstance(part, ToolCallPart)
    assert write_arguments(part) == "sky!"


@pytest.mark.parametrize(
    ("change", "is_task"),
    [
        ({}, True),
        ({"messages": [user("### Task:\nClean the <chat_history>"), user("Please.")]}, False),
        ({"messages": [user("### Task: clean the kitchen")]}, False),
        ({"tools": [function("one")]}, False),
        ({"metadata": {"session": "trip"}}, False),
        ({"messages": [user("Name it.")], "metadata": {"task": "title_generation"}}, True),
    ],
)
def test_a_task_beside_a_conversation_is_told_from_a_question(change: dict[str, Any], *, is_task: bool) -> None:
    title = user("### Task:\nGenerate a title.\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>")
    assert parse_completion({"messages": [title]} | change).is_task is is_task


def test_nothing_of_a_stop_text_is_shown_in_whatever_pieces_it_comes() -> None:
    for size in range(1, 8):
        text, stop = "one two EN END three", StopFilter(("END", "three"))
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert ("".join(map(stop.feed, pieces)) + stop.finish(), stop.is_hit) == ("one two EN ", True)
    free = StopFilter(("END",))
    assert (free.feed("The EN") + free.finish(), free.is_hit) == ("The EN", False)


@pytest.mark.parametrize(
    ("body", "code", "word"),
    [
        (ask(tools=[{"type": "function"}]), "field_invalid", "tools[0]: name"),
        (ask(tools=[{"type": "web_search"}]), "tools_unsupported", "web_search"),
        (ask(tools=[function("a"), function("a")]), "tools_invalid", "'a'"),
        (ask(tools=[function("a", parameters={"type": "string"})]), "field_invalid", "type object"),
        (ask(tools=[function("a")], tool_choice="b"), "field_invalid", "tool_choice"),
        (ask(tools=[function("a")], tool_choice=["auto"]), "field_invalid", "tool_choice"),
        (ask(tool_choice="required"), "field_invalid", "with tools"),
        (ask(functions=[{"name": "f"}]), "functions_unsupported", "tools"),
        (ask(n=2), "n_unsupported", "one answer"),
        (ask(logprobs=True), "logprobs_unsupported", "logprobs"),
        (ask(frequency_penalty=0.5), "frequency_penalty_unsupported", "Leave"),
        (ask(reasoning_effort="high"), "reasoning_effort_unsupported", "configuration"),
        (ask(top_k=3), "field_unknown", "top_k"),
        (ask(temprature=1), "field_unknown", "Did you mean 'temperature'?"),
        (ask(stop=["a"] * 5), "field_invalid", "stop"),
        (ask(stop=""), "field_invalid", "stop"),
        (ask(seed=1.5), "field_invalid", "seed"),
        (ask(top_p=2), "field_invalid", "top_p"),
        (ask(response_format={"type": "grammar"}), "field_invalid", "json_schema"),
        (ask(response_format={"type": "json_schema", "json_schema": {"name": "x"}}), "field_invalid", "schema"),
        (ask(messages=[]), "field_invalid", "messages"),
        (ask(messages="hi"), "field_invalid", "messages"),
        (ask(messages=["hi"]), "field_invalid", "messages[0]"),
        (ask(messages=[{"role": "system", "content": "x"}]), "messages_invalid", "last message"),
        (ask(messages=[user("hi")] * 2001), "field_invalid", "1 to 2000"),
        (ask(messages=[{"role": "user", "content": [{"type": "text", "text": "x"}] * 1001}]), "field_invalid", "1000"),
        (ask(messages=[user("hi"), {"role": "assistant", "content": "x"}]), "messages_invalid", "last message"),
        (ask(messages=[user(" ")]), "message_empty", "empty"),
        (ask(messages=[user([])]), "message_empty", "empty"),
        (ask(messages=[user(None)]), "message_empty", "empty"),
        (ask(messages=[user(5)]), "field_invalid", "messages[0].content"),
        (ask(messages=[user(["x"])]), "field_invalid", "messages[0].content[0]"),
        (ask(messages=[{"role": "tool", "content": "x"}, user("hi")]), "field_invalid", "tool_call_id"),
        (ask(messages=[{"role": "tool", "tool_call_id": "1", "content": "x"}]), "messages_invalid", "not there"),
        (ask(messages=[{"role": "robot", "content": "x"}]), "messages_invalid", "'robot'"),
        (ask(messages=[{"role": ["user"], "content": "x"}]), "field_invalid", "'role' must be a string"),
        (ask(messages=[{"role": "assistant", "tool_calls": [{}]}, user("hi")]), "field_invalid", "tool_calls[0]"),
        (ask(messages=[{"content": "x"}]), "messages_invalid", "messages[0]"),
        (ask(messages=[user([{"type": "input_audio"}])]), "part_unsupported", "input_audio"),
        (ask(messages=[user([{"type": "image_url", "image_url": {}}])]), "image_invalid", "URL"),
        (ask(messages=[user([{"type": "image_url", "image_url": "http://x/a.png"}])]), "image_invalid", "URL"),
        (ask(messages=[user([{"type": "image_url", "image_url": "data:text/html,x"}])]), "image_invalid", "URL"),
        (ask(max_tokens=0), "field_invalid", "max_tokens"),
        (ask(max_tokens="x"), "field_invalid", "max_tokens"),
        (ask(max_tokens=True), "field_invalid", "max_tokens"),
        (ask(temperature=3), "field_invalid", "temperature"),
        (ask(temperature=float("nan")), "field_invalid", "temperature"),
        (ask(model=5), "field_invalid", "model"),
        (ask(stream="yes"), "field_invalid", "stream"),
        (ask(metadata=[]), "field_invalid", "metadata"),
    ],
)
def test_what_would_be_wrong_is_refused_and_named(body: dict[str, Any], code: str, word: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_completion(body)
    assert caught.value.code == code
    assert word in caught.value.explain()


# --- the text of a stream ---------------------------------------------------------------------------------------------

RETRACT = TextAdded("", retract=True)


def text_events(*texts: str) -> list[TextAdded]:
    return [TextAdded(text) for text in texts]


def read_stream(events: list[TextAdded], reply: str, *, late: bool = False) -> str:
    streamed = StreamedText()
    if not late:
        streamed.begin()
    return "".join([*(streamed.add(event) for event in events), streamed.finish(reply)])


@pytest.mark.parametrize(
    ("events", "reply", "text"),
    [
        (text_events("Hel", "lo."), "Hello.", "Hello."),
        (text_events("\n ", " Hel", "lo.\n"), "Hello.", "Hello.\n"),
        ([], "Hello.", "Hello."),
        (text_events("Hel"), "Hello.", "Hello."),
        (
            [*text_events("Let me look."), RETRACT, *text_events("It is ", "noon.")],
            "It is noon.",
            "Let me look.\n\nIt is noon.",
        ),
        ([*text_events("Let me look."), RETRACT], "It is noon.", "Let me look.\n\nIt is noon."),
        ([RETRACT, *text_events("It is noon.")], "It is noon.", "It is noon."),
        (text_events("Hello [1]."), "Hello.", "Hello [1]."),
        ([*text_events("A"), TextAdded("B", retract=True)], "B", "A\n\nB"),
    ],
)
def test_what_was_streamed_and_what_is_missing_make_the_answer(events: list[TextAdded], reply: str, text: str) -> None:
    assert read_stream(events, reply) == text


def test_a_reader_that_joined_late_gets_the_whole_answer_once() -> None:
    assert read_stream(text_events("lo, ", "world."), "Hello, world.", late=True) == "Hello, world."
