"""Where notes stand that only one request shows: behind what stays, so that it can be cached."""

from __future__ import annotations

from denizen.domain.message import Role, TextPart, join_text
from denizen.domain.prompt import PromptMessage, Stability
from denizen.engine.prompt.notes import append_notes, insert_notes_before_cue, insert_notes_before_question
from denizen.engine.prompt.system_prompt import transient_note


def make_messages(*texts: str, kind: str = "history") -> list[PromptMessage]:
    return [PromptMessage(Role.USER, (TextPart(text),), kind) for text in texts]


def list_texts(messages: list[PromptMessage]) -> list[str]:
    return [join_text(message.parts) for message in messages]


NOTES = [transient_note("by the way")]


def test_notes_stand_behind_everything_and_the_promise_ends_before_them() -> None:
    laid = append_notes(make_messages("hi", "and?"), NOTES)
    assert list_texts(laid) == ["hi", "and?", "[by the way]"]
    assert [message.stability for message in laid] == [Stability.TURN, Stability.SESSION, Stability.REQUEST]
    assert append_notes([], NOTES) == NOTES


def test_notes_stand_before_the_question_where_it_is_to_be_read_last() -> None:
    laid = insert_notes_before_question(make_messages("hi", "and?"), NOTES)
    assert list_texts(laid) == ["hi", "[by the way]", "and?"]
    assert [message.stability for message in laid] == [Stability.SESSION, Stability.REQUEST, Stability.TURN]
    assert [message.stability for message in insert_notes_before_question(make_messages("hi"), [])] == [
        Stability.SESSION
    ]
    assert list_texts(insert_notes_before_question(make_messages("hi"), NOTES)) == ["[by the way]", "hi"]


def test_a_participant_reads_notes_between_the_talk_and_its_cue() -> None:
    cue = make_messages("Ada:", kind="cue")
    assert list_texts(insert_notes_before_cue([*make_messages("Ana: hi"), *cue], NOTES)) == [
        "Ana: hi",
        "[by the way]",
        "Ada:",
    ]
    assert list_texts(insert_notes_before_cue(make_messages("Ana: hi"), NOTES)) == ["Ana: hi", "[by the way]"]
