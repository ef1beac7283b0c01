"""The text that a client of the OpenAI wire gets, where nothing can be taken back."""

import pytest

from denizen.domain.events import TextAdded
from denizen.web.api.completion_format import StreamedText

RETRACT = TextAdded("", retract=True)


def words(*texts: str) -> list[TextAdded]:
    return [TextAdded(text) for text in texts]


def read(events: list[TextAdded], reply: str, *, late: bool = False) -> str:
    wording = StreamedText()
    if not late:
        wording.begin()
    return "".join([*(wording.add(event) for event in events), wording.finish(reply)])


@pytest.mark.parametrize(
    ("events", "reply", "text"),
    [
        (words("Hel", "lo."), "Hello.", "Hello."),
        (words("\n ", " Hel", "lo.\n"), "Hello.", "Hello.\n"),
        ([], "Hello.", "Hello."),
        (words("Hel"), "Hello.", "Hello."),
        ([*words("Let me look."), RETRACT, *words("It is ", "noon.")], "It is noon.", "Let me look.\n\nIt is noon."),
        ([*words("Let me look."), RETRACT], "It is noon.", "Let me look.\n\nIt is noon."),
        ([RETRACT, *words("It is noon.")], "It is noon.", "It is noon."),
        (words("Hello [1]."), "Hello.", "Hello [1]."),
        ([*words("A"), TextAdded("B", retract=True)], "B", "A\n\nB"),
    ],
)
def test_what_was_streamed_and_what_is_missing_make_the_answer(events: list[TextAdded], reply: str, text: str) -> None:
    assert read(events, reply) == text


def test_a_reader_that_joined_late_gets_the_whole_answer_once() -> None:
    assert read(words("lo, ", "world."), "Hello, world.", late=True) == "Hello, world."
