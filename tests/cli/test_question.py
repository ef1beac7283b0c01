"""What `denizen ask` and `denizen prompt` take for the question: words, and what standard input has."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from denizen.cli import ask
from denizen.cli.ask import read_question


@contextmanager
def standard_input(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    with open(descriptor, encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        yield


@pytest.mark.parametrize("words", [("Summarise", "this"), ("Summarise", "this", "-"), ("-", "Summarise", "this")])
def test_what_is_piped_belongs_to_the_question(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"a change\n")
    os.close(writer)
    with standard_input(reader, monkeypatch):
        assert read_question(words) == "Summarise this\n\na change"


def test_a_file_belongs_to_the_question_unless_somebody_else_is_reading_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "questions"
    file.write_text("one\ntwo\n", encoding="utf-8")
    with standard_input(os.open(file, os.O_RDONLY), monkeypatch):
        assert read_question(("Sort:",)) == "Sort:\n\none\ntwo"
    begun = os.open(file, os.O_RDONLY)
    os.read(begun, 4)  # as `while read -r line` has
    with standard_input(begun, monkeypatch):
        assert read_question(("one",)) == "one"
        assert sys.stdin.read() == "two\n"


def test_a_pipe_in_which_nobody_writes_is_left_alone_and_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ask, "PIPE_GRACE_S", 0)
    reader, writer = os.pipe()
    with standard_input(reader, monkeypatch):
        assert read_question(("Hello",)) == "Hello"
    os.close(writer)
    assert capsys.readouterr().err == (
        "[Nothing came through the pipe within 0 s: the question goes without it. With - as a word it is waited for.]\n"
    )


def test_what_is_neither_a_pipe_nor_a_file_is_read_only_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with standard_input(os.open(os.devnull, os.O_RDONLY), monkeypatch):
        assert read_question(("Hello",)) == "Hello"
    assert capsys.readouterr().err == ""
