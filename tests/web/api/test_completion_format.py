"""The OpenAI wire format: requests that are read, and the text of a stream, in which nothing can be taken back."""

from typing import Any

import pytest

from denizen.domain.errors import InvalidInput
from denizen.domain.events import TextAdded
from denizen.domain.message import ImagePart, Role, TextPart
from denizen.domain.prompt import PromptMessage
from denizen.web.api.completion_format import StreamedText, parse_completion

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
    assert (asked.max_output_tokens, asked.temperature) == (40, 0.5)
    assert parse_completion(ask(max_tokens=50)).max_output_tokens == 50
    assert parse_completion(ask()).max_output_tokens is None


def test_usage_of_a_stream_is_asked_for_and_a_session_may_be_named() -> None:
    asked = parse_completion(ask(stream=True, stream_options={"include_usage": True}, metadata={"session": "s"}))
    assert (asked.stream, asked.include_usage, asked.session) == (True, True, "s")
    assert not parse_completion(ask(stream=True)).include_usage


def test_what_is_not_known_is_ignored() -> None:
    extras = {"top_k": 3, "logit_bias": {}, "seed": 1, "store": True, "tools": [], "n": 1, "stop": ["x"], "user": None}
    assert parse_completion(ask(**extras)) == parse_completion(ask())


@pytest.mark.parametrize(
    ("body", "code", "word"),
    [
        (ask(tools=[{"type": "function"}]), "tools_unsupported", "gate"),
        (ask(functions=[{"name": "f"}]), "tools_unsupported", "gate"),
        (ask(n=2), "n_unsupported", "choice"),
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
        (ask(messages=[{"role": "tool", "content": "x"}, user("hi")]), "messages_invalid", "'tool'"),
        (ask(messages=[{"role": ["user"], "content": "x"}]), "field_invalid", "'role' must be a string"),
        (ask(messages=[{"role": "assistant", "tool_calls": [{}]}, user("hi")]), "messages_invalid", "tool call"),
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
